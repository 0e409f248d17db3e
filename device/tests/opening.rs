//! Libraries as they should not be, and how calls arrive in them: without a GPU, on libraries that are made here.
//!
//! A process opens its driver once, so each case has a process of its own.
#![cfg(target_os = "linux")]

use device::{Choice, Cublas, Gpu, Launch, Product, Type};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The variable that makes a test the process that opens the libraries.
const INSIDE: &str = "DEVICE_TEST_INSIDE";

/// A folder with libraries made of the sources in `fake`: drivers in folders of their own, and cuBLAS.
fn libraries() -> &'static Path {
    static MADE: OnceLock<PathBuf> = OnceLock::new();
    MADE.get_or_init(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("fake");
        for (source, to, flags) in [
            ("driver.rs", "driver/libcuda.so.1", &[][..]),
            ("driver.rs", "lacking/libcuda.so.1", &["--cfg", "lacking"]),
            ("cublas.rs", "cublas/some_name.so", &[]),
        ] {
            let to = folder.join(to);
            std::fs::create_dir_all(to.parent().unwrap()).unwrap();
            let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fake").join(source);
            let mut rustc = Command::new(std::env::var_os("RUSTC").unwrap_or("rustc".into()));
            rustc.args(["--edition=2024", "--crate-type=cdylib", "-o"]).args([&to, &source]).args(flags);
            let output = rustc.output().expect("rustc runs");
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        }
        // A cuBLAS that the system would find first, and that has nothing in it.
        std::fs::copy(folder.join("lacking/libcuda.so.1"), folder.join("driver/libcublas.so")).unwrap();
        folder
    })
}

/// What a test says in a process that finds this driver, with this wrong.
fn inside(test: &str, driver: &str, fake: &str, cublas: &str) -> String {
    let folder = libraries();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--nocapture", "--test-threads=1"]).env(INSIDE, "1").env("FAKE", fake);
    command.env("LD_LIBRARY_PATH", folder.join(driver)).env("CUBLAS", folder.join(cublas));
    command.env_remove("CUDA_VISIBLE_DEVICES");
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    said
}

fn is_inside() -> bool {
    std::env::var_os(INSIDE).is_some()
}

/// Each driver that cannot be used is told in a sentence, the second time as the first; nothing panics.
#[test]
fn a_driver_that_cannot_be_used_is_told() {
    if is_inside() {
        let why = Gpu::list().unwrap_err();
        assert_eq!(Gpu::open(&Choice::Any).err(), Some(why.clone()));
        return println!("[{why}]");
    }
    for (driver, fake, says) in [
        ("driver", "old", "the NVIDIA driver is too old: one for CUDA 12.2; PTX for Blackwell needs CUDA 12.8"),
        (
            "lacking",
            "",
            "the NVIDIA driver is too old: one without `cuTensorMapEncodeTiled`; PTX for Blackwell needs CUDA 12.8",
        ),
        ("lacking", "old", "the NVIDIA driver is too old: one for CUDA 12.2; PTX for Blackwell needs CUDA 12.8"),
        ("driver", "stub", "there is no NVIDIA driver: the libcuda that was found is a stub, made for linking only"),
        ("driver", "unknown", "the NVIDIA driver does not start: CUDA error 4711 ()"),
    ] {
        let said = inside("a_driver_that_cannot_be_used_is_told", driver, fake, "");
        assert!(said.contains(&format!("[{says}]")), "{driver}, {fake}: {said}");
    }
}

/// A launch arrives with every field in its place, and a status without a name comes back as its number.
#[test]
fn a_launch_arrives_as_it_was_made() {
    if !is_inside() {
        inside("a_launch_arrives_as_it_was_made", "driver", "", "");
        return;
    }
    let gpu = Gpu::open(&Choice::Any).unwrap();
    let about = gpu.about();
    assert_eq!((about.name.as_str(), about.cuda.as_str()), ("A fake", "13.1"));
    assert_eq!(about.uuid, "GPU-abababab-abab-abab-abab-abababababab");
    // The numbers of the attributes (CUDA driver API, `CUdevice_attribute`).
    assert_eq!((about.capability, about.sms, about.l2, about.shared), ((75, 76), 16, 38, 97));
    let kernel = gpu.load("", "anything").unwrap();
    assert_eq!((kernel.parameters(), kernel.usage().max_threads), (&[(0, 8)][..], 1024));
    let out = gpu.buffer("out", 64).unwrap();
    let launch = Launch {
        grid: [8, 3, 5],
        block: [64, 2, 1],
        cluster: Some([4, 3, 1]),
        dynamic_shared: 4096,
        parameters: vec![out.address().to_le_bytes().to_vec()],
    };
    gpu.launch(&kernel, &launch).unwrap();
    let words: Vec<u32> =
        out.read().unwrap().chunks_exact(4).map(|w| u32::from_le_bytes(w.try_into().unwrap())).collect();
    // Grid, block, shared memory, stream; one attribute, `CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION`, the cluster; the function; poison.
    assert_eq!(words, [8, 3, 5, 64, 2, 1, 4096, 2, 1, 4, 4, 3, 1, 4, u32::MAX, u32::MAX]);
    assert_eq!(out.touched().unwrap(), []);
    assert_eq!(gpu.synchronise("all").unwrap_err().to_string(), "all:  (CUDA error 918)");
    assert!(!gpu.is_dead());
}

/// The library that `CUBLAS` names is called, and not one that the system finds; a product arrives with every argument in its place.
#[test]
fn a_product_arrives_in_the_library_that_was_named() {
    if !is_inside() {
        inside("a_product_arrives_in_the_library_that_was_named", "driver", "", "cublas/some_name.so");
        return;
    }
    let gpu = Gpu::open(&Choice::Any).unwrap();
    let cublas = Cublas::open(&gpu).unwrap();
    assert_eq!(cublas.version(), "13.10.2");
    assert!(device::find_cublas().unwrap().ends_with("cublas/some_name.so"));
    let buffer = |name| gpu.buffer(name, 1024).unwrap();
    let (a, b, d) = (buffer("A"), buffer("B"), buffer("D"));
    a.fill(0x5a).unwrap();
    // cuBLAS counts in columns: its n is our m, and its A our B.
    let product = Product { element: Type::Bf16, m: 8, n: 16, k: 32, a: &a, b: &b, d: &d };
    cublas.multiply(&product, true).unwrap();
    assert_eq!(d.read().unwrap()[..3], [0x5a, 0x5a, 0xff]);
    let error = cublas.multiply(&product, false).unwrap_err().to_string();
    assert_eq!(error, "cuBLAS, 8x16x32: cuBLAS status 4711");
}

/// A cuBLAS that lacks a function is told, with its path.
#[test]
fn a_cublas_without_its_functions_is_told() {
    if is_inside() {
        return println!("[{}]", device::find_cublas().unwrap_err());
    }
    let said = inside("a_cublas_without_its_functions_is_told", "driver", "", "driver/libcublas.so");
    assert!(
        said.contains("[cuBLAS does not work: ") && said.contains("libcublas.so has no `cublasCreate_v2`]"),
        "{said}"
    );
}

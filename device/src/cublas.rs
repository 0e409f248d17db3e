//! cuBLAS: the product that others are held against.
#![allow(unsafe_code)] // Calls into cuBLAS.

use crate::buffer::Buffer;
use crate::error::Error;
use crate::gpu::Gpu;
use crate::library::{self, call, symbols};
use crate::unavailable::Unavailable;
use cudarc::cublas::sys;
use std::collections::BTreeMap;
use std::env;
use std::ffi::{c_int, c_void};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

symbols! {
    /// The functions of `libcublas`, as far as they are used here (cuBLAS library documentation).
    Functions {
        cublasCreate_v2
        cublasDestroy_v2
        cublasGetVersion_v2
        cublasSetStream_v2
        cublasSetWorkspace_v2
        cublasSetMathMode
        cublasGemmEx
    }
}

/// cuBLAS's `CUBLAS_STATUS_SUCCESS`.
const SUCCESS: c_int = sys::cublasStatus_t::CUBLAS_STATUS_SUCCESS as c_int;
/// The environment variable that names the library, or the folder that holds it.
const VARIABLE: &str = "CUBLAS";
/// Bytes of workspace: what cuBLAS recommends for Hopper and later (cuBLAS documentation, `cublasSetWorkspace`).
const WORKSPACE: u64 = 32 << 20;

/// Type of the matrices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// FP16.
    F16,
    /// BF16.
    Bf16,
}

/// `D = A · Bᵀ`, all row-major and without gaps: A is m × k, B is n × k, D is m × n. Sums are FP32.
pub struct Product<'a> {
    /// Type of all three matrices.
    pub element: Type,
    /// Rows of A and D.
    pub m: u32,
    /// Rows of B, columns of D.
    pub n: u32,
    /// Columns of A and B.
    pub k: u32,
    /// A.
    pub a: &'a Buffer,
    /// B.
    pub b: &'a Buffer,
    /// D.
    pub d: &'a Buffer,
}

/// cuBLAS on a GPU.
pub struct Cublas<'a> {
    gpu: &'a Gpu,
    functions: &'static Functions,
    handle: sys::cublasHandle_t,
    version: c_int,
    _workspace: Buffer,
}

/// The library, opened: where it lies. One that opens and does not start on a GPU is passed over by [`Cublas::open`] only.
///
/// # Errors
/// [`Unavailable`]: where it was looked for, and how to get it.
pub fn find() -> Result<PathBuf, Unavailable> {
    first(&all_candidates(), functions, |_, path| Ok(path.to_path_buf()))
}

fn all_candidates() -> Vec<PathBuf> {
    candidates(|name| env::var_os(name).map(PathBuf::from), folders)
}

/// The functions of a library, which is opened once. `None`: it does not open.
fn functions(path: &Path) -> Option<Result<&'static Functions, String>> {
    type Opened = BTreeMap<PathBuf, Result<&'static Functions, String>>;
    static OPENED: Mutex<Opened> = Mutex::new(BTreeMap::new());
    let mut opened = OPENED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(before) = opened.get(path) {
        return Some(before.clone());
    }
    let functions = match Functions::of(library::open_one(path)?) {
        Ok(functions) => Ok(&*Box::leak(Box::new(functions))),
        Err(lacks) => Err(format!("{} has no `{lacks}`", path.display())),
    };
    opened.insert(path.to_path_buf(), functions.clone());
    Some(functions)
}

/// What `start` makes of the first candidate that opens and starts. If none does: why not, of those that open.
fn first<F, T>(
    candidates: &[PathBuf],
    open: impl Fn(&Path) -> Option<Result<F, String>>,
    start: impl Fn(F, &Path) -> Result<T, String>,
) -> Result<T, Unavailable> {
    let mut fail: Vec<String> = Vec::new();
    for path in candidates {
        match open(path).map(|opened| opened.and_then(|functions| start(functions, path))) {
            None => {}
            Some(Ok(started)) => return Ok(started),
            Some(Err(why)) => fail.push(why),
        }
    }
    Err(match fail.is_empty() {
        true => Unavailable::NoCublas { looked_at: candidates.iter().map(|path| path.display().to_string()).collect() },
        false => Unavailable::CublasFails { why: fail.join("; ") },
    })
}

/// Folders in a folder, in order.
fn folders(of: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(of) else { return Vec::new() };
    let mut all: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
    all.sort_unstable();
    all
}

/// What is tried, in order: `CUBLAS`, the system's own, CUDA's folders, Python's wheels.
fn candidates(variable: impl Fn(&str) -> Option<PathBuf>, folders: impl Fn(&Path) -> Vec<PathBuf>) -> Vec<PathBuf> {
    let names: &[&str] =
        if cfg!(windows) { &["cublas64_13.dll", "cublas64_12.dll"] } else { &["libcublas.so.13", "libcublas.so.12"] };
    let within = |folder: PathBuf| names.iter().map(move |name| folder.join(name)).collect::<Vec<_>>();
    // What somebody asks for by name is the only thing that is tried.
    if let Some(chosen) = variable(VARIABLE).filter(|path| !path.as_os_str().is_empty()) {
        return if chosen.is_dir() { within(chosen) } else { vec![chosen] };
    }
    let mut all: Vec<PathBuf> = names.iter().map(PathBuf::from).collect();
    let cuda = ["CUDA_HOME", "CUDA_PATH"].into_iter().filter_map(&variable).chain([PathBuf::from("/usr/local/cuda")]);
    for folder in cuda {
        all.extend(within(folder.join("lib64")));
    }
    for python in [variable("VIRTUAL_ENV"), Some("/usr/local".into()), Some("/usr".into())].into_iter().flatten() {
        let versions = folders(&python.join("lib"))
            .into_iter()
            .filter(|folder| folder.file_name().is_some_and(|name| name.to_string_lossy().starts_with("python3")));
        for version in versions {
            for packages in ["site-packages", "dist-packages"] {
                // The wheel of CUDA 13, and those before.
                for wheel in ["nvidia/cu13/lib", "nvidia/cublas/lib"] {
                    all.extend(within(version.join(packages).join(wheel)).into_iter().filter(|path| path.is_file()));
                }
            }
        }
    }
    all
}

impl<'a> Cublas<'a> {
    /// Opens cuBLAS for a GPU: the first library that starts on it.
    ///
    /// # Errors
    /// Why there is none.
    pub fn open(gpu: &'a Gpu) -> Result<Cublas<'a>, Unavailable> {
        first(&all_candidates(), functions, |functions, path| Cublas::start(gpu, functions, path))
    }

    fn start(gpu: &'a Gpu, functions: &'static Functions, path: &Path) -> Result<Cublas<'a>, String> {
        let workspace = gpu.buffer("cuBLAS workspace", WORKSPACE).map_err(|error| error.to_string())?;
        let check = |what: &str, status| match status {
            SUCCESS => Ok(()),
            status => Err(format!("{what} of {}: {}", path.display(), status_text(status))),
        };
        let mut handle = std::ptr::null_mut();
        // It works in the context that is current.
        gpu.context.driver();
        // SAFETY: writes one handle.
        check("cublasCreate", unsafe { call!(sys, functions, cublasCreate_v2(&mut handle)) })?;
        // From here on it is given back, whatever goes wrong.
        let mut cublas = Cublas { gpu, functions, handle, version: 0, _workspace: workspace };
        // SAFETY: the first call writes one number; stream and workspace outlive the handle.
        unsafe {
            check("cublasGetVersion", call!(sys, functions, cublasGetVersion_v2(handle, &mut cublas.version)))?;
            check("cublasSetStream", call!(sys, functions, cublasSetStream_v2(handle, gpu.context.stream.cast())))?;
            let (place, bytes) = (cublas._workspace.address() as *mut c_void, WORKSPACE as usize);
            check("cublasSetWorkspace", call!(sys, functions, cublasSetWorkspace_v2(handle, place, bytes)))?;
        }
        Ok(cublas)
    }

    /// Its version: `13.1.0`.
    pub fn version(&self) -> String {
        let v = self.version;
        format!("{}.{}.{}", v / 10_000, v % 10_000 / 100, v % 100)
    }

    /// Computes a product. `exact`: sums stay FP32 up to the end, also where a sum is cut into parts; without it, cuBLAS may do what
    /// is fastest.
    ///
    /// # Errors
    /// When a buffer is too small, or what cuBLAS says.
    pub fn multiply(&self, product: &Product, exact: bool) -> Result<(), Error> {
        let Product { element, m, n, k, a, b, d } = *product;
        let what = format!("cuBLAS, {m}x{n}x{k}");
        for (buffer, rows, columns) in [(a, m, k), (b, n, k), (d, m, n)] {
            let needed = 2 * u64::from(rows) * u64::from(columns);
            if (buffer.bytes() as u64) < needed {
                let why = format!("`{}` has {} bytes; {needed} are needed", buffer.name(), buffer.bytes());
                return Err(Error::refused(what, why));
            }
        }
        let number = |value: u32| c_int::try_from(value).map_err(|_| Error::refused(&what, "it is too large"));
        let (m, n, k) = (number(m)?, number(n)?, number(k)?);
        let ty = match element {
            Type::F16 => sys::cudaDataType::CUDA_R_16F,
            Type::Bf16 => sys::cudaDataType::CUDA_R_16BF,
        };
        let mode = match exact {
            true => sys::cublasMath_t::CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION,
            false => sys::cublasMath_t::CUBLAS_DEFAULT_MATH,
        };
        let (one, zero) = (1.0f32, 0.0f32);
        // It works in the context that is current.
        self.gpu.context.driver();
        // cuBLAS counts in columns: Dᵀ = B · Aᵀ, where its B is our B transposed, and its A ours as it lies.
        // SAFETY: the buffers hold so many elements (checked above); the factors are read before the calls return.
        let status = unsafe {
            match call!(sys, self.functions, cublasSetMathMode(self.handle, mode)) {
                SUCCESS => call!(
                    sys,
                    self.functions,
                    cublasGemmEx(
                        self.handle,
                        sys::cublasOperation_t::CUBLAS_OP_T,
                        sys::cublasOperation_t::CUBLAS_OP_N,
                        n,
                        m,
                        k,
                        (&raw const one).cast(),
                        b.address() as *const c_void,
                        ty,
                        k,
                        a.address() as *const c_void,
                        ty,
                        k,
                        (&raw const zero).cast(),
                        d.address() as *mut c_void,
                        ty,
                        n,
                        sys::cublasComputeType_t::CUBLAS_COMPUTE_32F,
                        sys::cublasGemmAlgo_t::CUBLAS_GEMM_DEFAULT,
                    )
                ),
                status => status,
            }
        };
        if status == SUCCESS { Ok(()) } else { Err(Error::refused(what, status_text(status))) }
    }
}

impl Drop for Cublas<'_> {
    fn drop(&mut self) {
        if !self.gpu.is_dead() {
            // SAFETY: nobody else holds the handle.
            unsafe { call!(sys, self.functions, cublasDestroy_v2(self.handle)) };
        }
    }
}

/// A status of cuBLAS in words.
fn status_text(status: c_int) -> String {
    let words = match status {
        1 => "not initialised (the driver may be too old for it)",
        3 => "no memory",
        7 => "a value that it does not take",
        8 => "not for this GPU",
        11 => "no access to memory",
        13 => "the GPU did not run it",
        14 => "an error of its own",
        15 => "not supported",
        _ => return format!("cuBLAS status {status}"),
    };
    format!("{words} (cuBLAS status {status})")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_that_opens_and_does_not_start_is_passed_over() {
        let candidates = ["absent", "old", "lacking", "new"].map(PathBuf::from);
        let open = |path: &Path| match path.to_str() {
            Some("absent") => None,
            Some("lacking") => Some(Err("lacking has no `cublasGemmEx`".to_string())),
            _ => Some(Ok(())),
        };
        let start = |(), path: &Path| match path.to_str() {
            Some("old") => Err("cublasCreate of old: not initialised".to_string()),
            _ => Ok(path.to_path_buf()),
        };
        assert_eq!(first(&candidates, open, start), Ok(PathBuf::from("new")));
        let why = first(&candidates[..3], open, start).unwrap_err().to_string();
        assert_eq!(why, "cuBLAS does not work: cublasCreate of old: not initialised; lacking has no `cublasGemmEx`");
        assert!(matches!(first(&candidates[..1], open, start), Err(Unavailable::NoCublas { .. })));
    }

    #[test]
    #[cfg(unix)]
    fn who_names_a_library_gets_that_one_or_none() {
        let variable = |name: &str| (name == "CUBLAS").then(|| PathBuf::from("/opt/libcublas.so.13"));
        assert_eq!(candidates(variable, |_| Vec::new()), [PathBuf::from("/opt/libcublas.so.13")]);
        let cuda = |name: &str| (name == "CUDA_HOME").then(|| PathBuf::from("/opt/cuda"));
        let all = candidates(cuda, |_| Vec::new());
        assert_eq!(all[0], PathBuf::from("libcublas.so.13"));
        assert!(all.contains(&PathBuf::from("/opt/cuda/lib64/libcublas.so.13")), "{all:?}");
    }
}

//! On a GPU: each of these skips with a sentence where there is none that runs its kernel.

use device::{
    Buffer, Choice, Cublas, Element, Failure, Gpu, Kernel, Launch, Product, Swizzle, Target, TensorMap, Type,
};
use std::process::Command;
use std::time::{Duration, Instant};

const ADD: &str = include_str!("kernels/add.ptx");
const HOPPER: &str = include_str!("kernels/hopper.ptx");
const LIMIT: Duration = Duration::from_secs(10);

/// A GPU that runs this text, or a sentence that says why the test is skipped.
fn gpu_for(ptx: &str) -> Option<Gpu> {
    let target = Target::of(ptx).expect("the text names a target");
    match Gpu::open(&Choice::Runs(target)) {
        Ok(gpu) => Some(gpu),
        Err(why) => {
            println!("skipped: {why}; {}", why.way_out());
            None
        }
    }
}

fn launch(ctas: u32, threads: u32, parameters: Vec<Vec<u8>>) -> Launch {
    Launch { grid: [ctas, 1, 1], block: [threads, 1, 1], parameters, ..Launch::default() }
}

fn pointer(buffer: &Buffer) -> Vec<u8> {
    buffer.address().to_le_bytes().to_vec()
}

fn floats(values: impl Iterator<Item = f32>) -> Vec<u8> {
    values.flat_map(f32::to_le_bytes).collect()
}

fn words(bytes: &[u8]) -> Vec<u32> {
    bytes.chunks_exact(4).map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]])).collect()
}

/// Two vectors, added; the time of the launch is one that events took.
#[test]
fn adds_two_vectors() {
    let Some(gpu) = gpu_for(ADD) else { return };
    let (count, threads) = (1000u32, 128);
    let kernel = gpu.load(ADD, "add").unwrap();
    let buffer = |name, values: Vec<u8>| {
        let buffer = gpu.buffer(name, 4 * u64::from(count)).unwrap();
        buffer.write(&values).unwrap();
        buffer
    };
    let a = buffer("a", floats((0..count).map(|n| n as f32)));
    let b = buffer("b", floats((0..count).map(|n| 0.5 - n as f32 * 3.0)));
    let c = gpu.buffer("c", 4 * u64::from(count)).unwrap();
    assert!(c.read().unwrap().iter().all(|byte| *byte == 0xff), "a new buffer is poisoned");
    let parameters = vec![pointer(&a), pointer(&b), pointer(&c), count.to_le_bytes().to_vec()];
    let launch = launch(count.div_ceil(threads), threads, parameters);
    let milliseconds = gpu.launch_bounded(&kernel, &launch, LIMIT).unwrap();
    assert!(milliseconds > 0.0 && milliseconds < 1000.0, "{milliseconds} ms");
    assert_eq!(c.read().unwrap(), floats((0..count).map(|n| 0.5 - n as f32 * 2.0)));
    for buffer in [&a, &b, &c] {
        assert_eq!(buffer.touched().unwrap(), []);
    }
    // A wrong launch is refused, and the GPU goes on.
    let short = Launch { parameters: launch.parameters[..3].to_vec(), ..launch.clone() };
    let error = gpu.launch(&kernel, &short).unwrap_err();
    let says = "launch of `add` on 8x1x1 CTAs of 128 threads: 3 parameters are given; the kernel takes 4";
    assert_eq!(error.to_string(), says);
    assert!(!gpu.is_dead());
    gpu.launch_bounded(&kernel, &launch, LIMIT).unwrap();
}

/// What is written next to a buffer is found, byte by byte, on both sides.
#[test]
fn guard_zones_catch_what_is_written_next_to_a_buffer() {
    let Some(gpu) = gpu_for(ADD) else { return };
    let kernel = gpu.load(ADD, "poke").unwrap();
    let buffer = gpu.buffer("D", 100).unwrap();
    let poke = |at: u64| gpu.launch_bounded(&kernel, &launch(1, 1, vec![at.to_le_bytes().to_vec()]), LIMIT).unwrap();
    poke(buffer.address() + 99);
    assert_eq!(buffer.touched().unwrap(), []);
    poke(buffer.address() + 103);
    poke(buffer.address() - 1);
    let touched: Vec<String> = buffer.touched().unwrap().iter().map(ToString::to_string).collect();
    let before = "something wrote before `D`: byte -1 of its 100";
    assert_eq!(touched, [before, "something wrote behind `D`: byte 103 of its 100"]);
}

/// The driver's assembler names the line, and an entry that is not there is named.
#[test]
fn text_that_does_not_assemble_is_told_with_its_line() {
    let Some(gpu) = gpu_for(ADD) else { return };
    let broken = ADD.replace("add.f32 %x, %x, %y;", "add.f32 %x, %x, %nothing;");
    let line = broken.lines().position(|line| line.contains("%nothing")).unwrap() + 1;
    let error = gpu.load(&broken, "add").err().expect("it does not assemble");
    assert!(error.log.contains(&format!("line {line}")) && error.log.contains("%nothing"), "{error}");
    assert_eq!(error.name, "CUDA_ERROR_INVALID_PTX");
    let error = gpu.load(ADD, "subtract").err().expect("there is no such entry");
    assert!(error.to_string().contains("has no entry `subtract`"), "{error}");
    assert!(!gpu.is_dead());
}

/// Where a byte of a box goes in shared memory (PTX ISA, tensor swizzling modes).
fn swizzled(swizzle: Swizzle, a: usize) -> usize {
    match swizzle {
        Swizzle::None => a,
        Swizzle::B32 => a ^ (a >> 7 & 1) << 4,
        Swizzle::B64 => a ^ (a >> 7 & 3) << 4,
        Swizzle::B128 => a ^ (a >> 7 & 7) << 4,
        Swizzle::B128Atom32 => a ^ (a >> 7 & 3) << 5,
        Swizzle::B128Atom32Flip8 => a ^ (a >> 7 & 3) << 5 ^ (a >> 7 & 1) << 3,
        Swizzle::B128Atom64 => a ^ (a >> 7 & 1) << 6,
    }
}

/// A box with each swizzle lies in shared memory where the PTX ISA says.
#[test]
fn tensor_maps_bring_boxes_with_each_swizzle() {
    let Some(gpu) = gpu_for(HOPPER) else { return };
    let kernel = gpu.load(HOPPER, "box").unwrap();
    let (columns, rows, box_rows) = (128usize, 40usize, 16usize);
    let tensor: Vec<u8> = (0..columns * rows).flat_map(|n| (n as u16).to_le_bytes()).collect();
    let global = gpu.buffer("tensor", tensor.len() as u64).unwrap();
    global.write(&tensor).unwrap();
    // Atomicity came with Blackwell.
    let late = [Swizzle::B128Atom32, Swizzle::B128Atom32Flip8, Swizzle::B128Atom64];
    let late = if gpu.about().capability() >= 100 { &late[..] } else { &[] };
    for &swizzle in [Swizzle::None, Swizzle::B32, Swizzle::B64, Swizzle::B128].iter().chain(late) {
        let row_bytes = match swizzle {
            Swizzle::B32 => 32,
            Swizzle::B64 => 64,
            _ => 128,
        };
        let map = TensorMap {
            element: Element::U16,
            address: global.address(),
            dims: vec![columns as u64, rows as u64],
            strides: vec![2 * columns as u64],
            box_dims: vec![row_bytes as u32 / 2, box_rows as u32],
            element_strides: vec![],
            swizzle,
            fill_nan: false,
        };
        let bytes = row_bytes * box_rows;
        let out = gpu.buffer("out", bytes as u64).unwrap();
        // The last rows of the box hang over the tensor's edge: they read as zero.
        let (x, y) = (8usize, 30usize);
        let number = |value: usize| (value as u32).to_le_bytes().to_vec();
        let parameters = vec![map.encode().unwrap().to_vec(), pointer(&out), number(bytes), number(x), number(y)];
        gpu.launch_bounded(&kernel, &launch(1, 32, parameters), LIMIT).unwrap();
        let found = out.read().unwrap();
        for n in 0..bytes {
            let (row, byte) = (n / row_bytes + y, n % row_bytes + 2 * x);
            let expected = if row < rows { tensor[row * 2 * columns + byte] } else { 0 };
            assert_eq!(found[swizzled(swizzle, n)], expected, "{swizzle:?}: byte {n} of the box");
        }
    }
    let error = TensorMap {
        element: Element::U16,
        address: global.address() + 8,
        dims: vec![8],
        strides: vec![],
        box_dims: vec![8],
        element_strides: vec![],
        swizzle: Swizzle::None,
        fill_nan: false,
    };
    assert!(error.encode().unwrap_err().to_string().contains("`address` is"));
}

/// Clusters by the launch, by the text, and where the two do not agree.
#[test]
fn clusters_are_launched() {
    let Some(gpu) = gpu_for(HOPPER) else { return };
    let (places, pairs) = (gpu.load(HOPPER, "places").unwrap(), gpu.load(HOPPER, "pairs").unwrap());
    let out = gpu.buffer("out", 32).unwrap();
    let run = |kernel: &Kernel, cluster| {
        let launch = Launch { cluster, ..launch(8, 32, vec![pointer(&out)]) };
        gpu.launch_bounded(kernel, &launch, LIMIT).map(|_| words(&out.read().unwrap()))
    };
    assert_eq!(run(&places, None).unwrap(), [1; 8]);
    assert_eq!(run(&places, Some([4, 1, 1])).unwrap(), [4, 260, 516, 772, 4, 260, 516, 772]);
    assert_eq!(run(&pairs, Some([2, 1, 1])).unwrap(), [2; 8]);
    let error = run(&pairs, Some([4, 1, 1])).unwrap_err().to_string();
    assert!(error.ends_with("the PTX text asks for clusters of 2x1x1; the launch has clusters of 4x1x1"), "{error}");
    let error = run(&pairs, None).unwrap_err().to_string();
    assert!(error.ends_with("the PTX text asks for clusters of 2x1x1; the launch has no clusters"), "{error}");
    assert!(!gpu.is_dead());
}

/// More shared memory than a CTA has without asking; and more than there is.
#[test]
fn dynamic_shared_memory_reaches_what_a_cta_can_have() {
    let Some(gpu) = gpu_for(HOPPER) else { return };
    let kernel = gpu.load(HOPPER, "large").unwrap();
    let out = gpu.buffer("out", 4).unwrap();
    let run = |bytes: u32| {
        let parameters = vec![pointer(&out), bytes.to_le_bytes().to_vec()];
        let launch = Launch { dynamic_shared: bytes, ..launch(1, 1, parameters) };
        gpu.launch_bounded(&kernel, &launch, LIMIT).map(|_| words(&out.read().unwrap())[0])
    };
    let most = gpu.about().shared;
    assert_eq!(run(most).unwrap(), most);
    let error = run(most + 16).unwrap_err().to_string();
    assert!(error.contains(&format!("{} bytes of dynamic and 0 of static shared memory", most + 16)), "{error}");
}

/// A launch that was prepared keeps its shared memory, whatever is prepared behind it.
#[test]
fn a_smaller_launch_takes_no_shared_memory_from_a_larger_one() {
    let Some(gpu) = gpu_for(HOPPER) else { return };
    let kernel = gpu.load(HOPPER, "large").unwrap();
    let out = gpu.buffer("out", 4).unwrap();
    let most = gpu.about().shared;
    let launch = |bytes: u32| {
        let parameters = vec![pointer(&out), bytes.to_le_bytes().to_vec()];
        Launch { dynamic_shared: bytes, ..launch(1, 1, parameters) }
    };
    let larger = gpu.prepare(&kernel, &launch(most)).unwrap();
    let smaller = gpu.prepare(&kernel, &launch(64 << 10)).unwrap();
    for (prepared, bytes) in [(&larger, most), (&smaller, 64 << 10)] {
        prepared.launch().unwrap();
        assert_eq!(words(&out.read().unwrap()), [bytes]);
    }
}

/// Memory that is not there is the machine's, and a launch that asks for too much its own.
#[test]
fn a_full_gpu_is_no_fault_of_a_launch() {
    let Some(gpu) = gpu_for(HOPPER) else { return };
    let error = gpu.buffer("D", 2 * gpu.about().memory).map(|_| ()).unwrap_err();
    assert!(error.of_the_machine && error.name == "CUDA_ERROR_OUT_OF_MEMORY" && !gpu.is_dead(), "{error:?}");
    let kernel = gpu.load(HOPPER, "large").unwrap();
    let shared = Launch { dynamic_shared: gpu.about().shared + 16, ..launch(1, 1, vec![vec![0; 8], vec![0; 4]]) };
    let error = gpu.prepare(&kernel, &shared).map(|_| ()).unwrap_err();
    assert!(!error.of_the_machine, "{error:?}");
}

/// A product of small integers, which FP32 sums hold exactly.
#[test]
fn cublas_multiplies_as_a_cpu_does() {
    let Some(gpu) = gpu_for(ADD) else { return };
    let cublas = match Cublas::open(&gpu) {
        Ok(cublas) => cublas,
        Err(why) => return println!("skipped: {why}; {}", why.way_out()),
    };
    let (m, n, k) = (48u32, 80u32, 64u32);
    // BF16 is the upper half of FP32: exact for these.
    let bits = |value: i32| ((value as f32).to_bits() >> 16) as u16;
    let a: Vec<i32> = (0..m * k).map(|i| (i * 7 % 11) as i32 - 5).collect();
    let b: Vec<i32> = (0..n * k).map(|i| (i * 5 % 7) as i32 - 3).collect();
    let matrix = |name, values: &[i32]| {
        let bytes: Vec<u8> = values.iter().flat_map(|value| bits(*value).to_le_bytes()).collect();
        let buffer = gpu.buffer(name, bytes.len() as u64).unwrap();
        buffer.write(&bytes).unwrap();
        buffer
    };
    let (ga, gb) = (matrix("A", &a), matrix("B", &b));
    let d = gpu.buffer("D", 2 * u64::from(m * n)).unwrap();
    let product = Product { element: Type::Bf16, m, n, k, a: &ga, b: &gb, d: &d };
    for exact in [true, false] {
        d.fill(0xff).unwrap();
        cublas.multiply(&product, exact).unwrap();
        let found = d.read().unwrap();
        for row in 0..m as usize {
            for column in 0..n as usize {
                let k = k as usize;
                let sum: i32 = (0..k).map(|i| a[row * k + i] * b[column * k + i]).sum();
                // Rounded once, to nearest even.
                let wide = (sum as f32).to_bits();
                let expected = ((wide + 0x7fff + (wide >> 16 & 1)) >> 16) as u16;
                let at = 2 * (row * n as usize + column);
                let value = u16::from_le_bytes([found[at], found[at + 1]]);
                assert_eq!(value, expected, "row {row}, column {column}: {sum}");
            }
        }
    }
    assert_eq!(d.touched().unwrap(), []);
    let small = gpu.buffer("D", 16).unwrap();
    let error = cublas.multiply(&Product { d: &small, ..product }, true).unwrap_err().to_string();
    assert_eq!(error, "cuBLAS, 48x80x64: `D` has 16 bytes; 7680 are needed");
    println!("cuBLAS {}", cublas.version());
}

/// Events tell times in their order, and a buffer larger than L2 can be written.
#[test]
fn events_take_times() {
    let Some(gpu) = gpu_for(ADD) else { return };
    let flusher = gpu.flusher().unwrap();
    let (begin, middle, end) = (gpu.event().unwrap(), gpu.event().unwrap(), gpu.event().unwrap());
    begin.record().unwrap();
    flusher.fill(1).unwrap();
    middle.record().unwrap();
    for _ in 0..20 {
        flusher.fill(2).unwrap();
    }
    end.record().unwrap();
    gpu.wait("twenty-one fills", &end, LIMIT).unwrap();
    let (one, twenty) = (begin.milliseconds_to(&middle).unwrap(), middle.milliseconds_to(&end).unwrap());
    assert!(one > 0.0 && twenty > one, "one fill took {one} ms, twenty took {twenty} ms");
}

/// The variable that makes one of the tests below the process that is lost.
const LOST: &str = "DEVICE_TEST_LOSES_ITS_PROCESS";

/// Runs one of the tests below in a process of its own; what it printed, and how it ended.
fn in_a_process(test: &str) -> (String, Option<i32>) {
    let program = std::env::current_exe().unwrap();
    let mut command = Command::new(program);
    command.args(["--exact", test, "--nocapture", "--test-threads=1"]).env(LOST, "1");
    let output = command.output().unwrap();
    (String::from_utf8_lossy(&output.stdout).into_owned(), output.status.code())
}

/// A kernel that never ends is found in time, its process can be left, and the next one gets a GPU that works.
#[test]
fn a_kernel_that_hangs_is_found_and_left() {
    let Some(gpu) = gpu_for(ADD) else { return };
    if std::env::var_os(LOST).is_some() {
        let kernel = gpu.load(ADD, "spin").unwrap();
        let begin = Instant::now();
        let limit = Duration::from_millis(500);
        let failure = gpu.launch_bounded(&kernel, &launch(4, 32, vec![1u32.to_le_bytes().to_vec()]), limit);
        assert!(begin.elapsed() < Duration::from_secs(5));
        assert!(matches!(failure, Err(Failure::Hung { .. })) && gpu.is_dead(), "{failure:?}");
        println!("{}", failure.unwrap_err());
        device::leave(42);
    }
    drop(gpu);
    let begin = Instant::now();
    let (said, status) = in_a_process("a_kernel_that_hangs_is_found_and_left");
    assert_eq!(status, Some(42), "{said}");
    assert!(
        said.contains("launch of `spin` on 4x1x1 CTAs of 32 threads: the kernel did not end within 0.5 s"),
        "{said}"
    );
    assert!(begin.elapsed() < Duration::from_secs(60), "the process was left after {:?}", begin.elapsed());
    let gpu = gpu_for(ADD).expect("the GPU is there as before");
    let kernel = gpu.load(ADD, "spin").unwrap();
    gpu.launch_bounded(&kernel, &launch(1, 32, vec![0u32.to_le_bytes().to_vec()]), LIMIT).unwrap();
}

/// An illegal address is told with its launch; the context is dead, the process is not.
#[test]
fn an_illegal_address_kills_the_context_and_says_so() {
    let Some(gpu) = gpu_for(ADD) else { return };
    if std::env::var_os(LOST).is_some() {
        let kernel = gpu.load(ADD, "poke").unwrap();
        let failure =
            gpu.launch_bounded(&kernel, &launch(1, 1, vec![16u64.to_le_bytes().to_vec()]), LIMIT).unwrap_err();
        println!("{failure}");
        assert!(gpu.is_dead());
        assert!(gpu.buffer("more", 16).is_err(), "nothing works in a dead context");
        device::leave(43);
    }
    drop(gpu);
    let (said, status) = in_a_process("an_illegal_address_kills_the_context_and_says_so");
    assert_eq!(status, Some(43), "{said}");
    let says = "launch of `poke` on 1x1x1 CTAs of 1 threads: a thread or a copy touched memory that is not mapped: an \
                illegal address (CUDA_ERROR_ILLEGAL_ADDRESS); the context is dead";
    assert!(said.contains(says), "{said}");
}

/// What is known of a GPU is plausible, and NVML tells the same GPU's clocks.
#[test]
fn a_gpu_tells_what_it_is() {
    let Some(gpu) = gpu_for(ADD) else { return };
    let about = gpu.about();
    println!("{about:?}");
    assert!(about.uuid.starts_with("GPU-") && about.sms > 0 && about.l2 > 0 && about.shared >= 48 << 10);
    assert!(gpu.free_memory().unwrap() <= about.memory);
    match device::nvml::Nvml::get().ok().and_then(|nvml| nvml.device(&about.uuid)) {
        Some(device) => {
            let state = device.state();
            println!("{state:?}, {} bytes free, {} % busy", device.free(), device.busy());
            assert!(state.clock.is_some() && state.temperature.is_some(), "{state:?}");
        }
        None => println!("skipped: NVML does not know {}", about.uuid),
    }
}

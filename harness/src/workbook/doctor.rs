//! `doctor`: what this machine can do for the workbook, and what to do about what is missing.

use crate::device::{Device, VARIABLE};
use crate::process;
use crate::ptxas;
use crate::steps::TARGET;
use device::{About, Choice, Gpu, Target, Unavailable, nvml};
use std::fmt::Write;
use std::fs;
use std::process::Command;
use std::thread;
use std::time::Duration;

/// What a machine has.
#[derive(Clone, Debug)]
pub struct Machine {
    /// Threads that run at once.
    pub cores: usize,
    /// Bytes of memory, where the system tells.
    pub memory: Option<u64>,
    /// The assembler: version and place, or why there is none.
    pub ptxas: Result<String, String>,
    /// The GPUs, each with how it is now if NVML tells; or why there are none.
    pub gpus: Result<Vec<(About, Option<nvml::State>)>, Unavailable>,
    /// UUID of the GPU that runs the steps' kernels, or why none does.
    pub chosen: Result<String, Unavailable>,
    /// Where cuBLAS lies.
    pub cublas: Result<String, Unavailable>,
    /// Whether NVML opens.
    pub nvml: Result<(), Unavailable>,
    /// What `WORKBOOK_DEVICE` holds, if it is set, and what comes of it: a device, or an error.
    pub asked: Option<(String, Result<String, String>)>,
}

impl Machine {
    /// This one.
    pub fn look() -> Machine {
        let target = Target::named(TARGET).map_or(Choice::Any, Choice::Runs);
        let state = |about: &About| nvml::Nvml::get().ok()?.device(&about.uuid).map(|device| device.state());
        let with_state = |about: About| {
            let state = state(&about);
            (about, state)
        };
        Machine {
            cores: thread::available_parallelism().map_or(1, usize::from),
            memory: memory(),
            ptxas: assembler(),
            gpus: Gpu::list().map(|all| all.into_iter().map(with_state).collect()),
            chosen: Gpu::choose(&target).map(|about| about.uuid),
            cublas: device::find_cublas().map(|path| path.display().to_string()),
            nvml: nvml::Nvml::get().map(|_| ()),
            asked: std::env::var_os(VARIABLE).map(|value| {
                let value = value.to_string_lossy().into_owned();
                let device = Device::named(&value, TARGET).map(|(device, _)| device.to_string());
                (value, device)
            }),
        }
    }
}

/// Bytes of memory, where Linux tells.
fn memory() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib << 10)
}

/// The assembler's version and place. One that does not run is none.
fn assembler() -> Result<String, String> {
    let path = ptxas::find()?;
    let place = path.display().to_string();
    let ended = process::run(Command::new(&path).arg("--version"), Duration::from_secs(10))
        .map_err(|failure| failure.to_string())?;
    // `Cuda compilation tools, release 13.0, V13.0.88`.
    let version = ended.stdout.split("release ").nth(1).and_then(|rest| rest.split(',').next());
    match version {
        Some(version) if ended.success => Ok(format!("{version}, {place}")),
        _ => Err(format!("{place} does not run ({}){}", ended.status, process::last_lines(&ended.stderr))),
    }
}

/// What the machine has, what a verdict tells on it, and what to do about what is missing.
///
/// Writing to a `String` cannot fail, so results of `write!` are dropped.
pub fn doctor(machine: &Machine) -> String {
    let mut text = String::new();
    let mut ways_out: Vec<String> = Vec::new();
    let mut row = |name: &str, value: &str| {
        let _ = writeln!(text, "{name:<10} {value}");
    };
    row("cores", &machine.cores.to_string());
    let memory = machine.memory.map_or("not told by this system".to_string(), |bytes| format!("{} GiB", bytes >> 30));
    row("memory", &memory);
    match &machine.ptxas {
        Ok(ptxas) => row("ptxas", ptxas),
        Err(why) => {
            let (what, way_out) = why.split_once("; ").unwrap_or((why, ""));
            row("ptxas", what);
            if !way_out.is_empty() {
                ways_out.push(format!("ptxas: {way_out}."));
            }
        }
    }
    match &machine.gpus {
        Err(why) => {
            row("GPU", &why.to_string());
            ways_out.push(format!("GPU: {} Every step can be done without one.", why.way_out()));
        }
        Ok(gpus) => {
            let first = gpus.first().map(|(about, _)| about);
            let driver = first.and_then(|about| about.driver.clone()).unwrap_or_else(|| "unknown version".to_string());
            row("driver", &format!("{driver}, CUDA {}", first.map_or("?", |about| about.cuda.as_str())));
            for (about, state) in gpus {
                row("GPU", &gpu(about, state.as_ref(), machine.chosen.as_ref().ok()));
            }
            match &machine.cublas {
                Ok(place) => row("cuBLAS", place),
                Err(why) => {
                    row("cuBLAS", &why.to_string());
                    ways_out.push(format!("cuBLAS: {}", why.way_out()));
                }
            }
            match &machine.nvml {
                Ok(()) => row("NVML", "opens"),
                Err(why) => {
                    row("NVML", &why.to_string());
                    ways_out.push(format!("NVML: {}", why.way_out()));
                }
            }
            if let Err(why) = &machine.chosen {
                ways_out.push(format!("GPU: {}", why.way_out()));
            }
        }
    }
    text.push_str("\nwhat a verdict tells here\n");
    let mut row = |name: &str, value: &str| {
        let _ = writeln!(text, "{name:<10} {value}");
    };
    let on_gpu = machine.chosen.is_ok();
    row("correct", if on_gpu { "on the GPU, every element" } else { "on the emulator; large sizes on a sample" });
    row("race-free", "on the emulator, which sees order; a GPU does not show it");
    row("structure", "on the emulator");
    let resources = if machine.ptxas.is_ok() { "from ptxas" } else { "not checked: ptxas, see above" };
    row("resources", resources);
    let fast = match (on_gpu, machine.cublas.is_ok()) {
        (true, true) => "microseconds beside the reference solution, and cuBLAS's",
        (true, false) => "microseconds beside the reference solution",
        (false, _) => "simulated cycles beside the reference solution",
    };
    row("fast", fast);
    match &machine.asked {
        Some((value, Ok(device))) => {
            let _ = writeln!(text, "\n{VARIABLE}={value}: {device}");
        }
        Some((_, Err(error))) => {
            let _ = writeln!(text, "\nerror, and no verdict: {error}");
        }
        None => {}
    }
    if let (Err(why), Ok(_)) = (&machine.chosen, &machine.gpus) {
        let _ = writeln!(text, "\nThe GPU is not used: {why}.");
    }
    if !ways_out.is_empty() {
        text.push('\n');
        for way_out in ways_out {
            let _ = writeln!(text, "try: {way_out}");
        }
    }
    text
}

/// A GPU in a line.
fn gpu(about: &About, state: Option<&nvml::State>, chosen: Option<&String>) -> String {
    let mut text = format!(
        "{}, {} SMs, {} GiB, L2 {} MiB, {} MHz",
        about.title(),
        about.sms,
        about.memory >> 30,
        about.l2 >> 20,
        about.clock
    );
    if let Some(state) = state {
        let now = [
            state.clock.map(|clock| format!("{clock} MHz")),
            state.power.map(|watts| format!("{watts:.0} W")),
            state.temperature.map(|degrees| format!("{degrees} °C")),
        ];
        let now: Vec<String> = now.into_iter().flatten().collect();
        if !now.is_empty() {
            let _ = write!(text, "; now {}", now.join(", "));
        }
        if !state.slowed_by.is_empty() {
            let _ = write!(text, ", slowed down by {}", state.slowed_by.join(" and "));
        }
    }
    if chosen == Some(&about.uuid) {
        text += "; it runs the kernels";
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};

    fn about(name: &str, uuid: &str, capability: (u32, u32), sms: u32) -> About {
        About {
            ordinal: 0,
            name: name.into(),
            uuid: uuid.into(),
            capability,
            sms,
            memory: 178 << 30,
            l2: 126 << 20,
            shared: 232_448,
            clock: 1965,
            memory_clock: 3996,
            cuda: "13.0".into(),
            driver: Some("580.82.07".into()),
        }
    }

    fn laptop() -> Machine {
        let none = Unavailable::NoDriver { looked_for: vec!["libcuda.so.1".into(), "libcuda.so".into()] };
        Machine {
            cores: 8,
            memory: Some(16 << 30),
            ptxas: Err(
                "no ptxas in CUDA_HOME/bin or PATH; `pip install --no-deps --target target/cuda nvidia-cuda-nvcc` \
                        brings it; then `export PTXAS=$PWD/target/cuda/nvidia/cu13/bin/ptxas`"
                    .into(),
            ),
            gpus: Err(none.clone()),
            chosen: Err(none),
            cublas: Err(Unavailable::NoCublas { looked_at: vec!["libcublas.so.13".into()] }),
            nvml: Err(Unavailable::NoNvml),
            asked: None,
        }
    }

    #[track_caller]
    fn check(machine: &Machine, expected: Expect) {
        expected.assert_eq(&doctor(machine));
    }

    #[test]
    fn a_laptop_without_a_gpu() {
        check(
            &laptop(),
            expect![[r#"
            cores      8
            memory     16 GiB
            ptxas      no ptxas in CUDA_HOME/bin or PATH
            GPU        there is no NVIDIA driver: libcuda.so.1 or libcuda.so does not open

            what a verdict tells here
            correct    on the emulator; large sizes on a sample
            race-free  on the emulator, which sees order; a GPU does not show it
            structure  on the emulator
            resources  not checked: ptxas, see above
            fast       simulated cycles beside the reference solution

            try: ptxas: `pip install --no-deps --target target/cuda nvidia-cuda-nvcc` brings it; then `export PTXAS=$PWD/target/cuda/nvidia/cu13/bin/ptxas`.
            try: GPU: Install NVIDIA's driver, or give the container the host's (with Docker: `--gpus all`). Every step can be done without one.
        "#]],
        );
    }

    #[test]
    fn a_machine_with_a_b200() {
        let state = nvml::State {
            clock: Some(120),
            memory_clock: Some(3996),
            power: Some(141.6),
            temperature: Some(31),
            slowed_by: vec![],
        };
        let second =
            nvml::State { clock: Some(1965), power: Some(998.2), slowed_by: vec!["the power cap"], ..state.clone() };
        let machine = Machine {
            ptxas: Ok("13.0, /usr/local/cuda/bin/ptxas".into()),
            gpus: Ok(vec![
                (about("NVIDIA B200", "GPU-1", (10, 0), 148), Some(second)),
                (about("NVIDIA B200", "GPU-2", (10, 0), 148), Some(state)),
            ]),
            chosen: Ok("GPU-2".into()),
            cublas: Ok("libcublas.so.13".into()),
            nvml: Ok(()),
            asked: None,
            cores: 64,
            memory: None,
        };
        check(
            &machine,
            expect![[r#"
            cores      64
            memory     not told by this system
            ptxas      13.0, /usr/local/cuda/bin/ptxas
            driver     580.82.07, CUDA 13.0
            GPU        NVIDIA B200 (10.0), 148 SMs, 178 GiB, L2 126 MiB, 1965 MHz; now 1965 MHz, 998 W, 31 °C, slowed down by the power cap
            GPU        NVIDIA B200 (10.0), 148 SMs, 178 GiB, L2 126 MiB, 1965 MHz; now 120 MHz, 142 W, 31 °C; it runs the kernels
            cuBLAS     libcublas.so.13
            NVML       opens

            what a verdict tells here
            correct    on the GPU, every element
            race-free  on the emulator, which sees order; a GPU does not show it
            structure  on the emulator
            resources  from ptxas
            fast       microseconds beside the reference solution, and cuBLAS's
        "#]],
        );
    }

    #[test]
    fn a_machine_with_another_gpu_and_no_cublas() {
        let wanted = Target::named("sm_100a").expect("a target");
        let machine = Machine {
            gpus: Ok(vec![(about("NVIDIA H200", "GPU-1", (9, 0), 132), None)]),
            chosen: Err(Unavailable::OtherArchitecture { wanted, found: vec!["NVIDIA H200 (9.0)".into()] }),
            ..laptop()
        };
        check(
            &machine,
            expect![[r#"
            cores      8
            memory     16 GiB
            ptxas      no ptxas in CUDA_HOME/bin or PATH
            driver     580.82.07, CUDA 13.0
            GPU        NVIDIA H200 (9.0), 132 SMs, 178 GiB, L2 126 MiB, 1965 MHz
            cuBLAS     there is no cuBLAS: looked at libcublas.so.13
            NVML       NVML does not open

            what a verdict tells here
            correct    on the emulator; large sizes on a sample
            race-free  on the emulator, which sees order; a GPU does not show it
            structure  on the emulator
            resources  not checked: ptxas, see above
            fast       simulated cycles beside the reference solution

            The GPU is not used: no GPU here runs sm_100a: there is NVIDIA H200 (9.0).

            try: ptxas: `pip install --no-deps --target target/cuda nvidia-cuda-nvcc` brings it; then `export PTXAS=$PWD/target/cuda/nvidia/cu13/bin/ptxas`.
            try: cuBLAS: `pip install nvidia-cublas` brings it; then set CUBLAS to the path of its library, or to the folder that holds it.
            try: NVML: Install the driver's management library, `libnvidia-ml`; only clocks, power and temperature are missing without it.
            try: GPU: Use a machine with a GPU that runs sm_100a, or the emulator.
        "#]],
        );
    }
}

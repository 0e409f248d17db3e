//! What a kernel is run on.

use crate::cuda::{Card, Runner};
use device::{Choice, Gpu, Target, Unavailable};
use std::fmt;
use std::sync::Arc;

/// What a kernel is run on. `WORKBOOK_DEVICE` chooses.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub enum Device {
    /// The emulator, on the CPU.
    #[default]
    Emulator,
    /// A GPU, for `correct` and `fast`. The rest of the verdict comes from the emulator: a GPU shows no races.
    Cuda(Arc<dyn Runner>),
}

/// The environment variable that chooses the device.
pub const VARIABLE: &str = "WORKBOOK_DEVICE";

/// A device, and a sentence about it for people, if there is one to say.
type Chosen = (Device, Option<String>);

impl Device {
    /// The device that the environment asks for, for kernels of this target. Where it is the emulator for want of a GPU, stderr says so.
    ///
    /// # Errors
    /// One sentence with the value found and the values allowed, or why the GPU that is asked for cannot be used.
    pub fn from_env(target: &str) -> Result<Device, String> {
        let (device, note) = match std::env::var_os(VARIABLE) {
            None => Device::named("", target)?,
            Some(value) => Device::named(&value.to_string_lossy(), target)?,
        };
        if let Some(note) = note {
            eprintln!("note: {note}");
        }
        Ok(device)
    }

    /// The device of this name: `auto`, `emulator` or `cuda`; `auto` if it is empty. For kernels of this target.
    ///
    /// # Errors
    /// As [`Device::from_env`].
    pub fn named(name: &str, target: &str) -> Result<Chosen, String> {
        named(name, || gpu(target))
    }
}

/// A GPU of this machine that runs kernels of this target.
fn gpu(target: &str) -> Result<Arc<dyn Runner>, Unavailable> {
    let choice = Target::named(target).map_or(Choice::Any, Choice::Runs);
    Ok(Arc::new(Card::new(Gpu::choose(&choice)?)))
}

fn named(name: &str, gpu: impl Fn() -> Result<Arc<dyn Runner>, Unavailable>) -> Result<Chosen, String> {
    match name {
        "emulator" => Ok((Device::Emulator, None)),
        "auto" | "" => Ok(match gpu() {
            Ok(card) => (Device::Cuda(card), None),
            Err(why) => {
                // Who has no GPU and did not ask for one knows so.
                let known = matches!(why, Unavailable::NoDriver { .. } | Unavailable::StubDriver | Unavailable::NoGpu);
                let note = format!("{why}; the emulator runs the kernels");
                (Device::Emulator, (name == "auto" || !known).then_some(note))
            }
        }),
        "cuda" => match gpu() {
            Ok(card) => Ok((Device::Cuda(card), None)),
            Err(why) => Err(format!("{VARIABLE}=cuda: {why}\n  try: {} Or set {VARIABLE}=emulator.", why.way_out())),
        },
        other => Err(format!("{VARIABLE}={other}: there is no such device; allowed are auto, emulator and cuda")),
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Device::Emulator => f.write_str("emulator"),
            Device::Cuda(card) => {
                write!(f, "correct and fast on {}, the rest on the emulator", card.name())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cuda::work::{Reply, Work};

    #[derive(Debug)]
    struct B200;

    impl Runner for B200 {
        fn name(&self) -> String {
            "NVIDIA B200 (10.0)".to_string()
        }

        fn run(&self, _: &[Work]) -> Result<Vec<Reply>, String> {
            Err("nothing is run here".to_string())
        }
    }

    fn none() -> Result<Arc<dyn Runner>, Unavailable> {
        Err(Unavailable::NoDriver { looked_for: vec!["libcuda.so.1".into()] })
    }

    fn other() -> Result<Arc<dyn Runner>, Unavailable> {
        let wanted = Target::named("sm_100a").expect("a target");
        Err(Unavailable::OtherArchitecture { wanted, found: vec!["NVIDIA H200 (9.0)".into()] })
    }

    #[test]
    fn a_gpu_is_taken_where_it_runs_the_kernels() {
        let b200 = || -> Result<Arc<dyn Runner>, Unavailable> { Ok(Arc::new(B200)) };
        for (name, device) in [
            ("", "correct and fast on NVIDIA B200 (10.0), the rest on the emulator"),
            ("auto", "correct and fast on NVIDIA B200 (10.0), the rest on the emulator"),
            ("cuda", "correct and fast on NVIDIA B200 (10.0), the rest on the emulator"),
            ("emulator", "emulator"),
        ] {
            let (chosen, note) = named(name, b200).unwrap();
            assert_eq!((chosen.to_string().as_str(), note), (device, None), "{name}");
        }
    }

    #[test]
    fn the_emulator_for_want_of_a_gpu_says_why_in_a_sentence() {
        let note = |name, gpu: fn() -> Result<Arc<dyn Runner>, Unavailable>| named(name, gpu).unwrap().1;
        assert_eq!(note("", none), None);
        let why = "there is no NVIDIA driver: libcuda.so.1 does not open; the emulator runs the kernels";
        assert_eq!(note("auto", none).as_deref(), Some(why));
        let why = "no GPU here runs sm_100a: there is NVIDIA H200 (9.0); the emulator runs the kernels";
        assert_eq!(note("", other).as_deref(), Some(why));
    }

    #[test]
    fn who_asks_for_a_gpu_gets_one_or_an_error() {
        let error = named("cuda", other).unwrap_err();
        let text = "WORKBOOK_DEVICE=cuda: no GPU here runs sm_100a: there is NVIDIA H200 (9.0)\n  \
                    try: Use a machine with a GPU that runs sm_100a, or the emulator. Or set WORKBOOK_DEVICE=emulator.";
        assert_eq!(error, text);
        assert!(named("cuda", none).unwrap_err().contains("try: Install NVIDIA's driver"));
        assert!(named("gpu", none).unwrap_err().contains("allowed are auto, emulator and cuda"));
    }
}

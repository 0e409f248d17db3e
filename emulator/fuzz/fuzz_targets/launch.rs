//! The JSON of a launch file, as the command reads and checks it.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| emulator_fuzz::launch(data));

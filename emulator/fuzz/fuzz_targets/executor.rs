//! PTX text, run on a few launches.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| emulator_fuzz::executor(data));

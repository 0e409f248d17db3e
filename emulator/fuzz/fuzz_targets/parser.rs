//! PTX text, to what it is decoded to.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| emulator_fuzz::parser(data));

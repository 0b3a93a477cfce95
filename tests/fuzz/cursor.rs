//! Fuzz target: the text of a stored cursor up to the first byte 0, then what the catalogue says to the plan that takes it up.
//!
//! What must hold is in `bodies.rs`.

#![no_main]

mod bodies;

libfuzzer_sys::fuzz_target!(|input: &[u8]| bodies::cursor(input));

//! Fuzz target: a url as somebody types it.
//!
//! What must hold is in `bodies.rs`.

#![no_main]

mod bodies;

libfuzzer_sys::fuzz_target!(|input: &[u8]| bodies::url(input));

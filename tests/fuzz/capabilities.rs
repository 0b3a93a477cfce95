//! Fuzz target: a text that may be a Capabilities document.
//!
//! What must hold is in `bodies.rs`.

#![no_main]

mod bodies;

libfuzzer_sys::fuzz_target!(|input: &[u8]| bodies::capabilities(input));

//! Fuzz target: the first byte chooses the charset of the HTTP header, the rest is the body of an answer to GetRecords.
//!
//! What must hold is in `bodies.rs`.

#![no_main]

mod bodies;

libfuzzer_sys::fuzz_target!(|input: &[u8]| bodies::answer(input));

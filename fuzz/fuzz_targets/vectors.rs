//! Connection vectors in either format.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    match traffic::tmix::reading::read(text) {
        Err(malformed) => assert!(malformed.line > 0 && !malformed.problem.is_empty()),
        Ok(vectors) => assert!(vectors.iter().count() == vectors.len()),
    }
});

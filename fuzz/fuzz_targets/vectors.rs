//! Connection vectors in either format.

#![no_main]

mod refusal;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    match traffic::tmix::reading::read(text) {
        Err(malformed) => refusal::check(&malformed.problem),
        Ok(vectors) => assert!(vectors.iter().count() == vectors.len()),
    }
});

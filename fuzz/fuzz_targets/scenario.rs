//! The text of a scenario: it is resolved, and then resolves to itself; or one line says what is wrong.

#![no_main]

mod refusal;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let read = |text: &str| scenario::resolve(text, "s.toml", &[], &|_| Err("no such file".to_owned()));
    match read(text) {
        Err(error) => refusal::check(&error.to_string()),
        Ok(resolved) => {
            let again = read(resolved.text()).expect("what is resolved can be resolved");
            assert_eq!((resolved.text(), resolved.digest()), (again.text(), again.digest()));
            if let Ok(scenario) = resolved.scenario() {
                let _ = sim::memory(scenario);
            }
        }
    }
});

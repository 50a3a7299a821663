//! A key and its value, as the command line sets them.

#![no_main]

mod refusal;

use libfuzzer_sys::fuzz_target;

const BASE: &str = "duration = \"10s\"\n[[traffic]]\nkind = \"bulk\"\n[[traffic]]\nkind = \"web\"\nusers = 10\n";

fuzz_target!(|setting: (String, String)| {
    match scenario::resolve(BASE, "s.toml", &[setting], &|_| Err("no such file".to_owned())) {
        Err(error) => refusal::check(&error.to_string()),
        Ok(resolved) => drop(resolved),
    }
});

//! A distribution in a file: on its own, and named by a scenario of which it then is a part.

#![no_main]

mod refusal;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    match scenario::read_table("t.csv", text) {
        Err(error) => refusal::check(&error.to_string()),
        Ok((distribution, _)) => {
            for u in [1e-9, 0.5, 1.0 - 1e-9] {
                assert!(distribution.quantile(u) >= 0.0);
            }
        }
    }
    let named = "path.rtt = { table = \"t.csv\" }\n[[traffic]]\nkind = \"bulk\"\nsize = { table = \"t.csv\" }\n";
    if let Err(error) = scenario::resolve(named, "s.toml", &[], &|_| Ok(text.to_owned())) {
        refusal::check(&error.to_string());
    }
});

//! Files that stay files: connection vectors, traces of a link and of packets, recorded demands. The first byte says
//! which.

#![no_main]

mod refusal;

use libfuzzer_sys::fuzz_target;

const BLOCKS: [&str; 4] = [
    "duration = \"2s\"\n[[traffic]]\nkind = \"tmix\"\nvectors = \"f\"\n",
    "duration = \"2s\"\nlink.trace = \"f\"\n[[traffic]]\nkind = \"bulk\"\n",
    "duration = \"2s\"\n[[traffic]]\nkind = \"udp-trace\"\npackets = \"f\"\n",
    "duration = \"2s\"\n[[traffic]]\nkind = \"replay\"\ndemands = \"f\"\n",
];

fuzz_target!(|input: (u8, &str)| {
    let (which, text) = input;
    let block = BLOCKS[usize::from(which) % BLOCKS.len()];
    match scenario::resolve(block, "s.toml", &[], &|_| Ok(text.to_owned())) {
        Err(error) => refusal::check(&error.to_string()),
        Ok(resolved) => {
            let again = scenario::resolve(resolved.text(), "s.toml", &[], &|_| Ok(text.to_owned()));
            assert_eq!(again.expect("what is resolved can be resolved").digest(), resolved.digest());
        }
    }
});

//! A law that nobody uses any more leaves no memory behind: an allocator counts.
//!
//! Bound: whatever is kept for good is made the first time. After that, bringing the same law and letting it go again
//! takes nothing, to the byte.

#[path = "../../aqm/tests/held/mod.rs"]
mod held;

use aqm::Packet;
use aqm::registry::{Registry, Site};
use base::{Ecn, FlowKey, Rate, Stream};
use held::HELD;
use scenario::resolve_with;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The example's library.
fn library() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("this crate lies in crates/");
    let library = Path::new(env!("CARGO_TARGET_TMPDIR")).join("brought_again.so");
    let mut cc = Command::new("cc");
    cc.args(["-O2", "-shared", "-fPIC", "-I"]).arg(root.join("python/aqmlab/include"));
    cc.arg("-o").arg(&library).arg(root.join("examples/own-law-c/my_pi.c"));
    assert!(cc.status().expect("there is a C compiler").success());
    library
}

/// A packet of the discipline that is built.
struct Nothing;

impl Packet for Nothing {
    fn size(&self) -> u32 {
        0
    }
    fn ecn(&self) -> Ecn {
        Ecn::NotEct
    }
    fn mark(&mut self) {}
    fn flow(&self) -> FlowKey {
        FlowKey(0)
    }
}

/// Brings the law by its name and by its file, builds it in one queue and in several as a scenario has it, and lets it
/// all go.
fn bring(library: &Path) {
    let brought = || law::open(library).expect("it is a law").0;
    let mut registry = Registry::builtin().with(brought()).expect("the name is free");
    for (kind, key) in [("my_pi", "a"), ("fq_my_pi", "queues")] {
        let text = format!(
            "[link]\nrate = \"10mbit\"\nqdisc = {{ kind = \"{kind}\", {key} = 1 }}\n[[traffic]]\nkind = \"bulk\"\nflows = 1\n"
        );
        let resolved = resolve_with(&registry, &text, "s.toml", &[], &|_| Err(String::new())).expect("it resolves");
        let spec = &resolved.scenario().expect("no load").links[0].qdiscs[0];
        let site = Site { rate: Rate::from_bps(10_000_000), stream: Stream::named(1, "law") };
        drop(spec.entry.build::<Nothing>(&spec.values, site));
    }
    registry = Registry::builtin();
    registry.bring(Path::new("my_pi.so"), "a digest", brought()).expect("the name is free");
    assert!(registry.of_content("a digest").is_some_and(|(_, forms)| forms[1].is_some()));
}

#[test]
fn a_law_that_is_let_go_leaves_nothing_behind() {
    let library = library();
    // The registry of what is built in, tables of units, whatever else is made once.
    bring(&library);
    let before = HELD.get();
    (0..1000).for_each(|_| bring(&library));
    assert_eq!(HELD.get(), before, "bytes held");
}

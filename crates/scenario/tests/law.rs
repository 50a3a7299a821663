//! Laws that a scenario names by their files.

use aqm::Law;
use aqm::param::Values;
use aqm::registry::{self, Entry, Registry, Row, as_given};
use base::{Rate, Time};
use scenario::{KeptFile, Resolved, resolve_with};
use std::path::Path;

struct Pass;

impl Law for Pass {
    fn retune(&mut self, _values: &Values, _rate: Rate, _now: Time) {}
}

fn entry(name: &'static str) -> Entry {
    let row = Row {
        name,
        aliases: &[],
        doc: "Signals nothing.",
        source: "none",
        year: 2026,
        marks: false,
        params: const { &[registry::limit("1000p", "none"), registry::ECN] },
        fixed: &[],
        gauges: &[],
        causes: &[],
        uses_rate: registry::never,
        resolve: as_given,
    };
    Entry::law(row, |_| 0, |_, _| Box::new(Pass))
}

fn registry() -> Registry {
    let mut registry = Registry::builtin();
    registry.bring(Path::new("laws/mine.py"), "aaaa", entry("mine")).expect("the name is free");
    registry
}

fn read(registry: &Registry, origin: &str, qdisc: &str) -> Result<Resolved, String> {
    let text = format!("[link]\nrate = \"10mbit\"\nqdisc = {qdisc}\n[[traffic]]\nkind = \"bulk\"\n");
    resolve_with(registry, &text, origin, &[], &|_| Err("no file is read".into())).map_err(|error| error.to_string())
}

#[test]
fn a_law_is_named_by_its_file_and_kept_by_its_content() {
    let registry = registry();
    for (qdisc, kind) in [
        ("\"./mine.py\"", "mine"),
        ("{ law = \"mine.py\" }", "mine"),
        ("{ kind = \"mine\", law = \"mine.py\" }", "mine"),
        ("{ kind = \"fq_mine\", law = \"../laws/mine.py\" }", "fq_mine"),
    ] {
        // A path with a step up is another text for the same file: whoever brings it says which.
        let mut registry = registry.clone();
        registry.bring(Path::new("laws/../laws/mine.py"), "aaaa", entry("mine")).expect("the name is free");
        let resolved = read(&registry, "laws/s.toml", qdisc).expect("it resolves");
        assert_eq!(resolved.scenario().expect("no load").links[0].qdiscs[0].kind(), kind);
        let [KeptFile { sha256, .. }] = &resolved.files() else { panic!("one file: {:?}", resolved.files()) };
        assert_eq!(sha256, "aaaa");
        // From elsewhere, by its content alone.
        let again = resolve_with(&registry, resolved.text(), "kept/scenario.toml", &[], &|_| Err(String::new()));
        let again = again.expect("it resolves to itself");
        assert_eq!((again.text(), again.digest()), (resolved.text(), resolved.digest()));
    }
    let [own, others] = ["aaaa", "bbbb"].map(|content| {
        let mut registry = Registry::builtin();
        registry.bring(Path::new("mine.py"), content, entry("mine")).expect("the name is free");
        read(&registry, "s.toml", "\"./mine.py\"").expect("it resolves").digest().to_owned()
    });
    assert_ne!(own, others, "another content is another scenario");
}

#[test]
fn code_that_nobody_brought_is_refused() {
    let refused = |qdisc: &str| read(&registry(), "laws/s.toml", qdisc).expect_err("it is refused");
    let unasked = "names code, which is not run unasked: expected --allow-code, or its name on the command line";
    assert_eq!(refused("\"./other.py\""), format!("laws/s.toml:3: link.qdisc.kind = \"./other.py\": {unasked}"));
    assert_eq!(refused("{ law = \"x.so\" }"), format!("laws/s.toml:3: link.qdisc.law = \"x.so\": {unasked}"));
    let changed = refused("{ law = { file = \"mine.py\", sha256 = \"cccc\" } }");
    assert!(changed.contains(unasked), "{changed}");
    let other = refused("{ kind = \"pi\", law = \"mine.py\" }");
    assert_eq!(other, "laws/s.toml:3: link.qdisc.kind = \"pi\": expected mine or fq_mine, of mine.py");
    let short = refused("{ kind = \"./mine.py\", law = \"mine.py\" }");
    assert!(short.ends_with("expected the law's name, or fq_ before it"), "{short}");
}

#[test]
fn a_law_is_called_as_no_other() {
    let taken = registry().bring(Path::new("pi.py"), "dddd", entry("pi")).expect_err("pi is built in");
    assert_eq!(taken, "the law is called pi, as one that is built in: expected another name");
}

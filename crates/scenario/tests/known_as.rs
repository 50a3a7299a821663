//! Names that the field has for what is called otherwise here, or is not here.

use aqm::registry::Registry;
use scenario::{kinds, known_as, known_as_names, resolve};

fn complaint(text: &str) -> String {
    let files = |name: &str| Err(format!("there is no {name}"));
    let read = resolve(text, "s.toml", &[], &files).and_then(|resolved| resolved.scenario().map(|_| ()));
    read.expect_err(text).to_string()
}

#[test]
fn disciplines_of_others_are_known_and_no_own_one_is_among_them() {
    let registry = Registry::builtin();
    for name in known_as_names() {
        let is_own = registry.find(name).is_some();
        assert!(!is_own || name == "droptail", "{name} is a discipline here");
        let said = known_as(name).expect(name);
        let leads = |word: &str| registry.find(word).is_some();
        assert!(said.split([' ', ',', ':', '"']).any(leads), "{said} leads nowhere");
    }
    assert_eq!(known_as("Tail_Drop"), known_as("taildrop"));
    assert_eq!(known_as("codel"), None);
    let said = complaint("[link.qdisc]\nkind = \"wred\"\n[[traffic]]\nkind = \"bulk\"\n");
    assert!(said.starts_with("s.toml:2: link.qdisc.kind = \"wred\": unknown discipline: "), "{said}");
    assert!(said.contains("nearest is rio"), "{said}");
}

#[test]
fn traffic_that_others_call_otherwise_is_meant_by_its_name_here() {
    let own: Vec<&str> = kinds().iter().map(|row| row.name).collect();
    let mut all: Vec<&str> = kinds().iter().flat_map(|row| row.called.iter().copied()).collect();
    for name in &all {
        assert!(!own.contains(name), "{name} is a kind");
    }
    for (name, meant) in [("tcp", "bulk"), ("ping", "probe"), ("http", "web"), ("voip", "cbr"), ("webrtc", "rtp_video")]
    {
        let said = complaint(&format!("[[traffic]]\nkind = \"{name}\"\n"));
        assert!(said.ends_with(&format!("; did you mean {meant}?")), "{said}");
        assert!(said.starts_with(&format!("s.toml:2: traffic.0.kind = \"{name}\": expected one of web, ")), "{said}");
    }
    all.sort_unstable();
    let count = all.len();
    all.dedup();
    assert_eq!(all.len(), count, "one word means two kinds");
}

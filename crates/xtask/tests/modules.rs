//! Of two modules at the top of a crate one is the lower: this names the pairs that still need each other, and refuses
//! further ones.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use xtask::tree;

/// Pairs that need each other, by crate: the list only gets shorter.
const NEED_EACH_OTHER: &[(&str, &[(&str, &str)])] = &[
    (
        "aqm",
        &[
            ("egress", "line"),
            ("egress", "qdisc"),
            ("law", "qdisc"),
            ("law", "registry"),
            ("line", "qdisc"),
            ("qdisc", "registry"),
            ("redopt", "registry"),
        ],
    ),
    ("law", &[("causes", "entry"), ("causes", "foreign"), ("entry", "holding")]),
    (
        "scenario",
        &[
            ("blocks", "homes"),
            ("blocks", "kinds"),
            ("demand", "kinds"),
            ("demand", "scenario"),
            ("demand", "voice"),
            ("hosts", "stacks"),
            ("impairments", "scenario"),
            ("kept", "written"),
            ("kinds", "scenario"),
            ("live", "scenario"),
        ],
    ),
    (
        "sim",
        &[
            ("connection", "parking"),
            ("connection", "tmix"),
            ("media", "network"),
            ("media", "simulation"),
            ("run", "simulation"),
            ("simulation", "watching"),
        ],
    ),
    ("tcp", &[("cc", "stack")]),
    ("traffic", &[("unc2001", "web")]),
    ("xtask", &[("docs", "header")]),
];

/// The crate of a file, and the module at its top that the file belongs to.
fn place(path: &Path) -> Option<(String, String)> {
    let parts: Vec<_> = path.iter().map(|part| part.to_string_lossy()).collect();
    let at = parts.iter().position(|part| part == "crates")?;
    if parts.get(at + 2)? != "src" {
        return None;
    }
    let module = parts.get(at + 3)?.trim_end_matches(".rs").to_owned();
    (module != "lib" && module != "main").then(|| (parts[at + 1].to_string(), module))
}

/// The modules at the top of its crate that code names, as in `crate::line::Due`.
fn named(code: &str) -> BTreeSet<String> {
    let lines = code.lines().take_while(|line| !line.starts_with("#[cfg(test)]")).filter_map(|line| {
        let line = line.trim_start();
        (!line.starts_with("//")).then_some(line)
    });
    let text = lines.collect::<Vec<_>>().join("\n");
    let names = text.split("crate::").skip(1);
    names.map(|after| after.chars().take_while(|&c| c.is_ascii_alphanumeric() || c == '_').collect()).collect()
}

#[test]
fn of_two_modules_one_is_the_lower() {
    let mut needs: BTreeMap<(String, String), BTreeSet<String>> = BTreeMap::new();
    for path in tree::files_ending(&["rs"]) {
        if let Some(at) = place(&path) {
            needs.entry(at).or_default().append(&mut named(&tree::text(&path)));
        }
    }
    let mut mutual: BTreeMap<&str, Vec<(&str, &str)>> = BTreeMap::new();
    for ((of, module), others) in &needs {
        for other in others.iter().filter(|other| *other > module) {
            if needs.get(&(of.clone(), other.clone())).is_some_and(|back| back.contains(module)) {
                mutual.entry(of).or_default().push((module, other));
            }
        }
    }
    let allowed: BTreeMap<_, _> = NEED_EACH_OTHER.iter().map(|(of, pairs)| (*of, pairs.to_vec())).collect();
    assert_eq!(mutual, allowed, "put what both need into the lower one, or a pair that is gone off the list");
}

#[test]
fn what_code_names_is_found() {
    let code = "use crate::line::{Due, Line};\n// crate::comment\nlet x = crate::qdisc::of(1);\n#[cfg(test)]\ncrate::a";
    assert_eq!(named(code), ["line", "qdisc"].map(String::from).into());
    assert_eq!(place(Path::new("/x/crates/aqm/src/qdisc/fifo.rs")), Some(("aqm".into(), "qdisc".into())));
    assert_eq!(place(Path::new("/x/crates/aqm/tests/common/mod.rs")), None);
}

//! These tests keep the house tidy: they check what a reader may rely on in every file and no compiler checks.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use xtask::{markdown, tree};

/// Longest file of code, in lines: about 300 is comfortable, at twice that it holds two ideas.
const MOST_LINES: usize = 650;
/// Longest line of a comment, in characters, as rustfmt.toml has it for code.
const MOST_CHARACTERS: usize = 120;
/// Longest function of a crate's own code, in lines from its `fn` to its closing brace; and where it is to be shorter.
const MOST_LINES_OF_A_FUNCTION: usize = 110;
const MOST_LINES_OF_A_FUNCTION_IN: &[(&str, usize)] = &[("tcp", 60)];
/// What is written by programs, or is as published.
const NOT_WRITTEN_BY_HAND: &[&str] = &["Cargo.lock", "requirements-dev.lock", "LICENSE-APACHE", "LICENSE-MIT"];

/// What each crate of the workspace may stand on.
const LAYERS: &[(&str, &[&str])] = &[
    ("base", &[]),
    ("aqm", &["base"]),
    ("law", &["base", "aqm"]),
    ("net", &["base", "aqm"]),
    ("tcp", &["base"]),
    ("media", &["base"]),
    ("traffic", &["base"]),
    ("scenario", &["base", "aqm", "media", "net", "tcp", "traffic"]),
    ("record", &["base", "aqm", "net", "scenario"]),
    ("session", &["base", "traffic", "scenario", "record"]),
    ("sim", &["base", "aqm", "media", "net", "tcp", "traffic", "scenario", "record", "session"]),
    ("live", &["base", "aqm", "net", "traffic", "scenario", "record", "session"]),
    ("python", &["base", "aqm", "law", "net", "tcp", "traffic", "scenario", "record", "sim", "live"]),
    ("xtask", &["aqm", "tcp", "traffic", "scenario", "record"]),
];

/// Where code may be `unsafe`, of what makes simulated runs: a file of each crate, with its reasons there.
const UNSAFE_IN_ENGINE: &[&str] = &["crates/base/src/fetch.rs"];
/// Crates that call on the kernel, or on laws of somebody's own: each use has its reason beside it.
const MAY_BE_UNSAFE: &[&str] = &["law", "live", "python"];

/// Collects complaints, so that one run shows them all.
#[derive(Default)]
struct Complaints(Vec<String>);

impl Complaints {
    fn add(&mut self, path: &Path, line: usize, what: impl AsRef<str>) {
        self.0.push(format!("{}:{line}: {}", path.display(), what.as_ref()));
    }
}

impl Drop for Complaints {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            assert!(self.0.is_empty(), "{} complaints:\n{}", self.0.len(), self.0.join("\n"));
        }
    }
}

fn written_by_hand(endings: &[&str]) -> impl Iterator<Item = PathBuf> {
    let is_not = |path: &PathBuf| NOT_WRITTEN_BY_HAND.iter().any(|name| path.ends_with(name));
    tree::files_ending(endings).into_iter().filter(move |path| !is_not(path))
}

fn is_this_file(path: &Path) -> bool {
    path.ends_with("xtask/tests/tidy.rs")
}

#[test]
fn files_and_lines_are_short() {
    let mut complaints = Complaints::default();
    for path in written_by_hand(&["rs", "py", "pyi", "toml", "tcl", "md", "css", "j2"]) {
        let is_code = path.extension().is_some_and(|e| e == "rs" || e == "py" || e == "pyi");
        let text = tree::text(&path);
        if is_code && text.lines().count() > MOST_LINES {
            complaints.add(&path, text.lines().count(), format!("more than {MOST_LINES} lines: split it by idea"));
        }
        for (index, line) in text.lines().enumerate() {
            // rustfmt and ruff keep code short; comments are left to this.
            let is_comment = path.extension().is_some_and(|e| e == "rs") && line.trim_start().starts_with("//");
            if is_comment && line.chars().count() > MOST_CHARACTERS {
                complaints.add(&path, index + 1, format!("more than {MOST_CHARACTERS} characters"));
            }
            if line.trim_end() != line {
                complaints.add(&path, index + 1, "ends in white space");
            }
        }
        if !text.is_empty() && (!text.ends_with('\n') || text.ends_with("\n\n")) {
            complaints.add(&path, text.lines().count(), "expected one line break at the end");
        }
    }
}

/// The workspace denies `unsafe`; what makes an exception says so by this word.
#[test]
fn the_engine_is_unsafe_in_one_file() {
    let mut complaints = Complaints::default();
    let mut seen = BTreeSet::new();
    for path in tree::files_ending(&["rs"]) {
        let place = path.display().to_string();
        let Some((name, of_crate)) = place.strip_prefix("crates/").and_then(|rest| rest.split_once('/')) else {
            continue;
        };
        if !of_crate.starts_with("src/") || MAY_BE_UNSAFE.contains(&name) {
            continue;
        }
        for (index, line) in tree::text(&path).lines().enumerate().filter(|(_, line)| line.contains("(unsafe_code")) {
            seen.insert(place.clone());
            if !UNSAFE_IN_ENGINE.contains(&place.as_str()) {
                complaints.add(&path, index + 1, format!("{}: expected in {UNSAFE_IN_ENGINE:?} alone", line.trim()));
            }
        }
    }
    assert_eq!(seen.len(), UNSAFE_IN_ENGINE.len(), "files that are listed and no longer unsafe: {seen:?}");
}

/// The line of each function that has a body of its own, its name, and how many lines it takes.
fn functions(text: &str) -> Vec<(usize, &str, usize)> {
    let lines: Vec<&str> = text.lines().collect();
    let mut seen = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        let indent = &line[..line.len() - line.trim_start().len()];
        let Some((before, after)) = line.split_once("fn ") else { continue };
        // What comes before is `pub(super) const`, or the like.
        let is_definition = before.chars().all(|c| c.is_ascii_alphabetic() || "()_: \"".contains(c));
        if !is_definition || line.ends_with(['}', ';']) {
            continue;
        }
        // rustfmt puts the closing brace where the function begins; one without a body ends in a semicolon before.
        let end = lines[index..].iter().position(|l| l.strip_prefix(indent).is_some_and(|l| l == "}" || l == ");"));
        let name = after.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default();
        seen.extend(end.map(|end| (index + 1, name, end + 1)));
    }
    seen
}

#[test]
fn functions_are_short() {
    // Tests tell a story and may take longer: what comes below them in a file, and files that are nothing else.
    const TESTS: &str = "#[cfg(test)]\nmod ";
    let mut complaints = Complaints::default();
    let sources = || tree::files_ending(&["rs"]).into_iter().filter(|p| p.iter().nth(2).is_some_and(|d| d == "src"));
    let mut are_tests = BTreeSet::new();
    for path in sources() {
        let text = tree::text(&path);
        for name in text.split(TESTS).skip(1).filter_map(|rest| rest.split_once(';').map(|(name, _)| name)) {
            are_tests.insert(path.with_extension("").join(format!("{name}.rs")));
            are_tests.insert(path.with_file_name(format!("{name}.rs")));
        }
    }
    for path in sources().filter(|path| !are_tests.contains(path)) {
        let own = MOST_LINES_OF_A_FUNCTION_IN.iter().find(|(name, _)| path.iter().nth(1).is_some_and(|d| d == *name));
        let most = own.map_or(MOST_LINES_OF_A_FUNCTION, |&(_, most)| most);
        let text = tree::text(&path);
        let code = text.split(TESTS).next().unwrap_or_default();
        for (line, name, lines) in functions(code).into_iter().filter(|&(_, _, lines)| lines > most) {
            complaints.add(&path, line, format!("{name} takes {lines} lines, more than {most}: split it by idea"));
        }
    }
}

#[test]
fn the_lines_of_a_function_are_counted() {
    let text = "impl A {\n    pub(super) fn long(\n        a: u8,\n    ) -> u8 {\n        a\n    }\n}\nfn short() {}\n";
    assert_eq!(functions(text), [(2, "long", 5)]);
}

#[test]
fn rust_files_open_by_saying_what_they_are() {
    let mut complaints = Complaints::default();
    for path in tree::files_ending(&["rs"]) {
        if !tree::text(&path).starts_with("//! ") {
            complaints.add(&path, 1, "expected the module's documentation");
        }
    }
}

#[test]
fn nothing_is_left_to_do() {
    // Written apart, so that this file may be checked too.
    let words = [["TO", "DO"], ["FIX", "ME"], ["XX", "X"], ["db", "g!("], ["unimple", "mented!"], ["to", "do!("]];
    let words = words.map(|parts| parts.concat());
    let mut complaints = Complaints::default();
    for path in written_by_hand(&["rs", "py", "pyi", "toml", "tcl", "md", "css", "j2", "yml"]) {
        for (index, line) in tree::text(&path).lines().enumerate() {
            for word in words.iter().filter(|word| line.contains(word.as_str())) {
                complaints.add(&path, index + 1, format!("{word} has no place in what is published"));
            }
        }
    }
}

#[test]
fn names_say_what_things_are() {
    // Of files, and of things defined in them.
    let vague = ["simple", "basic", "toy", "utils", "helpers", "misc"];
    let defines = ["fn ", "struct ", "enum ", "trait ", "mod ", "const ", "static ", "def ", "class "];
    let mut complaints = Complaints::default();
    let is_vague = |name: &str| name.split(['_', '-', '.', '/']).any(|word| vague.contains(&word));
    // Vectors are called as their papers call the variant they show: there is a "simple SRED".
    for path in tree::files().into_iter().filter(|path| !path.starts_with("testdata")) {
        if path.to_str().is_some_and(|name| is_vague(&name.to_lowercase())) {
            complaints.add(&path, 0, "the name says nothing of what is in it");
        }
    }
    for path in tree::files_ending(&["rs", "py"]) {
        for (index, line) in tree::text(&path).lines().enumerate() {
            let defined = defines.iter().find_map(|keyword| {
                let at = line.find(keyword)?;
                let is_word = at == 0 || line.as_bytes()[at - 1].is_ascii_whitespace();
                is_word.then(|| line[at + keyword.len()..].split(|c: char| !c.is_alphanumeric() && c != '_').next())?
            });
            if defined.is_some_and(|name| is_vague(&name.to_lowercase())) && !line.trim_start().starts_with('/') {
                complaints.add(&path, index + 1, "the name says nothing of what it is");
            }
        }
    }
}

#[test]
fn no_machine_is_named() {
    let places = ["/wo", "/ho", "/ro", "/Us", "/op"];
    let ends = ["rk/", "me/", "ot/", "ers/", "t/"];
    let places: Vec<String> = places.iter().zip(ends).map(|(start, end)| format!("{start}{end}")).collect();
    let mut complaints = Complaints::default();
    for path in tree::files().into_iter().filter(|path| !is_this_file(path)) {
        let Ok(text) = std::fs::read_to_string(tree::root().join(&path)) else { continue };
        for (index, line) in text.lines().enumerate() {
            for place in &places {
                let is_absolute = |at: usize| {
                    at == 0 || matches!(line.as_bytes()[at - 1], b' ' | b'"' | b'\'' | b'`' | b'(' | b'=' | b'>')
                };
                if line.match_indices(place.as_str()).any(|(at, _)| is_absolute(at)) {
                    complaints.add(&path, index + 1, format!("{place} is a place on one machine"));
                }
            }
        }
    }
}

/// What a crate stands on, on some platform or all; not what its tests alone use.
fn dependencies(manifest: &toml::Table) -> BTreeSet<String> {
    let of_targets = manifest.get("target").and_then(|value| value.as_table());
    let places = of_targets.into_iter().flat_map(|table| table.values()).filter_map(|value| value.as_table());
    let all = places.chain([manifest]).filter_map(|table| table.get("dependencies")?.as_table());
    all.flat_map(|table| table.keys().cloned()).collect()
}

#[test]
fn crates_stand_on_lower_ones_only() {
    let layers: BTreeMap<&str, &[&str]> = LAYERS.iter().copied().collect();
    let mut complaints = Complaints::default();
    let mut seen = BTreeSet::new();
    for path in tree::files_ending(&["toml"]).into_iter().filter(|path| path.ends_with("Cargo.toml")) {
        let Some(name) = path.strip_prefix("crates").ok().and_then(|path| path.parent()?.to_str().map(str::to_owned))
        else {
            continue;
        };
        let Some(allowed) = layers.get(name.as_str()) else {
            complaints.add(&path, 1, "this crate has no place among the layers");
            continue;
        };
        let manifest: toml::Table = tree::text(&path).parse().expect("cargo reads it too");
        let stands_on = dependencies(&manifest);
        for dependency in &stands_on {
            if layers.contains_key(dependency.as_str()) && !allowed.contains(&dependency.as_str()) {
                complaints.add(&path, 1, format!("{name} may not stand on {dependency}"));
            }
        }
        for unused in allowed.iter().filter(|one| !stands_on.contains(**one)) {
            complaints.add(&path, 1, format!("{name} may stand on {unused}, and does not"));
        }
        seen.insert(name);
    }
    assert_eq!(seen.len(), layers.len(), "the layers name crates that are not there: {seen:?}");
}

#[test]
fn every_file_of_tests_is_run() {
    let mut complaints = Complaints::default();
    let files = tree::files_ending(&["rs"]);
    let joining: Vec<_> = files.iter().filter(|path| path.ends_with("tests/all.rs")).collect();
    assert!(!joining.is_empty(), "no crate joins its tests");
    for all in joining {
        let folder = all.parent().expect("it is in a folder");
        let joined = tree::text(all);
        let cargo = tree::text(&folder.with_file_name("Cargo.toml"));
        for path in files.iter().filter(|path| path.parent() == Some(folder) && path != &all) {
            let name = path.file_stem().expect("it has a name").to_string_lossy();
            if !joined.contains(&format!("\nmod {name};\n")) && !cargo.contains(&format!("\nname = \"{name}\"\n")) {
                complaints.add(path, 1, "is in no program of tests: name it in tests/all.rs, or in Cargo.toml");
            }
        }
    }
}

#[test]
fn links_lead_somewhere() {
    let mut complaints = Complaints::default();
    for path in tree::files_ending(&["md"]) {
        let page = tree::text(&path);
        let folder = path.parent().unwrap_or(Path::new(""));
        for (line, target) in markdown::links(&page) {
            if target.contains("://") || target.starts_with("mailto:") {
                continue;
            }
            let (file, anchor) = target.split_once('#').unwrap_or((&target, ""));
            let found = if file.is_empty() { path.clone() } else { folder.join(file) };
            if !tree::root().join(&found).exists() {
                complaints.add(&path, line, format!("{target} is not there"));
            } else if !anchor.is_empty() && !markdown::anchors(&tree::text(&found)).iter().any(|a| a == anchor) {
                complaints.add(&path, line, format!("{target}: no heading of that name"));
            }
        }
    }
}

//! What ARCHITECTURE.md says of adding something is all that there is to do: the places that it names are there, and
//! what was added so before is named nowhere else.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use xtask::tree;

/// What was added, by the heading under which its places are named: what it is called and how code spells it, and how
/// many of the places are meant.
struct Example {
    name: String,
    spellings: Vec<String>,
    /// The last item of the list that names a place of it.
    items: usize,
}

/// The places that the items of a section's list name, by item.
fn places(section: &str) -> Vec<Vec<String>> {
    let mut items: Vec<Vec<String>> = Vec::new();
    for line in section.lines() {
        let is_item = line.split_once(". ").is_some_and(|(number, _)| number.parse::<usize>().is_ok());
        if is_item {
            items.push(Vec::new());
        } else if !line.starts_with("   ") {
            continue;
        }
        let spans = line.split('`').skip(1).step_by(2);
        let is_place =
            |span: &&str| span.contains('/') && span.split('/').next().is_some_and(|top| TOPS.contains(&top));
        items.last_mut().expect("an item comes first").extend(spans.filter(is_place).map(str::to_owned));
    }
    items
}

/// What a place begins with: those that do not are parts of a place, to be read by people.
const TOPS: &[&str] = &["crates", "python", "docs", "tests", "testdata"];

/// The sections of ARCHITECTURE.md that say how to add something, by what that is.
fn sections() -> BTreeMap<String, String> {
    let text = tree::text(Path::new("ARCHITECTURE.md"));
    let titled = text.split("\n## ").filter_map(|section| section.strip_prefix("How to add a ")?.split_once('\n'));
    titled.map(|(title, section)| (title.to_owned(), section.to_owned())).collect()
}

/// What writes scenarios of its own, as an example does: it chooses among what there is.
const AUTHORS: &str = "python/aqmlab/advice";

/// Code that people run, by file, without its unit tests and comments.
fn code() -> Vec<(PathBuf, String)> {
    let is_source = |path: &PathBuf| {
        let parts: Vec<&str> = path.iter().filter_map(|part| part.to_str()).collect();
        matches!(parts.as_slice(), ["crates", name, "src", ..] if *name != "xtask")
            || path.starts_with("python/aqmlab") && !path.starts_with(AUTHORS)
    };
    let files = tree::files_ending(&["rs", "py"]).into_iter().filter(is_source);
    let files =
        files.filter(|path| !path.iter().any(|part| part.to_str().is_some_and(|part| part.starts_with("tests"))));
    let kept = files.map(|path| {
        let text = tree::text(&path);
        let own = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
        let is_code = |line: &&str| !["//", "#"].iter().any(|sign| line.trim_start().starts_with(sign));
        let code = own.lines().filter(is_code).collect::<Vec<_>>().join("\n");
        (path, code)
    });
    kept.collect()
}

/// Where something is spelt that is in none of the `places`, which name files, or folders of them.
fn elsewhere(example: &Example, places: &[Vec<String>], code: &[(PathBuf, String)]) -> Vec<String> {
    let mut allowed: Vec<PathBuf> = Vec::new();
    for place in places.iter().take(example.items).flatten() {
        let named = PathBuf::from(place.replace("NAME", &file(example)));
        // A file of its own may have a folder of more.
        allowed.extend(place.contains("NAME").then(|| named.with_extension("")));
        allowed.push(named);
    }
    let is_named = |path: &Path| allowed.iter().any(|place| path.starts_with(place));
    let spells = |text: &str| example.spellings.iter().find(|spelling| text.contains(spelling.as_str()));
    let found = code.iter().filter(|(path, _)| !is_named(path));
    found.filter_map(|(path, text)| spells(text).map(|it| format!("{it} in {}", path.display()))).collect()
}

/// What files are called after.
fn file(example: &Example) -> String {
    example.name.replace('-', "_")
}

fn quoted(name: &str) -> Vec<String> {
    vec![format!("\"{name}\""), format!("'{name}'")]
}

fn example(name: &str, items: usize, more: &[String]) -> Example {
    Example { name: name.to_owned(), spellings: [&quoted(name), more].concat(), items }
}

/// What has been added, by the heading of its section.
fn examples() -> BTreeMap<&'static str, Vec<Example>> {
    // A law, one more, and a discipline that Linux has too.
    let disciplines = [("gsp", 6), ("pi2", 6), ("feng_red", 6), ("sfq", 8)];
    let law = |name: &str| [format!("law::{name}::"), format!("qdisc::{name}::")];
    let disciplines = disciplines.map(|(name, items)| example(name, items, &law(name)));
    // Blocks of the others are made for ends of their own: for references and as examples, of recordings.
    const WRITTEN: [&str; 3] = ["web", "bulk", "replay"];
    let kinds = scenario::kinds().iter().filter(|row| !WRITTEN.contains(&row.name));
    let kinds = kinds.map(|row| example(row.name, 3, &["Workload::".to_owned()]));
    BTreeMap::from([
        ("discipline", Vec::from(disciplines)),
        ("kind of traffic", kinds.collect()),
        ("congestion controller", vec![example("bbr", 2, &["Control::Bbr".to_owned()])]),
        ("stack", vec![example("freebsd4", 2, &[])]),
        ("measure", vec![example("loss_run_longer", 2, &[]), example("plateau", 2, &[])]),
    ])
}

#[test]
fn the_places_that_are_named_are_there() {
    for (title, section) in sections() {
        let examples = examples();
        let one = &examples.get(title.as_str()).unwrap_or_else(|| panic!("there is no example of a {title}"))[0];
        let named = places(&section);
        assert!(!named.is_empty(), "{title}: expected a list of places");
        for (item, places) in named.iter().enumerate() {
            let path =
                |place: &String| place.split('*').next().map(|it| it.replace("NAME", &file(one))).unwrap_or_default();
            let is_there = places.iter().any(|place| tree::root().join(path(place)).exists());
            assert!(is_there, "{title}, {}: none of {places:?} is there for {}", item + 1, one.name);
        }
    }
}

#[test]
fn what_was_added_is_named_nowhere_else() {
    let (sections, code) = (sections(), code());
    let mut complaints = Vec::new();
    for (title, examples) in examples() {
        let section = sections.get(title).unwrap_or_else(|| panic!("expected a section: How to add a {title}"));
        let places = places(section);
        for example in examples {
            let found = elsewhere(&example, &places, &code);
            complaints.extend(found.into_iter().map(|it| format!("{title} {}: {it}", example.name)));
        }
    }
    assert!(complaints.is_empty(), "named in more places than ARCHITECTURE.md says:\n{}", complaints.join("\n"));
}

#[test]
fn a_stray_mention_is_found() {
    let places =
        places("1. `crates/a/src/NAME.rs`: it.\n   More of it, and `b/c`.\n2. A line in `crates/a/src/registry.rs`.\n");
    assert_eq!(places, [vec!["crates/a/src/NAME.rs"], vec!["crates/a/src/registry.rs"]]);
    let code = |path: &str| (PathBuf::from(path), "if kind == \"a-b\" {".to_owned());
    let code = ["crates/a/src/a_b.rs", "crates/a/src/registry.rs", "crates/b/src/lib.rs"].map(code);
    assert_eq!(elsewhere(&example("a-b", 2, &[]), &places, &code), ["\"a-b\" in crates/b/src/lib.rs"]);
    assert_eq!(elsewhere(&example("a-b", 1, &[]), &places, &code).len(), 2);
    assert!(elsewhere(&example("a", 2, &[]), &places, &code).is_empty());
}

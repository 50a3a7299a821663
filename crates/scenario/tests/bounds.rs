//! What is too deep, too large or too many is refused in one line, within bounded time and memory.

use scenario::bounds::{DEEPEST, MOST_BLOCKS, MOST_POINTS, MOST_STACKS, MOST_TEXT};
use scenario::{Files, resolve};

const BULK: &str = "\n[[traffic]]\nkind = \"bulk\"\n";

fn refused_with(text: &str, overrides: &[(String, String)], files: Files<'_>) -> String {
    let error = resolve(text, "s.toml", overrides, files).expect_err("it is beyond a bound").to_string();
    assert!(!error.contains('\n') && error.chars().count() <= 300, "{error}");
    error
}

fn refused(text: &str) -> String {
    refused_with(text, &[], &|_| Err("no such file".into()))
}

#[test]
fn nesting() {
    const DEEP: usize = 3000;
    let dotted = |parts: usize| vec!["a"; parts].join(".");
    // Each dotted key just short of what a parser takes at once, and tables within tables.
    let inline = |levels: usize| format!("{}1{}", format!("{{ {} = ", dotted(70)).repeat(levels), " }".repeat(levels));
    for text in [
        format!("a = {}{}", "[".repeat(DEEP), "]".repeat(DEEP)),
        format!("a = {}1{}", "{ a = ".repeat(DEEP), " }".repeat(DEEP)),
        format!("{} = 1", dotted(DEEP)),
        format!("[{}]", dotted(DEEP)),
        format!("[{}]\na = {}", dotted(70), inline(70)),
        format!("a = {}{}", "[".repeat(DEEPEST), "]".repeat(DEEPEST)),
        dotted(MOST_TEXT / 2 - 100),
        "[".repeat(MOST_TEXT - 100),
    ] {
        assert!(refused(&(text + BULK)).contains("not valid TOML"), "as any other text that is none");
    }
    for (key, value) in [
        (dotted(DEEP), "1".to_owned()),
        (dotted(MOST_TEXT), "1".to_owned()),
        ("link".to_owned(), format!("{}{}", "[".repeat(DEEP), "]".repeat(DEEP))),
    ] {
        refused_with(BULK, &[(key, value)], &|_| Err("no such file".into()));
    }
}

#[test]
fn texts() {
    let comment = format!("# {}", "x".repeat(MOST_TEXT));
    assert_eq!(refused(&comment), format!("s.toml: {} bytes long, expected at most {MOST_TEXT}", comment.len()));
    assert!(refused(&format!("{} = 1{BULK}", "x".repeat(10_000))).contains("unknown key"));
    assert!(refused(&format!("seed = {}{BULK}", "1".repeat(5000))).contains("s.toml:1: seed = 111"));
    assert!(refused(&format!("link.rate = \"{}\"{BULK}", "x".repeat(100_000))).contains("expected a rate"));
    let word = "x".repeat(100_000);
    assert!(refused(&format!("tcp.stack = \"{word}\"{BULK}")).contains("expected one of"));
    assert!(refused(&format!("path.rtt = {{ table = \"{word}.csv\" }}{BULK}")).contains("no such file"));
}

#[test]
fn tables_of_distributions() {
    let rtt = format!("path.rtt = {{ table = \"t.csv\" }}{BULK}");
    let points =
        |count: usize| -> String { (0..count).map(|k| format!("0.01,{}\n", (k + 1) as f64 / count as f64)).collect() };
    let refused_of = |table: String| refused_with(&rtt, &[], &move |_| Ok(table.clone()));
    let problem = format!("expected at most {MOST_POINTS} points: fewer say the same");
    assert!(refused_of(points(MOST_POINTS + 1)).ends_with(&problem));
    assert!(resolve(&rtt, "s.toml", &[], &|_| Ok(points(MOST_POINTS))).is_ok(), "as many as there may be");
    let long = points(2_000_000);
    assert!(long.len() > MOST_TEXT, "the size is seen before any line is");
    assert_eq!(
        refused_of(long.clone()),
        format!("t.csv: path.rtt.table: {} bytes long, expected at most {MOST_TEXT}", long.len())
    );
    // Each within its bound, together beyond what can be resolved again.
    let block = "\n[[traffic]]\nkind = \"bulk\"\nsize = { table = \"t.csv\" }\n";
    let sizes: String =
        (0..MOST_POINTS).map(|k| format!("{}b,{}\n", k + 1, (k + 1) as f64 / MOST_POINTS as f64)).collect();
    let error = refused_with(&block.repeat(10), &[], &|_| Ok(sizes.clone()));
    assert!(error.contains("with every table copied in"), "{error}");
}

#[test]
fn stacks() {
    let chain = |count: usize| -> String {
        let of = |k: usize| if k + 1 == count { "linux".to_owned() } else { format!("s{}", k + 1) };
        (0..count).map(|k| format!("[stacks.s{k}]\nbase = \"{}\"\n", of(k))).collect()
    };
    let text = |count| format!("tcp.stack = \"s0\"\n{}{BULK}", chain(count));
    assert!(resolve(&text(MOST_STACKS), "s.toml", &[], &|_| Err("none".into())).is_ok(), "as many as there may be");
    assert!(refused(&text(5000)).contains(&format!("expected at most {MOST_STACKS} profiles")));
}

#[test]
fn blocks() {
    assert!(refused(&BULK.repeat(70_000)).contains(&format!("expected at most {MOST_BLOCKS} blocks")));
}

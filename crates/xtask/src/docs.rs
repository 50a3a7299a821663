//! This file generates the parts of `docs/` and README.md that follow from the registries.

use crate::header;
use crate::markdown::{self, row, rule};
use crate::tree;
use aqm::param::{Kind, Param, Text};
use aqm::registry::{self, Row};
use serde_json::Value;
use std::path::PathBuf;
use tcp::stack::Profile;

/// A page whose generated parts differ from what the registries say.
pub struct Page {
    /// Where it lies.
    pub path: PathBuf,
    /// What it should say.
    pub text: String,
}

/// What a page of a discipline says in lines of the form `- Decides at: arrival`, for the index.
const FACTS: [&str; 3] = ["Kind", "Decides at", "Per-flow state"];

/// Every page that is out of date.
///
/// # Errors
/// A page or one of its sections is missing.
pub fn outdated() -> Result<Vec<Page>, String> {
    let mut outdated = Vec::new();
    for (name, sections) in sections()? {
        let path = tree::root().join("docs").join(name);
        let old = read(&path)?;
        let mut text = old.clone();
        for (section, content) in sections {
            let range = markdown::generated(&text, &section)
                .ok_or_else(|| format!("{}: no section generated: {section}", path.display()))?;
            text.replace_range(range, &content);
        }
        if text != old {
            outdated.push(Page { path, text });
        }
    }
    let header = header::page()?;
    if read(&header.path).unwrap_or_default() != header.text {
        outdated.push(header);
    }
    Ok(outdated)
}

type Sections = Vec<(String, String)>;

fn sections() -> Result<Vec<(String, Sections)>, String> {
    let mut pages = Vec::new();
    let figures = json("docs/disciplines/measured.json")?;
    for row in registry::rows() {
        let mut sections = vec![("facts".to_owned(), facts(row)), ("parameters".to_owned(), parameters(row))];
        sections.push(("measured".to_owned(), measured(row, &figures)?));
        pages.push((format!("disciplines/{}.md", row.name), sections));
    }
    pages.push(("guide/results.md".to_owned(), vec![("measures".to_owned(), summary())]));
    let parts = ["responses", "link", "run", "sizes"].map(|part| (part.to_owned(), measures(part)));
    pages.push(("guide/measures.md".to_owned(), parts.into()));
    pages.push(("disciplines/README.md".to_owned(), vec![("index".to_owned(), index()?)]));
    pages.push(("../README.md".to_owned(), vec![("disciplines".to_owned(), names())]));
    let stacks = tcp::profiles().iter().map(|profile| (profile.name.to_owned(), stack(profile)));
    pages.push(("guide/stacks.md".to_owned(), stacks.collect()));
    Ok(pages)
}

/// The head of a discipline's page.
fn facts(row: &Row<Text>) -> String {
    let mut text = format!("{}\n\n", row.doc);
    if !row.aliases.is_empty() {
        let aliases: Vec<String> = row.aliases.iter().map(|alias| format!("`{alias}`")).collect();
        text += &format!("- Also called: {}\n", aliases.join(", "));
    }
    text + &format!("- Published: {} ({})\n- ECN: {}\n", row.year, row.source, ecn(row))
}

fn ecn(row: &Row<Text>) -> &'static str {
    if row.marks { "marks" } else { "no" }
}

fn parameters(discipline: &Row<Text>) -> String {
    let mut text = row(["name", "default", "range", "meaning", "source of the default"]) + &rule(5);
    for param in &discipline.params {
        let default = match &*param.default {
            "" if param.doc.to_lowercase().contains("computed") => "computed".into(),
            "" => "none".into(),
            default => format!("`{default}`"),
        };
        text += &row([&*format!("`{}`", param.name), &default, &range(param), &param.doc, &param.source]);
    }
    let fixed: Vec<String> = discipline.fixed.iter().map(|name| format!("`{name}`")).collect();
    text += &format!("\nWhile a run goes on all of them can be set but {}.\n", fixed.join(", "));
    if discipline.gauges.is_empty() {
        return text;
    }
    text += "\nWhat it shows of itself:\n\n";
    text += &(row(["name", "unit", "column of `queue.parquet`", "what it is"]) + &rule(4));
    for gauge in &discipline.gauges {
        text += &row([&*format!("`{}`", gauge.name), &gauge.unit, &format!("`{}`", gauge.column.name()), &gauge.doc]);
    }
    text
}

/// The figure of a discipline, and its numbers beside drop-tail's: what `tools/discipline_figures.py` found.
fn measured(discipline: &Row<Text>, figures: &Value) -> Result<String, String> {
    const REFERENCE: &str = "pfifo";
    let name = &*discipline.name;
    let of = |name: &str, path: &str| {
        let value = figures.pointer(&format!("/{name}/{path}")).and_then(Value::as_f64);
        value.ok_or_else(|| format!("measured.json has no {name}/{path}: make figures"))
    };
    let mut text = format!(
        "![Queueing delay over time, and the response times of web users, {name} beside {REFERENCE}]\
         (../img/disciplines/{name}.svg)\n\n"
    );
    text += &row(["with its defaults", "4 long flows", "20 long flows", "and a stream that does not respond"]);
    text += &rule(4);
    for (title, key, scale, unit) in [
        ("utilisation", "utilisation", 100.0, " %"),
        ("mean wait", "wait_mean_ms", 1.0, " ms"),
        ("lost", "loss_ratio", 100.0, " %"),
        ("marked", "mark_ratio", 100.0, " %"),
    ] {
        let mut cells = vec![title.to_owned()];
        for phase in ["four_flows", "twenty_flows", "unresponsive"] {
            let path = format!("{phase}/{key}");
            let mut cell = format!("{}{unit}", three_digits(scale * of(name, &path)?));
            if name != REFERENCE && key == "wait_mean_ms" {
                cell += &format!(" ({REFERENCE}: {}{unit})", three_digits(scale * of(REFERENCE, &path)?));
            }
            cells.push(cell);
        }
        let cells: [&str; 4] = std::array::from_fn(|at| cells[at].as_str());
        text += &row(cells);
    }
    let quantile = |key: &str| -> Result<String, String> {
        let own = three_digits(of(name, &format!("web/{key}"))?);
        let reference = three_digits(of(REFERENCE, &format!("web/{key}"))?);
        Ok(if name == REFERENCE { format!("{own} s") } else { format!("{own} s ({REFERENCE}: {reference} s)") })
    };
    let (half, most) = (quantile("p50_s")?, quantile("p90_s")?);
    let lost = three_digits(100.0 * of(name, "stream/loss_ratio")?);
    let seed = of(name, "seed")?;
    let date = figures.pointer(&format!("/{name}/date")).and_then(Value::as_str);
    let date = date.ok_or_else(|| format!("measured.json has no {name}/date: make figures"))?;
    text += &format!(
        "\nHalf of the web users' exchanges took at most {half}, nine in ten at most {most}. The stream, a fifth of the link, lost \
         {lost} %.\n\nMeasured by `make figures` on a link of 20 Mb/s: [the scenario](measured.toml). Waits are of all packets, the stream's too. \
         One run, seed {seed}, of {date}: differences of a tenth between disciplines are within chance.\n"
    );
    Ok(text)
}

/// A number with three digits that count, or fewer where they are zeros.
fn three_digits(x: f64) -> String {
    let places = if x == 0.0 { 0 } else { (2 - x.abs().log10().floor() as i32).clamp(0, 3) as usize };
    let text = format!("{x:.places$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// What may be written, in a few words.
fn range(param: &Param<Text>) -> String {
    let (low, high) = param.range;
    let (of, unit): (fn(f64) -> String, &str) = match param.kind {
        Kind::Word(words) => return words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(" "),
        Kind::Flag => return "`true` `false`".into(),
        Kind::Selector => return "`VALUE/MASK`".into(),
        Kind::Length => (short, " packets or bytes"),
        Kind::LengthOrTime => (short, " packets, bytes or seconds"),
        // Each end has a unit of its own, as a scenario has it.
        Kind::Time => (|end| scaled(end, &TIMES), ""),
        Kind::Rate => (|end| scaled(end, &RATES), ""),
        Kind::Frequency => (short, " hz"),
        Kind::Size if low % MIB == 0.0 || high % MIB == 0.0 => (size, ""),
        Kind::Size => (short, " bytes"),
        Kind::Number | Kind::Integer => (short, ""),
        // Whatever else there is says itself what may be written.
        #[allow(unreachable_patterns, reason = "kinds come without this file knowing them")]
        _ => return param.expected(),
    };
    match (low.is_finite(), high.is_finite()) {
        (true, true) => format!("{} to {}{unit}", of(low), of(high)),
        (true, false) => format!("at least {}{unit}", of(low)),
        (false, true) => format!("at most {}{unit}", of(high)),
        (false, false) => format!("any{unit}"),
    }
}

const TIMES: [(&str, f64); 4] = [("s", 1.0), ("ms", 1e-3), ("us", 1e-6), ("ns", 1e-9)];
const RATES: [(&str, f64); 5] = [("tbit", 1e12), ("gbit", 1e9), ("mbit", 1e6), ("kbit", 1e3), ("bit", 1.0)];
const MIB: f64 = 1_048_576.0;

/// A number in the largest of these units that is no larger than it; zero is in the unit itself.
fn scaled(x: f64, sizes: &[(&str, f64)]) -> String {
    let sought = if x == 0.0 { 1.0 } else { x };
    let found = sizes.iter().find(|(_, size)| *size <= sought).or(sizes.last());
    let (unit, size) = found.expect("there are units");
    // 1e-4 is 100 us, and 1e-4 / 1e-6 is a little more than 100: twelve digits are as many as were written.
    let written: f64 = format!("{:.11e}", x / size).parse().expect("it was a number");
    format!("{}{unit}", short(written))
}

/// A size, in MiB where it is whole ones.
fn size(x: f64) -> String {
    if x > 0.0 && x % MIB == 0.0 {
        return format!("{} MiB", short(x / MIB));
    }
    format!("{} byte{}", short(x), if x == 1.0 { "" } else { "s" })
}

/// A number as people write it: with an exponent where zeros would have to be counted.
fn short(x: f64) -> String {
    if x == 0.0 || (1e-3..1e5).contains(&x.abs()) { format!("{x}") } else { format!("{x:e}") }
}

/// One line a discipline, with the facts its page states and what was measured of it.
fn index() -> Result<String, String> {
    let costs = json("benches/decisions.json")?;
    let heads = [
        "name",
        "year",
        "law or discipline",
        "decides at",
        "ECN",
        "per-flow state",
        "cost, ns a packet",
        "in a sentence",
    ];
    let mut text = row(heads) + &rule(heads.len());
    for discipline in registry::rows() {
        let path = tree::root().join(format!("docs/disciplines/{}.md", discipline.name));
        let page = read(&path)?;
        let mut stated = Vec::new();
        for fact in FACTS {
            let line = page.lines().find_map(|line| line.strip_prefix(&format!("- {fact}: ")));
            let value = line.ok_or_else(|| format!("{}: expected a line \"- {fact}: ...\"", path.display()))?;
            stated.push(value.to_owned());
        }
        let [kind, decides, state] = stated.try_into().expect("as many as there are facts");
        let link = format!("[{0}]({0}.md)", discipline.name);
        let year = discipline.year.to_string();
        let cost = costs["disciplines"][&*discipline.name]["ns_per_packet"].as_f64();
        let cost = cost.map_or("not measured".to_owned(), |ns| format!("{:.0}", ns.max(0.0)));
        text += &row([&link, &year, &kind, &decides, ecn(discipline), &state, &cost, &discipline.doc]);
    }
    Ok(text)
}

/// All disciplines on a line that wraps.
fn names() -> String {
    let names = registry::rows().map(|row| format!("[`{0}`](docs/disciplines/{0}.md)", row.name));
    names.collect::<Vec<_>>().join("\n") + "\n"
}

fn stack(profile: &Profile) -> String {
    let mut text = format!("{}.\n\n", profile.doc) + &row(["key", "value", "source"]) + &rule(3);
    for value in profile.values {
        text += &row([&format!("`{}`", value.name), value.value, value.source]);
    }
    text
}

/// What the summary has of the catalogue of measures.
fn summary() -> String {
    let mut text = row(["key", "unit", "meaning"]) + &rule(3);
    for measure in record::measures::all() {
        if let Some(key) = measure.key() {
            text += &row([&format!("`{key}`"), measure.unit, measure.formula]);
        }
    }
    text
}

/// What can be asked for of one part of the catalogue of measures.
fn measures(part: &str) -> String {
    let mut text = row(["measure", "parameters", "unit", "what", "worked out of"]) + &rule(5);
    for measure in record::measures::all().iter().filter(|measure| measure.part == part) {
        if let Some(parameters) = measure.parameters {
            text += &row([&format!("`{}`", measure.name), parameters, measure.unit, measure.formula, measure.source]);
        }
    }
    text
}

/// A file of the repository as JSON.
fn json(name: &str) -> Result<Value, String> {
    serde_json::from_str(&read(&tree::root().join(name))?).map_err(|error| format!("{name}: {error}"))
}

fn read(path: &std::path::Path) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

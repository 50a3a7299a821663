//! These tests compare the pages with the program: the pages name every discipline, key, default, column and figure,
//! and none that does not exist.

use parquet::file::reader::{FileReader, SerializedFileReader};
use record::Engine;
use record::table::Tables;
use scenario::Resolved;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use xtask::{docs, markdown, tree};

fn page(name: &str) -> String {
    tree::text(&Path::new("docs").join(name))
}

#[test]
fn generated_parts_are_current() {
    let outdated = docs::outdated().expect("every page has its sections");
    let names: Vec<_> = outdated.iter().map(|page| page.path.display().to_string()).collect();
    assert!(names.is_empty(), "make docs writes {}", names.join(", "));
}

#[test]
fn every_discipline_has_a_page_vectors_and_an_oracle() {
    let names: Vec<&str> = aqm::registry::rows().map(|row| &*row.name).collect();
    for name in &names {
        let text = page(&format!("disciplines/{name}.md"));
        for section in ["The idea", "Parameters", "ECN", "When it helps, when it hurts", "Validation", "Deviations"] {
            assert!(text.contains(&format!("\n## {section}\n")), "{name}.md has no section {section}");
        }
        let vectors = tree::root().join("testdata/vectors").join(name);
        assert!(fs::read_dir(&vectors).is_ok_and(|mut folder| folder.next().is_some()), "{name} has no vectors");
        assert!(tree::text(Path::new("tests/python/oracle/__init__.py")).contains(&format!("{name:?}")), "{name}");
    }
    for path in tree::files_ending(&["md"]).iter().filter(|path| path.starts_with("docs/disciplines")) {
        let name = path.file_stem().and_then(|stem| stem.to_str()).expect("pages have plain names");
        assert!(name == "README" || names.contains(&name), "{name}.md describes no discipline there is");
    }
}

/// One block of every kind, with nothing but what is required.
const SMALLEST: &str = "
[[traffic]]
kind = 'web'
users = 2
[[traffic]]
kind = 'bulk'
[[traffic]]
kind = 'poisson'
arrivals = '10hz'
size = '1000b'
[[traffic]]
kind = 'cbr'
rate = '1mbit'
[[traffic]]
kind = 'onoff'
rate = '1mbit'
[[traffic]]
kind = 'udp-poisson'
arrivals = '100hz'
[[traffic]]
kind = 'udp-trace'
packets = 'packets.csv'
[[traffic]]
kind = 'probe'
[[traffic]]
kind = 'replay'
demands = 'demands.csv'
[[traffic]]
kind = 'tmix'
vectors = 'set.cvec'
[[traffic]]
kind = 'video'
[[traffic]]
kind = 'rtp_video'
max_rate = '5mbit'
";

fn resolve(text: &str) -> Result<Resolved, String> {
    let files = |name: &str| match name {
        "packets.csv" => Ok("0.5,1500\n".to_owned()),
        "demands.csv" => Ok("0,0.5,forward,0.08,350,12000,0,1\n".to_owned()),
        "set.cvec" => Ok("SEQ 0 1\nw 9000 9000\nr 1000\nl 0 0\n> 1\nt 1\n< 1\n".to_owned()),
        name => Err(format!("no {name}")),
    };
    scenario::resolve(text, "smallest.toml", &[], &files).map_err(|error| error.to_string())
}

/// The keys that a table of a scenario may have, as the error about one that is none lists them.
fn known(header: &str, given: &str) -> Vec<String> {
    let strange = "qqqqqqqqqqqqqqqq";
    let text = match header {
        "" => format!("{strange} = 1\n{SMALLEST}"),
        _ if header.starts_with("[[") => format!("{header}\n{given}\n{strange} = 1\n"),
        _ => format!("{header}\n{given}\n{strange} = 1\n{SMALLEST}"),
    };
    let error = resolve(&text).expect_err("the key is unknown");
    let (_, list) = error.split_once("expected one of ").unwrap_or_else(|| panic!("a list of keys: {error}"));
    list.split(", ").map(str::to_owned).collect()
}

/// The values of a resolved scenario as they are written there, by table (`traffic.0` for the blocks) and key.
fn written(resolved: &Resolved) -> BTreeMap<(String, String), String> {
    let mut values = BTreeMap::new();
    let (mut table, mut blocks) = (String::new(), 0);
    for line in resolved.text().lines() {
        if line == "[[traffic]]" {
            table = format!("traffic.{blocks}");
            blocks += 1;
        } else if let Some(name) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            table = name.to_owned();
        } else if let Some((key, value)) = line.split_once(" = ") {
            values.insert((table.clone(), key.to_owned()), value.to_owned());
        }
    }
    values
}

/// The kinds of the smallest blocks, in their order.
fn blocks() -> Vec<&'static str> {
    SMALLEST.lines().filter_map(|line| line.strip_prefix("kind = '")?.strip_suffix('\'')).collect()
}

/// What a row says of a default is what is filled in, wherever it is a value and not a description.
#[test]
fn rows_of_traffic_say_the_defaults_that_are_filled_in() {
    let filled_in = written(&resolve(SMALLEST).expect("it is a scenario"));
    let mut checked = 0;
    for row in scenario::kinds() {
        let index = blocks().iter().position(|kind| *kind == row.name).expect("there is a block of every kind");
        // The first model is the one that a block has unless it says.
        let keys = row.models[0].keys.iter().copied().chain(row.shared_keys());
        for key in keys.filter(|key| !key.default.is_empty() && !key.default.contains(' ') && key.default != "required")
        {
            let Some(value) = filled_in.get(&(format!("traffic.{index}"), key.name.to_owned())) else {
                panic!("{}: {} has a default and is not filled in", row.name, key.name)
            };
            assert_eq!(value.trim_matches('"'), key.default, "{}: {}", row.name, key.name);
            checked += 1;
        }
    }
    assert!(checked > 40, "only {checked} defaults");
}

fn unquoted(cell: &str) -> String {
    cell.trim_matches('`').to_owned()
}

#[test]
fn the_scenario_page_names_every_key_with_its_default() {
    let guide = page("guide/scenario.md");
    let defaults = written(&resolve(SMALLEST).expect("it is a scenario"));
    let keys = |title: &str| -> Vec<(String, String)> {
        markdown::rows_below(&guide, title).iter().map(|row| (unquoted(&row[0]), row[1].clone())).collect()
    };
    let names = |title: &str| -> Vec<String> { keys(title).into_iter().map(|(key, _)| key).collect() };

    let mut all = names("The run");
    all.extend(["link", "links", "path", "stacks", "tcp", "traffic", "record", "live"].map(str::to_owned));
    assert_eq!(sorted(all), sorted(known("", "")));
    for title in ["link", "path", "tcp", "record"] {
        assert_eq!(sorted(names(title)), sorted(known(&format!("[{title}]"), "")), "[{title}]");
    }
    let live: Vec<String> =
        markdown::rows_below(&page("guide/live.md"), "Settings").iter().map(|row| unquoted(&row[0])).collect();
    assert_eq!(sorted(live), sorted(known("[live]", "")), "[live]");
    let own = [names("stacks"), names("tcp")].concat().into_iter().filter(|key| key != "stack").collect();
    assert_eq!(sorted(own), sorted(known("[stacks.own]", "base = 'linux'")), "[stacks.own]");
    for row in scenario::kinds() {
        let kind = row.name;
        let given =
            SMALLEST.split("[[traffic]]").find_map(|block| block.trim().strip_prefix(&format!("kind = '{kind}'")));
        let given = given.expect("the smallest has a block of every kind");
        let mut all = [names("traffic"), names(kind)].concat();
        if row.speaks_tcp {
            all.extend(names("tcp"));
        } else {
            // As the page says of it.
            all.retain(|key| key != "rtt_tick");
        }
        assert_eq!(sorted(all), sorted(known("[[traffic]]", &format!("kind = '{kind}'\n{given}"))), "{kind}");
    }

    // Where the page shows a default, it is the one that is filled in.
    let mut checked = 0;
    let tables = [("The run", ""), ("link", "link"), ("path", "path"), ("record", "record")];
    let blocks = blocks().into_iter().enumerate().map(|(index, kind)| (kind, format!("traffic.{index}")));
    for (title, table) in tables.iter().map(|(title, table)| (*title, (*table).to_owned())).chain(blocks) {
        for (key, cell) in keys(title) {
            if let (Some(shown), Some(filled_in)) = (code(&cell), defaults.get(&(table.clone(), key.clone()))) {
                assert_eq!(shown, *filled_in, "{title}: {key}");
                checked += 1;
            }
        }
    }
    assert!(checked > 20, "only {checked} defaults were found on the page");
}

#[test]
fn the_scenario_page_has_the_values_of_every_stack() {
    let rows = markdown::rows_below(&page("guide/scenario.md"), "tcp");
    for (column, profile) in tcp::profiles().iter().enumerate() {
        let resolved = resolve(&format!("[tcp]\nstack = '{}'\n{SMALLEST}", profile.name)).expect("a stack's name");
        let values = written(&resolved);
        for row in &rows {
            let key = unquoted(&row[0]);
            let expected = &values[&("tcp".to_owned(), key.clone())];
            assert_eq!(unquoted(&row[column + 1]), *expected, "{key} of {}", profile.name);
        }
    }
}

/// The code with which a cell begins.
fn code(cell: &str) -> Option<String> {
    cell.strip_prefix('`')?.split('`').next().map(str::to_owned)
}

fn sorted(mut names: Vec<String>) -> Vec<String> {
    names.sort();
    names.dedup();
    names
}

#[test]
fn the_results_page_names_every_column_and_figure() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("documented");
    fs::create_dir_all(&folder).expect("cargo's folder can be written");
    let text = format!("duration = '2s'\nrecord.drops = true\n{SMALLEST}");
    let resolved = resolve(&text).expect("it is a scenario");
    let scenario = resolved.scenario().expect("the users are given");
    let mut tables = Tables::create(&folder, scenario.links.iter().map(|link| link.name.as_str()), true, true)
        .and_then(|tables| tables.with_probes(&folder)?.with_tcp(&folder))
        .expect("cargo's folder can be written");
    let outcome = sim::run(scenario, &mut tables, &mut |_| true).expect("never broken off");
    tables.write_delays(&folder, &outcome.meters).expect("cargo's folder can be written");
    tables.finish().expect("cargo's folder can be written");

    let guide = page("guide/results.md");
    let named = |title: &str| -> Vec<String> {
        markdown::rows_below(&guide, title).iter().map(|row| unquoted(&row[0])).collect()
    };
    for file in
        ["exchanges.parquet", "queue.parquet", "delays.parquet", "drops.parquet", "probes.parquet", "tcp.parquet"]
    {
        let table = fs::File::open(folder.join(file)).expect("it was written");
        let reader = SerializedFileReader::new(table).expect("it is Parquet");
        let schema = reader.metadata().file_metadata().schema_descr();
        let columns: Vec<String> = schema.columns().iter().map(|column| column.name().to_owned()).collect();
        assert_eq!(named(file), columns, "{file}");
    }

    let engine = Engine { kind: "sim", ..Engine::default() };
    let summary = outcome.summary(scenario, &engine);
    let Value::Object(mut figures) = summary.to_json() else { panic!("a summary is an object") };
    let reverse = figures.remove("reverse").expect("both directions are there");
    assert_eq!(figures["forward"].as_object().map(|o| o.len()), reverse.as_object().map(|o| o.len()));
    assert_eq!(figures["links"]["link"]["forward"], figures["forward"]);
    let mut keys = Vec::new();
    for (key, value) in &figures {
        match value {
            // By the names of the links, which are the scenario's.
            Value::Object(_) if key == "links" => keys.push(key.clone()),
            Value::Object(inner) => keys.extend(inner.keys().map(|name| format!("{key}.{name}"))),
            _ => keys.push(key.clone()),
        }
    }
    assert_eq!(sorted(named("summary.json")), sorted(keys));
}

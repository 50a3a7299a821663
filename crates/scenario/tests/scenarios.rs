//! What a scenario becomes, and that its resolved text says everything.

use base::{Distribution, Rate, Span};
use proptest::prelude::*;
use scenario::{Direction, LoadRequest, Resolved, RttSpec, Web, Workload, resolve};
use tcp::{Control, EcnMode, Repair};

/// Web users over PI: the scenario of the guide, with every kind of key in it.
const EXAMPLE: &str = r#"
name = "web users over PI"
duration = "300s"
warmup = "60s"
cooldown = "0s"
seed = 1

[link]
rate = "100mbit"
reverse_rate = "100mbit"
[link.qdisc]
kind = "pi"
qref = "24p"
limit = "10000p"
ecn = false

[path]
access_rate = "1gbit"
rtt = { uniform = ["10ms", "150ms"] }

[tcp]
stack = "freebsd4"
cc = "newreno"
ecn = "off"
window = "16kb"
mss = "1460b"

[[traffic]]
kind = "web"
model = "unc2001"
load = "98mbit"
direction = "both"

[[traffic]]
kind = "bulk"
flows = 16
start = { uniform = ["0s", "10s"] }

[[traffic]]
kind = "cbr"
flows = 4
rate = "1mbit"
packet = "573b"
"#;

/// Every form of every key.
const EVERYTHING: &str = r#"
duration = "2min"
warmup = "1s"
cooldown = "500ms"
seed = 0x2a
link.rate = "10mbit"
link.reverse_rate = "1.5mbit"
link.qdisc = { kind = "red", min = "10kb", max = "30kb" }
link.reverse_qdisc = { kind = "pfifo", limit = "240p" }
path.rtt = { table = "rtts.csv" }
record = { interval = "1s", drops = true, exchanges = false }
[tcp]
stack = "linux"
ecn = "plus"
rto_min = "0.3s"
delayed_ack = "off"
[[traffic]]
kind = "web"
users = 100
load = "1mbit"
parallel = 4
persistent = 1
think_mean = "12.5s"
stack = "freebsd4"
[[traffic]]
kind = "bulk"
size = "10mb"
start = { lognormal = { median = "3s", sigma = 0.5 } }
rtt = { even = ["10ms", "150ms"] }
cc = "reno"
ecn = "plus-tryonce"
delayed_ack = 2
[[traffic]]
kind = "poisson"
arrivals = "1.48khz"
size = { pareto = { mean = "7000b", shape = 1.2 } }
request = "350b"
direction = "both"
rtt = { uniform = ["10ms", "150ms"], step = "1ms" }
[[traffic]]
kind = "poisson"
arrivals = "0.3hz"
size = { table = "sizes.csv" }
rtt = { weibull = { scale = "33.3ms", shape = 3 } }
[[traffic]]
kind = "cbr"
rate = "64kbit"
direction = "reverse"
start = { exponential = "333us" }
rtt = "7us"
"#;

fn files(name: &str) -> Result<String, String> {
    match name {
        "rtts.csv" => Ok("# three points\nrtt_ms, probability\n10, 0.0\n20.5, 0.25\n150, 0.9999999\n".into()),
        "sizes.csv" => Ok("1e2,0\n1kb,0.5\n2097152,1\n".into()),
        _ => Err("no such file".into()),
    }
}

fn json(resolved: &Resolved) -> serde_json::Value {
    serde_json::to_value(resolved.document()).expect("names are text")
}

fn read(text: &str, overrides: &[(&str, &str)]) -> Resolved {
    let overrides: Vec<_> = overrides.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    resolve(text, "dir/example.toml", &overrides, &files).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn the_example_reads_as_it_says() {
    let resolved = read(EXAMPLE, &[("traffic.0.users", "18670")]);
    let scenario = resolved.scenario().expect("the users are given");
    assert_eq!(scenario.name, "web users over PI");
    assert_eq!((scenario.duration, scenario.warmup), (Span::from_secs(300), Span::from_secs(60)));
    assert_eq!(scenario.link().rates[0], Rate::from_bps(100_000_000));
    assert_eq!(scenario.link().qdiscs[0].kind(), "pi");
    assert_eq!(scenario.link().qdiscs[0].values.0["qref"].to_string(), "24p");
    assert_eq!(scenario.link().qdiscs[0].values, scenario.link().qdiscs[1].values);
    assert_eq!(scenario.path.rtt, RttSpec::Drawn(Distribution::Uniform(0.01, 0.15)));
    assert_eq!(scenario.traffic.len(), 3);
    for traffic in &scenario.traffic {
        assert_eq!(traffic.tcp, (tcp::profile("freebsd4").expect("a profile").config)());
    }
    let Workload::Web(Web::Users(web)) = &scenario.traffic[0].workload else { panic!("web comes first") };
    assert_eq!((web.users, scenario.traffic[0].direction), (18_670, Direction::Both));
    assert_eq!(Some(&web.model), traffic::WebModel::named("unc2001").as_ref());
    let Workload::Bulk(bulk) = &scenario.traffic[1].workload else { panic!("bulk comes second") };
    assert_eq!((bulk.flows, &bulk.size, &bulk.start), (16, &None, &Distribution::Uniform(0.0, 10.0)));
    let Workload::Cbr(cbr) = &scenario.traffic[2].workload else { panic!("cbr comes third") };
    assert_eq!((cbr.flows, cbr.rate, cbr.packet), (4, Rate::from_bps(1_000_000), 573));
}

#[test]
fn a_load_without_users_is_asked_for() {
    let resolved = read(EXAMPLE, &[]);
    let load = LoadRequest { traffic: 0, load: Rate::from_bps(98_000_000), direction: Direction::Both };
    assert_eq!(resolved.loads(), [load]);
    assert!(resolved.scenario().is_err());
    // Users settle it, and the load stays as what they are there for.
    let settled = read(resolved.text(), &[("traffic.0.users", "18670")]);
    assert!(settled.loads().is_empty() && settled.scenario().is_ok());
    assert_eq!(json(&settled)["traffic"][0]["load"], "98mbit");
    assert_eq!(json(&settled)["traffic"][0]["users"], 18_670);
}

#[test]
fn every_form_reads_as_it_says() {
    let resolved = read(EVERYTHING, &[]);
    let scenario = resolved.scenario().expect("the users are given");
    assert_eq!(scenario.name, "example", "the file's name stands in");
    assert_eq!((scenario.seed, scenario.duration), (42, Span::from_secs(120)));
    assert_eq!(scenario.link().qdiscs[1].kind(), "pfifo");
    let table = vec![(0.01, 0.0), (0.0205, 0.25), (0.15, 1.0)];
    assert_eq!(scenario.path.rtt, RttSpec::Drawn(Distribution::Table(table)));

    let [web, bulk, pareto, table, cbr] = scenario.traffic.as_slice() else { panic!("five blocks") };
    // A block's stack brings its own defaults; the keys of [tcp] still hold.
    let mut config = (tcp::profile("freebsd4").expect("a profile").config)();
    (config.ecn, config.rto_min, config.delayed_ack.every) = (EcnMode::Plus, Span::from_ms(300), 1);
    assert_eq!(web.tcp, config);
    let Workload::Web(Web::Users(users)) = &web.workload else { panic!("web comes first") };
    assert!((users.model.think.mean() - 12.5).abs() < 1e-9);
    assert_eq!((users.model.parallel, users.model.persistent_pages), (4, 1.0));

    assert_eq!((bulk.tcp.repair, bulk.tcp.control), (Repair::Rack, Control::Reno));
    assert_eq!((bulk.tcp.ecn, bulk.tcp.delayed_ack.every, bulk.tcp.stack), (EcnMode::PlusTryOnce, 2, "linux"));
    assert_eq!(bulk.rtt, RttSpec::Even { low: 0.01, high: 0.15 });
    assert_eq!((pareto.direction, cbr.direction), (Direction::Both, Direction::Reverse));
    let Workload::Poisson(flows) = &pareto.workload else { panic!("poisson comes third") };
    assert_eq!((flows.arrivals_per_s, flows.request_bytes), (1480.0, 350));
    assert!((flows.size.mean() - 7000.0).abs() < 1e-6);
    assert_eq!(pareto.rtt, RttSpec::Drawn(Distribution::Steps { low: 0.01, high: 0.15, step: 0.001 }));
    let Workload::Poisson(flows) = &table.workload else { panic!("poisson comes fourth") };
    assert_eq!(flows.size, Distribution::Table(vec![(100.0, 0.0), (1024.0, 0.5), (2_097_152.0, 1.0)]));
    assert_eq!(cbr.rtt, RttSpec::Drawn(Distribution::Constant(7e-6)));
}

#[test]
fn resolved_text_resolves_to_itself() {
    for text in [EXAMPLE, EVERYTHING, "traffic = [{ kind = 'bulk' }]"] {
        let once = read(text, &[]);
        // No file is needed any more.
        let nothing = |name: &str| Err(format!("asked for {name}"));
        let twice = resolve(once.text(), "other.toml", &[], &nothing).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(once.text(), twice.text());
        assert_eq!(json(&once), json(&twice));
        assert_eq!(once.digest(), twice.digest());
        if let (Ok(once), Ok(twice)) = (once.scenario(), twice.scenario()) {
            assert_eq!(format!("{once:?}"), format!("{twice:?}"), "the values to the last bit");
        }
        let parsed: toml::Table = once.text().parse().expect("the resolved text is TOML");
        assert_eq!(serde_json::to_value(parsed).expect("a table is JSON"), json(&once));
    }
}

#[test]
fn every_discipline_resolves_with_its_kind_alone_and_to_itself() {
    for row in aqm::registry::rows() {
        for name in row.names() {
            let once = read("traffic = [{ kind = 'bulk' }]", &[("link.qdisc", &format!("{{ kind = '{name}' }}"))]);
            assert_eq!(once.scenario().expect("there is no load").link().qdiscs[0].kind(), row.name);
            assert_eq!(once.text(), read(once.text(), &[]).text(), "{name}");
        }
    }
}

/// The edges of every parameter of every discipline: accepted and written so that they read back, or refused in one
/// line, on a slow link and on a fast one.
#[test]
fn edges_of_parameters_resolve_to_themselves_or_are_refused() {
    let edges = [
        "\"0p\"",
        "\"0.5p\"",
        "\"1p\"",
        "\"4000000000p\"",
        "\"0b\"",
        "\"1b\"",
        "\"1023.5b\"",
        "\"4kb\"",
        "\"3gb\"",
        "\"0s\"",
        "\"1ns\"",
        "\"33us\"",
        "\"1000000s\"",
        "\"0hz\"",
        "\"0.1hz\"",
        "\"1000mhz\"",
        "0",
        "1",
        "-1",
        "0.5",
        "1e-300",
        "1e300",
        "9223372036854775807",
        "true",
        "\"byte\"",
        "\"ns2\"",
        "\"linux\"",
    ];
    let mut accepted = 0;
    for row in aqm::registry::rows() {
        for param in &row.params {
            for value in edges {
                for rate in ["8kbit", "100gbit"] {
                    let qdisc = format!("{{ kind = \"{}\", {} = {value} }}", row.name, param.name);
                    let overrides = [("link.qdisc", qdisc.as_str()), ("link.rate", rate)];
                    let overrides = overrides.map(|(key, value)| (key.to_owned(), value.to_owned()));
                    let result = resolve("traffic = [{ kind = 'bulk' }]", "edge", &overrides, &files);
                    accepted += usize::from(result.is_ok());
                    one_line_or_fine(result).unwrap_or_else(|error| panic!("{qdisc} at {rate}: {error}"));
                }
            }
        }
    }
    assert!(accepted > 0);
}

#[test]
fn the_digest_is_of_the_experiment() {
    let base = read(EXAMPLE, &[]);
    assert_eq!(base.digest().len(), 64);
    assert_eq!(base.digest(), read(EXAMPLE, &[("name", "another name")]).digest());
    // The same said otherwise.
    assert_eq!(base.digest(), read(EXAMPLE, &[("link.rate", "0.1gbit"), ("warmup", "1min")]).digest());
    for (key, value) in [("seed", "2"), ("link.qdisc.ecn", "true"), ("traffic.1.flows", "17"), ("tcp.mss", "1448b")] {
        assert_ne!(base.digest(), read(EXAMPLE, &[(key, value)]).digest(), "{key}");
    }
}

#[test]
fn a_discipline_by_its_name_alone_is_short_for_a_table() {
    let bulk = "[[traffic]]\nkind = \"bulk\"";
    let short = format!("[link]\nqdisc = \"fq_codel\"\nreverse_qdisc = \"droptail\"\n{bulk}");
    let long = format!("[link.qdisc]\nkind = \"fq_codel\"\n[link.reverse_qdisc]\nkind = \"pfifo\"\n{bulk}");
    assert_eq!(read(&short, &[]).text(), read(&long, &[]).text());
    // As an override too, and with one of its parameters.
    let limit = ("link.qdisc.limit", "20p");
    assert_eq!(read(&short, &[limit]).text(), read(&long, &[limit]).text());
    assert_eq!(
        read(bulk, &[("link.qdisc", "codel"), limit]).text(),
        read(bulk, &[("link.qdisc", "{ kind = 'codel', limit = '20p' }")]).text()
    );
}

#[test]
fn overrides_replace_values_and_whole_tables() {
    let resolved = read(
        EXAMPLE,
        &[
            ("link.qdisc", "{ kind = 'pfifo', limit = '240p' }"),
            ("path.rtt", "\"80ms\""),
            ("tcp.stack", "ns2"),
            ("traffic.1.flows", "100"),
            ("traffic.1.size", "1mb"),
            ("traffic.0.users", "10"),
            ("record.drops", "true"),
        ],
    );
    let scenario = resolved.scenario().expect("the users are given");
    assert_eq!((scenario.link().qdiscs[0].kind(), scenario.link().qdiscs[1].kind()), ("pfifo", "pfifo"));
    assert_eq!(scenario.link().qdiscs[0].values.0["limit"].to_string(), "240p");
    assert_eq!(scenario.path.rtt, RttSpec::Drawn(Distribution::Constant(0.08)));
    assert_eq!(scenario.traffic[1].rtt, scenario.path.rtt);
    assert_eq!(scenario.traffic[1].tcp.stack, "ns2");
    assert_eq!(scenario.traffic[1].tcp.window, 16_384, "what [tcp] states holds for any stack");
    let Workload::Bulk(bulk) = &scenario.traffic[1].workload else { panic!("bulk comes second") };
    assert_eq!((bulk.flows, &bulk.size), (100, &Some(Distribution::Constant(1_048_576.0))));
    assert!(scenario.record.drops);
    // No bytes, which TOML's parser takes for a binary number without digits.
    let resolved =
        read(EXAMPLE, &[("link.qdisc", "{ kind = 'red' }"), ("link.qdisc.min", "0b"), ("link.qdisc.max", "9kb")]);
    assert_eq!(json(&resolved)["link"]["qdisc"]["min"], "0b");
    // The last word counts.
    assert_eq!(json(&read(EXAMPLE, &[("seed", "5"), ("seed", "6")]))["seed"], 6);
}

#[test]
fn short_runs_have_defaults_that_fit() {
    let resolved = read("duration = '2s'\ntraffic = [{ kind = 'bulk' }]", &[]);
    let scenario = resolved.scenario().expect("there is no load");
    assert_eq!(scenario.warmup, Span::from_ms(400));
    let Workload::Bulk(bulk) = &scenario.traffic[0].workload else { panic!("bulk is the only block") };
    assert_eq!(bulk.start, Distribution::Uniform(0.0, 0.1));
    let resolved = read("duration = '1ms'\ntraffic = [{ kind = 'bulk' }]", &[]);
    assert!(resolved.scenario().is_ok());
}

/// Pieces from which scenarios, sound and unsound, are put together.
fn fragments() -> impl Strategy<Value = String> {
    let words = [
        "name",
        "duration",
        "warmup",
        "link",
        "rate",
        "qdisc",
        "kind",
        "pi",
        "pfifo",
        "path",
        "rtt",
        "uniform",
        "table",
        "even",
        "tcp",
        "cc",
        "traffic",
        "web",
        "bulk",
        "users",
        "load",
        "start",
        "record",
        "=",
        ".",
        "[",
        "]",
        "[[",
        "]]",
        "{",
        "}",
        ",",
        "\n",
        "\"",
        "'",
        "\"\"\"",
        " ",
        "#",
        "0",
        "1",
        "-1",
        "1.5",
        "nan",
        "1e400",
        "\"10ms\"",
        "\"100mbit\"",
        "\"24p\"",
        "true",
        "1979-05-27",
        "\u{2028}",
        "\u{85}",
        "\r",
        "\u{0}",
        "é",
    ];
    prop::collection::vec(prop::sample::select(words.to_vec()), 0..40).prop_map(|parts| parts.concat())
}

/// Values as somebody might write them.
fn values() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<i64>().prop_map(|n| n.to_string()),
        any::<f64>().prop_map(|x| format!("{x:?}")),
        any::<u64>().prop_map(|n| format!("\"{n}ms\"")),
        any::<f64>().prop_map(|x| format!("\"{x}mbit\"")),
        any::<u32>().prop_map(|n| format!("\"{n}b\"")),
        any::<u32>().prop_map(|n| format!("\"{n}p\"")),
        (any::<u16>(), any::<u32>()).prop_map(|(a, b)| format!("{{ uniform = [\"{a}us\", \"{b}us\"] }}")),
        (any::<u16>(), any::<f32>()).prop_map(|(a, b)| format!("{{ pareto = {{ mean = \"{a}b\", shape = {b:?} }} }}")),
        (any::<u16>(), 0.0..1.0).prop_map(|(a, p)| format!("{{ table = [[\"{a}us\", {p}], [\"1s\", 1]] }}")),
        Just("true".to_owned()),
        Just("[]".to_owned()),
        Just("{}".to_owned()),
        fragments(),
    ]
}

fn keys() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "name",
        "duration",
        "warmup",
        "cooldown",
        "seed",
        "link.rate",
        "link.reverse_rate",
        "link.qdisc",
        "link.qdisc.kind",
        "link.qdisc.limit",
        "link.qdisc.qref",
        "link.qdisc.w",
        "path.rtt",
        "path.access_rate",
        "tcp.window",
        "tcp.mss",
        "tcp.rto_min",
        "tcp.initial_window",
        "tcp.delayed_ack",
        "tcp.stack",
        "traffic",
        "traffic.0.users",
        "traffic.0.think_mean",
        "traffic.0.persistent",
        "traffic.1.flows",
        "traffic.1.start",
        "traffic.1.size",
        "traffic.1.rtt",
        "traffic.2.packet",
        "traffic.2.rate",
        "record.interval",
        "",
        "a..b",
    ])
}

fn one_line_or_fine(result: Result<Resolved, scenario::Error>) -> Result<(), TestCaseError> {
    match result {
        Err(error) => {
            let line = error.to_string();
            let breaks = |c: char| c.is_control() || c == '\u{2028}' || c == '\u{2029}';
            prop_assert!(!line.is_empty() && !line.contains(breaks), "{:?}", line);
        }
        Ok(resolved) => {
            let again = resolve(resolved.text(), "again", &[], &|_| Err("no file".into()));
            let again = again.map_err(|error| TestCaseError::fail(format!("{error}\n{}", resolved.text())))?;
            prop_assert_eq!(resolved.text(), again.text());
            let values = |resolved: &Resolved| resolved.scenario().map(|scenario| format!("{scenario:?}")).ok();
            prop_assert_eq!(values(&resolved), values(&again));
        }
    }
    Ok(())
}

proptest! {
    #[test]
    fn any_text_is_refused_in_one_line(text in prop_oneof![any::<String>(), fragments()], origin in ".*") {
        one_line_or_fine(resolve(&text, &origin, &[], &files))?;
    }

    #[test]
    fn any_values_are_refused_in_one_line_or_resolve_to_themselves(
        overrides in prop::collection::vec((keys(), values()), 1..4),
    ) {
        let overrides: Vec<_> = overrides.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
        one_line_or_fine(resolve(EXAMPLE, "example.toml", &overrides, &files))?;
    }

    #[test]
    fn a_truncated_scenario_is_refused_in_one_line_or_complete(cut in 0..EVERYTHING.len()) {
        one_line_or_fine(resolve(&EVERYTHING[..cut], "example.toml", &[], &files))?;
    }
}

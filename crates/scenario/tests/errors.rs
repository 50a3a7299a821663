//! Bad input gives one clear line: the file, the key, the value, and what was expected.

use scenario::{Resolved, resolve};

mod distributions;
mod hosts;
mod traffic;

/// A scenario that is complete, to be spoilt by one line before it: the block comes last, so that keys and headings
/// may stand before it.
const BULK: &str = "\n[[traffic]]\nkind = \"bulk\"\n";

fn files(name: &str) -> Result<String, String> {
    match name {
        "negative.csv" => Ok("0.01,0\n-0.02,0.5\n0.03,1\n".into()),
        "words.csv" => Ok("rtt_s,probability\n0.01,0\nlong,1\n".into()),
        "odd_probability.csv" => Ok("10ms,0\n20ms,half\n".into()),
        "one_column.csv" => Ok("10ms\n20ms\n".into()),
        "falling.csv" => Ok("# made up\n\n0.02,0\n0.01,1\n".into()),
        "falling_probability.csv" => Ok("0.01,0.5\n0.02,0.4\n".into()),
        "percent.csv" => Ok("0.01,0\n0.02,100\n".into()),
        "short.csv" => Ok("0.01,0\n0.02,0.9\n".into()),
        "empty.csv" => Ok("# nothing\n".into()),
        "heading.csv" => Ok("delay,probability\n10,0\n20,1\n".into()),
        "infinite.csv" => Ok("0.01,0\ninf,1\n".into()),
        "nan.csv" => Ok("0.01,0\n0.02,nan\n".into()),
        _ => Err("no such file".into()),
    }
}

fn read(text: &str, overrides: &[(&str, &str)]) -> Result<Resolved, String> {
    let overrides: Vec<_> = overrides.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    let resolved = resolve(text, "s.toml", &overrides, &files).map_err(|error| error.to_string())?;
    resolved.scenario().map_err(|error| error.to_string())?;
    Ok(resolved)
}

/// Checks every pair of text and error, and reports all that differ at once.
fn check(table: &[(&str, &str)], whole: impl Fn(&str) -> String) {
    let wrong: Vec<String> = table
        .iter()
        .filter_map(|(text, expected)| {
            let got = read(&whole(text), &[]).err().unwrap_or_else(|| "no error".into());
            (got != *expected).then(|| format!("{text}\n  expected {expected}\n  got      {got}"))
        })
        .collect();
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn a_line_that_is_spoilt() {
    check(
        &[
            // Units.
            (
                "link.rate = \"100mbps\"",
                "s.toml:1: link.rate = \"100mbps\": expected a rate such as 100mbit; tc reads mbps as megabytes a \
                 second: write mbit for bits",
            ),
            ("link.rate = 100", "s.toml:1: link.rate = 100: expected a rate such as 100mbit"),
            (
                "link.reverse_rate = { trace = \"a.csv\" }",
                "s.toml:1: link.reverse_rate = { trace = \"a.csv\" }: expected a rate such as 100mbit; that of a trace is \
                 reverse_trace = \"FILE\" in the link",
            ),
            ("link.rate = \"fast\"", "s.toml:1: link.rate = \"fast\": expected a rate such as 100mbit"),
            ("link.rate = \"0mbit\"", "s.toml:1: link.rate = \"0mbit\": expected a rate above zero"),
            ("link.reverse_rate = \"0bit\"", "s.toml:1: link.reverse_rate = \"0bit\": expected a rate above zero"),
            (
                "path.access_rate = \"-1gbit\"",
                "s.toml:1: path.access_rate = \"-1gbit\": expected a rate such as 100mbit",
            ),
            ("duration = 300", "s.toml:1: duration = 300: expected a time such as 15ms"),
            ("duration = \"0s\"", "s.toml:1: duration = \"0s\": expected a time from 1ms to 1000000s"),
            ("duration = \"300 s\"", "s.toml:1: duration = \"300 s\": expected a time such as 15ms"),
            ("tcp.window = 16384", "s.toml:1: tcp.window = 16384: expected a size such as 1500b or 16kb"),
            // Times that do not fit together.
            (
                "warmup = \"400s\"",
                "s.toml:1: warmup = \"400s\": expected less than the duration 300s together with a cooldown of 0s",
            ),
            (
                "duration = \"60s\"\nwarmup = \"30s\"\ncooldown = \"30s\"",
                "s.toml:2: warmup = \"30s\": expected less than the duration 60s together with a cooldown of 30s",
            ),
            (
                "cooldown = \"250s\"",
                "s.toml:1: cooldown = \"250s\": expected less than the duration 300s less the warmup",
            ),
            // Keys.
            ("duratoin = \"1s\"", "s.toml:1: duratoin = \"1s\": unknown key, did you mean duration?"),
            (
                "colour = \"red\"",
                "s.toml:1: colour = \"red\": unknown key, expected one of name, duration, warmup, cooldown, seed, link, links, \
                 path, stacks, tcp, traffic, record, live",
            ),
            ("[link]\nRate = \"1mbit\"", "s.toml:2: link.Rate = \"1mbit\": unknown key, did you mean rate?"),
            ("[link]\naqm = \"pi\"", "s.toml:2: link.aqm = \"pi\": unknown key, did you mean qdisc?"),
            ("[tcp]\nwindows = \"1kb\"", "s.toml:2: tcp.windows = \"1kb\": unknown key, did you mean window?"),
            (
                "[record]\nintervall = \"1s\"",
                "s.toml:2: record.intervall = \"1s\": unknown key, did you mean interval?",
            ),
            ("[path]\nrrt = \"80ms\"", "s.toml:2: path.rrt = \"80ms\": unknown key, did you mean rtt?"),
            (
                "\"a\\nb\" = 1",
                concat!(
                    "s.toml:1: a\\nb = 1: unknown key, expected one of name, duration, warmup, ",
                    "cooldown, seed, link, links, path, stacks, tcp, traffic, record, live"
                ),
            ),
            // Plain values.
            ("name = 7", "s.toml:1: name = 7: expected text in quotes"),
            ("seed = -1", "s.toml:1: seed = -1: expected a whole number from 0 to 9223372036854775807"),
            ("seed = 1.5", "s.toml:1: seed = 1.5: expected a whole number from 0 to 9223372036854775807"),
            (
                "seed = 99999999999999999999",
                "s.toml:1: seed = 99999999999999999999: expected a whole number from 0 to 9223372036854775807",
            ),
            ("link = \"100mbit\"", "s.toml:1: link = \"100mbit\": expected a table"),
            ("record.drops = \"yes\"", "s.toml:1: record.drops = \"yes\": expected true or false"),
            ("record.interval = \"0s\"", "s.toml:1: record.interval = \"0s\": expected a time from 10us to 300s"),
            ("name = 1979-05-27", "s.toml:1: name = 1979-05-27: expected text in quotes"),
        ],
        |text| format!("{text}{BULK}"),
    );
}

#[test]
fn disciplines() {
    check(
        &[
            (
                "kind = \"pi\"\nqref = \"24\"",
                "s.toml:3: link.qdisc.qref = \"24\": expected packets such as 24p, bytes such as 12kb or a time such \
                 as 5ms (pi)",
            ),
            (
                "kind = \"pfifo\"\nlimit = \"24\"",
                "s.toml:3: link.qdisc.limit = \"24\": expected packets such as 24p or bytes such as 12kb (pfifo)",
            ),
            (
                "kind = \"pfifo\"\nlimit = 24",
                "s.toml:3: link.qdisc.limit = 24: expected packets such as 24p or bytes such as 12kb (pfifo)",
            ),
            (
                "kind = \"pi\"\nqerf = \"24p\"",
                "s.toml:3: link.qdisc.qerf = \"24p\": unknown key, did you mean qref? (pi)",
            ),
            (
                "kind = \"red\"\nmax_p = 0.1",
                "s.toml:3: link.qdisc.max_p = 0.1: unknown key, did you mean probability? (red)",
            ),
            (
                "kind = \"red\"\nmin_th = \"5p\"",
                "s.toml:3: link.qdisc.min_th = \"5p\": unknown key, did you mean min? (red)",
            ),
            ("limit = \"24p\"", "s.toml:1: link.qdisc.kind: missing, expected the name of a discipline such as pi"),
            ("kind = 3", "s.toml:2: link.qdisc.kind = 3: expected text in quotes"),
            ("kind = \"pi\"\necn = \"on\"", "s.toml:3: link.qdisc.ecn = \"on\": expected true or false (pi)"),
            ("kind = \"pi\"\nw = 170", "s.toml:3: link.qdisc.w = 170: expected a frequency such as 170hz (pi)"),
            (
                "kind = \"sfq\"\necn = true",
                "s.toml:3: link.qdisc.ecn = true: expected false: this discipline never marks (sfq)",
            ),
            (
                "kind = \"drr\"\nquantum = \"0b\"",
                "s.toml:3: link.qdisc.quantum = \"0b\": expected a size such as 500b, from 1 to 1048576 bytes (drr)",
            ),
            (
                "kind = \"red\"\ndialect = \"freebsd\"",
                "s.toml:3: link.qdisc.dialect = \"freebsd\": expected one of paper, ns2, linux, altq (red)",
            ),
        ],
        |text| format!("[link.qdisc]\n{text}{BULK}"),
    );
    let wrong = |kind: &str| read(&format!("link.qdisc.kind = \"{kind}\"{BULK}"), &[]).expect_err("no such kind");
    assert!(
        wrong("pii").starts_with("s.toml:1: link.qdisc.kind = \"pii\": expected one of pfifo, bfifo, "),
        "{}",
        wrong("pii")
    );
    assert!(wrong("pii").ends_with("; did you mean pi?"), "{}", wrong("pii"));
    assert!(wrong("droptial").ends_with("; did you mean droptail?"), "another name counts");
    assert!(!wrong("quantum").contains("did you mean"));
}

#[test]
fn thresholds_out_of_order_name_the_one_that_was_given() {
    for (kind, keys) in [("red", "min = \"36p\"\nmax = \"12p\""), ("ared", "min = \"36p\"\nmax = \"12p\"")] {
        let error = read(&format!("[link.qdisc]\nkind = \"{kind}\"\n{keys}{BULK}"), &[]).expect_err("out of order");
        let named = ["s.toml:3: link.qdisc.min = \"36p\": expected ", "s.toml:4: link.qdisc.max = \"12p\": expected "];
        assert!(named.iter().any(|start| error.starts_with(start)), "{error}");
    }
    // One that was not given is shown with its default.
    let error = read(&format!("[link.qdisc]\nkind = \"red\"\nmin = \"5000p\"{BULK}"), &[]).expect_err("out of order");
    assert!(
        error.starts_with("s.toml:1: link.qdisc.max = ") && error.contains("p (the default): expected "),
        "{error}"
    );
}

#[test]
fn every_parameter_outside_its_range_is_named_with_its_discipline() {
    use aqm::param::Kind;
    let mut refused = 0;
    for row in aqm::registry::rows() {
        for param in &row.params {
            let beyond = 2.0 * param.range.1 + 1.0;
            let value = match param.kind {
                Kind::Number if beyond.is_finite() => format!("{beyond:?}"),
                Kind::Integer if beyond < 9e18 => format!("{beyond}"),
                Kind::Length | Kind::LengthOrTime if beyond.is_finite() => format!("\"{beyond}p\""),
                Kind::Size if beyond < 4e9 => format!("\"{beyond}b\""),
                Kind::Time if beyond < 1e9 => format!("\"{beyond}s\""),
                Kind::Word(_) => "\"neither\"".to_owned(),
                Kind::Selector => "\"0x04/0x03\"".to_owned(),
                Kind::Flag => "3".to_owned(),
                _ => continue,
            };
            let text = format!("[link.qdisc]\nkind = \"{}\"\n{} = {value}{BULK}", row.name, param.name);
            let error = read(&text, &[]).expect_err(&text);
            let start = format!("s.toml:3: link.qdisc.{} = {value}: expected ", param.name);
            assert!(error.starts_with(&start) && error.ends_with(&format!(" ({})", row.name)), "{error}");
            refused += 1;
        }
    }
    assert!(refused > 7 * aqm::registry::rows().len(), "most parameters have an end: {refused}");
}

#[test]
fn a_computed_value_out_of_range_is_shown() {
    let text = format!("link.qdisc = {{ kind = \"ared\", gentle_end = \"4000000000p\" }}{BULK}");
    let error = read(&text, &[]).expect_err("the limit is twice that");
    let expected = "s.toml:1: link.qdisc.limit = 8000000000p (computed): expected a length such as 24p or 12000b, from 0 \
                    to 4000000000 (ared)";
    assert_eq!(error, expected);
}

#[test]
fn text_that_is_not_toml() {
    check(
        &[
            (
                "[link]\nrate = \"100mbit\"\n[link.qdi",
                "s.toml:3: [link.qdi: not valid TOML: unclosed table, expected `]`",
            ),
            ("name = \"x", "s.toml:1: name = \"x: not valid TOML: invalid basic string, expected `\"`"),
            (
                "[link.qdisc]\nqref = 24p\n\n",
                "s.toml:2: qref = 24p: not valid TOML: string values must be quoted, expected literal string",
            ),
            (
                "traffic = [\n{ kind = \"bulk\",\n\n",
                "s.toml:2: { kind = \"bulk\",: not valid TOML: unclosed inline table, expected `}`",
            ),
            ("seed = 1\nseed = 2", "s.toml:2: seed = 2: not valid TOML: duplicate key"),
        ],
        str::to_owned,
    );
}

#[test]
fn a_discipline_by_its_name_alone_is_refused_at_its_line() {
    let error = read("[link]\nrate = \"1mbit\"\nqdisc = \"fq_coddel\"\n[[traffic]]\nkind = \"bulk\"", &[]);
    let error = error.expect_err("there is no such discipline");
    assert!(error.starts_with("s.toml:3: link.qdisc.kind = \"fq_coddel\": expected one of pfifo, "), "{error}");
    assert!(error.ends_with("; did you mean fq_codel?"), "{error}");
}

#[test]
fn overrides() {
    let bulk = "[link.qdisc]\nkind = \"pi\"\nqref = \"24p\"\n[[traffic]]\nkind = \"bulk\"";
    for (key, value, expected) in [
        ("link.rate", "0mbit", "override: link.rate = \"0mbit\": expected a rate above zero"),
        ("link.rte", "1mbit", "override: link.rte = \"1mbit\": unknown key, did you mean rate?"),
        ("traffic.1.flows", "3", "override: traffic.1.flows = 3: traffic has 1 items, counted from 0, and no 1"),
        ("traffic.all.flows", "3", "override: traffic.all.flows = 3: traffic has 1 items, counted from 0, and no all"),
        (
            "link.qdisc.kind.name",
            "red",
            "override: link.qdisc.kind.name = red: link.qdisc.kind is a single value and has no name",
        ),
        ("link..rate", "1mbit", "override: link..rate = 1mbit: expected a key such as link.rate"),
        ("", "1mbit", "override: 1mbit: expected a key such as link.rate"),
        (
            "link.qdisc",
            "{ kind = 'red'",
            "override: link.qdisc = { kind = 'red': not a TOML value: unclosed inline table, expected `}`",
        ),
        // The kind alone leaves the parameters of the former one, which are then named.
        (
            "link.qdisc.kind",
            "pfifo",
            "s.toml:3: link.qdisc.qref = \"24p\": unknown key, expected one of kind, law, limit, ecn, dialect, drop \
             (pfifo)",
        ),
        ("traffic.0.flows", "", "override: traffic.0.flows = \"\": expected a whole number from 1 to 100000000"),
    ] {
        let error = read(bulk, &[(key, value)]).expect_err(key);
        assert_eq!(error, expected);
    }
}

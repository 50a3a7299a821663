//! Bad input gives one clear line: the file, the key, the value, and what was expected.

use scenario::{Resolved, resolve};

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
fn distributions() {
    check(
        &[
            ("80", "s.toml:1: path.rtt = 80: expected a time such as 15ms"),
            ("\"80\"", "s.toml:1: path.rtt = \"80\": expected a time such as 15ms"),
            ("\"80s\"", "s.toml:1: path.rtt = \"80s\": expected a time from 0s to 60s"),
            ("[\"10ms\"]", "s.toml:1: path.rtt = [\"10ms\"]: expected a time such as 15ms"),
            ("{}", "s.toml:1: path.rtt = { }: expected one of uniform, exponential, pareto, weibull, lognormal, table"),
            (
                "{ uniform = [\"10s\", \"150s\"] }",
                "s.toml:1: path.rtt = { uniform = [\"10s\", \"150s\"] }: expected round-trip times of at most 60s",
            ),
            (
                "{ unifrom = [\"10ms\", \"150ms\"] }",
                "s.toml:1: path.rtt.unifrom = [\"10ms\", \"150ms\"]: unknown key, did you mean uniform?",
            ),
            (
                "{ uniform = [\"150ms\", \"10ms\"] }",
                "s.toml:1: path.rtt.uniform = [\"150ms\", \"10ms\"]: expected two values, the smallest and the largest",
            ),
            (
                "{ uniform = \"10ms\" }",
                "s.toml:1: path.rtt.uniform = \"10ms\": expected two values, the smallest and the largest",
            ),
            ("{ uniform = [10, 150] }", "s.toml:1: path.rtt.uniform.0 = 10: expected a time such as 15ms"),
            (
                "{ uniform = [\"10ms\", \"150ms\"], step = \"3ms\" }",
                "s.toml:1: path.rtt.step = \"3ms\": expected a step that divides the range",
            ),
            (
                "{ uniform = [\"10ms\", \"150ms\"], step = \"0ms\" }",
                "s.toml:1: path.rtt.step = \"0ms\": expected more than zero",
            ),
            (
                "{ even = [\"10ms\", \"150ms\"], step = \"1ms\" }",
                "s.toml:1: path.rtt = { even = [\"10ms\", \"150ms\"], step = \"1ms\" }: expected one of uniform, \
                 exponential, pareto, weibull, lognormal, table",
            ),
            (
                "{ exponential = \"50ms\", step = \"1ms\" }",
                "s.toml:1: path.rtt.step = \"1ms\": does not go with exponential",
            ),
            ("{ exponential = \"0ms\" }", "s.toml:1: path.rtt.exponential = \"0ms\": expected more than zero"),
            (
                "{ exponential = \"50ms\", uniform = [\"1ms\", \"2ms\"] }",
                "s.toml:1: path.rtt = { exponential = \"50ms\", uniform = [\"1ms\", \"2ms\"] }: expected one of \
                 uniform, exponential, pareto, weibull, lognormal, table",
            ),
            (
                "{ pareto = { mean = \"50ms\", shape = 0.9 } }",
                "s.toml:1: path.rtt.pareto = { mean = \"50ms\", shape = 0.9 }: expected a shape above 1: below, the \
                 mean is infinite",
            ),
            (
                "{ pareto = { shape = 1.2 } }",
                "s.toml:1: path.rtt.pareto = { shape = 1.2 }: expected either scale or mean",
            ),
            ("{ pareto = { mean = \"50ms\" } }", "s.toml:1: path.rtt.pareto.shape: missing, expected a number"),
            (
                "{ weibull = { scale = \"50ms\", shape = nan } }",
                "s.toml:1: path.rtt.weibull.shape = NaN: expected a number from 0.01 to 1000",
            ),
            ("{ table = \"nowhere.csv\" }", "s.toml:1: path.rtt.table = \"nowhere.csv\": cannot be read: no such file"),
            (
                "{ table = \"negative.csv\" }",
                "negative.csv:2: path.rtt.table = -0.02,0.5: expected value,cumulative probability, neither negative",
            ),
            (
                "{ table = \"words.csv\" }",
                "words.csv:3: path.rtt.table = long,1: expected value,cumulative probability, neither negative",
            ),
            (
                "{ table = \"odd_probability.csv\" }",
                "odd_probability.csv:2: path.rtt.table = 20ms,half: expected value,cumulative probability, neither \
                 negative",
            ),
            (
                "{ table = \"one_column.csv\" }",
                "one_column.csv:1: path.rtt.table = 10ms: expected value,cumulative probability, neither negative",
            ),
            (
                "{ table = \"infinite.csv\" }",
                "infinite.csv:2: path.rtt.table = inf,1: expected value,cumulative probability, neither negative",
            ),
            (
                "{ table = \"nan.csv\" }",
                "nan.csv:2: path.rtt.table = 0.02,nan: expected a cumulative probability from 0 to 1",
            ),
            (
                "{ table = \"falling.csv\" }",
                "falling.csv:4: path.rtt.table = 0.01,1: expected values and probabilities that do not fall from one \
                 line to the next",
            ),
            (
                "{ table = \"falling_probability.csv\" }",
                "falling_probability.csv:2: path.rtt.table = 0.02,0.4: expected values and probabilities that do not \
                 fall from one line to the next",
            ),
            (
                "{ table = \"percent.csv\" }",
                "percent.csv:2: path.rtt.table = 0.02,100: expected a cumulative probability from 0 to 1",
            ),
            (
                "{ table = \"short.csv\" }",
                "short.csv:2: path.rtt.table = 0.02,0.9: expected 1 as the last cumulative probability",
            ),
            (
                "{ table = \"empty.csv\" }",
                "empty.csv:1: path.rtt.table: expected lines of value,cumulative probability",
            ),
            (
                "{ table = \"heading.csv\" }",
                "heading.csv:1: path.rtt.table = delay,probability: expected a heading such as value_s,probability",
            ),
            (
                "{ table = [[\"10ms\", 0.5]] }",
                "s.toml:1: path.rtt.table = [[\"10ms\", 0.5]]: expected 1 as the last cumulative probability",
            ),
            (
                "{ table = [\"10ms\"] }",
                "s.toml:1: path.rtt.table.0 = \"10ms\": expected the name of a file, or pairs such as [\"10ms\", 0.5]",
            ),
        ],
        |text| format!("path.rtt = {text}{BULK}"),
    );
}

#[test]
fn hosts() {
    check(
        &[
            ("stack = \"windows\"", "s.toml:2: tcp.stack = \"windows\": expected one of freebsd4, ns2, linux"),
            (
                "stack = \"freebsd\"",
                "s.toml:2: tcp.stack = \"freebsd\": expected one of freebsd4, ns2, linux; did you mean freebsd4?",
            ),
            (
                "cc = \"vegas\"",
                "s.toml:2: tcp.cc = \"vegas\": expected one of reno, newreno, sack, cubic, dctcp, prague, prague-linux, \
             bbr, bbr3, ledbat, cubic-rfc, cubic-linux",
            ),
            (
                "cc = \"prague\"\necn = \"on\"",
                "s.toml:3: tcp.ecn = \"on\": expected ecn accurate, without which there is no prague",
            ),
            (
                "cc = \"bbr\"\npacing = false",
                "s.toml:3: tcp.pacing = false: expected pacing true, without which there is no bbr",
            ),
            (
                "cc = \"bbr\"\nrepair = \"ns2-sack1\"",
                "s.toml:3: tcp.repair = \"ns2-sack1\": expected repair sack or rack, without which there is no bbr",
            ),
            (
                "cc = \"bbr\"\nhystart = \"plus\"",
                "s.toml:3: tcp.hystart = \"plus\": expected hystart off with bbr, which has a start of its own",
            ),
            (
                "stack = \"ns2\"\npacing = true",
                "s.toml:3: tcp.pacing = true: expected pacing false with repair ns2-sack1, which does not pace",
            ),
            ("hystart = true", "s.toml:2: tcp.hystart = true: expected one of off, linux, plus"),
            (
                "cc = \"dctcp\"\necn = \"off\"",
                "s.toml:3: tcp.ecn = \"off\": expected ecn on or accurate, without which there is no dctcp",
            ),
            (
                "stack = \"freebsd4\"\nreceive_buffer = \"64kb\"",
                "s.toml:3: tcp.receive_buffer = \"64kb\": expected receive_buffer 0b without delayed_ack_adapts, \
                 which alone lets it grow",
            ),
            (
                "stack = \"linux\"\ndelayed_ack_adapts = false",
                "s.toml:3: tcp.delayed_ack_adapts = false: expected receive_buffer 0b without delayed_ack_adapts, \
                 which alone lets it grow",
            ),
            ("ect = 1", "s.toml:2: tcp.ect = 1: expected one of ect0, ect1"),
            ("ecn = true", "s.toml:2: tcp.ecn = true: expected one of off, on, plus, plus-tryonce, accurate"),
            (
                "ecn_option = true",
                "s.toml:2: tcp.ecn_option = true: expected ecn_option false without ecn accurate, whose option it is",
            ),
            (
                "ecn = \"accurate\"\nrepair = \"newreno\"",
                "s.toml:3: tcp.repair = \"newreno\": expected repair sack or rack with ecn accurate",
            ),
            (
                "window = \"1000b\"",
                "s.toml:2: tcp.window = \"1000b\": expected a window of at least one segment of 1448 bytes",
            ),
            ("mss = \"1b\"", "s.toml:2: tcp.mss = \"1b\": expected a size from 64b to 65000b"),
            ("mss = \"1460p\"", "s.toml:2: tcp.mss = \"1460p\": expected a size such as 1500b or 16kb"),
            ("initial_window = 0", "s.toml:2: tcp.initial_window = 0: expected a whole number from 1 to 10000"),
            ("handshake = \"off\"", "s.toml:2: tcp.handshake = \"off\": expected true or false"),
            ("rto_min = \"0s\"", "s.toml:2: tcp.rto_min = \"0s\": expected a time from 1us to 3600s"),
            ("rto_min = 1", "s.toml:2: tcp.rto_min = 1: expected a time such as 15ms"),
            (
                "rto_min = \"200s\"",
                "s.toml:2: tcp.rto_min = \"200s\": expected rto_min not above rto_max, which is 120s",
            ),
            (
                "granularity = \"10min\"",
                "s.toml:2: tcp.granularity = \"10min\": expected granularity not above rto_max, which is 120s",
            ),
            (
                "rto_max = \"500ms\"",
                "s.toml:2: tcp.rto_max = \"500ms\": expected rto_initial not above rto_max, which is 500ms",
            ),
            (
                "delayed_ack = \"on\"",
                "s.toml:2: tcp.delayed_ack = \"on\": expected off or a number of segments from 1 to 64",
            ),
            ("delayed_ack = 0", "s.toml:2: tcp.delayed_ack = 0: expected off or a number of segments from 1 to 64"),
        ],
        |text| format!("[tcp]\n{text}{BULK}"),
    );
}

const KINDS: &str =
    "web, bulk, poisson, cbr, onoff, udp-poisson, udp-trace, probe, tmix, replay, video, rtp_video, homes";

#[test]
fn traffic() {
    let unknown = read(&format!("[tcp]\nqqqqqqqqqq = 1{BULK}"), &[]).expect_err("the key is unknown");
    let (_, tcp_keys) = unknown.split_once("expected one of ").expect("a list of keys");
    check(
        &[
            ("", "s.toml: traffic: missing, expected at least one [[traffic]] block"),
            ("traffic = []", "s.toml:1: traffic = []: expected at least one [[traffic]] block"),
            ("traffic = 3", "s.toml:1: traffic = 3: expected at least one [[traffic]] block"),
            ("[traffic]", "s.toml:1: traffic = { }: expected at least one [[traffic]] block"),
            ("traffic = [3]", "s.toml:1: traffic.0 = 3: expected a table with a kind"),
            ("[[traffic]]", &format!("s.toml:1: traffic.0.kind: missing, expected one of {KINDS}")),
            ("[[traffic]]\nkind = \"ftp\"", &format!("s.toml:2: traffic.0.kind = \"ftp\": expected one of {KINDS}")),
            (
                "[[traffic]]\nkind = \"blk\"",
                &format!("s.toml:2: traffic.0.kind = \"blk\": expected one of {KINDS}; did you mean bulk?"),
            ),
            (
                "[[traffic]]\nkind = \"web\"",
                "s.toml:1: traffic.0.users: missing, expected users = 18670 or load = \"98mbit\"",
            ),
            (
                "[[traffic]]\nkind = \"web\"\nload = \"98mbit\"",
                "s.toml:3: traffic.0.load = \"98mbit\": needs calibration: the number of users that offers this load \
                 is not known",
            ),
            (
                "[[traffic]]\nkind = \"web\"\nload = 98",
                "s.toml:3: traffic.0.load = 98: expected a rate such as 100mbit",
            ),
            (
                "[[traffic]]\nkind = \"web\"\nload = \"0mbit\"",
                "s.toml:3: traffic.0.load = \"0mbit\": expected a rate above zero",
            ),
            (
                "[[traffic]]\nkind = \"web\"\nusers = 0",
                "s.toml:3: traffic.0.users = 0: expected a whole number from 1 to 100000000",
            ),
            (
                "[[traffic]]\nkind = \"web\"\nusers = 10\nparallel = 33",
                "s.toml:4: traffic.0.parallel = 33: expected a whole number from 1 to 32",
            ),
            (
                "[[traffic]]\nkind = \"web\"\nusers = 10\npersistent = 15",
                "s.toml:4: traffic.0.persistent = 15: expected a number from 0 to 1",
            ),
            (
                "[[traffic]]\nkind = \"web\"\nusers = 10\nthink_mean = \"0s\"",
                "s.toml:4: traffic.0.think_mean = \"0s\": expected a think time above zero",
            ),
            (
                "[[traffic]]\nkind = \"web\"\nusers = 10\ndirection = \"up\"",
                "s.toml:4: traffic.0.direction = \"up\": expected one of forward, reverse, both",
            ),
            (
                "[[traffic]]\nkind = \"bulk\"\n[[traffic]]\nkind = \"bulk\"\nflows = 0",
                "s.toml:5: traffic.1.flows = 0: expected a whole number from 1 to 100000000",
            ),
            (
                "[[traffic]]\nkind = \"bulk\"\nusers = 3",
                &format!(
                    "s.toml:3: traffic.0.users = 3: unknown key, expected one of kind, direction, rtt, dscp, hosts, application, route, reverse_route, rtt_at, rtt_tick, \
                     flows, start, size, max_pacing_rate, {tcp_keys}"
                ),
            ),
            (
                "[[traffic]]\nkind = \"bulk\"\nsize = \"0b\"",
                "s.toml:3: traffic.0.size = \"0b\": expected sizes of at least 1b",
            ),
            (
                "[[traffic]]\nkind = \"bulk\"\nstart = \"300s\"",
                "s.toml:3: traffic.0.start = \"300s\": expected a start before the end of the run at 300s",
            ),
            (
                "[[traffic]]\nkind = \"bulk\"\nstart = { even = [\"0s\", \"1s\"] }",
                "s.toml:3: traffic.0.start.even = [\"0s\", \"1s\"]: unknown key, expected one of uniform, exponential, \
                 pareto, weibull, lognormal, table, step",
            ),
            (
                "[[traffic]]\nkind = \"bulk\"\nwindow = \"1kb\"",
                "s.toml:3: traffic.0.window = \"1kb\": expected a window of at least one segment of 1448 bytes",
            ),
            (
                "[[traffic]]\nkind = \"bulk\"\nrtt = \"2h\"",
                "s.toml:3: traffic.0.rtt = \"2h\": expected a time from 0s to 60s",
            ),
            (
                "[[traffic]]\nkind = \"poisson\"\nsize = \"7000b\"",
                "s.toml:1: traffic.0.arrivals: missing, expected a frequency such as 1480hz",
            ),
            (
                "[[traffic]]\nkind = \"poisson\"\narrivals = 1480\nsize = \"7000b\"",
                "s.toml:3: traffic.0.arrivals = 1480: expected a frequency such as 170hz",
            ),
            (
                "[[traffic]]\nkind = \"poisson\"\narrivals = \"0hz\"\nsize = \"7000b\"",
                "s.toml:3: traffic.0.arrivals = \"0hz\": expected a frequency above zero and at most 10000000hz",
            ),
            (
                "[[traffic]]\nkind = \"poisson\"\narrivals = \"1480hz\"",
                "s.toml:1: traffic.0.size: missing, expected a size or a distribution such as \
                 { pareto = { mean = \"7000b\", shape = 1.2 } }",
            ),
            (
                "[[traffic]]\nkind = \"poisson\"\narrivals = \"1hz\"\nsize = \"0b\"",
                "s.toml:4: traffic.0.size = \"0b\": expected sizes of at least 1b",
            ),
            (
                "[[traffic]]\nkind = \"poisson\"\narrivals = \"1hz\"\nsize = \"1kb\"\none_way = true",
                "s.toml:5: traffic.0.one_way = true: expected no one-way hosts in traffic.0, whose requests are answered: \
                 only bulk, and poisson with request = \"0b\"",
            ),
            (
                "[[traffic]]\nkind = \"bulk\"\nmax_pacing_rate = \"0bit\"",
                "s.toml:3: traffic.0.max_pacing_rate = \"0bit\": expected a rate above zero",
            ),
            (
                "[[traffic]]\nkind = \"bulk\"\nstack = \"ns2\"\nmax_pacing_rate = \"1mbit\"",
                "s.toml:4: traffic.0.max_pacing_rate = \"1mbit\": expected no such key with repair ns2-sack1, which does not pace",
            ),
            ("[[traffic]]\nkind = \"cbr\"", "s.toml:1: traffic.0.rate: missing, expected a rate such as 1mbit"),
            (
                "[[traffic]]\nkind = \"cbr\"\nrate = \"3gbit\"\nflows = 2",
                "s.toml:3: traffic.0.rate = \"3gbit\": expected at most 2gbit, what the access links of 2 carry",
            ),
            (
                "[[traffic]]\nkind = \"cbr\"\nrate = \"0bit\"",
                "s.toml:3: traffic.0.rate = \"0bit\": expected a rate above zero",
            ),
            (
                "[[traffic]]\nkind = \"cbr\"\nrate = \"1mbit\"\npacket = \"20b\"",
                "s.toml:4: traffic.0.packet = \"20b\": expected a size from 28b to 65535b",
            ),
            (
                "[[traffic]]\nkind = \"cbr\"\nrate = \"1mbit\"\necn = \"on\"",
                "s.toml:4: traffic.0.ecn = \"on\": unknown key, did you mean ect?",
            ),
        ],
        str::to_owned,
    );
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

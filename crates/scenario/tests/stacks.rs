//! Stack profiles of a scenario's own: what they become, that the resolved text is complete, and what is refused.

use base::Span;
use scenario::{Resolved, resolve};
use tcp::{Backoff, Config, Control, EcnMode, Repair};

/// The rest of a scenario.
const BULK: &str = "\n[[traffic]]\nkind = \"bulk\"\n";

/// A profile that changes every kind of value, and one that starts from it.
const OWN: &str = r#"
[stacks.lab]
base = "linux"
cc = "cubic"
repair = "newreno"
mss = "1220b"
header = "60b"
window = "64kb"
syn_backoff = [1, 1, 1, 2]
delayed_ack = "off"
rto_min = "30ms"
rto_floor = "whole"
reduction = "at-once"
quick_acks = 0
[stacks.lab-ecn]
base = "lab"
ecn = "on"
cc = "dctcp"
[tcp]
stack = "lab"
initial_window = 4
[[traffic]]
kind = "bulk"
[[traffic]]
kind = "bulk"
stack = "lab-ecn"
window = "32kb"
[[traffic]]
kind = "bulk"
stack = "freebsd4"
"#;

fn files(name: &str) -> Result<String, String> {
    match name {
        "hosts/old.toml" => Ok("# measured\nbase = \"freebsd4\"\nwindow = \"8kb\"\nrto_min = \"500ms\"\n".into()),
        "more/old.toml" => Ok("base = \"linux\"".into()),
        "impossible.toml" => Ok("base = \"linux\"\nrto_max = \"2s\"\nrto_min = \"3s\"\n".into()),
        "odd.toml" => Ok("base = \"linux\"\n\nwindos = \"2kb\"\n".into()),
        "nested.toml" => Ok("base = \"old\"".into()),
        "cut.toml" => Ok("base = \"linux\"\nwindow = \"".into()),
        "linux.toml" => Ok("base = \"linux\"".into()),
        _ => Err("no such file".into()),
    }
}

fn json(resolved: &Resolved) -> serde_json::Value {
    serde_json::to_value(resolved.document()).expect("names are text")
}

fn read(text: &str) -> Result<Resolved, String> {
    let resolved = resolve(text, "s.toml", &[], &files).map_err(|error| error.to_string())?;
    resolved.scenario().map_err(|error| error.to_string())?;
    Ok(resolved)
}

fn hosts(resolved: &Resolved) -> Vec<Config> {
    resolved.scenario().expect("there is no load").traffic.iter().map(|block| block.tcp.clone()).collect()
}

fn built_in(name: &str) -> Config {
    (tcp::profile(name).expect("a built-in profile").config)()
}

/// What is written resolves to itself, without files, to the same values.
fn assert_complete(resolved: &Resolved) {
    let nothing = |name: &str| Err(format!("asked for {name}"));
    let again = resolve(resolved.text(), "again.toml", &[], &nothing).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(resolved.text(), again.text());
    assert_eq!(json(resolved), json(&again));
    assert_eq!(hosts(resolved), hosts(&again));
    let parsed: toml::Table = resolved.text().parse().expect("the resolved text is TOML");
    assert_eq!(serde_json::to_value(parsed).expect("a table is JSON"), json(resolved));
}

#[test]
fn a_profile_is_its_base_and_what_it_changes() {
    let resolved = read(OWN).unwrap_or_else(|error| panic!("{error}"));
    let linux = built_in("linux");
    let mut lab = Config {
        repair: Repair::NewReno,
        mss: 1220,
        header: 60,
        window: 65_536,
        initial_window: 4,
        rto_min: Span::from_ms(30),
        rto_floor: tcp::RtoFloor::Whole,
        reduction: tcp::Reduction::AtOnce,
        ..linux
    };
    lab.syn_timer.factors = Backoff::new(&[1, 1, 1, 2]);
    (lab.delayed_ack.every, lab.delayed_ack.quick) = (1, 0);
    let lab_ecn = Config {
        // `repair = "newreno"` is the base's and stays.
        control: Control::Dctcp,
        // HyStart is of Linux's CUBIC; another `cc` goes without.
        hystart: tcp::Hystart::Off,
        ecn: EcnMode::On,
        ect_on_retransmit: true,
        ect_on_control: true,
        window: 32_768,
        ..lab.clone()
    };
    let freebsd4 = Config { initial_window: 4, ..built_in("freebsd4") };
    assert_eq!(hosts(&resolved), [lab, lab_ecn, freebsd4]);
    assert_eq!(json(&resolved)["traffic"][1]["stack"], "lab-ecn");
    assert_eq!(json(&resolved)["stacks"]["lab-ecn"]["rto_min"], "30ms", "every value, not only its own");
    assert_complete(&resolved);
}

#[test]
fn a_window_brings_the_repair_that_its_stack_has_beside_it() {
    use Repair::{NewReno, Ns2NewReno, Ns2Sack1, Rack, Reno, Sack};
    let repair = |keys: &str| {
        let resolved = read(&format!("[tcp]\n{keys}{BULK}")).unwrap_or_else(|error| panic!("{keys}: {error}"));
        assert_complete(&resolved);
        hosts(&resolved)[0].repair
    };
    for (stack, own, of_words) in [
        // The literature's names of whole TCPs, and windows with SACK.
        ("freebsd4", NewReno, [Reno, NewReno, Sack, Sack, Sack, Sack]),
        ("ns2", Ns2Sack1, [Reno, Ns2NewReno, Ns2Sack1, Ns2Sack1, Ns2Sack1, Sack]),
        // The kernel's names: what each does about losses is the host's, not the window's.
        ("linux", Rack, [Rack, NewReno, Rack, Rack, Rack, Rack]),
    ] {
        assert_eq!(repair(&format!("stack = '{stack}'")), own, "{stack}");
        for (word, expected) in ["reno", "newreno", "sack", "cubic", "dctcp", "bbr"].into_iter().zip(of_words) {
            assert_eq!(repair(&format!("stack = '{stack}'\ncc = '{word}'")), expected, "{stack} {word}");
        }
        // What is said comes before what goes with the window.
        for (word, repaired) in Repair::WORDS {
            assert_eq!(repair(&format!("stack = '{stack}'\ncc = 'cubic'\nrepair = '{word}'")), repaired, "{stack}");
        }
    }
}

#[test]
fn cubic_is_the_stacks_own_unless_it_is_said_whose() {
    use tcp::CubicDialect::{Linux, Rfc};
    let resolved = |keys: &str| read(&format!("[tcp]\n{keys}{BULK}")).unwrap_or_else(|error| panic!("{keys}: {error}"));
    for (stack, own) in [("freebsd4", Rfc), ("ns2", Rfc), ("linux", Linux)] {
        for (word, expected) in [("cubic", own), ("cubic-rfc", Rfc), ("cubic-linux", Linux)] {
            // Whatever the window is counted in.
            for whole in ["true", "false"] {
                let keys = format!("stack = '{stack}'\ncc = '{word}'\nwhole_segments = {whole}");
                let resolved = resolved(&keys);
                assert_complete(&resolved);
                let config = &hosts(&resolved)[0];
                assert_eq!((config.control, config.cubic), (Control::Cubic, expected), "{keys}");
                assert_eq!(config.hystart == tcp::Hystart::Linux, expected == Linux, "{keys}");
            }
        }
    }
    // A profile of one's own, and a block beside others, say it again when they are written and read.
    let keys = "stack = 'mine'\n[stacks.mine]\nbase = 'linux'\ncc = 'cubic-rfc'";
    assert_complete(&resolved(keys));
    assert_eq!(hosts(&resolved(keys))[0].cubic, Rfc);
}

#[test]
fn what_repair_was_called_before_is_answered_by_what_to_write() {
    // The last four are what resolved scenarios had.
    for (keys, expected) in [
        ("sack = 'off'", "newreno"),
        ("cc = 'cubic'\nsack = 'rfc6675'", "sack"),
        ("stack = 'linux'\nrack = false", "sack"),
        ("newreno = 'ns2'", "ns2-newreno"),
        ("stack = 'freebsd4'\ncc = 'newreno'\nsack = 'rfc6675'\nnewreno = 'rfc6582'\nrack = false", "newreno"),
        ("stack = 'ns2'\ncc = 'sack'\nsack = 'ns2'\nnewreno = 'ns2'\nrack = false", "ns2-sack1"),
        ("stack = 'linux'\ncc = 'cubic'\nsack = 'rfc6675'\nnewreno = 'rfc6582'\nrack = true", "rack"),
        // It had no SACK, which Linux's has.
        ("stack = 'linux'\ncc = 'reno'\nsack = 'rfc6675'\nnewreno = 'rfc6582'\nrack = true", "reno"),
    ] {
        let expected =
            format!("sack, newreno and rack are one key now, repair; expected repair = \"{expected}\" instead");
        for place in ["[tcp]", "[[traffic]]\nkind = 'bulk'", "[stacks.lab]\nbase = 'linux'"] {
            if place.starts_with("[stacks") && keys.contains("stack") {
                continue;
            }
            let line = read(&format!("{place}\n{keys}{BULK}")).expect_err(keys).to_string();
            assert!(line.ends_with(&expected), "{keys}: {line}");
        }
    }
}

#[test]
fn a_profile_names_a_base_and_no_stack() {
    let line = read("[stacks.lab]\nbase = \"linux\"\nstack = \"ns2\"").expect_err("stack is no key").to_string();
    assert!(line.starts_with("s.toml:3: stacks.lab.stack = \"ns2\": unknown key, expected one of base, cc,"), "{line}");
}

#[test]
fn a_scenario_that_names_no_stack_has_the_hosts_of_today() {
    let resolved = read(BULK).expect("it is a scenario");
    assert_eq!((hosts(&resolved), &json(&resolved)["tcp"]["stack"]), (vec![built_in("linux")], &"linux".into()));
}

#[test]
fn a_scenario_without_profiles_of_its_own_does_not_speak_of_them() {
    let resolved = read(BULK).expect("it is a scenario");
    assert!(!resolved.text().contains("stacks"), "{}", resolved.text());
}

#[test]
fn a_profile_in_a_file_is_copied_in() {
    let resolved = read("tcp.stack = \"hosts/old.toml\"\n[[traffic]]\nkind = \"bulk\"\nstack = \"hosts/old.toml\"\n")
        .unwrap_or_else(|error| panic!("{error}"));
    let old = Config { window: 8_192, rto_min: Span::from_ms(500), ..built_in("freebsd4") };
    assert_eq!(hosts(&resolved), [old]);
    assert_eq!(
        (&json(&resolved)["tcp"]["stack"], &json(&resolved)["stacks"]["old"]["window"]),
        (&"old".into(), &"8kb".into())
    );
    assert_complete(&resolved);
    // It stands beside those that are written out.
    let both = read("[stacks.new]\nbase = \"linux\"\n[[traffic]]\nkind = \"bulk\"\nstack = \"hosts/old.toml\"\n");
    assert_complete(&both.unwrap_or_else(|error| panic!("{error}")));
}

#[test]
fn an_override_reaches_a_profile() {
    let overrides = [("stacks.lab.rto_min".to_owned(), "50ms".to_owned()), ("stacks.quick.base".into(), "ns2".into())];
    let resolved = resolve(OWN, "s.toml", &overrides, &files).unwrap_or_else(|error| panic!("{error}"));
    let all: Vec<u64> = hosts(&resolved).iter().map(|config| config.rto_min.ns() / 1_000_000).collect();
    assert_eq!(all, [50, 50, 1000]);
    assert_complete(&resolved);
}

#[test]
fn what_is_refused() {
    let table = [
        ("[stacks.lab]\nwindow = \"8kb\"", "s.toml:1: stacks.lab.base: missing, expected one of freebsd4, ns2, linux"),
        (
            "[stacks.lab]\nbase = \"solaris\"",
            "s.toml:2: stacks.lab.base = \"solaris\": expected one of freebsd4, ns2, linux, lab",
        ),
        ("[stacks.lab]\nbase = 4", "s.toml:2: stacks.lab.base = 4: expected one of freebsd4, ns2, linux"),
        (
            "[stacks.lab]\nbase = \"lab\"",
            "s.toml:2: stacks.lab.base = \"lab\": expected a base that leads to one of freebsd4, ns2, linux",
        ),
        (
            "[stacks.a]\nbase = \"b\"\n[stacks.b]\nbase = \"c\"\n[stacks.c]\nbase = \"b\"",
            "s.toml:4: stacks.b.base = \"c\": expected a base that leads to one of freebsd4, ns2, linux",
        ),
        (
            "[stacks.linux]\nbase = \"linux\"",
            "s.toml:1: stacks.linux = { base = \"linux\" }: expected another name: linux is built in",
        ),
        (
            "stacks.\"my lab\".base = \"linux\"",
            "s.toml:1: stacks.my lab = { base = \"linux\" }: expected a name of letters, digits, - and _",
        ),
        ("stacks.lab = \"linux\"", "s.toml:1: stacks.lab = \"linux\": expected a table with a base"),
        ("stacks = 3", "s.toml:1: stacks = 3: expected a table"),
        (
            "[stacks.lab]\nbase = \"linux\"\nrepairs = \"rack\"",
            "s.toml:3: stacks.lab.repairs = \"rack\": unknown key, did you mean repair?",
        ),
        // Impossible ones, whether anybody uses them or not.
        (
            "[stacks.lab]\nbase = \"linux\"\nrto_min = \"300s\"",
            "s.toml:3: stacks.lab.rto_min = \"300s\": expected rto_min not above rto_max, which is 120s",
        ),
        (
            "[stacks.lab]\nbase = \"slow\"\nrto_max = \"8s\"\n[stacks.slow]\nbase = \"linux\"\nrto_min = \"9s\"",
            "s.toml:6: stacks.slow.rto_min = \"9s\": expected rto_min not above rto_max, which is 8s",
        ),
        (
            "[stacks.lab]\nbase = \"linux\"\nwindow = \"1000b\"",
            "s.toml:3: stacks.lab.window = \"1000b\": expected a window of at least one segment of 1448 bytes",
        ),
        (
            "[stacks.lab]\nbase = \"linux\"\ninitial_window = 0",
            "s.toml:3: stacks.lab.initial_window = 0: expected a whole number from 1 to 10000",
        ),
        (
            "[stacks.lab]\nbase = \"linux\"\nmss = \"65000b\"\nheader = \"120b\"\nsyn_backoff = []",
            "s.toml:5: stacks.lab.syn_backoff = []: expected a list of 1 to 16 whole numbers such as [1, 2, 4]",
        ),
        (
            "[stacks.lab]\nbase = \"linux\"\nsyn_backoff = [1, -2]",
            "s.toml:3: stacks.lab.syn_backoff.1 = -2: expected a whole number from 1 to 1024",
        ),
        (
            "[stacks.lab]\nbase = \"linux\"\nsack = \"off\"",
            "s.toml:3: stacks.lab.sack = \"off\": sack, newreno and rack are one key now, repair; expected repair = \
             \"newreno\" instead",
        ),
        (
            "[stacks.lab]\nbase = \"linux\"\n[tcp]\nstack = \"lap\"",
            "s.toml:4: tcp.stack = \"lap\": expected one of freebsd4, ns2, linux, lab; did you mean lab?",
        ),
        // What only does not fit where it is used.
        (
            "[stacks.lab]\nbase = \"linux\"\nmss = \"4000b\"\n[tcp]\nstack = \"lab\"\nwindow = \"2000b\"",
            "s.toml:6: tcp.window = \"2000b\": expected a window of at least one segment of 4000 bytes",
        ),
        // Files.
        (
            "tcp.stack = \"there_is_none.toml\"",
            "s.toml:1: tcp.stack = \"there_is_none.toml\": expected a file that can be read: no such file",
        ),
        ("tcp.stack = \"odd.toml\"", "odd.toml:3: windos = \"2kb\": unknown key, did you mean window?"),
        (
            "tcp.stack = \"impossible.toml\"",
            "impossible.toml:3: rto_min = \"3s\": expected rto_min not above rto_max, which is 2s",
        ),
        ("tcp.stack = \"nested.toml\"", "nested.toml:1: base = \"old\": expected one of freebsd4, ns2, linux"),
        (
            "tcp.stack = \"linux.toml\"",
            "s.toml:1: tcp.stack = \"linux.toml\": expected another name: linux is built in",
        ),
        (
            "tcp.stack = \"hosts/old.toml\"\nstacks.old.base = \"linux\"",
            "s.toml:1: tcp.stack = \"hosts/old.toml\": expected another name: there is a [stacks.old] too",
        ),
        (
            "tcp.stack = \"hosts/old.toml\"\n[[traffic]]\nkind = \"bulk\"\nstack = \"more/old.toml\"",
            "s.toml:4: traffic.0.stack = \"more/old.toml\": expected another name: hosts/old.toml is called old too",
        ),
        (
            "tcp.stack = \"hosts/old.toml\"\ntcp.rto_max = \"400ms\"",
            "s.toml: stacks.old.rto_min = \"500ms\": expected rto_min not above rto_max, which is 400ms",
        ),
    ];
    let wrong: Vec<String> = table
        .iter()
        .filter_map(|(text, expected)| {
            let got = read(&format!("{text}{BULK}")).err().unwrap_or_else(|| "no error".into());
            (got != *expected).then(|| format!("{text}\n  expected {expected}\n  got      {got}"))
        })
        .collect();
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn a_file_that_is_no_toml_is_one_line() {
    let error = read(&format!("tcp.stack = \"cut.toml\"{BULK}")).expect_err("a string has an end");
    assert!(error.starts_with("cut.toml:2: ") && !error.contains('\n'), "{error}");
}

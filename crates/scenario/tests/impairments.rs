//! Impairments of the path, traces in place of rates, queues of network interfaces: what they resolve to, and what is
//! wrong with them.

use aqm::qdisc::fifo::Limit;
use base::{Rate, Span};
use scenario::{Impairments, Resolved};

const REST: &str = "\n[[traffic]]\nkind = 'bulk'\n";

fn resolve(text: &str, file: &str) -> Result<Resolved, String> {
    let files = |name: &str| if name == "f.trace" { Ok(file.to_owned()) } else { Err("no such file".to_owned()) };
    scenario::resolve(&format!("{text}{REST}"), "s.toml", &[], &files).map_err(|error| error.to_string())
}

fn resolved(text: &str, file: &str) -> Resolved {
    let resolved = resolve(text, file).expect("a scenario");
    let files = |_: &str| Ok(file.to_owned());
    let again = scenario::resolve(resolved.text(), "again.toml", &[], &files).expect("a resolved scenario");
    assert_eq!((resolved.text(), resolved.digest()), (again.text(), again.digest()), "it resolves to itself");
    resolved
}

fn path(text: &str) -> Vec<String> {
    let resolved = resolved(&format!("[path]\n{text}"), "");
    let lines = resolved.text().lines().skip_while(|line| *line != "[path]").take_while(|line| !line.is_empty());
    lines.skip(3).map(str::to_owned).collect()
}

#[test]
fn the_reverse_path_is_as_the_forward_one_unless_it_has_its_own() {
    assert_eq!(path("loss = 0.01"), ["loss = 0.01", "reverse_loss = 0.01"]);
    assert_eq!(path("reverse_loss = 1"), ["loss = 0.0", "reverse_loss = 1.0"]);
    assert_eq!(
        path("reorder = { share = 0.25, delay = '5ms' }\nreverse_reorder = { share = 0 }"),
        ["reorder = { share = 0.25, delay = \"5ms\" }", "reverse_reorder = { share = 0.0 }"]
    );
    assert_eq!(
        path("reorder = { share = 0.25, delay = { uniform = ['1ms', '5ms'] } }"),
        ["reorder", "reverse_reorder"]
            .map(|key| format!("{key} = {{ share = 0.25, delay = {{ uniform = [\"1ms\", \"5ms\"] }} }}"))
    );
    // What impairs nothing is not written: it is the same scenario as without.
    let nothing = "[path]\nloss = 0\nreverse_loss = 0.0\nreorder = { share = 0, delay = '5ms' }";
    assert_eq!(resolved(nothing, "").digest(), resolved("", "").digest());
}

/// Of a million packets each way the shares that are lost and held back, each within four standard errors, one way
/// without regard to the other.
#[test]
fn packets_meet_their_share() {
    let text = "[path]\nloss = 0.01\nreverse_loss = 0\nreorder = { share = 0.2, delay = '5ms' }";
    let resolved = resolved(text, "");
    let scenario = resolved.scenario().expect("complete");
    let mut impairments = Impairments::of(scenario).expect("there are some");
    let n = 1_000_000.0_f64;
    for (side, loss) in [(0, 0.01), (1, 0.0)] {
        let fates: Vec<_> = (0..n as usize).map(|_| impairments.fate(side)).collect();
        let count = |fate| fates.iter().filter(|&&each| each == fate).count() as f64;
        let (lost, late) = (count(None), count(Some(Span::from_ms(5))));
        let error = |p: f64| 4.0 * (n * p * (1.0 - p)).sqrt();
        assert!((lost - n * loss).abs() <= error(loss), "{lost} lost of {n}");
        let share = (1.0 - loss) * 0.2;
        assert!((late - n * share).abs() <= error(share), "{late} held back of {n}");
        assert_eq!(lost + late + count(Some(Span::ZERO)), n, "nothing else happens");
    }
    assert!(Impairments::of(resolve("", "").expect("a scenario").scenario().expect("complete")).is_none());
}

#[test]
fn a_trace_stands_for_the_rate() {
    // Three opportunities of 12000 bits in 4 ms.
    let file = "# of a phone\n1\n1\n4\n";
    let link = |text: &str| resolved(&format!("[link]\n{text}"), file).scenario().expect("complete").link().clone();
    let mean = Rate::from_bps(9_000_000);
    let both = link("trace = 'f.trace'");
    assert_eq!(both.rates, [mean; 2]);
    assert!(both.traces.iter().all(Option::is_some));
    let one = link("trace = 'f.trace'\nreverse_rate = '1mbit'");
    assert_eq!(one.rates.map(Rate::bps), [9_000_000, 1_000_000]);
    assert!(one.traces[0].is_some() && one.traces[1].is_none());
    let other = link("rate = '20mbit'\nreverse_trace = 'f.trace'");
    assert_eq!(other.rates.map(Rate::bps), [20_000_000, 9_000_000]);
    assert!(other.traces[0].is_none() && other.traces[1].is_some());
    assert!(link("rate = '9mbit'\ntrace = 'f.trace'").traces[0].is_some(), "the mean may stand beside it");
    let resolved = resolved("[link]\ntrace = 'f.trace'", file);
    assert_eq!(resolved.files().len(), 1, "it is kept beside the results");
}

#[test]
fn a_device_queue_is_written_only_where_there_is_one() {
    let none = resolved("[link]\noverhead = '38b'", "");
    assert!(none.scenario().expect("complete").link().device_queue.is_none() && !none.text().contains("device_queue"));
    for (given, limit, written) in [
        ("64p", Limit::Packets(64), "64p"),
        ("30kb", Limit::Bytes(30 * 1024), "30kb"),
        ("1536b", Limit::Bytes(1536), "1536b"),
    ] {
        let with = resolved(&format!("[link]\noverhead = '38b'\ndevice_queue = '{given}'"), "");
        assert_eq!(with.scenario().expect("complete").link().device_queue, Some(limit), "{given}");
        let line = format!("device_queue = {written:?}\n");
        assert_eq!(with.text().replace(&line, ""), none.text(), "{given} is one line more");
        assert!(with.text().contains(&line), "{given}");
    }
}

#[test]
fn one_line_says_what_is_wrong() {
    for (text, file, expected) in [
        ("[path]\nloss = 1.5", "", "s.toml:2: path.loss = 1.5: expected a number from 0 to 1"),
        ("[path]\nloss = '1%'", "", "s.toml:2: path.loss = \"1%\": expected a number from 0 to 1"),
        ("[path]\nlos = 0.1", "", "s.toml:2: path.los = 0.1: unknown key, did you mean loss?"),
        (
            "[path]\nreorder = 0.1",
            "",
            "s.toml:2: path.reorder = 0.1: expected a table such as { share = 0.001, delay = \"5ms\" }",
        ),
        (
            "[path]\nreorder = { share = 0.1 }",
            "",
            "s.toml:2: path.reorder.delay: missing, expected a time or a distribution of times",
        ),
        (
            "[path]\nreorder = { share = 0.1, delay = '0s' }",
            "",
            "s.toml:2: path.reorder.delay = \"0s\": expected times of more than 0s",
        ),
        ("[link]\ntrace = 'g'", "", "s.toml:2: link.trace = \"g\": cannot be read: no such file"),
        (
            "[link]\ntrace = 3",
            "",
            "s.toml:2: link.trace = 3: expected the name of a file of opportunities to deliver, in milliseconds",
        ),
        (
            "[link]\nrate = '8mbit'\ntrace = 'f.trace'",
            "1\n1\n4\n",
            "s.toml:2: link.rate = \"8mbit\": expected no rate beside trace, or 9mbit, which f.trace is in the mean",
        ),
        (
            "[link]\ntrace = 'f.trace'",
            "1\n2.5\n",
            "f.trace:2: link.trace = 2.5: expected whole milliseconds, one opportunity a line, such as 12",
        ),
        (
            "[link]\ntrace = 'f.trace'",
            "",
            "f.trace:1: link.trace: expected whole milliseconds, one opportunity a line, such as 12",
        ),
        (
            "[link]\ntrace = 'f.trace'",
            "3\n\n2\n",
            "f.trace:3: link.trace = 2: expected times that do not fall from one line to the next",
        ),
        (
            "[link]\ntrace = 'f.trace'",
            "0\n0\n",
            "f.trace:2: link.trace = 0: expected a last opportunity later than 0: there the trace begins again",
        ),
        (
            "[live]\nqdisc = 'kernel'\n[link]\ntrace = 'f.trace'",
            "1\n",
            "s.toml:4: link.trace = \"f.trace\": expected a constant rate with live.qdisc = \"kernel\": \
             the kernel shapes to no trace",
        ),
        (
            "[link]\ndevice_queue = 64",
            "",
            "s.toml:2: link.device_queue = 64: expected packets such as 24p or bytes such as 12kb",
        ),
        (
            "[link]\ndevice_queue = '5ms'",
            "",
            "s.toml:2: link.device_queue = \"5ms\": expected packets such as 24p or bytes such as 12kb",
        ),
        (
            "[link]\ndevice_queue = '0p'",
            "",
            "s.toml:2: link.device_queue = \"0p\": expected whole packets from 1p to 65536p or bytes from 1b to 1gb",
        ),
        (
            "[link]\ndevice_queue = '1.5p'",
            "",
            "s.toml:2: link.device_queue = \"1.5p\": expected whole packets from 1p to 65536p or bytes from 1b to 1gb",
        ),
        (
            "[link]\ndevice_queue = '2gb'",
            "",
            "s.toml:2: link.device_queue = \"2gb\": expected whole packets from 1p to 65536p or bytes from 1b to 1gb",
        ),
        (
            "[link]\ndevice_que = '64p'",
            "",
            "s.toml:2: link.device_que = \"64p\": unknown key, did you mean device_queue?",
        ),
        (
            "[live]\nqdisc = 'kernel'\n[link]\ndevice_queue = '64p'",
            "",
            "s.toml:4: link.device_queue = \"64p\": expected none with live.qdisc = \"kernel\": the kernel's \
             discipline paces its packets to the rate",
        ),
    ] {
        match resolve(text, file) {
            Ok(_) => panic!("it resolves: {text}"),
            Err(found) => assert_eq!(found, expected),
        }
    }
}

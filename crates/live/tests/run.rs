//! Whole runs, each in a process of its own as `aqmlab live` makes them, and what is left of one that is ended. Left
//! out, with the reason, where namespaces or TUN devices may not be made.

#![cfg(target_os = "linux")]

mod left_out;

use left_out::left_out;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};

/// Names the folder of a run to a process of these tests that is to make it.
const FOLDER: &str = "AQMLAB_TEST_RUN";

/// Two reno flows for a second and a half, over a link that they fill.
const BULK: &str = "name = \"bulk\"\nduration = \"1500ms\"\nwarmup = \"500ms\"\nrecord.interval = \"100ms\"\n\
                    [link]\nrate = \"20mbit\"\n[link.qdisc]\nkind = \"pfifo\"\nlimit = \"50p\"\n[path]\nrtt = \"10ms\"\n\
                    [tcp]\nstack = \"linux\"\ncc = \"reno\"\n[[traffic]]\nkind = \"bulk\"\nflows = 2\nstart = \"0s\"\n";

/// The folder of the run `name`, with what it is told.
fn folder(name: &str, scenario: &str, more: Value) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("runs").join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("cargo's folder can be written");
    let mut told = json!({
        "virtual": false,
        "settings": {
            "sysctl": { "net.ipv4.tcp_congestion_control": "reno", "net.ipv4.tcp_no_metrics_save": "1" },
            "blocks": [{ "route": "initcwnd 10", "congestion": "reno", "ecn": false }],
        },
    });
    for (key, value) in more.as_object().expect("a table") {
        told[key] = value.clone();
    }
    fs::write(folder.join("live.json"), told.to_string()).expect("cargo's folder can be written");
    fs::write(folder.join("scenario.toml"), scenario).expect("cargo's folder can be written");
    folder
}

/// Starts the process of a run: this program again, of which one test then makes the run.
fn start(folder: &Path) -> Child {
    Command::new(std::env::current_exe().expect("it runs"))
        .args(["--exact", "the_process_of_a_run", "--nocapture", "--test-threads", "1"])
        .env(FOLDER, folder)
        .spawn()
        .expect("it starts")
}

/// Makes the run where another test asks for it.
#[test]
fn the_process_of_a_run() {
    if let Some(folder) = std::env::var_os(FOLDER) {
        std::process::exit(i32::from(live::child(&aqm::registry::Registry::builtin(), Path::new(&folder))));
    }
}

fn read(folder: &Path, name: &str) -> Option<Value> {
    Some(serde_json::from_str(&fs::read_to_string(folder.join(name)).ok()?).expect("JSON"))
}

/// Whether a run could not be made for what this machine does not let us; told then.
fn is_left_out(name: &str, folder: &Path) -> bool {
    let error = read(folder, "error.json").map(|error| error["message"].to_string()).unwrap_or_default();
    let reasons = ["making a", "/dev/net/tun", "is missing: expected iproute2", "no capabilities"];
    let is_left_out = reasons.iter().any(|reason| error.contains(reason));
    if is_left_out {
        left_out(name, error);
    }
    is_left_out
}

/// Waits until the hosts of a run are there, or it has ended: for minutes at most, as a look takes some microseconds.
fn until_it_runs(folder: &Path, run: &mut Child) -> Option<ExitStatus> {
    for _ in 0..50_000_000 {
        let said = fs::read_to_string(folder.join("progress.jsonl")).unwrap_or_default();
        let is_under_way = said.contains("\"checks_link\":false");
        let ended = run.try_wait().expect("it is ours");
        if is_under_way || ended.is_some() {
            return ended;
        }
        std::thread::yield_now();
    }
    run.kill().expect("it is ours");
    panic!("{}: neither under way nor ended", folder.display());
}

#[test]
fn a_run_has_everything_a_simulated_one_has() {
    let folder = folder("whole", BULK, json!({}));
    let status = start(&folder).wait().expect("it ends");
    if is_left_out("a_run_has_everything_a_simulated_one_has", &folder) {
        return;
    }
    assert!(status.success(), "{:?}", read(&folder, "error.json"));
    let outcome = read(&folder, "outcome.json").expect("an outcome");
    let summary = &outcome["summary"];
    assert_eq!((&summary["engine"]["kind"], &summary["engine"]["events"]), (&json!("live"), &Value::Null));
    assert_eq!(summary["measured_s"], 1.0);
    // Two flows that have all that a busy machine lets them: the link is used.
    let utilisation = summary["forward"]["utilisation"].as_f64().expect("a number");
    assert!((0.5..1.001).contains(&utilisation), "{utilisation}");
    let goodput = summary["tcp"]["forward_goodput_bps"].as_f64().expect("a number");
    // 1448 of 1500 bytes are payload; what waits at the edges of the window is 50 packets at most, 3 % of it.
    let payload = goodput / (utilisation * 20e6);
    assert!((payload - 1448.0 / 1500.0).abs() < 0.05, "{payload}");
    let live = &summary["live"];
    for way in [0, 1] {
        let [before, after] = ["before", "after"].map(|when| &live["link_check"][when][way]);
        assert_eq!(before["lost_packets"], 0, "{before}");
        assert_eq!(before["reordered_packets"], 0, "{before}");
        let rate = before["rate_bps"].as_f64().expect("a rate");
        // Within what a machine is late by that does other things too: 10 of 250 ms.
        assert!((rate / 20e6 - 1.0).abs() < 0.04, "{before}");
        let least = before["delay_s"]["min"].as_f64().expect("a delay");
        // 5 ms, 1500 bytes at 20 Mb/s and twice at 1 Gb/s.
        assert!(least >= 0.005624 - 1e-6, "{before}");
        assert_eq!(after["is_conserved"], true, "{after}");
    }
    assert_eq!(outcome["readback"]["left"]["sysctls"]["net.ipv4.tcp_congestion_control"], "reno");
    for table in ["exchanges.parquet", "queue.parquet", "tcp.parquet"] {
        assert!(fs::metadata(folder.join(table)).is_ok_and(|file| file.len() > 200), "{table}");
    }
    assert!(!folder.join("error.json").exists());
    // A sign of life before each direction of the check, which takes minutes on a slow link.
    let lines = fs::read_to_string(folder.join("progress.jsonl")).expect("it is there");
    let checks: Vec<bool> = lines
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("JSON")["checks_link"] == json!(true))
        .collect();
    assert!(checks[..2] == [true; 2] && checks.iter().any(|&checks| !checks), "{lines}");
}

#[test]
fn a_program_ends_its_run_with_all_that_it_left_behind() {
    let marker = "86421.75";
    let script = format!("sleep {marker} & setsid sleep {marker} & test -n \"$AQMLAB_LEFT_NS\" && exit 7");
    let told = json!({ "command": ["sh", "-c", script], "traffic": false, "side": "right" });
    let long = BULK.replace("1500ms", "600s");
    let folder = folder("program", &long, told);
    let status = start(&folder).wait().expect("it ends");
    if is_left_out("a_program_ends_its_run_with_all_that_it_left_behind", &folder) {
        return;
    }
    assert!(status.success(), "{:?}", read(&folder, "error.json"));
    let summary = &read(&folder, "outcome.json").expect("an outcome")["summary"];
    assert_eq!(summary["live"]["command_status"], 7);
    assert_eq!(summary["tcp"]["goodput_bps"], Value::Null, "the scenario's own traffic did not run");
    assert!(summary["live"]["duration_s"].as_f64().expect("a number") < 60.0);
    assert!(programs_with(marker).is_empty(), "{:?}", programs_with(marker));
}

/// Who is killed before that, as for want of memory, has failed.
#[test]
fn a_program_that_is_ended_with_the_run_is_told_from_one_that_is_killed() {
    for (name, script, expected) in [("kills", "kill -9 $$", "signal 9"), ("stays", "sleep 600", "ended with the run")]
    {
        let folder = folder(name, BULK, json!({ "command": ["sh", "-c", script], "traffic": false }));
        let status = start(&folder).wait().expect("it ends");
        if is_left_out("a_program_that_is_ended_with_the_run_is_told_from_one_that_is_killed", &folder) {
            return;
        }
        assert!(status.success(), "{:?}", read(&folder, "error.json"));
        let summary = &read(&folder, "outcome.json").expect("an outcome")["summary"];
        assert_eq!(summary["live"]["command_status"], expected);
    }
}

/// Hosts send again what nobody acknowledges any more.
#[test]
fn a_run_that_a_program_ends_is_counted_before_its_link_is_gone() {
    let told = json!({ "command": ["sleep", "0.8"] });
    let folder = folder("short", &BULK.replace("1500ms", "600s"), told);
    let status = start(&folder).wait().expect("it ends");
    if is_left_out("a_run_that_a_program_ends_is_counted_before_its_link_is_gone", &folder) {
        return;
    }
    assert!(status.success(), "{:?}", read(&folder, "error.json"));
    let live = &read(&folder, "outcome.json").expect("an outcome")["summary"]["live"];
    let [read_at, ended] = [&live["edges_read_at_s"][1], &live["duration_s"]].map(|at| at.as_f64().expect("a number"));
    assert!(0.8 <= read_at && read_at <= ended && ended < 60.0, "{read_at} {ended}");
}

#[test]
fn what_ends_a_run_leaves_nothing() {
    let marker = "86421.25";
    let told = json!({ "command": ["sh", "-c", format!("setsid sleep {marker} & sleep {marker}")] });
    let folder = folder("killed", &BULK.replace("1500ms", "600s"), told);
    let mut run = start(&folder);
    if until_it_runs(&folder, &mut run).is_some() {
        assert!(is_left_out("what_ends_a_run_leaves_nothing", &folder), "{:?}", read(&folder, "error.json"));
        return;
    }
    let bed = read(&folder, "bed.json").expect("where it is");
    let namespace = bed["namespaces"]["left"].as_str().expect("a path").to_owned();
    assert!(fs::metadata(&namespace).is_ok());
    run.kill().expect("it is ours");
    run.wait().expect("it ends");
    assert!(fs::metadata(&namespace).is_err());
    // What was running inside is killed by the kernel, which takes its time.
    for _ in 0..50_000 {
        if programs_with(marker).is_empty() {
            return;
        }
        std::thread::yield_now();
    }
    panic!("left running: {:?}", programs_with(marker));
}

#[test]
fn a_device_that_is_taken_away_is_said_to_be() {
    let folder = folder("taken", &BULK.replace("1500ms", "600s"), json!({}));
    let mut run = start(&folder);
    if until_it_runs(&folder, &mut run).is_none() {
        let bed = read(&folder, "bed.json").expect("where it is");
        let namespace = bed["namespaces"]["right"].as_str().expect("a path").to_owned();
        let taken =
            Command::new("nsenter").arg(format!("--net={namespace}")).args(["ip", "link", "del", "aqm0"]).status();
        if !taken.is_ok_and(|status| status.success()) {
            left_out("a_device_that_is_taken_away_is_said_to_be", "nsenter(1) does not let us");
            run.kill().expect("it is ours");
            run.wait().expect("it ends");
            return;
        }
    }
    let status = run.wait().expect("it ends");
    if is_left_out("a_device_that_is_taken_away_is_said_to_be", &folder) {
        return;
    }
    assert_eq!(status.code(), Some(3));
    let error = read(&folder, "error.json").expect("an error");
    assert_eq!(error["exit_code"], 3);
    assert!(error["message"].as_str().expect("text").contains("interface aqm0: the TUN device has gone"), "{error}");
    assert!(folder.join("queue.parquet").exists() && !folder.join("outcome.json").exists());
}

#[test]
fn what_makes_no_sense_is_the_users_and_the_rest_the_machines() {
    let told = json!({ "command": ["no-such-program-anywhere"] });
    let folder = folder("mistaken", BULK, told);
    let status = start(&folder).wait().expect("it ends");
    if is_left_out("what_makes_no_sense_is_the_users_and_the_rest_the_machines", &folder) {
        return;
    }
    assert_eq!(status.code(), Some(2));
    let message = read(&folder, "error.json").expect("an error")["message"].to_string();
    assert!(message.contains("no-such-program-anywhere") && !message.contains("\\n"), "{message}");
}

/// The command lines of all processes that have `word` among their words.
fn programs_with(word: &str) -> Vec<String> {
    let processes = fs::read_dir("/proc").expect("there is one").filter_map(Result::ok);
    let lines = processes.filter_map(|process| fs::read_to_string(process.path().join("cmdline")).ok());
    lines.filter(|line| line.split('\0').any(|other| other == word)).collect()
}

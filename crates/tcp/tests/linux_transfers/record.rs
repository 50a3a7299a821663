//! The records of a Linux kernel's transfers; `benches/peers/linux/transfers_cases.py` says what they are of, and
//! `transfers_path.py` beside it what is in them.

use serde_json::Value;
use std::fs;
use std::path::Path;
use tcp::EcnMode;

/// The transfers of one controller over one path.
pub struct Record {
    /// Its name: that of the file.
    pub name: String,
    /// The kernel's release.
    pub kernel: String,
    /// Congestion control.
    pub cc: String,
    /// What both ends do about ECN.
    pub ecn: EcnMode,
    /// Whether the kernel handed several segments at once to the device (GSO).
    pub sends_bursts: bool,
    /// Of the link, each way.
    pub rate_bps: u64,
    /// Without transmission times.
    pub rtt_ms: u64,
    /// When the AccECN option is sent (`tcp_ecn_option`). Packets are then told in bytes.
    pub option: u64,
    pub transfers: Vec<Transfer>,
}

/// One transfer, as the kernel did it.
pub struct Transfer {
    /// Transfers whose figures are summed up together.
    pub group: String,
    pub name: String,
    /// Full segments of the answer.
    pub segments: u64,
    /// What became of which packet.
    pub rules: Vec<String>,
    /// What client and server do about ECN (`tcp_ecn`), where it is not the same.
    pub peers: Option<[u64; 2]>,
    /// The answer in parts, segments each: one where it has no others.
    pub parts: Vec<u64>,
    /// How long the client has had all of a part before the server has the next.
    pub pause_ms: u64,
    /// When the client had the whole answer, in microseconds after it began to connect; none if it never had.
    pub completed_us: Option<f64>,
    /// Packets of the answer, each transmission counted.
    pub sent: u64,
    /// Every packet, where all were kept.
    pub server: Option<Vec<Word>>,
    pub client: Option<Vec<Word>>,
    /// What the server sent again, where not.
    pub again: Option<Vec<Word>>,
    /// The server's window over time, in segments.
    pub windows: Vec<(f64, f64)>,
    /// The threshold that it had in the end, in segments; none if it never had one.
    pub threshold: Option<f64>,
}

/// A packet: when, in microseconds, and what.
#[derive(Clone, PartialEq, Debug)]
pub struct Word {
    pub at_us: f64,
    pub what: String,
}

/// All records of a folder.
pub fn records(folder: &str) -> Vec<Record> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/linux").join(folder);
    let mut files: Vec<_> = fs::read_dir(folder)
        .expect("the folder of records is there")
        .map(|entry| entry.expect("it can be listed").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
        .collect();
    files.sort();
    files.iter().map(|path| read(path)).collect()
}

fn read(path: &Path) -> Record {
    let text = fs::read_to_string(path).expect("a record can be read");
    let value: Value = serde_json::from_str(&text).expect("a record is JSON");
    Record {
        name: path.file_stem().expect("a record has a name").to_string_lossy().into_owned(),
        kernel: text_of(&value["kernel"]),
        cc: text_of(&value["cc"]),
        ecn: match &value["ecn"] {
            Value::Bool(true) => EcnMode::On,
            Value::Bool(false) => EcnMode::Off,
            accurate => {
                assert_eq!(accurate, "accurate");
                EcnMode::Accurate
            }
        },
        sends_bursts: value["gso"] == true,
        rate_bps: whole(&value["rate_bps"]),
        rtt_ms: whole(&value["rtt_ms"]),
        option: value["option"].as_u64().unwrap_or(0),
        transfers: list(&value["transfers"]).iter().map(transfer).collect(),
    }
}

fn transfer(value: &Value) -> Transfer {
    let words = |key: &str| value.get(key).map(|text| words(text.as_str().expect("a text")));
    let parts = value.get("parts").map(|parts| list(parts).iter().map(whole).collect());
    Transfer {
        group: text_of(&value["group"]),
        name: text_of(&value["name"]),
        segments: whole(&value["segments"]),
        rules: list(&value["rules"]).iter().map(text_of).collect(),
        peers: value.get("peers").map(|peers| [whole(&peers[0]), whole(&peers[1])]),
        parts: parts.unwrap_or_else(|| vec![whole(&value["segments"])]),
        pause_ms: value["pause_ms"].as_u64().unwrap_or(0),
        completed_us: value["completed_us"].as_f64(),
        sent: whole(&value["sent"]),
        server: words("server").map(singly),
        client: words("client"),
        again: words("again").map(singly),
        windows: words("cwnd").unwrap_or_default().iter().map(window).collect(),
        threshold: words("cwnd").unwrap_or_default().last().and_then(threshold),
    }
}

/// `SINCE:WHAT` after `SINCE:WHAT`.
fn words(text: &str) -> Vec<Word> {
    let mut at_us = 0.0;
    text.split_whitespace()
        .map(|word| {
            let (since, what) = word.split_once(':').expect("a time and a packet");
            at_us += since.parse::<f64>().expect("a time");
            Word { at_us, what: what.to_owned() }
        })
        .collect()
}

/// A word for each packet of a range.
fn singly(words: Vec<Word>) -> Vec<Word> {
    let one = |Word { at_us, what }: Word| -> Vec<Word> {
        let digits = what.find(|c: char| !c.is_ascii_digit() && !"-+*".contains(c)).unwrap_or(what.len());
        let (range, tail) = what.split_at(digits);
        if let Some((data, count)) = range.split_once('*') {
            let (first, len) = data.split_once('+').expect("the first byte and the length");
            let number = |text: &str| text.parse::<u64>().expect("a number");
            let (first, len) = (number(first), number(len));
            let at = |k| Word { at_us, what: format!("{}+{len}{tail}", first + k * len) };
            return (0..number(count)).map(at).collect();
        }
        match range.split_once('-') {
            Some((first, last)) => {
                let number = |text: &str| text.parse::<u64>().expect("a segment");
                (number(first)..=number(last)).map(|k| Word { at_us, what: format!("{k}{tail}") }).collect()
            }
            None => vec![Word { at_us, what }],
        }
    };
    words.into_iter().flat_map(one).collect()
}

fn window(word: &Word) -> (f64, f64) {
    let cwnd = word.what.split('/').next().expect("a window");
    (word.at_us, cwnd.parse().expect("a number of segments"))
}

fn threshold(word: &Word) -> Option<f64> {
    word.what.split_once('/').map(|(_, threshold)| threshold.parse().expect("a number of segments"))
}

fn text_of(value: &Value) -> String {
    value.as_str().expect("a text").to_owned()
}

fn whole(value: &Value) -> u64 {
    value.as_u64().expect("a whole number")
}

fn list(value: &Value) -> &[Value] {
    value.as_array().expect("a list")
}

//! This file reads `[tcp]`: a stack profile and what a scenario changes of it.
//!
//! One table, [`TABLE`], has every key, with how it is read into a profile and how it is written back. To make a value
//! of [`tcp::Config`] a key takes a row of the table and nothing else.

use crate::document::Data;
use crate::error::Error;
use crate::section::{Entry, Section};
use crate::stacks::Stacks;
use crate::units;
use crate::written::{Fields, Written};
use base::{Ecn, Span};
use tcp::{
    Backoff, Config, Control, CubicDialect, EcnMode, EcnOption, Hystart, LedbatSettings, Reduction, Repair, RtoFloor,
    RttSampling,
};

/// A key of `[tcp]`.
struct Key {
    name: &'static str,
    read: fn(&Entry<'_>, &mut Config) -> Result<(), Error>,
    write: fn(&Config) -> Written,
}

/// Makes a row of a key that is `true` or `false`.
macro_rules! flag {
    ($name:literal, $($field:ident).+) => {
        Key {
            name: $name,
            read: |entry, config| entry.flag().map(|flag| config.$($field).+ = flag),
            write: |config| Written::Flag(config.$($field).+),
        }
    };
}

/// Makes a row of a whole number in a range.
macro_rules! count {
    ($name:literal, $($field:ident).+, $range:expr) => {
        Key {
            name: $name,
            read: |entry, config| entry.count($range).map(|count| config.$($field).+ = count),
            write: |config| Written::Integer(u64::from(config.$($field).+)),
        }
    };
}

/// Makes a row of a size in a range.
macro_rules! size {
    ($name:literal, $($field:ident).+, $range:expr) => {
        Key {
            name: $name,
            read: |entry, config| {
                let size = entry.size_within($range)?;
                config.$($field).+ = size.try_into().expect("the field holds the range");
                Ok(())
            },
            write: |config| Written::Text(units::write_bytes(config.$($field).+ as f64)),
        }
    };
}

/// Makes a row of a time. No time of a stack is shorter than a microsecond or longer than an hour.
macro_rules! span {
    ($name:literal, $($field:ident).+) => {
        Key {
            name: $name,
            read: |entry, config| entry.span_within(SHORTEST, LONGEST).map(|span| config.$($field).+ = span),
            write: |config| Written::Text(units::write_span(config.$($field).+)),
        }
    };
}

/// Makes a row of a word of a table.
macro_rules! words {
    ($name:literal, $($field:ident).+, $table:expr) => {
        Key {
            name: $name,
            read: |entry, config| entry.word(&$table).map(|value| config.$($field).+ = value),
            write: |config| name_of(&$table, config.$($field).+),
        }
    };
}

/// Makes a row of the waits between repetitions.
macro_rules! backoff {
    ($name:literal, $($field:ident).+) => {
        Key {
            name: $name,
            read: |entry, config| read_backoff(entry).map(|backoff| config.$($field).+ = backoff),
            write: |config| write_backoff(config.$($field).+),
        }
    };
}

/// Every key but `stack`, in the order in which they are read and written: `cc` comes before the keys that it sets.
const TABLE: &[Key] = &[
    Key { name: "cc", read: read_cc, write: write_cc },
    words!("repair", repair, Repair::WORDS),
    words!("hystart", hystart, HYSTART),
    span!("ledbat_target", ledbat.target),
    Key {
        name: "ledbat_gain",
        read: |entry, config| entry.number_within(0.001..=1_000.0).map(|gain| config.ledbat.gain = gain),
        write: |config| Written::Number(config.ledbat.gain),
    },
    count!("ledbat_allowed_increase", ledbat.allowed_increase, 1..=10_000),
    count!("ledbat_base_history", ledbat.base_history, 1..=LedbatSettings::MOST_HISTORY),
    count!("ledbat_current_filter", ledbat.current_filter, 1..=LedbatSettings::MOST_FILTER),
    flag!("ledbat_slow_start", ledbat.slow_start),
    flag!("pacing", pacing),
    count!("pacing_burst", pacing_burst, 1..=65_535),
    Key { name: "ecn", read: read_ecn, write: |config| name_of(&ECN, config.ecn) },
    Key { name: "ecn_option", read: read_option, write: write_option },
    flag!("ecn_fallback", ecn_fallback),
    flag!("abe", abe),
    words!("ect", ect, ECT),
    flag!("ect_on_retransmit", ect_on_retransmit),
    flag!("ect_on_control", ect_on_control),
    flag!("ect_on_all", ect_on_all),
    count!("ecn_floor", ecn_floor, 0..=1_000),
    size!("window", window, 1..=1 << 40),
    size!("receive_buffer", receive_buffer, 0..=1 << 40),
    size!("mss", mss, 64..=65_000),
    // The range is from IPv4 and TCP without options to both with all the options they can have.
    size!("header", header, 40..=120),
    size!("syn_header", syn_header, 40..=120),
    count!("initial_window", initial_window, 1..=10_000),
    flag!("syn_loss_resets_window", syn_loss_resets_window),
    count!("syn_losses_forgiven", syn_losses_forgiven, 0..=100),
    flag!("handshake", handshake),
    flag!("one_way", one_way),
    flag!("limited_transmit", limited_transmit),
    flag!("byte_counting", byte_counting),
    flag!("cwnd_validation", cwnd_validation),
    flag!("whole_segments", whole_segments),
    flag!("synack_rtt", synack_rtt),
    flag!("threshold_of_window", threshold_of_window),
    flag!("fin_takes_room", fin_takes_room),
    words!("reduction", reduction, REDUCTION),
    flag!("timestamps", timestamps),
    flag!("dsack", dsack),
    flag!("frto", frto),
    flag!("undo", undo),
    flag!("idle_restart", idle_restart),
    flag!("idle_halves", idle_halves),
    words!("rtt_sampling", rtt_sampling, RTT_SAMPLING),
    span!("granularity", granularity),
    flag!("timer_wheel", timer_wheel),
    span!("rto_initial", rto_initial),
    span!("rto_min", rto_min),
    span!("rto_max", rto_max),
    words!("rto_floor", rto_floor, RTO_FLOOR),
    Key { name: "rtt_forgotten_after", read: read_rtt_forgotten, write: write_rtt_forgotten },
    span!("syn_timer", syn_timer.base),
    backoff!("syn_backoff", syn_timer.factors),
    span!("synack_timer", synack_timer.base),
    backoff!("synack_backoff", synack_timer.factors),
    Key { name: "delayed_ack", read: read_delayed_ack, write: write_delayed_ack },
    span!("delayed_ack_timeout", delayed_ack.timeout),
    flag!("delayed_ack_adapts", delayed_ack.adapts),
    words!("delayed_ack_counts", delayed_ack.counts_small, DELAYED_ACK_COUNTS),
    count!("quick_acks", delayed_ack.quick, 0..=10_000),
    flag!("quick_acks_for_ecn", delayed_ack.hurries_for_ecn),
    flag!("window_updates", delayed_ack.window_updates),
];

/// The names of every key, `stack` first.
pub(crate) const KEYS: &[&str] = &{
    let mut names = [STACK; TABLE.len() + 1];
    let mut row = 0;
    while row < TABLE.len() {
        names[row + 1] = TABLE[row].name;
        row += 1;
    }
    names
};

/// The key that names the profile.
pub(crate) const STACK: &str = "stack";
/// The profile of a scenario that names none: the usual hosts of today.
const DEFAULT_STACK: &str = "linux";
const HYSTART: [(&str, Hystart); 3] = [("off", Hystart::Off), ("linux", Hystart::Linux), ("plus", Hystart::Plus)];
const ECN: [(&str, EcnMode); 5] = [
    ("off", EcnMode::Off),
    ("on", EcnMode::On),
    ("plus", EcnMode::Plus),
    ("plus-tryonce", EcnMode::PlusTryOnce),
    ("accurate", EcnMode::Accurate),
];
/// The field of ECN-capable packets.
const ECT: [(&str, Ecn); 2] = [("ect0", Ecn::Ect0), ("ect1", Ecn::Ect1)];
const REDUCTION: [(&str, Reduction); 2] = [("at-once", Reduction::AtOnce), ("prr", Reduction::Proportional)];
const RTT_SAMPLING: [(&str, RttSampling); 2] =
    [("one-per-window", RttSampling::OnePerWindow), ("every-ack", RttSampling::EveryAck)];
const RTO_FLOOR: [(&str, RtoFloor); 2] = [("whole", RtoFloor::Whole), ("variance", RtoFloor::Variance)];
/// What counts towards `delayed_ack`: segments of any size, or bytes, of which a full segment's worth counts as one.
const DELAYED_ACK_COUNTS: [(&str, bool); 2] = [("segments", true), ("bytes", false)];
const SHORTEST: Span = Span::from_us(1);
const LONGEST: Span = Span::from_secs(3600);

/// The hosts of a scenario or a block.
#[derive(Clone, Debug)]
pub(crate) struct Hosts {
    /// The profile's name.
    pub stack: String,
    pub config: Config,
}

/// Former keys, which `repair` replaces.
const FORMER: [&str; 3] = ["sack", "newreno", "rack"];

/// Refuses the former keys in `section`, and says what to write in the place of all of them.
pub(crate) fn refuse_former(section: &Section<'_>) -> Result<(), Error> {
    let Some(entry) = FORMER.iter().find_map(|name| section.get(name)) else { return Ok(()) };
    let is = |name: &str, value: &str| section.get(name).is_some_and(|entry| entry.text().is_ok_and(|it| it == value));
    let flag = |name: &str| section.get(name).and_then(|entry| entry.flag().ok());
    let has_no_reports = is("cc", "newreno") || is("sack", "off");
    let says_newreno_alone =
        section.get("newreno").is_some() && section.get("sack").is_none() && flag("rack").is_none();
    let [_reno, others @ ..] = Control::WORDS else { unreachable!("Reno is a window") };
    let has_reports = is("cc", "sack") || others.iter().any(|(word, _)| is("cc", word));
    let repair = if is("cc", "reno") {
        Repair::Reno
    } else if has_no_reports || says_newreno_alone && !has_reports {
        if is("newreno", "ns2") { Repair::Ns2NewReno } else { Repair::NewReno }
    } else if is("sack", "ns2") {
        Repair::Ns2Sack1
    } else if flag("rack").unwrap_or(is(STACK, "linux")) {
        Repair::Rack
    } else {
        Repair::Sack
    };
    let (word, _) = Repair::WORDS.into_iter().find(|(_, other)| *other == repair).expect("every repair has a word");
    let problem = format!("sack, newreno and rack are one key now, repair; expected repair = {word:?} instead");
    Err(entry.error(problem))
}

/// Reads the hosts of a block. Its own keys win over those of `[tcp]`, and these over the profile's.
pub(crate) fn read(stacks: &Stacks<'_>, defaults: &Section<'_>, block: Option<&Section<'_>>) -> Result<Hosts, Error> {
    let given: Vec<&Section<'_>> = block.into_iter().chain([defaults]).collect();
    match given.iter().find_map(|section| section.get(STACK)) {
        Some(entry) => stacks.hosts(&entry, &given),
        None => complete(DEFAULT_STACK, profile(DEFAULT_STACK).expect("the profile is built in"), &given),
    }
}

/// Writes every key.
pub(crate) fn write(hosts: &Hosts) -> Fields {
    let stack = (STACK, Written::Text(hosts.stack.clone()));
    std::iter::once(stack).chain(write_config(&hosts.config)).collect()
}

/// Writes every key but `stack`.
pub(crate) fn write_config(config: &Config) -> impl Iterator<Item = (&'static str, Written)> {
    TABLE.iter().map(|key| (key.name, (key.write)(config)))
}

/// The built-in profile called `name`.
pub(crate) fn profile(name: &str) -> Option<Config> {
    tcp::profile(name).map(|profile| (profile.config)())
}

/// The profile `config`, which `stack` names, changed by what the sections say. An earlier section wins over a later
/// one.
pub(crate) fn complete(stack: &str, mut config: Config, given: &[&Section<'_>]) -> Result<Hosts, Error> {
    for key in TABLE {
        if let Some(entry) = given.iter().find_map(|section| section.get(key.name)) {
            (key.read)(&entry, &mut config)?;
        }
    }
    agree(&config, |name| given.iter().find_map(|section| section.get(name)))?;
    Ok(Hosts { stack: stack.to_owned(), config })
}

/// Refuses values that are each in range but do not fit together. The error names one that was given.
fn agree<'a>(config: &Config, get: impl Fn(&str) -> Option<Entry<'a>>) -> Result<(), Error> {
    let blame = |names: [&str; 2], expected: String| match names.into_iter().find_map(&get) {
        Some(entry) => Err(entry.expected(expected)),
        None => unreachable!("a profile agrees with itself"),
    };
    if config.window < u64::from(config.mss) {
        return blame(["window", "mss"], format!("a window of at least one segment of {} bytes", config.mss));
    }
    if config.receive_buffer > 0 && !config.delayed_ack.adapts {
        let expected = "receive_buffer 0b without delayed_ack_adapts, which alone lets it grow";
        return blame(["receive_buffer", "delayed_ack_adapts"], expected.to_owned());
    }
    if config.control == Control::Dctcp && !matches!(config.ecn, EcnMode::On | EcnMode::Accurate) {
        return blame(["ecn", "cc"], "ecn on or accurate, without which there is no dctcp".to_owned());
    }
    if config.ecn == EcnMode::Accurate && !matches!(config.repair, Repair::Sack | Repair::Rack) {
        return blame(["repair", "ecn"], "repair sack or rack with ecn accurate".to_owned());
    }
    if config.ecn_option != EcnOption::Off && config.ecn != EcnMode::Accurate {
        return blame(["ecn_option", "ecn"], "ecn_option false without ecn accurate, whose option it is".to_owned());
    }
    if config.control.needs_counts() && config.ecn != EcnMode::Accurate {
        return blame(["ecn", "cc"], "ecn accurate, without which there is no prague".to_owned());
    }
    if config.control.models_path() {
        let (word, _) = Control::WORDS.iter().find(|row| row.1 == config.control).expect("every window has a word");
        if !matches!(config.repair, Repair::Sack | Repair::Rack) {
            return blame(["repair", "cc"], format!("repair sack or rack, without which there is no {word}"));
        }
        if !config.pacing {
            return blame(["pacing", "cc"], format!("pacing true, without which there is no {word}"));
        }
        if config.hystart != Hystart::Off {
            return blame(["hystart", "cc"], format!("hystart off with {word}, which has a start of its own"));
        }
    }
    if config.pacing && config.repair == Repair::Ns2Sack1 {
        return blame(["pacing", "repair"], "pacing false with repair ns2-sack1, which does not pace".to_owned());
    }
    let longest = units::write_span(config.rto_max);
    if config.rto_min > config.rto_max {
        return blame(["rto_min", "rto_max"], format!("rto_min not above rto_max, which is {longest}"));
    }
    if config.granularity > config.rto_max {
        return blame(["granularity", "rto_max"], format!("granularity not above rto_max, which is {longest}"));
    }
    if config.rto_initial > config.rto_max {
        return blame(["rto_initial", "rto_max"], format!("rto_initial not above rto_max, which is {longest}"));
    }
    Ok(())
}

/// Reads the window, and with it the repair that the stack has beside it unless `repair` says otherwise. `newreno` and
/// `sack`, the literature's names of whole TCPs, mean Reno's window and that repair. So does `reno`, except under
/// Linux, where it names a window and nothing else. `cubic` is the stack's own CUBIC.
fn read_cc(entry: &Entry<'_>, config: &mut Config) -> Result<(), Error> {
    const NEWRENO: &str = "newreno";
    const SACK: &str = "sack";
    let [(reno, control), others @ ..] = Control::WORDS else { unreachable!("Reno is a window") };
    let flavours = [*reno, NEWRENO, SACK].map(|flavour| (flavour, (flavour, *control)));
    let others = others.iter().map(|&(word, control)| (word, (word, control)));
    let dialects = CUBIC.map(|(word, _)| (word, (word, Control::Cubic)));
    let (word, control) = entry.word(&flavours.into_iter().chain(others).chain(dialects).collect::<Vec<_>>())?;
    config.control = control;
    config.cubic = CUBIC.iter().find(|row| row.0 == word).map_or_else(|| own_cubic(config), |row| row.1);
    // No other key has been read yet, so that this is the repair of a built-in profile.
    config.repair = match (word, config.repair) {
        (NEWRENO, repair) => repair.without_sack(),
        ("reno", Repair::Rack) => Repair::Rack,
        ("reno", _) => Repair::Reno,
        (_, Repair::Ns2Sack1) if control.models_path() => Repair::Sack,
        (_, repair) => repair.with_sack(),
    };
    // Only Linux's CUBIC has HyStart of its own.
    let is_linux = control == Control::Cubic && config.cubic == CubicDialect::Linux;
    config.hystart = if is_linux { Hystart::Linux } else { Hystart::Off };
    config.pacing = control.models_path();
    if control == Control::Dctcp {
        // RFC 8257: there is no DCTCP without ECN, and in its networks every packet is ECN-capable.
        config.ecn = EcnMode::On;
        (config.ect_on_retransmit, config.ect_on_control) = (true, true);
    }
    if control == Control::Ledbat {
        // RFC 6817 §2.4.2: INIT_CWND.
        config.initial_window = 2;
    }
    if control.needs_counts() {
        // Linux makes all packets of a controller that needs ECN ECN-capable, and these ECT(1).
        (config.ecn, config.ect, config.dsack) = (EcnMode::Accurate, Ecn::Ect1, true);
        (config.ect_on_retransmit, config.ect_on_control) = (true, true);
    }
    Ok(())
}

/// Reads what hosts do about ECN. Accurate feedback brings reports of data that came twice (RFC 9768 §3.1.1).
fn read_ecn(entry: &Entry<'_>, config: &mut Config) -> Result<(), Error> {
    config.ecn = entry.word(&ECN)?;
    config.dsack |= config.ecn == EcnMode::Accurate;
    Ok(())
}

/// Reads whether there are AccECN options, which then are sent by the stack's own rules, or by whose rules.
fn read_option(entry: &Entry<'_>, config: &mut Config) -> Result<(), Error> {
    config.ecn_option = match entry.data() {
        Data::Flag(false) => EcnOption::Off,
        Data::Flag(true) if config.stack == "linux" => EcnOption::Linux,
        Data::Flag(true) => EcnOption::Rfc,
        _ => entry.word(&EcnOption::WORDS)?,
    };
    Ok(())
}

fn write_option(config: &Config) -> Written {
    match config.ecn_option {
        EcnOption::Off => Written::Flag(false),
        option => name_of(&EcnOption::WORDS, option),
    }
}

/// The words for a CUBIC that is not the stack's own.
const CUBIC: [(&str, CubicDialect); 2] = [("cubic-rfc", CubicDialect::Rfc), ("cubic-linux", CubicDialect::Linux)];

/// The CUBIC of the built-in profile that `config` started from.
fn own_cubic(config: &Config) -> CubicDialect {
    profile(config.stack).map_or(config.cubic, |own| own.cubic)
}

fn write_cc(config: &Config) -> Written {
    if config.control == Control::Cubic && config.cubic != own_cubic(config) {
        name_of(&CUBIC, config.cubic)
    } else {
        name_of(Control::WORDS, config.control)
    }
}

/// Reads `"off"`, or how many segments are acknowledged at once.
fn read_delayed_ack(entry: &Entry<'_>, config: &mut Config) -> Result<(), Error> {
    config.delayed_ack.every = match entry.data() {
        Data::Text(text) if text == "off" => 1,
        Data::Integer(1..=64) => entry.count(1..=64)?,
        _ => return Err(entry.expected("off or a number of segments from 1 to 64")),
    };
    Ok(())
}

fn write_delayed_ack(config: &Config) -> Written {
    match config.delayed_ack.every {
        1 => Written::Text("off".to_owned()),
        every => Written::Integer(u64::from(every)),
    }
}

/// Reads `"never"`, or a number of timeouts in a row.
fn read_rtt_forgotten(entry: &Entry<'_>, config: &mut Config) -> Result<(), Error> {
    config.rtt_forgotten_after = match entry.data() {
        Data::Text(text) if text == "never" => u32::MAX,
        Data::Integer(1..=1_000) => entry.count(1..=1_000)?,
        _ => return Err(entry.expected("never or a number of timeouts from 1 to 1000")),
    };
    Ok(())
}

fn write_rtt_forgotten(config: &Config) -> Written {
    match config.rtt_forgotten_after {
        u32::MAX => Written::Text("never".to_owned()),
        timeouts => Written::Integer(u64::from(timeouts)),
    }
}

/// Reads how long each repetition waits, in units of the first wait.
fn read_backoff(entry: &Entry<'_>) -> Result<Backoff, Error> {
    let expected = format!("a list of 1 to {} whole numbers such as [1, 2, 4]", Backoff::MOST);
    let list = entry.list(&expected)?;
    if list.is_empty() || list.len() > Backoff::MOST {
        return Err(entry.expected(expected));
    }
    let factors: Vec<u32> = list.iter().map(|factor| factor.count(1..=1_024)).collect::<Result<_, _>>()?;
    Ok(Backoff::new(&factors))
}

fn write_backoff(backoff: Backoff) -> Written {
    Written::List(backoff.iter().map(|&factor| Written::Integer(u64::from(factor))).collect())
}

fn name_of<T: PartialEq + Copy>(table: &[(&'static str, T)], value: T) -> Written {
    let (name, _) = table.iter().find(|(_, other)| *other == value).expect("every value has a name");
    Written::Text((*name).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use tcp::{DelayedAck, SynTimer};

    /// What is written of one profile makes it of every other one: no value is without a key.
    #[test]
    fn the_keys_say_everything() {
        for from in tcp::profiles() {
            let Config { stack, .. } = (from.config)();
            for to in tcp::profiles() {
                let (mut config, wanted) = ((from.config)(), (to.config)());
                let text = crate::written::toml(&write_config(&wanted).collect());
                let document = crate::document::parse(&text, "keys").expect("it is TOML");
                let files = |_: &str| Err(String::new());
                let registry = aqm::registry::Registry::builtin();
                let context = crate::section::Context { origin: "keys", files: &files, registry: &registry };
                let root = Section::root(&document, context);
                config = complete(stack, config, &[&root]).unwrap_or_else(|error| panic!("{error}")).config;
                // Each stack's own CUBIC has one word, which says it with the name of the stack.
                let cubic = config.cubic;
                assert_eq!(config, Config { stack, cubic, ..wanted }, "{} from {}", to.name, from.name);
            }
        }
    }

    /// A field that all profiles have alike would slip through the test above: whoever adds one says here that it has
    /// its row, and the compiler asks.
    #[test]
    fn every_field_has_a_key() {
        let Config {
            stack: _,
            rtt_forgotten_after: _,
            one_way: _,
            mss: _,
            header: _,
            syn_header: _,
            window: _,
            receive_buffer: _,
            initial_window: _,
            syn_loss_resets_window: _,
            syn_losses_forgiven: _,
            handshake: _,
            // `cc`.
            control: _,
            cubic: _,
            repair: _,
            hystart: _,
            ledbat:
                LedbatSettings {
                    target: _,
                    gain: _,
                    allowed_increase: _,
                    base_history: _,
                    current_filter: _,
                    slow_start: _,
                },
            pacing: _,
            pacing_burst: _,
            // Of bulk transfers alone: `blocks.rs`.
            max_pacing_rate: _,
            ecn: _,
            ecn_option: _,
            ecn_fallback: _,
            abe: _,
            limited_transmit: _,
            byte_counting: _,
            cwnd_validation: _,
            ecn_floor: _,
            ect: _,
            ect_on_retransmit: _,
            ect_on_control: _,
            ect_on_all: _,
            reduction: _,
            timestamps: _,
            dsack: _,
            frto: _,
            undo: _,
            whole_segments: _,
            synack_rtt: _,
            threshold_of_window: _,
            fin_takes_room: _,
            idle_restart: _,
            idle_halves: _,
            rtt_sampling: _,
            granularity: _,
            timer_wheel: _,
            rto_initial: _,
            rto_min: _,
            rto_max: _,
            rto_floor: _,
            // `syn_timer` and `syn_backoff`, `synack_timer` and `synack_backoff`.
            syn_timer: SynTimer { base: _, factors: _ },
            synack_timer: SynTimer { base: _, factors: _ },
            delayed_ack:
                DelayedAck {
                    every: _,
                    timeout: _,
                    quick: _,
                    window_updates: _,
                    counts_small: _,
                    hurries_for_ecn: _,
                    adapts: _,
                },
        } = profile(DEFAULT_STACK).expect("the profile is built in");
    }
}

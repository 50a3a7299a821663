//! This file makes a law of the interface a row of the registry, so that it can be used as any other: under fair
//! queueing, in sweeps, in reports.

use crate::abi::{self, Facts};
use crate::causes::Causes;
use crate::foreign::{self, Foreign, Instance};
use crate::holding::Holding;
use aqm::Backlog;
use aqm::fault::Fault;
use aqm::gauge::{Column, Gauge};
use aqm::law::clock::Clock;
use aqm::law::{Arrival, Departure, Gauges, Law, Verdict};
use aqm::param::{Kind, Param, Text, Value, Values};
use aqm::qdisc::brought::Scheduler;
use aqm::registry::{self, Entry, Row, Site, as_given};
use base::{Ecn, FlowKey, Rate, Span, Time, maths};
use std::path::Path;
use std::sync::Arc;

/// Opens the law or the discipline of a shared library. Returns it, and what it says of how it was built.
///
/// # Errors
/// It cannot be loaded, or its table makes no sense, in a line.
pub fn open(path: &Path) -> Result<(Entry, String), String> {
    entry(Foreign::open(path)?)
}

/// Takes the law whose table is at `address`. Returns it, and what it says of how it was built.
///
/// # Errors
/// Its table makes no sense, in a line.
///
/// # Safety
/// There is a table at `address`, and nobody changes it or takes it away.
#[expect(unsafe_code, reason = "an address is the caller's word")]
pub unsafe fn at(address: usize) -> Result<(Entry, String), String> {
    // SAFETY: the caller says so.
    entry(unsafe { Foreign::at(address) }?)
}

/// Takes the discipline whose table is at `address`, as [`at`].
///
/// # Errors
/// As of [`at`].
///
/// # Safety
/// As of [`at`].
#[expect(unsafe_code, reason = "an address is the caller's word")]
pub unsafe fn discipline_at(address: usize) -> Result<(Entry, String), String> {
    // SAFETY: the caller says so.
    entry(unsafe { Foreign::discipline_at(address) }?)
}

fn entry(foreign: Foreign) -> Result<(Entry, String), String> {
    let table = foreign.table();
    let built_with = foreign.text(table.built_with);
    let plan = Arc::new(Plan::of(foreign)?);
    let row = plan.row()?;
    if plan.foreign.holds_packets() {
        let bytes = size_of::<Holding>() + Instance::bytes(&plan.foreign);
        let made =
            move |values: &Values, site: Site| -> Box<dyn Scheduler + Send> { Holding::boxed(&plan, values, site) };
        return Ok((Entry::qdisc(row, move |_| bytes, made), built_with));
    }
    let bytes = size_of::<Brought>() + Instance::bytes(&plan.foreign);
    let made = move |values: &Values, site: Site| -> Box<dyn Law + Send> { Brought::boxed(&plan, values, site) };
    Ok((Entry::law(row, move |_| bytes, made), built_with))
}

/// What is read of a law's table once, for all its queues.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) foreign: Foreign,
    pub(crate) name: String,
    /// For each parameter its name, and its place in the state.
    params: Vec<(String, u32)>,
    /// For each gauge its column, its place in the state, and whether it is a whole number there.
    gauges: Vec<(Column, u32, bool)>,
    pub(crate) causes: Arc<Causes>,
    pace: Pace,
}

/// How often a law ticks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Pace {
    Never,
    Every(Span),
    /// As often as the parameter of this number says, which is a time or a frequency.
    As(usize),
}

/// The shortest time between two ticks, and the least frequency of them, that a parameter may say.
const SHORTEST_TICK_S: f64 = 1e-9;
const LEAST_TICK_HZ: f64 = 1e-3;
/// The greatest such frequency: a period is at least a nanosecond.
const MOST_TICK_HZ: f64 = 1e9;

impl Plan {
    fn of(foreign: Foreign) -> Result<Self, String> {
        let table = foreign.table();
        let name = foreign.text(table.name);
        check_name("the law's name", &name)?;
        if !foreign.holds_packets() && table.on_arrival.is_none() && table.on_departure.is_none() {
            return Err(format!(
                "{name}: decides nothing: expected on_arrival or on_departure, which answer a verdict"
            ));
        }
        let mut params = Vec::new();
        for param in foreign.params() {
            let called = foreign.text(param.name);
            check_name(&format!("{name}: a parameter's name"), &called)?;
            let of_fair_queueing = matches!(called.as_str(), "queues" | "quantum") && !foreign.holds_packets();
            if of_fair_queueing || matches!(called.as_str(), "kind" | "law" | "limit" | "ecn" | "capacity") {
                return Err(format!("{name}: the parameter {called} is the queue's own: expected another name"));
            }
            if !foreign::holds(table, param.offset) {
                return Err(format!("{name}: the parameter {called} lies outside the state, or not at 8 bytes"));
            }
            params.push((called, param.offset));
        }
        let mut gauges: Vec<(Column, u32, bool)> = Vec::new();
        for gauge in foreign.gauges() {
            let (called, column) = (foreign.text(gauge.name), column(&foreign.text(gauge.name)));
            check_name(&format!("{name}: a gauge's name"), &called)?;
            if !foreign::holds(table, gauge.offset) {
                return Err(format!("{name}: the gauge {called} lies outside the state, or not at 8 bytes"));
            }
            if gauges.iter().any(|(other, ..)| *other == column) {
                let one = "expected one called probability, one called flows, and one other at most";
                return Err(format!("{name}: the gauge {called} is one too many: {one}"));
            }
            gauges.push((column, gauge.offset, gauge.is_integer != 0));
        }
        let pace = match (table.tick_ns, usize::try_from(table.tick_param)) {
            (ns @ 1.., _) => Pace::Every(Span::from_ns(ns as u64)),
            (0, Err(_)) => Pace::Never,
            (0, Ok(at)) if at < params.len() => Pace::As(at),
            _ => return Err(format!("{name}: ticks every {} ns, or by parameter {}", table.tick_ns, table.tick_param)),
        };
        if table.tick.is_some() != !matches!(pace, Pace::Never) {
            return Err(format!("{name}: expected tick and how often it is called together"));
        }
        let causes = Arc::new(Causes::of(&foreign, &name)?);
        Ok(Self { name, params, gauges, causes, pace, foreign })
    }

    /// Writes the parameters into a state.
    pub(crate) fn write(&self, values: &Values, instance: &mut Instance) {
        for (name, offset) in &self.params {
            instance.write(*offset, word(&values.0[name.as_str()]));
        }
    }

    /// What a state shows.
    ///
    /// # Errors
    /// A number makes no sense.
    pub(crate) fn shown(&self, instance: &Instance) -> Result<Gauges, String> {
        let mut gauges = Gauges::default();
        for (column, offset, is_integer) in &self.gauges {
            let word = instance.read(*offset);
            let shown = if *is_integer { i64::from_ne_bytes(word) as f64 } else { f64::from_ne_bytes(word) };
            let (is_fit, expected) = match column {
                Column::Probability => ((0.0..=1.0).contains(&shown), "a number from 0 to 1"),
                Column::TrackedFlows => ((0.0..=f64::from(u32::MAX)).contains(&shown), "a number from 0 to 2^32 - 1"),
                Column::Control => (shown.is_finite(), "a finite number"),
            };
            if !is_fit {
                return Err(format!("shows {shown} as {}: expected {expected}", column.name()));
            }
            match column {
                Column::Probability => gauges.probability = Some(shown),
                Column::TrackedFlows => gauges.tracked_flows = Some(shown as u32),
                Column::Control => gauges.control = Some(shown),
            }
        }
        Ok(gauges)
    }

    /// The clock of its ticks, if it has any.
    pub(crate) fn clock(&self, values: &Values) -> Option<Clock> {
        match self.pace {
            Pace::Never => None,
            Pace::Every(span) => Some(Clock::every(span)),
            Pace::As(at) => {
                let name = self.params[at].0.as_str();
                Some(values.find_frequency(name).map_or_else(|| Clock::every(values.time(name)), Clock::at_hz))
            }
        }
    }

    /// The clock of its ticks when parameters change.
    pub(crate) fn clock_instead_of(&self, before: Option<Clock>, values: &Values, now: Time) -> Option<Clock> {
        self.clock(values).map(|fresh| before.map_or(fresh, |before| fresh.instead_of(before, now)))
    }

    fn row(&self) -> Result<Row<Text>, String> {
        let (foreign, table) = (&self.foreign, self.foreign.table());
        let marks = table.marks != 0;
        let source = foreign.text(table.source);
        let mut params = vec![registry::limit("1000p", "the interface's txqueuelen").into(), registry::ECN.into()];
        for (at, (written, (name, _))) in foreign.params().iter().zip(&self.params).enumerate() {
            let mut param =
                parameter(foreign, written, name, &source).map_err(|why| format!("{}: {name}: {why}", self.name))?;
            if self.pace == Pace::As(at) {
                let (least, most) = match param.kind {
                    Kind::Time => (SHORTEST_TICK_S, f64::INFINITY),
                    Kind::Frequency => (LEAST_TICK_HZ, MOST_TICK_HZ),
                    _ => return Err(format!("{}: ticks by {name}: expected a time or a frequency", self.name)),
                };
                param.range = (param.range.0.max(least), param.range.1.min(most));
                let default = value(param.kind, written.default_value).expect("it is one of this kind");
                let (number, kept) = (written.default_value, unit_of(param.kind));
                param.admit(&default).map_err(|expected| {
                    format!("{}: {name}: the default is {number}{kept}: expected {expected}", self.name)
                })?;
            }
            params.push(param);
        }
        params.push(registry::CAPACITY.into());
        let gauges = foreign.gauges().iter().zip(&self.gauges).map(|(gauge, (column, ..))| Gauge {
            name: foreign.text(gauge.name).into(),
            unit: foreign.text(gauge.unit).into(),
            doc: foreign.text(gauge.doc).into(),
            column: *column,
        });
        Ok(Row {
            name: self.name.clone().into(),
            aliases: Vec::new(),
            doc: foreign.text(table.doc).into(),
            source: source.into(),
            year: table.year as u16,
            marks,
            params,
            fixed: Vec::new(),
            gauges: gauges.collect(),
            causes: self.causes.own().to_vec(),
            uses_rate: registry::always,
            resolve: as_given,
        })
    }
}

/// Checks that something is called as disciplines and parameters are.
pub(crate) fn check_name(what: &str, name: &str) -> Result<(), String> {
    let is_fit = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    if name.is_empty() || !name.chars().all(is_fit) || name.starts_with(|c: char| c.is_ascii_digit()) {
        return Err(format!("{what} is {name:?}: expected small letters, digits and _"));
    }
    Ok(())
}

fn column(name: &str) -> Column {
    match name {
        "probability" => Column::Probability,
        "flows" => Column::TrackedFlows,
        _ => Column::Control,
    }
}

fn parameter(foreign: &Foreign, param: &abi::Param, name: &str, source: &str) -> Result<Param<Text>, String> {
    let kind = match param.kind {
        0 => Kind::Number,
        1 => Kind::Integer,
        2 => Kind::Flag,
        3 => Kind::Time,
        4 => Kind::Frequency,
        5 => Kind::Rate,
        6 => Kind::Size,
        other => return Err(format!("is of kind {other}, which there is not")),
    };
    // Ranges of times are kept in seconds.
    let scale = if kind == Kind::Time { 1e9 } else { 1.0 };
    let (least, most) = held(kind);
    let range =
        if kind == Kind::Flag { Param::ANY } else { (param.low.max(least) / scale, param.high.min(most) / scale) };
    let (written, low, high) = (param.default_value, param.low, param.high);
    let unit = foreign.text(param.unit);
    let doc = foreign.text(param.doc);
    let doc = if unit.is_empty() { doc } else { format!("{} ({unit}).", doc.trim_end_matches('.')) };
    let param = Param {
        name: Text::from(name.to_owned()),
        kind,
        default: Text::default(),
        range,
        doc: doc.into(),
        source: source.to_owned().into(),
    };
    let kept = unit_of(kind);
    let expected = if kind == Kind::Number { "a number" } else { "0 or more" };
    for (what, bound) in [("low", low), ("high", high)] {
        let is_open = what == "low" && bound == f64::NEG_INFINITY;
        if kind != Kind::Flag && !is_open && (bound.is_nan() || bound < least.min(0.0)) {
            return Err(format!("{what} is {bound}{kept}: expected {expected}"));
        }
    }
    let default = value(kind, written).ok_or_else(|| match param.expected() {
        expected if !written.is_finite() || written.fract() == 0.0 => {
            format!("the default is {written}{kept}: expected {expected}")
        }
        expected => format!("the default is {written}{kept}, which is not whole: expected {expected}"),
    })?;
    param.admit(&default).map_err(|expected| format!("the default is {written}{kept}: expected {expected}"))?;
    Ok(Param { default: default.to_string().into(), ..param })
}

/// In what a table has numbers of a kind.
fn unit_of(kind: Kind) -> &'static str {
    match kind {
        Kind::Time => " ns",
        Kind::Frequency => " hz",
        Kind::Rate => " bit/s",
        Kind::Size => " bytes",
        _ => "",
    }
}

/// The least and the greatest number of a kind that a scenario can say, as a table has them.
fn held(kind: Kind) -> (f64, f64) {
    match kind {
        // Up to there each of them is a double.
        Kind::Integer => (0.0, (1_u64 << 53) as f64),
        Kind::Flag => (0.0, 1.0),
        Kind::Time => (0.0, 1e15),
        Kind::Rate => (1.0, 1e13),
        Kind::Size => (0.0, f64::from(u32::MAX)),
        Kind::Frequency => (0.0, f64::INFINITY),
        _ => (f64::NEG_INFINITY, f64::INFINITY),
    }
}

/// A number of a table as a value; `None` if no value of this kind is that number.
fn value(kind: Kind, number: f64) -> Option<Value> {
    let (least, most) = held(kind);
    let is_whole = number.fract() == 0.0 || matches!(kind, Kind::Number | Kind::Frequency);
    let is_held = is_whole && least <= number && number <= most;
    is_held.then(|| match kind {
        Kind::Integer => Value::Integer(number as u64),
        Kind::Flag => Value::Flag(number != 0.0),
        Kind::Time => Value::Time(Span::from_ns(number as u64)),
        Kind::Frequency => Value::Frequency(number),
        Kind::Rate => Value::Rate(Rate::from_bps(number as u64)),
        Kind::Size => Value::Size(number as u32),
        _ => Value::Number(number),
    })
}

/// A value in the form in which it stands in the state.
fn word(value: &Value) -> [u8; 8] {
    match value {
        Value::Integer(n) => n.to_ne_bytes(),
        Value::Flag(flag) => u64::from(*flag).to_ne_bytes(),
        Value::Time(span) => span.ns().to_ne_bytes(),
        Value::Rate(rate) => rate.bps().to_ne_bytes(),
        Value::Size(bytes) => u64::from(*bytes).to_ne_bytes(),
        Value::Frequency(x) | Value::Number(x) => x.to_ne_bytes(),
        Value::Length(_) | Value::Word(_) | Value::Selector(_) => unreachable!("no parameter of the interface is one"),
    }
}

/// The entries of a table that are needed for each packet.
struct Calls {
    wants_hosts: bool,
    prepare: abi::Call,
    on_arrival: abi::Call,
    on_overflow: abi::Call,
    on_departure: abi::Call,
    on_idle: abi::Call,
    tick: abi::Call,
}

impl Calls {
    fn of(table: &abi::Law) -> Self {
        let abi::Law { prepare, on_arrival, on_overflow, on_departure, on_idle, tick, .. } = *table;
        let wants_hosts = table.wants_hosts != 0;
        Self { wants_hosts, prepare, on_arrival, on_overflow, on_departure, on_idle, tick }
    }
}

/// A law of the interface at work.
struct Brought {
    plan: Arc<Plan>,
    calls: Calls,
    instance: Instance,
    ecn_enabled: bool,
    clock: Option<Clock>,
}

impl Brought {
    /// In the place where it stays: its first call is told where its facts are.
    fn boxed(plan: &Arc<Plan>, values: &Values, site: Site) -> Box<Self> {
        let instance = Instance::new(&plan.foreign, &plan.causes, site.stream);
        let clock = plan.clock(values);
        let calls = Calls::of(plan.foreign.table());
        let mut law = Box::new(Self { plan: Arc::clone(plan), calls, instance, ecn_enabled: false, clock });
        law.take_over(values, site.rate, Time::ZERO);
        law
    }

    /// Nothing waits, or what was heard of last.
    fn take_over(&mut self, values: &Values, rate: Rate, now: Time) {
        self.ecn_enabled = values.flag("ecn");
        self.instance.set_rate(rate);
        self.plan.write(values, &mut self.instance);
        self.about_no_packet(now);
        let call = self.calls.prepare;
        self.told("prepare", |instance| instance.call(call));
    }

    /// Fills in the facts of the next call, in which there is no packet.
    fn about_queue(&mut self, backlog: Backlog, now: Time) {
        self.about(backlog, now);
        self.about_no_packet(now);
    }

    fn about_no_packet(&mut self, now: Time) {
        let facts = self.instance.facts();
        (facts.size, facts.ecn, facts.may_mark, facts.flow, facts.sojourn_ns) = (0, 0, 0, 0, 0);
        facts.now_ns = now.ns() as i64;
    }

    #[inline]
    fn about(&mut self, backlog: Backlog, now: Time) -> &mut Facts {
        let facts = self.instance.facts();
        facts.now_ns = now.ns() as i64;
        facts.backlog_packets = i64::from(backlog.packets);
        facts.backlog_bytes = backlog.bytes as i64;
        facts
    }

    #[inline]
    fn about_packet(&mut self, size: u32, ecn: Ecn, flow: FlowKey, backlog: Backlog, now: Time) -> &mut Facts {
        let may_mark = self.ecn_enabled && ecn.is_ect();
        let facts = self.about(backlog, now);
        facts.size = i64::from(size);
        facts.ecn = ecn as i64;
        facts.may_mark = i64::from(may_mark);
        facts.flow = (maths::mix64(flow.0) >> 1) as i64;
        facts
    }

    /// Makes a call that decides nothing.
    fn told(&mut self, what: &str, call: impl FnOnce(&mut Instance) -> i32) {
        let said = call(&mut self.instance);
        if let Some(p) = self.instance.refused() {
            self.misbehaves(what, &drew(p));
        }
        match said {
            0 => {}
            abi::FAILED => self.misbehaves(what, FAILED),
            other => self.misbehaves(what, &format!("answered {other}: expected 0")),
        }
    }

    /// Makes a call that decides about the current packet.
    #[inline]
    fn asked(&mut self, what: &str, call: abi::Call) -> Verdict {
        let said = self.instance.call(call);
        if said == abi::PASS && self.instance.refused().is_none() {
            return Verdict::Pass;
        }
        self.signal(what, said)
    }

    /// The rare answer, away from the common one, which is so a few instructions.
    #[inline(never)]
    fn signal(&self, what: &str, said: i32) -> Verdict {
        if let Some(p) = self.instance.refused() {
            self.misbehaves(what, &drew(p));
        }
        let may_mark = self.instance.facts_now().may_mark != 0;
        if said == abi::FAILED {
            self.misbehaves(what, FAILED);
        }
        let no_verdict = || -> ! { self.misbehaves(what, &format!("answered {said}, which is no verdict")) };
        let cause = match self.plan.causes.find(said & !3) {
            Ok(cause) => cause,
            Err(why) if said >= abi::OWN => self.misbehaves(what, &format!("signals for {why}")),
            Err(_) => no_verdict(),
        };
        match said & 3 {
            abi::DROP => Verdict::Drop(cause),
            abi::SIGNAL if !may_mark => Verdict::Drop(cause),
            abi::SIGNAL => Verdict::Mark(cause),
            abi::MARK if may_mark => Verdict::Mark(cause),
            abi::MARK => self.misbehaves(what, "marked a packet that may not be marked: expected SIGNAL, or may_mark"),
            _ => no_verdict(),
        }
    }

    #[cold]
    fn misbehaves(&self, what: &str, did: &str) -> ! {
        let at = Span::from_ns(self.instance.facts_now().now_ns as u64).secs_f64();
        Fault::of_law(&*self.plan.name, format!("{did} (in {what}, at {at:.6} s)")).raise()
    }
}

pub(crate) const FAILED: &str = "failed: it raised an exception, or answered that it cannot go on";

pub(crate) fn drew(p: f64) -> String {
    format!("drew with probability {p}: expected one from 0 to 1")
}

impl Law for Brought {
    fn on_arrival(&mut self, arrival: &Arrival, now: Time) -> Verdict {
        let call = self.calls.on_arrival;
        if call.is_none() {
            return Verdict::Pass;
        }
        let Arrival { size, ecn, flow, backlog } = *arrival;
        self.about_packet(size, ecn, flow, backlog, now).sojourn_ns = 0;
        let verdict = self.asked("on_arrival", call);
        // They are this packet's, and the next call may be about another one or none.
        self.hear_hosts(None);
        verdict
    }

    fn wants_hosts(&self) -> bool {
        self.calls.wants_hosts
    }

    fn hear_hosts(&mut self, hosts: Option<(u32, u32)>) {
        // A law that decides by turns with others is told all that one of these wants to know.
        if self.calls.wants_hosts && self.calls.on_arrival.is_some() {
            let facts = self.instance.facts();
            (facts.source, facts.destination) = hosts.map_or((-1, -1), |(from, to)| (i64::from(from), i64::from(to)));
        }
    }

    fn on_overflow(&mut self, arrival: &Arrival, now: Time) {
        let call = self.calls.on_overflow;
        if call.is_some() {
            let Arrival { size, ecn, flow, backlog } = *arrival;
            self.about_packet(size, ecn, flow, backlog, now).sojourn_ns = 0;
            self.told("on_overflow", |instance| instance.call(call));
        }
    }

    fn on_departure(&mut self, departure: &Departure, now: Time) -> Verdict {
        let call = self.calls.on_departure;
        if call.is_none() {
            return Verdict::Pass;
        }
        let Departure { size, ecn, flow, enqueued, backlog, .. } = *departure;
        self.about_packet(size, ecn, flow, backlog, now).sojourn_ns = now.since(enqueued).ns() as i64;
        self.asked("on_departure", call)
    }

    fn on_idle(&mut self, now: Time) {
        let call = self.calls.on_idle;
        if call.is_some() {
            self.about_queue(Backlog::default(), now);
            self.told("on_idle", |instance| instance.call(call));
        }
    }

    fn next_tick(&self) -> Time {
        self.clock.map_or(Time::NEVER, |clock| clock.next())
    }

    fn tick(&mut self, backlog: Backlog, now: Time) {
        if self.clock.as_mut().is_some_and(|clock| clock.take(now)) {
            self.about_queue(backlog, now);
            let call = self.calls.tick;
            self.told("tick", |instance| instance.call(call));
        }
    }

    fn gauges(&self) -> Gauges {
        self.plan.shown(&self.instance).unwrap_or_else(|did| self.misbehaves("a gauge", &did))
    }

    fn hear_backlog(&mut self, backlog: Backlog) {
        let facts = self.instance.facts();
        (facts.backlog_packets, facts.backlog_bytes) = (i64::from(backlog.packets), backlog.bytes as i64);
    }

    fn retune(&mut self, values: &Values, rate: Rate, now: Time) {
        self.clock = self.plan.clock_instead_of(self.clock, values, now);
        self.take_over(values, rate, now);
    }
}

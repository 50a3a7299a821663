//! Parameters that are set while a run goes on: every discipline takes over what may be set, and nothing else changes.

use crate::common::{self, Told};
use crate::operations::{MOST_TICKS, Op, Parcel, Recorder, chosen, drawn};
use aqm::param::{Kind, Length, Text, Value, Values};
use aqm::registry::{self, CAPACITY, Row, Site};
use aqm::{Gauges, Qdisc, Taken};
use base::{Rate, Stream, Time};

/// A discipline, and all that it did so far.
struct Run {
    qdisc: Box<dyn Qdisc<Parcel> + Send>,
    now: Time,
    offered: u64,
    sent: Vec<u64>,
    recorder: Recorder,
}

impl Run {
    fn new(row: &Row<Text>, values: &Values, rate: Rate, seed: u64) -> Self {
        let site = Site { rate, stream: Stream::named(seed, "retune") };
        let qdisc = registry::build(&row.name, values, site);
        Self { qdisc, now: Time::ZERO, offered: 0, sent: Vec::new(), recorder: Recorder::default() }
    }

    fn apply(&mut self, op: Op) {
        match op {
            Op::Offer { size, ecn, flow } => {
                self.offered += 1;
                self.qdisc.offer(Parcel::new(self.offered, size, ecn, flow), self.now, &mut self.recorder);
            }
            Op::Take => {
                self.take();
            }
            Op::EarlyTick => self.qdisc.tick(self.now),
            Op::Pass(span) => {
                let until = self.now + span;
                for _ in 0..MOST_TICKS {
                    let next = self.qdisc.next_tick();
                    assert!(next >= self.now, "no tick is due in the past");
                    if next > until {
                        break;
                    }
                    self.now = next;
                    self.qdisc.tick(next);
                    assert!(self.qdisc.next_tick() > next, "a tick moves on");
                }
                // After a long sleep the rest is jumped over, and the run goes on with the last tick.
                self.now = if self.qdisc.next_tick() > until { until } else { self.now };
            }
        }
    }

    /// Whether there was anything; a shaper is waited for.
    fn take(&mut self) -> bool {
        match self.qdisc.take(self.now, &mut self.recorder) {
            Taken::Packet(held) => self.sent.push(held.packet.number),
            Taken::Later(ready) => self.apply(Op::Pass(ready.since(self.now))),
            Taken::Empty => return false,
        }
        true
    }

    fn retune(&mut self, values: &Values, rate: Rate) {
        self.qdisc.retune(values, values.rate_at(rate), self.now);
    }

    /// All that can be seen of it.
    fn seen(&self) -> (usize, usize, Option<&Told>, Option<&u64>, Gauges, u32, Time) {
        let Recorder(told) = &self.recorder;
        let waiting = self.qdisc.backlog().packets;
        (
            told.len(),
            self.sent.len(),
            told.last(),
            self.sent.last(),
            self.qdisc.gauges(),
            waiting,
            self.qdisc.next_tick(),
        )
    }

    fn assert_conserved(mut self, context: &str) {
        while self.qdisc.backlog().packets > 0 {
            let is_given = self.take();
            assert!(is_given || self.qdisc.backlog().packets == 0, "{context}: what waits is given or lost");
        }
        let mut gone: Vec<u64> = self.sent;
        gone.extend(self.recorder.0.iter().filter_map(|told| match told {
            Told::Dropped(number, _) => Some(*number),
            _ => None,
        }));
        gone.sort_unstable();
        assert!(gone.into_iter().eq(1..=self.offered), "{context}: packets are conserved");
    }
}

const RATE: Rate = Rate::from_bps(10_000_000);

/// Each discipline, and some laws under fair queueing, whose frame they share.
fn most_rows() -> impl Iterator<Item = &'static Row<Text>> {
    registry::rows().chain(registry::fair_rows().step_by(5))
}

fn all_rows() -> impl Iterator<Item = &'static Row<Text>> {
    registry::rows().chain(registry::fair_rows())
}

/// The values of a small one: few queues, and a limit that is reached.
fn values_of(row: &Row<Text>) -> Values {
    common::completed(row, values_given(row), RATE).unwrap_or_else(|refusal| panic!("{}: {refusal}", row.name))
}

fn values_given(row: &Row<Text>) -> Values {
    let mut given = Values::default();
    for (name, number) in [("queues", 3), ("flows", 5)] {
        if row.param(name).is_some_and(|param| param.kind == Kind::Integer) {
            given.fill(name, Value::Integer(number));
        }
    }
    given.fill("limit", Value::Length(Length::Packets(100.0)));
    given
}

/// Each value that may be set in `values`, alone: at both ends of its range, somewhere within, each word and flag.
fn settable(row: &Row<Text>, values: &Values) -> Vec<(Text, Values)> {
    let mut all = Vec::new();
    for param in row.params.iter().filter(|param| !row.fixed.contains(&param.name)) {
        for choice in [0, 2, 16, 32, 64, 128, 0x8000_0004, 0xA000_0014, 0xC000_0024] {
            let value = chosen(param, choice).expect("it is no default");
            let mut other = values.clone();
            other.0.insert(param.name.clone(), value);
            let is_refused = param.name == "ecn" && !row.marks;
            if !is_refused && row.complete(&mut other, Some(RATE)).is_ok() && other != *values {
                all.push((param.name.clone(), other));
            }
        }
    }
    all
}

#[test]
fn to_be_set_to_what_it_is_changes_nothing() {
    for row in all_rows() {
        for seed in 0..4 {
            let values = values_of(row);
            let mut left_alone = Run::new(row, &values, RATE, seed);
            let mut set = Run::new(row, &values, RATE, seed);
            for (number, op) in drawn(seed).into_iter().enumerate() {
                if number % 3 == 0 {
                    set.retune(&values, RATE);
                }
                left_alone.apply(op);
                set.apply(op);
                assert_eq!(left_alone.seen(), set.seen(), "{} {number} {op:?}", row.name);
            }
            assert_eq!((&left_alone.sent, &left_alone.recorder.0), (&set.sent, &set.recorder.0), "{}", row.name);
        }
    }
}

#[test]
fn to_be_set_before_the_first_packet_is_to_be_built_so() {
    for row in most_rows() {
        let values = values_of(row);
        let faster = Rate::from_bps(RATE.bps() * 7);
        for (seed, (name, other)) in (0..).zip(settable(row, &values)) {
            let mut built = Run::new(row, &other, faster, seed);
            let mut set = Run::new(row, &values, RATE, seed);
            set.retune(&other, faster);
            for (number, op) in drawn(seed).into_iter().enumerate() {
                assert_eq!(built.seen(), set.seen(), "{} {name} {}, {number}", row.name, other.0[&name]);
                built.apply(op);
                set.apply(op);
            }
            assert_eq!((&built.sent, &built.recorder.0), (&set.sent, &set.recorder.0), "{} {name}", row.name);
        }
    }
}

#[test]
fn whatever_is_set_packets_are_conserved() {
    for row in most_rows() {
        let values = values_of(row);
        for (seed, (name, other)) in (0..).zip(settable(row, &values)) {
            let context = format!("{} {name} {}", row.name, other.0[&name]);
            let mut run = Run::new(row, &values, RATE, seed);
            for (number, op) in drawn(seed).into_iter().enumerate() {
                // There and back, before a link ten times slower.
                let waiting = run.qdisc.backlog();
                match number % 200 {
                    70 => run.retune(&other, Rate::from_bps(RATE.bps() / 10)),
                    140 => run.retune(&values, RATE),
                    _ => {}
                }
                assert_eq!(run.qdisc.backlog(), waiting, "{context}: nothing is lost at once");
                run.apply(op);
                let Gauges { probability, control, .. } = run.qdisc.gauges();
                assert!(probability.is_none_or(|p| (0.0..=1.0).contains(&p)), "{context}: probability {probability:?}");
                assert!(control.is_none_or(f64::is_finite), "{context}: control {control:?}");
            }
            run.assert_conserved(&context);
        }
    }
}

/// Each dialect of a discipline, with what else decides whether the rate counts.
fn forms(row: &Row<Text>) -> Vec<Values> {
    let set = |form: &Values, name: &str, text: &str| {
        let mut other = form.clone();
        let param = row.param(name)?;
        other.fill(param.name.clone(), common::read(param, text).ok()?);
        Some(other)
    };
    let mut forms = vec![values_given(row)];
    if let Some(Kind::Word(words)) = row.param("dialect").map(|param| param.kind) {
        let dialects: Vec<Values> = words.iter().filter_map(|word| set(&forms[0], "dialect", word)).collect();
        forms.extend(dialects);
    }
    for form in forms.clone() {
        forms
            .extend([("qref", "20p"), ("qref", "5ms"), ("target", "5ms")].iter().filter_map(|(n, t)| set(&form, n, t)));
        for (name, number) in [("sample", "100"), ("share", "100")] {
            let with_length = set(&form, name, number).map(|form| (set(&form, "qref", "20p"), form));
            forms.extend(with_length.into_iter().flat_map(|(both, one)| [both, Some(one)]).flatten());
        }
        if row.param("a").is_some_and(|a| a.default.is_empty()) {
            forms.extend(set(&form, "flows", "10").and_then(|form| set(&form, "rtt", "100ms")));
        }
        let mut unlimited = form.clone();
        unlimited.0.remove("limit");
        forms.push(unlimited);
    }
    forms
}

/// What a discipline is told of the rate: where it may be told nothing, the rate of the link changes nothing, and a
/// capacity stands for that rate everywhere.
#[test]
fn a_capacity_is_to_a_discipline_as_the_rate_of_its_link() {
    let mut do_without = 0;
    for row in all_rows() {
        for (seed, given) in (0..).zip(forms(row)) {
            let Ok(nominal) = common::completed(row, given.clone(), RATE) else { continue };
            let mut untold = nominal.clone();
            let slow = Rate::from_bps(1_000);
            match common::told(row, given.clone(), None) {
                Ok(values) => {
                    assert_eq!(values, nominal, "{} computes from no rate", row.name);
                    do_without += 1;
                }
                Err(refusal) => {
                    assert_eq!(refusal.param, CAPACITY.name, "{}: {refusal}", row.name);
                    let mut with = given.clone();
                    with.fill(CAPACITY.name, Value::Rate(RATE));
                    untold = common::told(row, with, None).expect("with a capacity it is well");
                    let (mut as_nominal, at_link) = (untold.clone(), untold.rate_at(slow));
                    as_nominal.0.remove(CAPACITY.name);
                    assert_eq!((as_nominal, at_link), (nominal.clone(), RATE), "{}", row.name);
                }
            }
            let mut told = Run::new(row, &nominal, RATE, seed);
            let mut other = Run::new(row, &untold, slow, seed);
            for (number, op) in drawn(seed).into_iter().enumerate() {
                told.apply(op);
                other.apply(op);
                assert_eq!(told.seen(), other.seen(), "{} {number} {op:?}: {untold:?}", row.name);
                if number % 100 == 50 {
                    told.retune(&nominal, RATE);
                    other.retune(&untold, slow);
                }
            }
            assert_eq!((&told.sent, &told.recorder.0), (&other.sent, &other.recorder.0), "{}: {untold:?}", row.name);
        }
    }
    assert!(do_without > 20, "{do_without}");
}

#[test]
fn what_is_fixed_is_refused_in_one_line() {
    for row in all_rows() {
        let values = values_of(row);
        assert_eq!(row.keeps_fixed(&values, &values), Ok(()));
        for name in &row.fixed {
            let param = row.param(name).unwrap_or_else(|| panic!("{} has a parameter {name}", row.name));
            let mut other = values.clone();
            let others = (0..64).filter_map(|choice| chosen(param, choice << 6));
            let Some(value) = others.into_iter().find(|value| values.0.get(name) != Some(value)) else {
                // A dialect of which there is one.
                continue;
            };
            other.0.insert(param.name.clone(), value);
            let refusal = row.keeps_fixed(&values, &other).expect_err("it has changed").to_string();
            let line = format!("{name}: expected ");
            assert!(refusal.starts_with(&line) && !refusal.contains('\n'), "{}: {refusal}", row.name);
        }
    }
}

//! A steered law does as it is told. It counts what happens at its queue, a step of time after the other. At the end of
//! a step somebody outside looks at the counts, and says with which probability packets are signalled from then on, or
//! which of several laws decides about them.
//!
//! Who decides stands on either side of the law. An agent that learns holds the run: it lets a step of simulated time
//! pass, looks ([`Helm::take`]), and steers ([`Helm::steer`], [`Helm::choose`]). A policy is called by the law itself
//! ([`Pilot`]). Both see the same counts. A step has what happened before the instant at which it ends; what is said
//! holds from that instant on, for all that happens at it. The law calls its policy before anything else that happens
//! then, whatever comes first among things that happen at once.
//!
//! A law that is not chosen hears nothing of packets. It ticks, and is as it was left when it is chosen again.

use aqm::fault::Fault;
use aqm::gauge::Gauge;
use aqm::law::clock::Clock;
use aqm::law::{self, Arrival, Boxed, Departure, Gauges, Law, Verdict};
use aqm::param::{Text, Values};
use aqm::registry::{self, Entry, Row, Site, as_given};
use aqm::{Backlog, Cause};
use base::{Rate, Span, Stream, Time};
use std::sync::{Arc, Mutex, MutexGuard};

/// What happened at a queue within a step.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Seen {
    /// Packets that arrived.
    pub offered_packets: u32,
    /// Packets that left the queue.
    pub delivered_packets: u32,
    /// Their bytes.
    pub delivered_bytes: u64,
    /// Packets that were lost, by decision or because the queue was full.
    pub dropped_packets: u32,
    /// Packets that were marked.
    pub marked_packets: u32,
    /// Packets that wait at its end.
    pub queue_packets: u32,
    /// Bytes that wait at its end.
    pub queue_bytes: u64,
    /// Sum of the times that the packets waited that left the queue, nanoseconds.
    pub wait_sum_ns: u64,
    /// The longest of these times, nanoseconds; zero if none left.
    pub wait_max_ns: u64,
    /// The rate of the link as the law knows it, bits a second.
    pub rate_bps: u64,
    /// The probability of a signal within it, 0 to 1. That of a chosen law is not in here: the queue shows it.
    pub probability: f64,
}

impl Seen {
    /// Whether nothing happened, and nothing waits.
    fn is_empty(&self) -> bool {
        self.offered_packets + self.delivered_packets + self.dropped_packets + self.queue_packets == 0
    }
}

/// What a steered law shares with who steers it.
#[derive(Debug, Default)]
struct Bridge {
    seen: Seen,
    probability: f64,
    chosen: usize,
}

/// A hold on a steered law.
#[derive(Clone, Debug, Default)]
pub struct Helm(Arc<Mutex<Bridge>>);

impl Helm {
    fn bridge(&self) -> MutexGuard<'_, Bridge> {
        // A run that a fault has ended is thrown away, and so is what it has left here.
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Ends the step, and says what happened in it.
    pub fn take(&self) -> Seen {
        let mut bridge = self.bridge();
        let Seen { queue_packets, queue_bytes, rate_bps, probability, .. } = bridge.seen;
        let next = Seen { queue_packets, queue_bytes, rate_bps, probability, ..Seen::default() };
        std::mem::replace(&mut bridge.seen, next)
    }

    /// Packets are signalled with this probability from now on.
    pub fn steer(&self, probability: f64) {
        let mut bridge = self.bridge();
        (bridge.probability, bridge.seen.probability) = (probability, probability);
    }

    /// The law of this number decides from now on.
    pub fn choose(&self, law: usize) {
        self.bridge().chosen = law;
    }
}

/// A policy: it is told what happened in each step of a queue, and answers with a probability from then on.
///
/// The error says why it cannot, in a line; it ends the run.
pub type Pilot = Box<dyn FnMut(&Seen) -> Result<f64, String> + Send>;

/// What there is to know of a policy.
#[derive(Clone, Debug)]
pub struct Policy {
    /// The name of the law.
    pub name: String,
    /// What it does, in a sentence.
    pub doc: String,
    /// Where it comes from.
    pub source: String,
    /// How long a step is.
    pub step: Span,
    /// Of so many steps back it knows.
    pub memory: u32,
}

/// The row of a law that a policy steers. `made` makes a policy for each queue.
///
/// # Errors
/// The policy cannot be a law, in a line.
pub fn policy(
    about: Policy,
    made: impl Fn() -> Result<Pilot, String> + Send + Sync + 'static,
) -> Result<Entry, String> {
    crate::entry::check_name("the policy's name", &about.name)?;
    if about.step < Span::from_us(1) {
        return Err(format!("{}: a step of {} ns: expected a microsecond or more", about.name, about.step.ns()));
    }
    let row = row(&about.name, &about.doc, &about.source);
    let about = Arc::new(about);
    let make = move |values: &Values, site: Site| -> Box<dyn Law + Send> {
        let ask = made().unwrap_or_else(|what| Fault::of_law(&about.name, what).raise());
        let hand = Hand { about: Arc::clone(&about), ask, clock: Clock::every(about.step), asked: 0, quiet: 0 };
        Box::new(Steered::new(values, site, Helm::default(), Vec::new(), Some(hand)))
    };
    Ok(Entry::law(row, |_| size_of::<Steered>(), make))
}

/// The name of the law that is held from outside, in the scenarios of those who hold it.
pub const HELD: &str = "steered";

/// The row of a law that is held by its [`Helm`], which `found` is given when the queue is made. It decides by the
/// probability that it is told, or lets one of `laws` decide.
///
/// # Errors
/// One of `laws` is none, in a line.
pub fn held(laws: Vec<(Entry, Values)>, found: impl Fn(Helm) + Send + Sync + 'static) -> Result<Entry, String> {
    for (entry, values) in &laws {
        let site = Site { rate: Rate::from_bps(1_000_000_000), stream: Stream::named(0, HELD) };
        let name = &entry.row().name;
        let Some(law) = entry.lone_law(values, site) else {
            return Err(format!("{name}: has queues of its own: expected a law, such as pie, or pfifo"));
        };
        if law.follows_packets() && laws.len() > 1 {
            return Err(format!(
                "{name}: counts each packet until it leaves, also those that arrived under another law: expected a law \
                 that does not, such as pie, or pfifo"
            ));
        }
    }
    let bytes: usize = laws.iter().map(|(entry, values)| entry.state_bytes(values)).sum();
    let make = move |values: &Values, site: Site| -> Box<dyn Law + Send> {
        let helm = Helm::default();
        let laws = laws.iter().enumerate().map(|(number, (entry, values))| {
            // The first has the stream that it would have alone.
            let mut stream = site.stream.clone();
            if number > 0 {
                stream = Stream::named(stream.bits(), &format!("law {number}"));
            }
            let law = entry.lone_law(values, Site { rate: site.rate, stream }).expect("it was asked");
            (Boxed::from(law), values.clone())
        });
        let law = Steered::new(values, site.clone(), helm.clone(), laws.collect(), None);
        found(helm);
        Box::new(law)
    };
    let doc = "Signals arriving packets with the probability that it is told, or as the law does that is chosen.";
    Ok(Entry::law(row(HELD, doc, "steered from outside"), move |_| size_of::<Steered>() + bytes, make))
}

fn row(name: &str, doc: &str, source: &str) -> Row<Text> {
    Row {
        name: name.to_owned().into(),
        aliases: Vec::new(),
        doc: doc.to_owned().into(),
        source: source.to_owned().into(),
        year: 0,
        marks: true,
        params: vec![
            registry::limit("1000p", "the interface's txqueuelen").into(),
            registry::ECN.into(),
            registry::CAPACITY.into(),
        ],
        fixed: Vec::new(),
        gauges: vec![Gauge::probability("Probability of a packet.").into()],
        causes: Vec::new(),
        uses_rate: registry::always,
        resolve: as_given,
    }
}

/// A policy at work in one queue.
struct Hand {
    about: Arc<Policy>,
    ask: Pilot,
    clock: Clock,
    /// How often it was asked.
    asked: u64,
    /// So many steps in a row nothing has happened, and the probability and the rate stayed as they were.
    quiet: u32,
}

/// The law.
struct Steered {
    helm: Helm,
    hand: Option<Hand>,
    laws: Vec<(Boxed, Values)>,
    ecn_enabled: bool,
    stream: Stream,
}

impl Steered {
    fn new(values: &Values, site: Site, helm: Helm, laws: Vec<(Boxed, Values)>, hand: Option<Hand>) -> Self {
        helm.bridge().seen.rate_bps = site.rate.bps();
        Self { helm, hand, laws, ecn_enabled: values.flag("ecn"), stream: site.stream }
    }

    /// Asks the policy about the steps that are over at `now`, before anything else happens then. It was asked first
    /// when nothing had happened yet.
    fn roll(&mut self, now: Time) {
        let Some(hand) = &mut self.hand else { return };
        while hand.asked == 0 || hand.clock.next() <= now {
            let at = if hand.asked == 0 { Time::ZERO } else { hand.clock.next() };
            hand.clock.take(at);
            hand.asked += 1;
            if hand.is_at_rest() {
                // The policy would be told what it was told last, and its answer be the same.
                continue;
            }
            let seen = self.helm.take();
            let raise = |what: String| -> ! {
                let what = format!("{what} (in tick, at {:.6} s)", at.secs_f64());
                Fault::of_law(&hand.about.name, what).raise()
            };
            let said = (hand.ask)(&seen).unwrap_or_else(|what| raise(what));
            if !(0.0..=1.0).contains(&said) {
                raise(format!("answered the probability {said}: expected one from 0 to 1"));
            }
            let is_quiet = seen.is_empty() && said == seen.probability;
            hand.quiet = if is_quiet { hand.quiet.saturating_add(1) } else { 0 };
            self.helm.steer(said);
        }
    }

    /// The law that was chosen, if there is any to choose.
    fn chosen(&mut self) -> Option<&mut Boxed> {
        if self.laws.is_empty() {
            return None;
        }
        let chosen = self.helm.bridge().chosen;
        self.laws.get_mut(chosen).map(|(law, _)| law)
    }
}

impl Hand {
    fn is_at_rest(&self) -> bool {
        self.quiet > self.about.memory
    }
}

/// Counts a verdict; whether the packet stays.
fn counted(verdict: Verdict, seen: &mut Seen) -> bool {
    seen.dropped_packets += u32::from(matches!(verdict, Verdict::Drop(_)));
    seen.marked_packets += u32::from(matches!(verdict, Verdict::Mark(_)));
    !matches!(verdict, Verdict::Drop(_))
}

impl Law for Steered {
    fn on_arrival(&mut self, arrival: &Arrival, now: Time) -> Verdict {
        self.roll(now);
        let verdict = match self.chosen() {
            Some(law) => law.on_arrival(arrival, now),
            None => {
                let probability = self.helm.bridge().probability;
                match law::is_drawn(&mut self.stream, probability) {
                    true => Verdict::signal(self.ecn_enabled, arrival.ecn, Cause::EARLY),
                    false => Verdict::Pass,
                }
            }
        };
        if let Some(hand) = &mut self.hand {
            hand.quiet = 0;
        }
        let seen = &mut self.helm.bridge().seen;
        seen.offered_packets += 1;
        let stays = counted(verdict, seen);
        seen.queue_packets = arrival.backlog.packets + u32::from(stays);
        seen.queue_bytes = arrival.backlog.bytes + if stays { u64::from(arrival.size) } else { 0 };
        verdict
    }

    fn wants_hosts(&self) -> bool {
        self.laws.iter().any(|(law, _)| law.wants_hosts())
    }

    fn hear_hosts(&mut self, hosts: Option<(u32, u32)>) {
        if let Some(law) = self.chosen() {
            law.hear_hosts(hosts);
        }
    }

    fn on_overflow(&mut self, arrival: &Arrival, now: Time) {
        self.roll(now);
        if let Some(law) = self.chosen() {
            law.on_overflow(arrival, now);
        }
        if let Some(hand) = &mut self.hand {
            hand.quiet = 0;
        }
        let seen = &mut self.helm.bridge().seen;
        seen.offered_packets += 1;
        seen.dropped_packets += 1;
        (seen.queue_packets, seen.queue_bytes) = (arrival.backlog.packets, arrival.backlog.bytes);
    }

    fn on_eviction(&mut self, packets: u32, now: Time) {
        self.roll(now);
        if let Some(law) = self.chosen() {
            law.on_eviction(packets, now);
        }
        let seen = &mut self.helm.bridge().seen;
        seen.dropped_packets += packets;
        // How many bytes these were, the next packet tells.
        seen.queue_packets = seen.queue_packets.saturating_sub(packets);
    }

    fn on_departure(&mut self, departure: &Departure, now: Time) -> Verdict {
        self.roll(now);
        let verdict = self.chosen().map_or(Verdict::Pass, |law| law.on_departure(departure, now));
        let seen = &mut self.helm.bridge().seen;
        if counted(verdict, seen) {
            let waited = now.since(departure.enqueued).ns();
            seen.delivered_packets += 1;
            seen.delivered_bytes += u64::from(departure.size);
            seen.wait_sum_ns += waited;
            seen.wait_max_ns = seen.wait_max_ns.max(waited);
        }
        (seen.queue_packets, seen.queue_bytes) = (departure.backlog.packets, departure.backlog.bytes);
        verdict
    }

    fn on_idle(&mut self, now: Time) {
        self.roll(now);
        if let Some(law) = self.chosen() {
            law.on_idle(now);
        }
        let seen = &mut self.helm.bridge().seen;
        (seen.queue_packets, seen.queue_bytes) = (0, 0);
    }

    fn next_tick(&self) -> Time {
        let own = self.hand.as_ref().map_or(Time::NEVER, |hand| hand.clock.next());
        self.laws.iter().map(|(law, _)| law.next_tick()).fold(own, Time::min)
    }

    fn tick(&mut self, backlog: Backlog, now: Time) {
        self.roll(now);
        for (law, _) in &mut self.laws {
            if law.next_tick() <= now {
                law.tick(backlog, now);
            }
        }
    }

    fn is_at_rest(&self) -> bool {
        self.hand.as_ref().is_some_and(Hand::is_at_rest)
    }

    fn gauges(&self) -> Gauges {
        let bridge = self.helm.bridge();
        match self.laws.get(bridge.chosen) {
            Some((law, _)) => Gauges { probability: law.gauges().probability, ..Gauges::default() },
            None => Gauges { probability: Some(bridge.probability), ..Gauges::default() },
        }
    }

    fn hear_backlog(&mut self, backlog: Backlog) {
        for (law, _) in &mut self.laws {
            law.hear_backlog(backlog);
        }
    }

    fn retune(&mut self, values: &Values, rate: Rate, now: Time) {
        self.roll(now);
        if let Some(hand) = &mut self.hand {
            hand.quiet = 0;
        }
        self.ecn_enabled = values.flag("ecn");
        self.helm.bridge().seen.rate_bps = values.rate_at(rate).bps();
        for (law, own) in &mut self.laws {
            law.retune(own, own.rate_at(rate), now);
        }
    }
}

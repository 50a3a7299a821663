//! This file runs the hosts of one side on the kernel's sockets: browsers, servers and all others of the scenario.
//!
//! The demands are those of the simulator: [`session::Sources`] say who asks for how much, when and over which
//! connection, and what follows when a connection fails; session's state machines say what each end of a connection
//! writes, when it closes and what is complete. What differs is that packets, losses and timers are the kernel's
//! business.
//!
//! - [`asking`]: what is done for the sources; [`turns`]: what is done for the ends of connections;
//! - [`client`]: exchanges, at the end that asks; [`server`]: who answers them; [`http`]: what they say;
//! - [`joint`]: transfers and connection vectors;
//! - [`datagrams`]: unresponsive packets and probes;
//! - [`opening`]: how connections are opened;
//! - [`connections`], [`timers`], [`sockets`]: what these are made of; [`samples`]: what the kernel says of them;
//! - [`report`]: what came of them all.
//!
//! One thread has all hosts of a side. It waits for sockets (epoll(7), each connection reported once as something
//! happens to it) and for the next instant at which somebody wants something, does all that is due, and waits again.
//! Bytes that came are counted and thrown away within the kernel; those that are sent are zeros behind a head. Nothing
//! is allocated for an exchange once there have been as many at a time.
//!
//! Each source and each server has an address of its own, so that tens of thousands of connections find ports, and so
//! that a route tells the kernel what stack their block has.

mod asking;
mod client;
mod connections;
mod datagrams;
mod http;
mod joint;
mod opening;
mod report;
mod samples;
mod server;
mod sockets;
mod timers;
mod turns;

pub use joint::Handover;
pub use report::HostReport;
pub use turns::remarks;

use crate::clock::Epoch;
use crate::lateness::Lateness;
use crate::news::{News, Tallies, add};
use crate::paths::Announcer;
use crate::settings::BlockSettings;
use crate::urgency::Urgency;
use crate::{Addressing, BLOCKS};
use base::{Span, Time};
use connections::{Connections, Token};
use opening::{PORTS, Service, manners};
use rustix::event::epoll::EventFlags;
use rustix::fd::OwnedFd;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use scenario::Scenario;
use session::{Command, Recorder, Sources};
use sockets::{Manner, Poll};
use std::collections::BTreeSet;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, mpsc};
use timers::{Due, Timers};

/// What the hosts of a side share with the rest of the bed.
pub struct Wiring {
    /// Hears of connections before their first packet leaves.
    pub announcer: Announcer,
    /// What openers leave for the other side.
    pub handover: Arc<Handover>,
    /// Hears of what was measured.
    pub news: mpsc::Sender<News>,
    /// Sums.
    pub tallies: Arc<Tallies>,
    /// Who has which address.
    pub addressing: Addressing,
    /// What the hosts of each block have of their own.
    pub blocks: Vec<BlockSettings>,
    /// Whether time stands still while anybody works.
    pub is_virtual: bool,
}

/// The longest wait: how soon the loop sees that it shall stop.
const LOOKS_UP: Span = Span::from_ms(100);
/// Later than this is counted apart.
const LATE: Span = Span::from_ms(1);
/// Most that is reported of the sockets at a time.
const EVENTS: usize = 512;
/// Most that is done of what is due before sockets are looked at: hosts that do not keep up with what they are to send
/// still hear.
const TURNS: usize = 64;
/// What words for the kernel have that are no connection's.
const LISTENER: u64 = 1 << 63;
/// Zeros to be sent.
static ZEROS: [u8; 1 << 20] = [0; 1 << 20];
/// Of a message that has a head, how much is handed over with it.
const FIRST: usize = 1 << 17;

/// The hosts of one side.
pub struct Hosts<'s> {
    scenario: &'s Scenario,
    side: u8,
    epoch: Epoch,
    wiring: Wiring,
    now: Time,
    /// When what is being done was due.
    due_at: Time,
    poll: Poll,
    timers: Timers,
    listeners: Vec<(OwnedFd, Service)>,
    connections: Connections,
    /// What the sockets of each block have; several blocks may share one manner.
    manners: Vec<Manner>,
    manner_of_block: Vec<usize>,
    sources: Sources<'s, Token>,
    /// What the sources want done.
    commands: Vec<Command>,
    next_port: u16,
    /// Addresses that something is open from, and how many connections found none.
    taken: BTreeSet<SocketAddr>,
    without_port: u64,
    /// A head and zeros after it.
    outbox: Vec<u8>,
    /// What a request is read into.
    inbox: Vec<u8>,
    datagrams: datagrams::Flows,
    samples: samples::Samples,
    /// The measured window.
    window: (Time, Time),
    recorder: Recorder,
    opened: u64,
    lateness: Lateness,
    hearing: Lateness,
    refused_requests: u64,
}

/// Why hosts on real sockets cannot do what a scenario says; `None` if they can.
pub fn unsupported(scenario: &Scenario) -> Option<String> {
    if scenario.traffic.len() > BLOCKS {
        return Some(format!("{} blocks of traffic: a live run has {BLOCKS} at most", scenario.traffic.len()));
    }
    let cannot = |(block, traffic)| {
        let why = joint::unsupported(traffic).or_else(|| datagrams::unsupported(traffic, scenario.live.family))?;
        Some(format!("traffic.{block}: {why}"))
    };
    scenario.traffic.iter().enumerate().find_map(cannot)
}

impl<'s> Hosts<'s> {
    /// The hosts of `side` (0 left, 1 right), listening. To be called on a thread within the side's namespace, and run
    /// on the same.
    ///
    /// # Errors
    /// In one line, where the kernel does not let them.
    pub fn open(scenario: &'s Scenario, side: u8, epoch: Epoch, wiring: Wiring) -> io::Result<Self> {
        raise_limit();
        let sources = Sources::new(scenario, Some(side), Token::NONE);
        let mut timers = Timers::default();
        for (index, source) in sources.all().iter().enumerate() {
            timers.push(source.first, Due::Source(index as u32));
        }
        let (manners, manner_of_block) = manners(scenario, &wiring.blocks);
        let [from, to, _] = scenario.edges();
        let mut hosts = Self {
            scenario,
            side,
            epoch,
            now: Time::ZERO,
            due_at: Time::ZERO,
            poll: Poll::new()?,
            timers,
            listeners: Vec::new(),
            connections: Connections::default(),
            manners,
            manner_of_block,
            datagrams: datagrams::Flows::new(sources.all().len()),
            sources,
            commands: Vec::with_capacity(16),
            next_port: *PORTS.start(),
            taken: BTreeSet::new(),
            without_port: 0,
            outbox: vec![0; FIRST],
            inbox: vec![0; 1 << 16],
            samples: samples::Samples::new(scenario),
            window: (from, to),
            recorder: Recorder::new(scenario),
            opened: 0,
            lateness: Lateness::new(),
            hearing: Lateness::new(),
            refused_requests: 0,
            wiring,
        };
        hosts.listen()?;
        hosts.receive_datagrams()?;
        Ok(hosts)
    }

    /// Opens the ports of every service that the scenario has; the web's in any case, for foreign programs.
    fn listen(&mut self) -> io::Result<()> {
        let any = self.wiring.addressing.own(self.side);
        for manner in 0..self.manners.len() {
            for service in [Service::Web, Service::Transfer, Service::Vector] {
                let is_used = service == Service::Web && manner == 0
                    || self.scenario.traffic.iter().zip(&self.manner_of_block).any(|(traffic, &of_block)| {
                        of_block == manner && Service::of(traffic.workload.carries()) == Some(service)
                    });
                if is_used {
                    let listener = sockets::listen(any, service.port(manner), &self.manners[manner])?;
                    self.poll.readable(&listener, LISTENER | self.listeners.len() as u64)?;
                    self.listeners.push((listener, service));
                }
            }
        }
        Ok(())
    }

    /// Runs them until the clock says `until`, or somebody wants them to `stop`.
    ///
    /// # Errors
    /// In one line, where the kernel has no more of what they need.
    pub fn run(&mut self, until: Time, stop: &AtomicBool) -> io::Result<HostReport> {
        // By default Linux lets timers be late by 50 us, so that it can fire several at once (PR_SET_TIMERSLACK).
        rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1))?;
        // In virtual time everybody is quick enough.
        let _urgency = (!self.wiring.is_virtual).then(Urgency::follow);
        self.timers.push(self.samples.first_at(), Due::Sample);
        let mut events = Vec::with_capacity(EVENTS);
        // Nothing is due before the run begins.
        while self.epoch.now() == Time::ZERO && !stop.load(Ordering::Relaxed) {
            self.poll.wait(&mut events, self.epoch.until(Time::ZERO).min(LOOKS_UP))?;
        }
        self.now = self.epoch.now();
        let is_over = |now: Time| now >= until || stop.load(Ordering::Relaxed);
        // When they last looked at the sockets.
        let mut heard_at = self.now;
        while !is_over(self.now) {
            let looked_at = self.now;
            // What becomes due meanwhile waits: there may be no end to it.
            for _ in 0..TURNS {
                let Some((at, due)) = self.timers.pop(looked_at) else { break };
                self.due_at = at;
                self.note_lateness(self.now.since(at));
                self.do_due(due)?;
                self.look_at_clock();
                if is_over(self.now) {
                    break;
                }
            }
            let away = self.now.since(heard_at);
            let next = self.timers.next_at().min(until).min(self.now + LOOKS_UP);
            // In virtual time nothing has passed since, and looking at the clock would move it.
            let wait = if self.wiring.is_virtual { next.since(self.now) } else { self.epoch.until(next) };
            self.poll.wait(&mut events, wait)?;
            self.now = self.epoch.now();
            heard_at = self.now;
            for event in &events {
                let (flags, word) = (event.flags, event.data.u64());
                // It may have happened as soon as they had looked the last time.
                self.hearing.packet(away + self.now.since(heard_at));
                self.happened(word, flags)?;
                self.look_at_clock();
            }
        }
        // What should have been done by now is late, too.
        let (end, due) = (self.now.min(until), self.timers.next_at());
        if due < end {
            self.note_lateness(end.since(due));
        }
        Ok(HostReport {
            lateness: self.lateness.clone(),
            hearing: self.hearing.clone(),
            without_port: self.without_port,
            unread_probes: self.datagrams.unread_probes(),
            demands: self.recorder.take().collect(),
            untaken_datagrams: self.datagrams.untaken,
            refused_requests: self.refused_requests,
            open_connections: self.connections.len() as u64,
        })
    }

    /// In real time, what is done takes time.
    #[inline]
    fn look_at_clock(&mut self) {
        if !self.wiring.is_virtual {
            self.now = self.epoch.now();
        }
    }

    fn note_lateness(&mut self, late: Span) {
        self.lateness.packet(late);
        if late > LATE {
            add(&self.wiring.tallies.late_actions, 1);
        }
    }

    fn do_due(&mut self, due: Due) -> io::Result<()> {
        match due {
            Due::Source(index) => self.demand(index),
            Due::Turn(token) => self.attend(token),
            Due::Request(token) => self.read_request(token, false),
            Due::Broken(token) => self.give_up(token),
            Due::Sample => {
                self.sample();
                Ok(())
            }
        }
    }

    /// Something happened at a socket.
    fn happened(&mut self, word: u64, flags: EventFlags) -> io::Result<()> {
        if word & LISTENER != 0 {
            let index = (word & !LISTENER) as usize;
            return if index == datagrams::SINK { self.receive_probes() } else { self.accept(index) };
        }
        let token = Token::of_word(word);
        let Some(connection) = self.connections.get(token) else { return Ok(()) };
        if flags.contains(EventFlags::ERR) {
            return self.give_up(token);
        }
        if !connection.is_open {
            // Both ends closed without it having been open: refused.
            if flags.contains(EventFlags::HUP) {
                return self.give_up(token);
            }
            if !flags.contains(EventFlags::OUT) {
                return Ok(());
            }
            self.begin(token)?;
        } else if flags.contains(EventFlags::OUT) && connection.outgoing.is_pending() {
            self.push(token)?;
        }
        if flags.intersects(EventFlags::IN | EventFlags::RDHUP | EventFlags::HUP) {
            // Said before what came is read: all of it is there then.
            let is_closed_there = flags.intersects(EventFlags::RDHUP | EventFlags::HUP);
            return self.came(token, is_closed_there);
        }
        Ok(())
    }
}

/// How many files this process could have open when it began, which is what programs inside are to have: some go
/// through all of them.
pub fn files_at_first() -> Rlimit {
    static AT_FIRST: OnceLock<Rlimit> = OnceLock::new();
    *AT_FIRST.get_or_init(|| getrlimit(Resource::Nofile))
}

/// As many files as this process may have open.
fn raise_limit() {
    let Rlimit { current, maximum } = files_at_first();
    // Root may raise the hard limit, too, up to fs.nr_open.
    let open = std::fs::read_to_string("/proc/sys/fs/nr_open").ok().and_then(|text| text.trim().parse().ok());
    let most = open.unwrap_or(1 << 20).min(1 << 20).max(maximum.unwrap_or(0));
    if current.is_some_and(|current| current < most)
        && setrlimit(Resource::Nofile, Rlimit { current: Some(most), maximum: Some(most) }).is_err()
    {
        // If even that is refused, what there is must do: running out is told in a line.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(block: &str) -> Option<String> {
        let text = format!("live.family = 'ipv6'\n[[traffic]]\nkind = 'web'\nusers = 1\n[[traffic]]\n{block}\n");
        let vectors = "SEQ 0 1 1 1\nw 1000 1000\nr 100000\nl 0.01 0\n> 10\nt 0\n< 10\nt 0\n";
        let resolved =
            scenario::resolve(&text, "hosts.toml", &[], &|_| Ok(vectors.to_owned())).expect("it makes sense");
        unsupported(resolved.scenario().expect("no load to calibrate"))
    }

    #[test]
    fn what_real_hosts_cannot_do_is_refused() {
        let refusal = |size: &str, least: u32| {
            Some(format!(
                "traffic.1: packets of {size} bytes: expected {least} to 1500, as real hosts send over this link"
            ))
        };
        assert_eq!(refused("kind = 'cbr'\nrate = '1mbit'\npacket = '1501b'"), refusal("1501", 48));
        assert_eq!(refused("kind = 'cbr'\nrate = '1mbit'\npacket = '47b'"), refusal("47", 48));
        assert_eq!(refused("kind = 'probe'\npacket = '57b'"), refusal("57", 58));
        assert_eq!(refused("kind = 'probe'\npacket = '58b'"), None);
        let media = refused("kind = 'rtp_video'\nmax_rate = '1mbit'").expect("refused");
        assert!(media.starts_with("traffic.1: rtp_video: a live run has no real-time video yet"), "{media}");
        let lossy = refused("kind = 'tmix'\nvectors = 'v.cvec'").expect("refused");
        assert!(lossy.ends_with("expected loss = false"), "{lossy}");
        assert_eq!(refused("kind = 'tmix'\nvectors = 'v.cvec'\nloss = false"), None);
    }
}

//! Each thread of a run has a role: the router, the hosts of a side, a program of the user's, the reader of edges.

use crate::addressing::Addressing;
use crate::bed::Bed;
use crate::capture::Captures;
use crate::clock::{Clock, Epoch, Real, Sleeping};
use crate::counters::Interface;
use crate::edges::Edges;
use crate::hosts::{Handover, HostReport, Hosts, Wiring};
use crate::kernel_qdisc::KernelLink;
use crate::monitor::Monitor;
use crate::news::{News, Tallies};
use crate::parts::Part;
use crate::paths::{Announced, Announcer, announcers};
use crate::plan::{Failure, Plan};
use crate::program::{self, sleep_until};
use crate::report::Report;
use crate::router::Router;
use crate::tun::Tun;
use crate::urgency::Urgency;
use base::{Span, Time};
use serde_json::Value;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, OnceLock};

/// The time that the threads have to get ready, to which each user or flow adds some.
const READY: Span = Span::from_ms(200);
const READY_EACH: Span = Span::from_us(20);
/// How often a thread that is ready looks whether the others are.
const LOOKS: Span = Span::from_ms(1);
/// How often the reader of edges looks whether the run is over: in real and in virtual time.
const EDGE_LOOKS: [Span; 2] = [Span::from_ms(20), Span::from_ms(500)];
/// How long threads have to end when told to.
const PATIENCE: Span = Span::from_secs(2);

/// What all threads of a run share.
pub struct Shared {
    /// The run to be made.
    pub plan: Plan,
    /// The test bed.
    pub bed: Bed,
    /// The run's time zero.
    pub epoch: Epoch,
    /// Set when the run is to end.
    pub stop: Arc<AtomicBool>,
    /// The sums of hosts.
    pub tallies: Arc<Tallies>,
    /// The router's figures, once it runs.
    pub monitor: OnceLock<Arc<Monitor>>,
    /// The kernel's disciplines and their devices, where they are used in place of ours. The router takes them.
    pub kernel: Mutex<Vec<(KernelLink, [Tun; 2])>>,
    /// What openers leave for the other side.
    handover: Arc<Handover>,
    /// How many of the threads that must be ready before the run begins are.
    ready: AtomicU8,
    /// How many of them were not ready at time zero.
    late: AtomicU8,
    /// What was read at the edges of the measured window.
    edges: Mutex<Edges>,
    /// Whether the router has ended and the interfaces' counts have been read.
    is_routed: AtomicBool,
}

/// The threads.
pub struct Roles {
    router: Part<Captured>,
    edges: Part<()>,
    hosts: [Part<Option<HostReport>>; 2],
    program: Option<Part<Value>>,
}

/// The results of the router.
pub struct Routed {
    /// Its report.
    pub report: Report,
    /// What it captured, as JSON; null if nothing was.
    pub capture: Value,
    /// What a kernel's discipline did in its place; null where there was none.
    pub kernel_qdisc: Value,
    /// What the hosts' interfaces, left and right, had counted when it ended.
    pub interfaces: [Interface; 2],
}

/// The results of all threads.
pub struct Ended {
    /// The router.
    pub routed: Routed,
    /// Left and right hosts; none where the scenario's own traffic did not run.
    pub hosts: [Option<HostReport>; 2],
    /// What was read at the edges of the measured window.
    pub edges: Edges,
    /// How a program ended.
    pub command_status: Option<Value>,
    /// Processor time of router, left and right hosts, seconds.
    pub cpu_s: [f64; 3],
    /// How many were not ready at time zero.
    pub late: u8,
}

impl Shared {
    /// The shared state of a run of `plan` over `bed` that begins soon.
    pub fn new(plan: &Plan, bed: Bed) -> Self {
        let everlasting: Vec<u32> = plan.scenario.traffic.iter().map(|traffic| traffic.workload.endless()).collect();
        let sources: u64 = plan.scenario.traffic.iter().map(|traffic| u64::from(traffic.workload.count())).sum();
        Self {
            plan: plan.clone(),
            bed,
            epoch: Epoch::after(READY + READY_EACH * sources),
            stop: Arc::default(),
            tallies: Arc::new(Tallies::new(&everlasting)),
            monitor: OnceLock::new(),
            kernel: Mutex::default(),
            handover: Arc::default(),
            ready: AtomicU8::new(0),
            late: AtomicU8::new(0),
            edges: Mutex::new(Edges::new(&plan.scenario)),
            is_routed: AtomicBool::new(false),
        }
    }

    /// When the run is over.
    pub fn end(&self) -> Time {
        Time::ZERO + self.plan.scenario.duration
    }

    /// Whether the run is over.
    pub fn is_over(&self) -> bool {
        self.stop.load(Ordering::Relaxed) || self.epoch.now() >= self.end()
    }

    /// Ends the run before its time. What its last edge has is read first: once the router carries nothing, hosts send
    /// again what nobody acknowledges any more.
    pub fn cut_short(&self) {
        // Where it cannot be read, the thread that reads edges says so.
        let _ = self.read_edges(true);
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Reads the edges that are due, or all of them if the run `is_over`; when the next one is due.
    fn read_edges(&self, is_over: bool) -> io::Result<Time> {
        let mut edges = self.edges.lock().expect("nobody panics with it");
        edges.look(self.epoch.now(), is_over, || self.tallies.sums(), &self.bed.counters)?;
        Ok(edges.next())
    }

    fn part<T: Send + 'static>(
        self: &Arc<Self>,
        name: &'static str,
        work: impl FnOnce(&Self) -> io::Result<T> + Send + 'static,
    ) -> io::Result<Part<T>> {
        let shared = Arc::clone(self);
        Part::start(name, &self.stop, move || work(&shared))
    }

    /// Waits until both sides are ready, so that nobody connects before everybody listens.
    fn wait_for_both(&self) {
        if self.epoch.now() > Time::ZERO {
            self.late.fetch_add(1, Ordering::Relaxed);
        }
        self.ready.fetch_add(1, Ordering::Relaxed);
        let mut now = self.epoch.now();
        while self.ready.load(Ordering::Relaxed) < 2 && !self.stop.load(Ordering::Relaxed) {
            // Before time zero it is always zero.
            let ns = self.epoch.until(Time::ZERO).ns();
            now = if ns > 0 { Time::ZERO } else { now + LOOKS };
            sleep_until(self.epoch, now);
        }
    }
}

impl Roles {
    /// Starts all threads. They send their rows through the channels that are returned: the router's and the hosts'.
    ///
    /// # Errors
    /// Where there are no more threads.
    pub fn start(shared: &Arc<Shared>) -> io::Result<(Self, [Receiver<News>; 2])> {
        // The router has a channel of its own, since a single sender never waits for another.
        let ((router_news, of_router), (host_news, of_hosts)) = (channel(), channel());
        let ([left, right], announced) = announcers();
        let other_news = host_news.clone();
        let roles = Self {
            router: shared.part("router", move |shared| {
                let routed = route(shared, announced, router_news);
                shared.is_routed.store(true, Ordering::Relaxed);
                routed
            })?,
            edges: shared.part("edges", watch)?,
            hosts: [
                shared.part("left hosts", move |shared| host(shared, 0, left, host_news))?,
                shared.part("right hosts", move |shared| host(shared, 1, right, other_news))?,
            ],
            program: if shared.plan.command.is_empty() { None } else { Some(shared.part("program", run_program)?) },
        };
        Ok((roles, [of_router, of_hosts]))
    }

    fn are_over(&self) -> bool {
        let is_over = self.router.is_over() && self.hosts.iter().all(Part::is_over);
        is_over && self.edges.is_over() && self.program.as_ref().is_none_or(Part::is_over)
    }

    /// Waits for all threads to end, since the run is over.
    ///
    /// # Errors
    /// The first failure of any; or that one does not end.
    pub fn end(self, shared: &Shared) -> Result<Ended, Failure> {
        let limit = shared.epoch.now() + PATIENCE;
        while !self.are_over() {
            let now = shared.epoch.now();
            // Router and hosts end by themselves at the end of the run; a program does not.
            if self.router.is_over() && self.hosts.iter().all(Part::is_over) {
                shared.stop.store(true, Ordering::Relaxed);
            }
            if now > limit {
                shared.stop.store(true, Ordering::Relaxed);
            }
            if now > limit + PATIENCE {
                return Err(Failure::unable("a part of the run did not end when it was told to"));
            }
            sleep_until(shared.epoch, now + LOOKS);
        }
        let Self { router, edges, hosts, program } = self;
        let (router, [left, right], program) = (router.join(), hosts.map(Part::join), program.map(Part::join));
        let read = edges.join().result;
        let cpu_s = [router.cpu_s, left.cpu_s, right.cpu_s];
        let command_status = program.map(|done| done.result.map_err(Failure::mistaken)).transpose();
        let (mut routed, captures) = router.result?;
        // Nobody waits for the disk any more but us.
        routed.capture = captures.end();
        read?;
        let edges = shared.edges.lock().expect("nobody panics with it").clone();
        Ok(Ended {
            routed,
            edges,
            hosts: [left.result?, right.result?],
            command_status: command_status?,
            cpu_s,
            late: shared.late.load(Ordering::Relaxed),
        })
    }
}

/// What the router came to, and captures that are not all written.
type Captured = (Routed, Captures);

fn route(shared: &Shared, announced: Announced, news: Sender<News>) -> io::Result<Captured> {
    if shared.plan.is_virtual {
        route_by(Sleeping::since(shared.epoch)?, shared, announced, news)
    } else {
        route_by(Real::since(shared.epoch)?, shared, announced, news)
    }
}

fn route_by<C: Clock>(clock: C, shared: &Shared, announced: Announced, news: Sender<News>) -> io::Result<Captured> {
    let Plan { scenario, directory, .. } = &shared.plan;
    let [left, right] = &shared.bed.ports;
    let mut router = Router::new(scenario, [left.duplicate()?, right.duplicate()?], clock, announced, Some(news));
    let links = std::mem::take(&mut *shared.kernel.lock().expect("nobody panics with it"));
    if !links.is_empty() {
        router.through_kernel(scenario, links);
    }
    let _ = shared.monitor.set(router.monitor());
    router.network_mut().capture(Captures::create(directory, scenario)?);
    let ended = router.run(shared.end(), &shared.stop);
    // The counts are read before the hosts close their connections, since nobody reads the packets of closing.
    let interfaces = shared.bed.interfaces();
    shared.is_routed.store(true, Ordering::Relaxed);
    let captures = router.network_mut().take_captures();
    if let Err(error) = ended {
        // What was captured until then is the best account of why.
        captures.end();
        return Err(error);
    }
    let kernel_qdisc = router.kernel().unwrap_or_default();
    Ok((Routed { report: router.report(), capture: Value::Null, kernel_qdisc, interfaces: interfaces? }, captures))
}

fn host(shared: &Shared, side: u8, announcer: Announcer, news: Sender<News>) -> io::Result<Option<HostReport>> {
    let plan = &shared.plan;
    shared.bed.sides[usize::from(side)].enter()?;
    let wiring = Wiring {
        announcer,
        handover: Arc::clone(&shared.handover),
        news,
        tallies: Arc::clone(&shared.tallies),
        addressing: Addressing::new(plan.scenario.live.family),
        blocks: plan.settings.blocks.clone(),
        is_virtual: plan.is_virtual,
    };
    let hosts = plan.has_traffic.then(|| Hosts::open(&plan.scenario, side, shared.epoch, wiring)).transpose()?;
    shared.wait_for_both();
    let Some(mut hosts) = hosts else { return Ok(None) };
    let report = hosts.run(shared.end(), &shared.stop)?;
    // Hosts that close connections send packets, which are no part of the run.
    let limit = shared.epoch.now() + PATIENCE;
    while !shared.is_routed.load(Ordering::Relaxed) && shared.epoch.now() < limit {
        sleep_until(shared.epoch, shared.epoch.now() + LOOKS);
    }
    Ok(Some(report))
}

/// Reads the sums and counters at the edges of the measured window, when these come. A thread of its own does it, which
/// never waits for a disk, because rates are worked out from one edge to the other.
fn watch(shared: &Shared) -> io::Result<()> {
    let Shared { epoch, plan, .. } = shared;
    let _urgency = (!plan.is_virtual).then(Urgency::follow);
    sleep_until(*epoch, Time::ZERO);
    loop {
        let now = epoch.now();
        let next = shared.read_edges(shared.is_over())?;
        if next == Time::NEVER {
            return Ok(());
        }
        sleep_until(*epoch, (now + EDGE_LOOKS[usize::from(plan.is_virtual)]).min(next).min(shared.end()));
    }
}

fn run_program(shared: &Shared) -> io::Result<Value> {
    sleep_until(shared.epoch, Time::ZERO);
    let Plan { command, side, .. } = &shared.plan;
    let ended = program::run(command, *side, &shared.bed, shared.epoch, &shared.stop);
    // The run ends with it.
    shared.cut_short();
    ended
}

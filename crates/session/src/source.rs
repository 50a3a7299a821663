//! Each source of demand that a scenario has, with a random stream of its own, and between which hosts it sends.

use base::{Rate, Span, Stream, Time};
use scenario::{Direction, RttSpec, Scenario, Traffic, Udp, UdpSource, Workload};
use traffic::replay::Step;
use traffic::tmix::Start;
use traffic::{
    Browser, Cbr, Command, Datagrams, FlowDemand, MOST_BYTES, OnOff, PackMime, PacketTrace, Periods, PoissonFlows,
    PoissonPackets, Probe, Replay, Residual, Session,
};

/// A source of demand.
pub struct Source {
    /// Block of traffic, as it stands in [`Scenario::traffic`].
    pub block: u16,
    /// Number within the block.
    pub number: u32,
    /// The side its connections are opened from.
    pub client: u8,
    /// When it is first called.
    pub first: Time,
    /// What it asks for.
    pub demand: Demand,
}

/// What a source asks for.
pub enum Demand {
    /// A web user.
    User {
        /// The user.
        browser: Browser,
        /// Where its lanes begin among all lanes.
        lanes: u32,
    },
    /// A web session.
    Session(Session),
    /// Web connections at random instants.
    PackMime {
        /// The connections.
        connections: Box<PackMime>,
        /// How many began already.
        count: u32,
    },
    /// Connection vectors.
    Tmix {
        /// When which of them begins.
        starts: Vec<Start>,
        /// The next of them.
        next: u32,
    },
    /// One transfer from the client.
    Bulk {
        /// Bytes; `None` lasts for ever.
        bytes: Option<u64>,
        /// Round-trip delay.
        rtt: Span,
    },
    /// Random arrivals.
    Poisson {
        /// The arrivals.
        flows: PoissonFlows,
        /// The next one.
        next: FlowDemand,
        /// How many came already.
        count: u32,
    },
    /// Unresponsive packets.
    Udp {
        /// Where they come from.
        datagrams: Datagrams,
        /// The size of the one that is due.
        bytes: u32,
        /// Delay one way.
        delay: Span,
    },
    /// A recording: how far it is.
    Replay(Replay),
}

/// What gives a source of web traffic the word.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Turn {
    /// A time that it asked for is over.
    Due,
    /// The exchange on this lane is complete.
    Completed(u32),
    /// The connection of this lane was given up during an exchange.
    Failed(u32),
    /// The connection of this lane was given up between two exchanges, or after the last.
    Lost(u32),
}

impl Source {
    /// Lets a web user, session or process of web connections speak, whose block is `traffic`: appends to `out` what is
    /// to be done. Others have nothing to say here. Connections that are opened now are between the [`hosts`] of the
    /// number that is returned.
    #[inline]
    pub(crate) fn turn(&mut self, traffic: &Traffic, turn: Turn, now: Time, out: &mut Vec<Command>) -> u32 {
        match (&mut self.demand, &traffic.workload) {
            (Demand::User { browser, .. }, Workload::Web(web)) => match turn {
                Turn::Due => browser.think_over(&web.model, out),
                Turn::Completed(lane) => browser.completed(lane, &web.model, out),
                Turn::Failed(lane) => browser.failed(lane, &web.model, out),
                Turn::Lost(_) => {}
            },
            (Demand::Session(session), Workload::Sessions(sessions)) => match turn {
                Turn::Due => session.wake(now, &sessions.model, out),
                Turn::Completed(_) | Turn::Failed(_) => session.ended(now, &sessions.model, out),
                Turn::Lost(_) => {}
            },
            (Demand::PackMime { connections, count }, Workload::PackMime(model)) => match turn {
                Turn::Due => {
                    let number = *count;
                    connections.wake(now, model, out);
                    *count += u32::from(matches!(out.first(), Some(Command::Open { .. })));
                    return number;
                }
                Turn::Completed(lane) => connections.completed(lane, now, out),
                Turn::Failed(lane) => connections.failed(lane, true),
                Turn::Lost(lane) => connections.failed(lane, false),
            },
            _ => {}
        }
        self.number
    }

    /// Goes on with the recording of the block `traffic`, whose connections are its lanes: what is to be done, and when
    /// it is [`Turn::Due`] again if it was now and ever is.
    pub(crate) fn replay(&mut self, traffic: &Traffic, turn: Turn) -> (Option<Step>, Option<Time>) {
        let (Demand::Replay(replay), Workload::Replay(demands)) = (&mut self.demand, &traffic.workload) else {
            unreachable!("only a recording is replayed")
        };
        match turn {
            Turn::Due => (replay.wake(demands), replay.next_wake(demands)),
            Turn::Completed(connection) => (replay.completed(connection, demands), None),
            // The connection was closed, and then given up.
            Turn::Failed(Command::NO_LANE) | Turn::Lost(Command::NO_LANE) => (None, None),
            Turn::Failed(connection) | Turn::Lost(connection) => (replay.failed(connection, demands), None),
        }
    }
}

/// The round-trip propagation delay of flow `number` of `count`.
fn rtt_of(rtt: &RttSpec, number: u32, count: u32, stream: &mut Stream) -> Span {
    let quantile = match rtt {
        RttSpec::Even { .. } if count > 1 => f64::from(number) / f64::from(count - 1),
        RttSpec::Even { .. } => 0.0,
        RttSpec::Drawn(_) => stream.open_unit(),
    };
    rtt.at(quantile)
}

/// The side whose hosts open connections for source `number`: web responses and bulk data flow `direction`.
fn client_side(direction: Direction, number: u32, opener_sends: bool) -> u8 {
    let data_from = match direction {
        Direction::Forward => 0,
        Direction::Reverse => 1,
        Direction::Both => (number % 2) as u8,
    };
    if opener_sends { data_from } else { 1 - data_from }
}

/// The hosts between which source or arrival `number` of a block sends, whose connections are opened from `client`:
/// left, right. Numbers of their own among the hosts of that block on that side.
pub fn hosts_within(traffic: &Traffic, number: u32, client: u8) -> [u32; 2] {
    let both = u32::from(traffic.direction == Direction::Both);
    // Servers of one side's clients are not those of the other's.
    place(traffic, number, client).map(|index| index << both | u32::from(client) & both)
}

/// The same, numbered through: a host's number is its own, whatever its block and side.
pub fn hosts(scenario: &Scenario, block: u16, number: u32, client: u8) -> [u32; 2] {
    let [left, right] = place(&scenario.traffic[block as usize], number, client);
    let blocks = scenario.traffic.len() as u32;
    let host = |index: u32, side: u32| {
        index.wrapping_mul(blocks).wrapping_add(u32::from(block)).wrapping_mul(4) | side << 1 | u32::from(client)
    };
    [host(left, 0), host(right, 1)]
}

/// Where source or arrival `number` stands among the clients and servers of a block: left, right.
fn place(traffic: &Traffic, number: u32, client: u8) -> [u32; 2] {
    // Of sources that alternate between the sides, each side counts its own.
    let arrives = matches!(
        traffic.workload,
        Workload::Poisson(_) | Workload::PackMime(_) | Workload::Tmix(_) | Workload::Replay(_)
    );
    let alternates = traffic.direction == Direction::Both && !arrives;
    let number = if alternates { number / 2 } else { number };
    [0, 1].map(|side| {
        let hosts = if side == client { traffic.hosts.clients } else { traffic.hosts.servers };
        hosts.map_or(number, |hosts| number % hosts)
    })
}

/// What makes the machine of one source of unresponsive packets, given its random stream.
fn datagrams(spec: &Udp) -> Box<dyn Fn(Stream) -> Datagrams + '_> {
    match &spec.source {
        UdpSource::OnOff { rate, packet, on, off } => {
            let rate = Rate::from_bps((rate.bps() / u64::from(spec.flows)).max(1));
            let periods = Periods::new(on, off);
            Box::new(move |stream| {
                let source = OnOff::new(stream, rate, *packet, on.clone(), off.clone(), &periods);
                Datagrams::OnOff(Box::new(source))
            })
        }
        UdpSource::Poisson { packets_per_s, size } => {
            let mean_gap_s = f64::from(spec.flows) / packets_per_s;
            Box::new(move |stream| Datagrams::Poisson(PoissonPackets::new(stream, mean_gap_s, size.clone())))
        }
        UdpSource::Trace(packets) => Box::new(|_| Datagrams::Trace(PacketTrace::new(packets.clone()))),
        UdpSource::Probe { interval, packet } => {
            Box::new(|mut stream| Datagrams::Probe(Probe::new(*interval, *packet, &mut stream)))
        }
    }
}

/// A source of unresponsive packets that starts at `start`, and when its first is due; `None` if it has none.
fn udp(mut datagrams: Datagrams, start: Time, delay: Span) -> Option<(Time, Demand)> {
    let first = datagrams.next_datagram()?;
    Some((start + first.gap, Demand::Udp { datagrams, bytes: first.bytes, delay }))
}

/// Every source of the scenario, and how many lanes they have together.
pub(crate) fn all(scenario: &Scenario) -> (Vec<Source>, usize) {
    let mut sources = Vec::new();
    let mut lanes = 0;
    for (block, traffic) in scenario.traffic.iter().enumerate() {
        let stream =
            |what: &str, number: u32| Stream::named(scenario.seed, &format!("traffic/{block}/{what}/{number}"));
        let mut add = |number, client, first, demand| {
            sources.push(Source { block: block as u16, number, client, first, demand });
        };
        match &traffic.workload {
            Workload::Web(web) => {
                for number in 0..web.users {
                    let mut browser = Browser::new(stream("user", number));
                    let first = Time::ZERO + browser.begin(&web.model);
                    let demand = Demand::User { browser, lanes };
                    lanes += u32::from(web.model.parallel.max(web.model.persistent_parallel));
                    add(number, client_side(traffic.direction, number, false), first, demand);
                }
            }
            Workload::Sessions(sessions) => {
                let between = Residual::of(&sessions.model.inter_page);
                for number in 0..sessions.users {
                    let mut session = Session::new(stream("session", number));
                    let first = Time::ZERO + session.begin(&sessions.model, &between);
                    add(number, client_side(traffic.direction, number, false), first, Demand::Session(session));
                }
            }
            Workload::PackMime(model) => {
                let processes = if traffic.direction == Direction::Both { 2 } else { 1 };
                let per_s = model.connections_per_s / f64::from(processes);
                for number in 0..processes {
                    let streams = ["connections", "arrivals", "requests"].map(|what| stream(what, number));
                    let mut connections = Box::new(PackMime::new(per_s, streams));
                    let first = Time::ZERO + connections.begin();
                    let demand = Demand::PackMime { connections, count: 0 };
                    add(number, client_side(traffic.direction, number, false), first, demand);
                }
            }
            Workload::Bulk(bulk) => {
                for number in 0..bulk.flows {
                    let mut stream = stream("flow", number);
                    let first = Time::from_secs_f64(bulk.start.draw(&mut stream));
                    let rtt = rtt_of(&traffic.rtt, number, bulk.flows, &mut stream);
                    let bytes = bulk.size.as_ref().map(|size| (size.draw(&mut stream) as u64).clamp(1, MOST_BYTES));
                    let demand = Demand::Bulk { bytes, rtt };
                    add(number, client_side(traffic.direction, number, true), first, demand);
                }
            }
            Workload::Tmix(tmix) => {
                let end = Time::ZERO + scenario.duration;
                let starts = tmix.starts(scenario.seed, block, end);
                if let Some(first) = starts.first() {
                    add(0, client_side(traffic.direction, 0, false), first.at, Demand::Tmix { starts, next: 0 });
                }
            }
            Workload::Poisson(poisson) => {
                let processes = if traffic.direction == Direction::Both { 2 } else { 1 };
                let gap = Span::from_secs_f64(f64::from(processes) / poisson.arrivals_per_s);
                for number in 0..processes {
                    let mut flows = PoissonFlows::new(stream("arrivals", number), gap, poisson.size.clone());
                    let next = flows.next_flow();
                    let demand = Demand::Poisson { flows, next, count: 0 };
                    // Who asks for nothing sends.
                    let client = client_side(traffic.direction, number, poisson.request_bytes == 0);
                    add(number, client, Time::ZERO + next.gap, demand);
                }
            }
            Workload::Cbr(spec) => {
                let rate = Rate::from_bps((spec.rate.bps() / u64::from(spec.flows)).max(1));
                for number in 0..spec.flows {
                    let mut stream = stream("source", number);
                    let start = Time::from_secs_f64(spec.start.draw(&mut stream));
                    let datagrams = Datagrams::cbr(Cbr::new(rate, spec.packet), &mut stream);
                    let delay = rtt_of(&traffic.rtt, number, spec.flows, &mut stream) / 2;
                    if let Some((first, demand)) = udp(datagrams, start, delay) {
                        add(number, client_side(traffic.direction, number, true), first, demand);
                    }
                }
            }
            Workload::Udp(spec) => {
                let datagrams = datagrams(spec);
                for number in 0..spec.flows {
                    let mut stream = stream("source", number);
                    let start = Time::from_secs_f64(spec.start.draw(&mut stream));
                    let delay = rtt_of(&traffic.rtt, number, spec.flows, &mut stream) / 2;
                    if let Some((first, demand)) = udp(datagrams(stream), start, delay) {
                        add(number, client_side(traffic.direction, number, true), first, demand);
                    }
                }
            }
            Workload::Replay(demands) => {
                let replay = Replay::new(demands);
                let first = replay.next_wake(demands).unwrap_or(Time::NEVER);
                add(0, client_side(traffic.direction, 0, false), first, Demand::Replay(replay));
            }
        }
    }
    (sources, lanes as usize)
}

//! Connections: two endpoints, the path between them, and what is asked over it.

use crate::parking::Parking;
use crate::tmix::Playing;
use base::{FlowKey, Pack, Packer, Span, Time, Unpacker, fetch, packed};
use net::Step;
use scenario::Scenario;
use session::{Exchanges, Opening, Owner, Transfer};
use tcp::Endpoint;

/// What the applications at the ends of a connection do.
#[derive(Clone, Debug)]
pub enum Application {
    /// Requests and responses: of a source of web traffic or of a recording, or one of a random arrival.
    Exchanges {
        /// Whom they are for; `None` for a random arrival's.
        owner: Option<Owner>,
        /// How far they are.
        exchanges: Exchanges,
    },
    /// Data one way, from the side that opened it.
    Transfer(Transfer),
    /// A connection vector.
    Vector(Box<Playing>),
}

/// Only a connection that plays a vector is parked.
impl Pack for Application {
    fn pack(&self, to: &mut Packer) {
        match self {
            Self::Vector(playing) => playing.pack(to),
            Self::Exchanges { .. } | Self::Transfer(_) => unreachable!("only vectors tell how long they pause"),
        }
    }

    fn unpack(from: &mut Unpacker<'_>) -> Self {
        Self::Vector(Pack::unpack(from))
    }

    fn restore(&mut self, from: &mut Unpacker<'_>) {
        match self {
            Self::Vector(playing) => playing.restore(from),
            other => *other = Self::unpack(from),
        }
    }
}

/// A connection and its path.
#[derive(Debug)]
pub struct Connection {
    /// The left and the right end.
    pub ends: [Endpoint; 2],
    /// The wake-ups of each end that are pending.
    pub wakes: [Wakes; 2],
    /// What the connection sends and receives over its access links.
    pub path: Path,
    /// Packets of it that are on their way: only when there are none can its place be used again.
    pub in_flight: u32,
    /// The side that opened it.
    pub client: u8,
    /// Block of traffic.
    pub block: u16,
    /// Whether it ended or was given up; it then only waits for its last packets.
    pub is_over: bool,
    /// Whether it is listed as reusable.
    pub is_free: bool,
    /// Number within the block of the source, flow or arrival that it is of, as results have it.
    pub number: u32,
    /// What its ends do.
    pub application: Application,
}

packed!(Connection { ends, wakes, path, in_flight, client, block, is_over, is_free, number, application });

impl Connection {
    /// Which end is on `side`: [`session::INITIATOR`] opened the connection.
    #[inline]
    pub fn who(&self, side: usize) -> usize {
        usize::from(side != self.client as usize)
    }

    /// Whether an exchange or a transfer is under way.
    pub fn is_under_way(&self) -> bool {
        match &self.application {
            Application::Exchanges { exchanges, .. } => exchanges.under_way().is_some(),
            Application::Transfer(transfer) => !transfer.is_complete(),
            Application::Vector(_) => false,
        }
    }

    /// Whether nothing happens to it from `now` on for as long as `pause`.
    pub fn pauses(&self, pause: Span, now: Time) -> bool {
        let Application::Vector(playing) = &self.application else { return false };
        let due = playing.player.next_due();
        let is_quiet = self.in_flight == 0 && !self.is_over && self.wakes.iter().all(|wakes| !wakes.first.is_set());
        due.is_set() && due.since(now) >= pause && is_quiet && self.ends.iter().all(Endpoint::is_idle)
    }

    /// When a wake-up of `end` has to be asked for, if no pending one serves as well. It is then taken as asked for.
    #[inline(always)]
    pub fn asks(&mut self, end: usize) -> Option<Time> {
        let due = self.ends[end].next_wake();
        self.wakes[end].ask(due).then_some(due)
    }

    /// How much `end` will have received when its application has a turn again; 0 where it may have one at any time.
    #[inline]
    pub fn heeds(&self, end: usize) -> u64 {
        let who = self.who(end);
        match &self.application {
            Application::Exchanges { exchanges, .. } => exchanges.heeds(who),
            Application::Transfer(transfer) => transfer.heeds(who),
            Application::Vector(_) => 0,
        }
    }
}

/// The wake-ups of an end that are pending. An end that paces, or delays acknowledgements, asks again and again for an
/// earlier one than that of its retransmission timer, which is then not asked for anew.
#[derive(Clone, Copy, Debug)]
pub struct Wakes {
    /// When the first of them fires; [`Time::NEVER`] if none is pending.
    first: Time,
    /// When the one fires that was the first until that was asked for, if one was.
    second: Time,
}

impl Default for Wakes {
    fn default() -> Self {
        Self { first: Time::NEVER, second: Time::NEVER }
    }
}

impl Wakes {
    /// Whether one has to be asked for so that the end is woken at `due`, or earlier; it is then taken as asked for.
    #[inline]
    pub fn ask(&mut self, due: Time) -> bool {
        let asks = due < self.first;
        if asks {
            *self = Self { first: due, second: self.first };
        }
        asks
    }

    /// One fires `now`, perhaps one of an end that was here before.
    #[inline]
    pub fn fire(&mut self, now: Time) {
        if self.first == now {
            *self = Self { first: self.second, second: Time::NEVER };
        }
    }
}

packed!(Wakes { first, second });

/// The path of a connection, but for the links, and what a router reads in its packets.
#[derive(Clone, Copy, Debug)]
pub struct Path {
    /// How a router knows it.
    pub flow: FlowKey,
    /// The codepoint of its packets, both ways.
    pub dscp: u8,
    /// The hosts at its ends: left, right.
    pub hosts: [u32; 2],
    /// The first step of its packets, by the side that sends.
    pub steps: [Step; 2],
    /// Its delay and its access links; those on which it receives only where packets pile up ([`net::Receivers`]).
    pub links: net::Path,
}

packed!(Path { flow, dscp, hosts, steps, links });

/// So many connections, of 1.4 kB each while they are awake, take twice a second-level cache of 1 MB; where they fit
/// in, asking costs more than it gains.
const MANY: usize = 1500;

/// All connections, by place.
#[derive(Default)]
pub struct Connections {
    /// Those to which something may happen at any time; the others are parked. Eight places share a cache line.
    awake: Vec<Option<Box<Connection>>>,
    free: Vec<u32>,
    opened: u64,
    /// What parks them.
    pub parking: Parking,
}

impl Connections {
    /// Makes a connection of `scenario` whose packets begin with these `steps`, and which results know by `row`: in the
    /// place of one that is over, if there is one.
    pub fn open(
        &mut self,
        opening: &Opening,
        row: u32,
        application: Application,
        steps: [Step; 2],
        scenario: &Scenario,
    ) -> u32 {
        self.opened += 1;
        assert!(self.opened < 1 << 48, "packets tell so many connections apart");
        let &Opening { block, number, client, rtt } = opening;
        let traffic = &scenario.traffic[usize::from(block)];
        let config = &traffic.tcp;
        let path = Path {
            flow: FlowKey(self.opened),
            dscp: traffic.dscp,
            hosts: session::hosts(scenario, block, number, client),
            steps,
            links: net::Path::new(traffic.route.delay(rtt), traffic.route.delay_at, client as usize, Time::ZERO),
        };
        let place = self.free.pop().unwrap_or_else(|| {
            let fresh = || Connection {
                ends: [Endpoint::new(config), Endpoint::new(config)],
                wakes: [Wakes::default(); 2],
                path,
                in_flight: 0,
                client,
                block,
                is_over: true,
                is_free: true,
                number: row,
                application: Application::Transfer(Transfer::new(None, Time::ZERO)),
            };
            self.awake.push(Some(self.parking.memory().unwrap_or_else(|| Box::new(fresh()))));
            self.free.reserve(self.awake.len());
            self.awake.len() as u32 - 1
        });
        let connection = self.get(place);
        connection.ends[0].reset(config);
        connection.ends[1].reset(config);
        connection.wakes = [Wakes::default(); 2];
        connection.path = path;
        connection.client = client;
        connection.block = block;
        connection.number = row;
        connection.application = application;
        (connection.is_over, connection.is_free) = (false, false);
        place
    }

    /// The connection at `place`, which is parked no longer.
    #[inline]
    pub fn get(&mut self, place: u32) -> &mut Connection {
        self.awake[place as usize].get_or_insert_with(|| self.parking.wake(place))
    }

    /// Parks the connection at `place` if it pauses from `now` on.
    pub fn park(&mut self, place: u32, now: Time) {
        let pauses = |connection: &mut Box<Connection>| connection.pauses(self.parking.pause, now);
        if let Some(connection) = self.awake[place as usize].take_if(pauses) {
            self.parking.park(connection, place);
        }
    }

    /// Whether there are more of them than a cache holds beside all else.
    #[inline]
    pub fn are_many(&self) -> bool {
        self.awake.len() >= MANY
    }

    /// Asks for an end of the connection at `place`, and for what its two ends have in common.
    #[inline(always)]
    pub fn fetch(&self, place: u32, end: usize) {
        match &self.awake[place as usize] {
            Some(connection) => {
                fetch(&connection.ends[end]);
                fetch(&connection.application);
                fetch(&connection.path);
            }
            None => self.parking.fetch(place),
        }
    }

    /// Asks for what an end of the connection at `place` points to; the end itself is there already.
    #[inline(always)]
    pub fn fetch_records(&self, place: u32, end: usize) {
        if let Some(connection) = &self.awake[place as usize] {
            connection.ends[end].fetch_records();
        }
    }

    /// The path of the connection at `place`, of which a packet is on its way.
    pub fn path(&self, place: u32) -> &Path {
        let awake = self.awake[place as usize].as_ref();
        &awake.expect("what has packets on their way is not parked").path
    }

    /// Lists `place` as reusable if its connection is over and its last packet gone.
    #[inline]
    pub fn release(&mut self, place: u32) {
        let connection = self.get(place);
        if connection.is_over && connection.in_flight == 0 && !connection.is_free {
            connection.is_free = true;
            self.free.push(place);
        }
    }

    /// Shows all that are not over.
    pub fn show_live(&self, mut look: impl FnMut(&Connection)) {
        for (place, connection) in (0..).zip(&self.awake) {
            match connection {
                Some(connection) if connection.is_over => {}
                Some(connection) => look(connection),
                None => look(&self.parking.copy(place)),
            }
        }
    }

    /// Packets on their way, of connections that are over too.
    pub fn in_flight(&self) -> usize {
        self.awake.iter().flatten().map(|connection| connection.in_flight as usize).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Span;

    #[test]
    fn a_wake_up_behind_an_earlier_one_is_not_asked_for_again() {
        let at = Time::from_ns;
        let mut wakes = Wakes::default();
        assert!(wakes.ask(at(200)), "the retransmission timer");
        assert!(!wakes.ask(at(210)), "put off: the pending one serves as well");
        assert!(wakes.ask(at(10)), "a departure");
        wakes.fire(at(10));
        assert!(!wakes.ask(at(205)), "the timer's is still pending");
        // One of an end that had this place before changes nothing.
        wakes.fire(at(50));
        assert!(!wakes.ask(at(205)));
        wakes.fire(at(200));
        assert!(wakes.ask(at(205)));
    }

    #[test]
    fn of_two_that_are_pending_the_third_is_forgotten_and_asked_for_again() {
        let at = Time::from_ns;
        let mut wakes = Wakes::default();
        assert!([300, 200, 100].into_iter().all(|due| wakes.ask(at(due))));
        wakes.fire(at(100));
        wakes.fire(at(200));
        assert!(wakes.ask(at(300)), "woken once more than needed, never too late");
    }

    #[test]
    #[should_panic(expected = "packets tell so many connections apart")]
    fn a_connection_whose_number_does_not_fit_into_packets_is_caught() {
        let text = "[[traffic]]\nkind = \"bulk\"\n";
        let read = |name: &str| Err(format!("{name}: there are no files here"));
        let resolved = scenario::resolve(text, "connection.toml", &[], &read).expect("it makes sense");
        let scenario = resolved.scenario().expect("it has no load to calibrate");
        let mut connections = Connections { opened: (1 << 48) - 1, ..Connections::default() };
        let opening = Opening { block: 0, number: 0, client: 0, rtt: Span::ZERO };
        let transfer = Application::Transfer(Transfer::new(None, Time::ZERO));
        connections.open(&opening, 0, transfer, [Step::from_number(0); 2], scenario);
    }
}

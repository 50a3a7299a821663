//! Connections: two endpoints, the path between them, and what is asked over it.

use base::{FlowKey, Span, Time};
use net::Step;
use scenario::Scenario;
use session::{Opening, Owner};
use tcp::Endpoint;

/// What a connection is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Purpose {
    /// Exchanges of a source of web traffic or of a recording.
    Web(Owner),
    /// One exchange of a random arrival.
    Single {
        /// Number of the arrival within its block.
        number: u32,
    },
    /// A connection vector.
    Tmix {
        /// Where what plays it is.
        player: u32,
    },
    /// Data one way, from the side that opened it.
    Bulk {
        /// Number of the flow within its block.
        number: u32,
    },
}

/// The exchange under way. `None` between exchanges.
#[derive(Clone, Copy, Debug)]
pub struct Asked {
    /// When it was asked for.
    pub at: Time,
    /// When the connection was open.
    pub open_at: Time,
    /// Bytes of the request.
    pub request_bytes: u32,
    /// Bytes of the response.
    pub response_bytes: u64,
    /// What the server will have received when it knows the request.
    pub request_end: u64,
    /// What the client will have received when it has the response.
    pub response_end: u64,
    /// The request was written.
    pub is_sent: bool,
    /// The response was written.
    pub is_answered: bool,
    /// What the server takes to answer a request once it knows it.
    pub server_delay: Span,
    /// When it will have taken that.
    pub answer_at: Time,
    /// The server closes after the response.
    pub is_last: bool,
}

/// A connection and its path.
#[derive(Debug)]
pub struct Connection {
    /// The left and the right end.
    pub ends: [Endpoint; 2],
    /// When each end's pending wake-up fires; [`Time::NEVER`] if there is none.
    pub wake_at: [Time; 2],
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
    /// What it is for.
    pub purpose: Purpose,
    /// The exchange under way.
    pub asked: Option<Asked>,
}

impl Connection {
    /// Which end is on `side`: 0 opened the connection, 1 is the other.
    #[inline]
    pub fn who(&self, side: usize) -> usize {
        usize::from(side != self.client as usize)
    }

    /// How much `end` will have received when its application has a turn again; 0 where it may have one at any time.
    #[inline]
    pub fn heeds(&self, end: usize) -> u64 {
        let is_client = end == self.client as usize;
        match (&self.asked, self.purpose) {
            (_, Purpose::Tmix { .. }) => 0,
            (None, _) => u64::MAX,
            (Some(asked), _) if is_client && !asked.is_sent => 0,
            (Some(asked), Purpose::Bulk { .. }) => {
                if is_client {
                    u64::MAX
                } else {
                    asked.response_end
                }
            }
            (Some(asked), _) if is_client => asked.response_end,
            (Some(asked), _) if asked.is_answered => u64::MAX,
            (Some(asked), _) => asked.request_end,
        }
    }
}

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

/// All connections, by place.
#[derive(Default)]
pub struct Connections {
    slots: Vec<Connection>,
    free: Vec<u32>,
    opened: u64,
}

impl Connections {
    /// Makes a connection of `scenario` whose packets begin with these `steps`: in the place of one that is over, if
    /// there is one.
    pub fn open(&mut self, opening: &Opening, purpose: Purpose, steps: [Step; 2], scenario: &Scenario) -> u32 {
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
        if let Some(place) = self.free.pop() {
            let slot = &mut self.slots[place as usize];
            slot.ends[0].reset(config);
            slot.ends[1].reset(config);
            slot.wake_at = [Time::NEVER; 2];
            slot.path = path;
            slot.client = client;
            slot.block = block;
            slot.purpose = purpose;
            slot.asked = None;
            (slot.is_over, slot.is_free) = (false, false);
            place
        } else {
            self.slots.push(Connection {
                ends: [Endpoint::new(config), Endpoint::new(config)],
                wake_at: [Time::NEVER; 2],
                path,
                in_flight: 0,
                client,
                block,
                is_over: false,
                is_free: false,
                purpose,
                asked: None,
            });
            self.free.reserve(self.slots.len());
            self.slots.len() as u32 - 1
        }
    }

    /// The connection at `place`.
    #[inline]
    pub fn get(&mut self, place: u32) -> &mut Connection {
        &mut self.slots[place as usize]
    }

    /// The path of the connection at `place`.
    pub fn path(&self, place: u32) -> &Path {
        &self.slots[place as usize].path
    }

    /// Lists `place` as reusable if its connection is over and its last packet gone.
    #[inline]
    pub fn release(&mut self, place: u32) {
        let slot = &mut self.slots[place as usize];
        if slot.is_over && slot.in_flight == 0 && !slot.is_free {
            slot.is_free = true;
            self.free.push(place);
        }
    }

    /// All that are not over.
    pub fn live(&self) -> impl Iterator<Item = &Connection> {
        self.slots.iter().filter(|slot| !slot.is_over)
    }

    /// Packets on their way, of connections that are over too.
    pub fn in_flight(&self) -> usize {
        self.slots.iter().map(|slot| slot.in_flight as usize).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[should_panic(expected = "packets tell so many connections apart")]
    fn a_connection_whose_number_does_not_fit_into_packets_is_caught() {
        let text = "[[traffic]]\nkind = \"bulk\"\n";
        let read = |name: &str| Err(format!("{name}: there are no files here"));
        let resolved = scenario::resolve(text, "connection.toml", &[], &read).expect("it makes sense");
        let scenario = resolved.scenario().expect("it has no load to calibrate");
        let mut connections = Connections { opened: (1 << 48) - 1, ..Connections::default() };
        let opening = Opening { block: 0, number: 0, client: 0, rtt: Span::ZERO };
        connections.open(&opening, Purpose::Bulk { number: 0 }, [Step::from_number(0); 2], scenario);
    }
}

//! [`Around`] is everything around the links of the router: the bytes of packets, their flows, and the packets on their
//! way.

use crate::capture::Captures;
use crate::flows::Flows;
use crate::frame::Frame;
use crate::pool::Pool;
use aqm::{Delivery, Framing, Packet};
use base::{Rate, Span, Time};
use net::{Routes, Towards, Underway};
use record::Waits;

/// Everything that the router keeps beside its links.
pub struct Around {
    pub pool: Pool,
    pub flows: Flows,
    /// The routes over the links.
    pub routes: Routes,
    /// Rate of the access links.
    pub access: Rate,
    /// Packets on their way to links, and from there to their hosts.
    pub underway: Underway<Moving>,
    /// The wire behind each port.
    pub ports: Vec<Wire>,
    pub sent: [Sent; 2],
    /// How many packets of each side have left a link for another one.
    pub onward: [u64; 2],
    /// How long packets waited at each step; empty where there is one link.
    pub waits: Vec<Waits>,
    /// Whether losses and marks are written down.
    pub writes_drops: bool,
    /// The captures of packets at ports.
    pub captures: Captures,
}

/// The wire behind a port.
#[derive(Clone, Copy, Debug)]
pub struct Wire {
    /// Its rate; if it changes, that at the start.
    pub rate: Rate,
    /// What packets take of it.
    pub framing: Framing,
    /// Whether a packet's size tells how long it takes to be sent: this is the only link, and its rate is constant.
    pub is_even: bool,
}

/// A summary of what the links of one direction have sent to hosts.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sent {
    /// When the last packet left.
    pub at: Time,
    /// How long it had waited.
    pub waited: Span,
    /// IP bytes since the start.
    pub bytes: u64,
}

/// A packet on its way.
#[derive(Clone, Copy, Debug)]
pub struct Moving {
    pub frame: Frame,
    /// For a packet that goes to its host, [`Leaving::behind`](crate::network::Leaving::behind) in nanoseconds.
    pub behind_ns: u32,
}

impl Around {
    /// Sends a packet that has left a link on, to the next link or to its host. It is behind the link's delay when it
    /// `arrives`.
    pub fn go_on(&mut self, delivery: &Delivery<Frame>, arrives: Time) {
        let frame = delivery.packet;
        let Some(step) = self.routes.after(frame.step) else {
            let behind_ns = self.sends(&frame, delivery);
            return self.send_to_host(frame, arrives, behind_ns);
        };
        self.onward[usize::from(frame.side)] += 1;
        let moving = Moving { frame: Frame { step, ..frame }, behind_ns: 0 };
        self.underway.push(arrives, Towards::Link(self.routes.port(step)), moving);
    }

    /// Sends a packet to its host, which is behind its last link at `at`.
    pub fn send_to_host(&mut self, frame: Frame, at: Time, behind_ns: u32) {
        let takes = self.access.time_for(u64::from(frame.size()));
        let path = &mut self.flows.flow(frame.flow, false, at).path;
        let received = path.receive(1 - usize::from(frame.side), takes, at);
        self.underway.push(received, Towards::Host, Moving { frame, behind_ns });
    }

    /// Notes that the last link of a packet has sent it. Returns how long that took, ns, if it followed right behind
    /// another packet; 0 if there was a gap, or if this cannot be told.
    #[inline]
    fn sends(&mut self, frame: &Frame, delivery: &Delivery<Frame>) -> u32 {
        let Wire { rate, framing, is_even } = self.ports[self.routes.port(frame.step).index()];
        let (size, at, waited) = (frame.size(), delivery.at, delivery.waited);
        let sent = &mut self.sent[usize::from(frame.side)];
        let since = at.since(sent.at);
        // The serializer carries what rounding leaves over: a nanosecond at most.
        let follows = is_even && since <= rate.time_for(framing.wire(size).into()) + Span::from_ns(1);
        *sent = Sent { at, waited, bytes: sent.bytes + u64::from(size) };
        if follows { u32::try_from(since.ns()).unwrap_or(0) } else { 0 }
    }
}

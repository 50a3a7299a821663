//! The router: reads packets from two devices, lets the network do what is due, hands over what has arrived, waits.
//!
//! One thread, one loop. It reads until there is nothing more to read, a batch is full, or something is due: a flood
//! from one side delays the hand-over of the other's packets by a read or two. A packet's time of arrival is that at
//! which it is read.

use crate::clock::Clock;
use crate::lateness::{Budget, Lateness};
use crate::network::Network;
use crate::report::{Direction, Report};
use crate::tun::Tun;
use base::{Span, Time};
use scenario::Scenario;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

/// Most packets read from one side in a row.
const BATCH: usize = 64;
/// Longest wait: how soon the loop sees that it shall stop.
const LOOKS_UP: Span = Span::from_ms(100);

/// The network of a scenario between two devices.
pub struct Router<C> {
    network: Network,
    /// The hosts' interfaces: left, right.
    ports: [Tun; 2],
    clock: C,
    lateness: Lateness,
    written: [u64; 2],
    untaken: [u64; 2],
}

impl<C: Clock> Router<C> {
    /// A router that has carried nothing.
    pub fn new(scenario: &Scenario, left: Tun, right: Tun, clock: C) -> Self {
        Self {
            network: Network::new(scenario),
            ports: [left, right],
            clock,
            lateness: Lateness::new(),
            written: [0; 2],
            untaken: [0; 2],
        }
    }

    /// Carries packets until the clock says `until`, or somebody wants it to `stop`.
    ///
    /// # Errors
    /// When a device goes, or the system cannot wait. What was counted until then is in [`Router::report`].
    pub fn run(&mut self, until: Time, stop: &AtomicBool) -> io::Result<()> {
        let mut began = self.clock.now();
        while began < until && !stop.load(Ordering::Relaxed) {
            self.read(0)?;
            self.read(1)?;
            self.hand_over()?;
            let due = self.network.next_event().min(until).min(began + LOOKS_UP);
            let worked = self.clock.now();
            self.lateness.away(worked.since(began));
            self.clock.wait(due, &self.ports)?;
            began = self.clock.now();
            // Where a wait ends with an instant rather than a packet, what it is over by was slept too long.
            self.lateness.away(began.since(due.max(worked)));
        }
        Ok(())
    }

    /// Reads what `side` has sent.
    fn read(&mut self, side: usize) -> io::Result<()> {
        for _ in 0..BATCH {
            let Some(place) = self.network.take() else {
                // Read all the same: what waits outside would come later than it was sent.
                if self.ports[side].read(&mut [0])?.is_none() {
                    return Ok(());
                }
                self.network.no_room(side);
                continue;
            };
            let read = self.ports[side].read(self.network.buffer(place));
            let Ok(Some(size)) = read else {
                self.network.untake(place);
                return read.map(drop);
            };
            let now = self.clock.now();
            // Malformed packets are counted by the network, and nobody's concern here.
            let _ = self.network.arrive(place, size, side, now);
            if self.network.next_event() <= now {
                break;
            }
        }
        Ok(())
    }

    /// Hands over what has arrived by now.
    fn hand_over(&mut self) -> io::Result<()> {
        let mut now = self.clock.now();
        while let Some(leaving) = self.network.advance(now) {
            now = self.clock.now();
            self.lateness.packet(now.since(leaving.at));
            let taken = self.ports[leaving.side].write(self.network.bytes(&leaving));
            self.network.give_back(leaving);
            let count = if matches!(taken, Ok(true)) { &mut self.written } else { &mut self.untaken };
            count[1 - leaving.side] += 1;
            taken?;
        }
        Ok(())
    }

    /// What happened so far. Asserts that packets were conserved.
    pub fn report(&self) -> Report {
        let ended = self.clock.now();
        self.network.assert_conserved();
        let direction = |side: usize| {
            let direction = Direction::new(&self.network, side, self.written[side], self.untaken[side], ended);
            direction.assert_conserved();
            direction
        };
        Report {
            clock: C::NAME,
            ended,
            directions: [direction(0), direction(1)],
            flows: self.network.flows(),
            lateness: self.lateness.clone(),
            budget: Budget::default(),
        }
    }
}

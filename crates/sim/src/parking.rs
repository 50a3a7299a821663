//! A connection that pauses is parked: packed into some two hundred bytes, where it has 1.4 kB while it is awake.
//!
//! It is parked when a wake-up finds that nothing is outstanding, no timer runs, no packet is on its way, and its
//! application has nothing to do for ten seconds or more. Whatever calls it next wakes it. Parking loses nothing
//! ([`base::Pack`]): debug builds compare what is brought back with what was parked.

use crate::connection::Connection;
use base::{Pack, Packer, Span, Unpacker, Whole, fetch};
use std::collections::BTreeMap;

/// Connections that pause for less are not parked: to pack one and to bring it back takes as long as some packets do.
const PAUSE: Span = Span::from_secs(10);

/// What parks and wakes connections.
pub struct Parking {
    /// A pause as long as this is worth it.
    pub pause: Span,
    packer: Packer,
    /// What is packed, by place; empty where nothing is parked.
    packed: Vec<Box<[u8]>>,
    /// What few connections have that does not pack, by place.
    whole: BTreeMap<u32, Vec<Whole>>,
    /// The memory of connections that were parked, for those that wake.
    #[expect(clippy::vec_box, reason = "the memory goes from place to place as it is, and is not copied")]
    kept: Vec<Box<Connection>>,
}

impl Default for Parking {
    fn default() -> Self {
        Self { pause: PAUSE, packer: Packer::default(), packed: Vec::new(), whole: BTreeMap::new(), kept: Vec::new() }
    }
}

impl Parking {
    /// Parks a connection that is at `place`.
    #[cold]
    #[inline(never)]
    pub fn park(&mut self, mut connection: Box<Connection>, place: u32) {
        connection.ends.iter_mut().for_each(tcp::Endpoint::rest);
        connection.pack(&mut self.packer);
        let (bytes, whole) = self.packer.finish();
        if !whole.is_empty() {
            self.whole.insert(place, whole);
        }
        if self.packed.len() <= place as usize {
            self.packed.resize_with(place as usize + 1, Box::default);
        }
        self.packed[place as usize] = bytes;
        if cfg!(debug_assertions) {
            let copy = self.copy(place);
            assert_eq!(format!("{copy:?}"), format!("{connection:?}"), "parking loses nothing");
        }
        self.kept.push(connection);
    }

    /// The memory of a connection that was parked, if there is any; nothing is on its way to that.
    pub fn memory(&mut self) -> Option<Box<Connection>> {
        self.kept.pop()
    }

    /// Wakes the connection that is parked at `place`.
    #[cold]
    #[inline(never)]
    pub fn wake(&mut self, place: u32) -> Box<Connection> {
        let bytes = std::mem::take(&mut self.packed[place as usize]);
        let whole = self.whole.remove(&place).unwrap_or_default();
        let from = &mut Unpacker::new(&bytes, &whole);
        match self.memory() {
            Some(mut memory) => {
                memory.restore(from);
                memory
            }
            None => Box::new(Connection::unpack(from)),
        }
    }

    /// A copy of the connection that is parked at `place`.
    pub fn copy(&self, place: u32) -> Connection {
        let whole = self.whole.get(&place).map_or(&[][..], |whole| whole);
        Connection::unpack(&mut Unpacker::new(&self.packed[place as usize], whole))
    }

    /// Asks for the connection that is parked at `place`.
    #[inline]
    pub fn fetch(&self, place: u32) {
        fetch(&*self.packed[place as usize]);
    }
}

#[cfg(test)]
mod tests {
    use crate::simulation::Simulation;
    use base::{Span, Stream, Time};
    use record::{DropRow, ExchangeRow, QueueRow, Sink};
    use std::fmt::Write;

    /// Exchanges as they were completed.
    #[derive(Default)]
    struct Exchanges(String);

    impl Sink for Exchanges {
        fn exchange(&mut self, row: &ExchangeRow) {
            writeln!(self.0, "{row:?}").expect("to a string");
        }
        fn queue(&mut self, _row: &QueueRow) {}
        fn drop(&mut self, _row: &DropRow) {}
    }

    /// Connections that say something now and then, some of them at one end without waiting for the other.
    fn vectors() -> String {
        let mut stream = Stream::named(4, "parking");
        let mut text = String::new();
        for number in 0..60_u64 {
            let mut wait = || 100_000 + stream.below(6_000_000);
            let (pauses, size) = ([wait(), wait(), wait()], 1 + stream.below(60_000));
            let (loss, start) = (if number % 3 == 0 { 0.02 } else { 0.0 }, number * 100_000);
            let (is_concurrent, rtt) = (number % 5 == 0, 5_000 + stream.below(100_000));
            let head = format!("w 65535 65535\nr {rtt}\nl {loss} {loss}\n");
            if is_concurrent {
                writeln!(text, "CONC {start} 2 1\n{head}c> 500\nt> {}\nc> 40\nt> 1000", pauses[0])
                    .expect("to a string");
                writeln!(text, "c< {size}\nt< {}", pauses[1]).expect("to a string");
            } else {
                writeln!(text, "SEQ {start} 3\n{head}").expect("to a string");
                pauses.iter().for_each(|pause| {
                    writeln!(text, "> 300\nt 1000\n< {size}\nt {pause}").expect("to a string");
                });
            }
        }
        text
    }

    /// What comes of a run whose connections are parked for pauses as long as `pause`, and whether any was.
    fn run(hosts: &str, pause: Span) -> (String, bool) {
        let text = format!(
            "duration = '30s'\nwarmup = '0s'\n[link]\nrate = '5mbit'\n[link.qdisc]\nkind = 'dualpi2'\nlimit = '40p'\n\
             [tcp]\n{hosts}\n[[traffic]]\nkind = 'tmix'\nvectors = 'set.cvec'\n"
        );
        let resolved = scenario::resolve(&text, "parking.toml", &[], &|_| Ok(vectors())).expect("a sound scenario");
        let mut simulation = Simulation::new(resolved.scenario().expect("nothing to calibrate"));
        simulation.connections.parking.pause = pause;
        simulation.start_measuring();
        let (mut exchanges, mut was_parked) = (Exchanges::default(), false);
        // Totals are asked for on the way, when connections are parked.
        for second in 1..=30 {
            simulation.run_until(Time::ZERO + Span::from_secs(second), &mut exchanges, &mut |_| true);
            writeln!(exchanges.0, "{:?} {}", simulation.totals(), simulation.events()).expect("to a string");
            was_parked |= !simulation.connections.parking.kept.is_empty();
        }
        simulation.assert_conserved();
        (exchanges.0, was_parked)
    }

    #[test]
    fn a_run_comes_to_the_same_whether_connections_are_parked_or_not() {
        for hosts in [
            "stack = 'freebsd4'",
            "stack = 'ns2'",
            "stack = 'linux'",
            "stack = 'linux'\necn = 'on'\npacing = true",
            "stack = 'linux'\necn = 'accurate'\necn_option = true",
            "stack = 'linux'\nrepair = 'newreno'\ncc = 'cubic-rfc'\nhystart = 'plus'",
            "stack = 'linux'\ncc = 'dctcp'",
            "stack = 'linux'\ncc = 'prague'",
            "stack = 'linux'\ncc = 'prague-linux'",
            "stack = 'linux'\ncc = 'bbr'",
            "stack = 'linux'\ncc = 'bbr3'",
            "stack = 'linux'\ncc = 'ledbat'",
            "stack = 'freebsd4'\nrepair = 'sack'\necn = 'plus'",
        ] {
            let (never, none) = run(hosts, Span::from_ns(u64::MAX));
            let exchanges = never.matches("ExchangeRow").count();
            assert!(!none && exchanges > 100, "{hosts}: {exchanges} exchanges");
            for pause in [Span::ZERO, Span::from_secs(1)] {
                let (parked, some) = run(hosts, pause);
                assert!(some, "{hosts}");
                assert_eq!(parked, never, "{hosts}");
            }
        }
    }
}

//! What blocks of unresponsive packets have in common.

use super::{Key, Row, Takes};
use crate::blocks::Surroundings;
use crate::demand::{Site, Source};
use crate::error::Error;
use crate::scenario::Direction;
use crate::section::Section;
use crate::units;
use crate::voice::{Asks, Turn, Voice};
use base::{Distribution, Rate, Span, Stream, Time};
use traffic::Datagram;

/// What the rows of unresponsive packets have in common.
pub(crate) const UNRESPONSIVE: Row = Row {
    name: "",
    called: &[],
    speaks_tcp: false,
    is_recorded: false,
    direction: (Direction::Forward, super::keys::OF_PACKETS),
    own: None,
    applications: &[],
    models: &[],
};

/// The rate of all sources of a block together.
pub(crate) const RATE: Key =
    Key { name: "rate", takes: Takes::Rate, default: super::keys::REQUIRED, doc: "rate of all together, IP packets" };

/// Reads [`RATE`] of `flows` sources.
pub(crate) fn rate(block: &Section<'_>, around: &Surroundings<'_, '_>, flows: u32) -> Result<Rate, Error> {
    block.require(RATE.name, "a rate such as 1mbit", |entry| {
        let rate = entry.rate()?;
        let most = Rate::from_bps(around.access_rate.bps().saturating_mul(u64::from(flows)));
        if rate > most {
            let most = units::write_rate(most);
            return Err(entry.expected(format!("at most {most}, what the access links of {flows} carry")));
        }
        if rate.bps() < u64::from(flows) {
            let least = units::write_rate(Rate::from_bps(flows.into()));
            return Err(entry.expected(format!("at least {least}, 1 b/s for each of {flows}")));
        }
        Ok(rate)
    })
}

/// The part of `rate` that flow `number` of `flows` has. All together have all of it: what whole bits a second leave
/// over is shared among the first of them.
pub(crate) fn share(rate: Rate, number: u32, flows: u32) -> Rate {
    let (each, over) = (rate.bps() / u64::from(flows), rate.bps() % u64::from(flows));
    Rate::from_bps(each + u64::from(u64::from(number) < over))
}

/// Packets one after the other.
pub(crate) trait Packets: Send {
    /// The next one; `None` after the last.
    fn next_datagram(&mut self) -> Option<Datagram>;
}

/// Adds `flows` sources that start at `start` seconds, each of which `packets` makes of its number and its random
/// stream.
pub(crate) fn sources<'s, P: Packets + 's>(
    site: &Site<'s>,
    (flows, start): (u32, &Distribution),
    out: &mut Vec<Source<'s>>,
    packets: impl Fn(u32, Stream) -> P,
) {
    for number in 0..flows {
        let mut stream = site.stream("source", number);
        let start = Time::from_secs_f64(start.draw(&mut stream));
        let delay = site.rtt_of(number, flows, &mut stream) / 2;
        out.extend(source(site, number, start, delay, packets(number, stream)));
    }
}

/// A source of packets that starts at `start`; `None` if it has none.
pub(crate) fn source<'s>(
    site: &Site<'s>,
    number: u32,
    start: Time,
    delay: Span,
    mut packets: impl Packets + 's,
) -> Option<Source<'s>> {
    let first = packets.next_datagram()?;
    let source = site.sending(number, start + first.gap, Sender { packets, bytes: first.bytes });
    Some(Source { delay: Some(delay), ..source })
}

struct Sender<P> {
    packets: P,
    /// The size of the one that is due.
    bytes: u32,
}

impl<P: Packets> Asks for Sender<P> {
    #[inline]
    fn turn(&mut self, _turn: Turn, voice: &mut Voice<'_>) {
        voice.datagram(self.bytes);
        if let Some(next) = self.packets.next_datagram() {
            self.bytes = next.bytes;
            // From when it was due: a late packet does not delay those after it.
            voice.wake(voice.at + next.gap);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_add_up_to_the_rate() {
        for (bps, flows) in [(1999, 1000), (1_000_000, 3), (1000, 1000), (7, 2), (100_000_000, 64)] {
            let shares: Vec<u64> = (0..flows).map(|number| share(Rate::from_bps(bps), number, flows).bps()).collect();
            assert_eq!(shares.iter().sum::<u64>(), bps);
            assert!(shares[0] - shares[shares.len() - 1] <= 1);
        }
    }
}

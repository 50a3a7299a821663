//! Packets as they were written down: each at its instant with its size, whatever becomes of it. What a video encoder,
//! a game or a capture sent, sent again (ns-2's `Application/Traffic/Trace`).

use crate::datagrams::Datagram;
use base::Span;
use std::sync::Arc;

/// A source that sends what is written down.
#[derive(Clone, Debug)]
pub struct PacketTrace {
    packets: Arc<[Datagram]>,
    next: usize,
}

impl PacketTrace {
    /// A source of `packets`, which sources share, from the first on.
    pub fn new(packets: Arc<[Datagram]>) -> Self {
        Self { packets, next: 0 }
    }

    /// The packets that are sent at these times since the start, which do not fall, of these sizes.
    pub fn packets(lines: impl IntoIterator<Item = (Span, u32)>) -> Arc<[Datagram]> {
        let mut before = Span::ZERO;
        let gap =
            |(at, bytes): (Span, u32)| Datagram { gap: at.saturating_sub(std::mem::replace(&mut before, at)), bytes };
        lines.into_iter().map(gap).collect()
    }

    /// The next packet; `None` after the last.
    pub fn next_datagram(&mut self) -> Option<Datagram> {
        let packet = self.packets.get(self.next).copied();
        self.next += 1;
        packet
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_sends_what_is_written_at_the_instants_written() {
        let written = [(5_000, 100), (5_000, 1_500), (12_345, 28)].map(|(ns, bytes)| (Span::from_ns(ns), bytes));
        let mut source = PacketTrace::new(PacketTrace::packets(written));
        let mut at = Span::ZERO;
        for (instant, bytes) in written {
            let packet = source.next_datagram().expect("three packets");
            at = at + packet.gap;
            assert_eq!((at, packet.bytes), (instant, bytes));
        }
        assert_eq!(source.next_datagram(), None);
        assert_eq!(source.next_datagram(), None);
    }
}

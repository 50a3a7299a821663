//! Packets as they were sent, what may become of them on the way, and how a story tells of them.

use super::CLIENT;
use base::{Ecn, Span, Time};
use std::fmt;
use tcp::{ByteCounts, Flags, SackBlocks, Segment};

/// What a packet is, as scripts tell them apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Syn,
    SynAck,
    /// Data sent for the first time; a FIN may ride on it.
    Data,
    /// A FIN alone, for the first time.
    Fin,
    /// Data or a FIN sent again.
    Resent,
    /// A pure acknowledgement.
    Ack,
}

/// What becomes of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    Pass,
    Lose,
    /// Marks it if it is ECN-capable, lets it pass otherwise.
    Mark,
    /// Arrives this much later than the others do.
    Late(Span),
    /// Its ECN field, or the bits AE, CWR and ECE, become so on the way.
    Field(Ecn),
    Bits(u32),
    /// Its AccECN option is stripped, or zeroed.
    NoOption,
    ZeroedOption,
}

/// The fate of data at a token bucket of so many segments that fills at so many a second.
pub fn policer(bucket: f64, rate: f64) -> impl FnMut(&Packet) -> Fate {
    let (mut tokens, mut last) = (bucket, Time::ZERO);
    move |packet| {
        if !matches!(packet.kind, Kind::Data | Kind::Resent) {
            return Fate::Pass;
        }
        tokens = (tokens + packet.at.since(last).secs_f64() * rate).min(bucket);
        last = packet.at;
        if tokens < 1.0 {
            return Fate::Lose;
        }
        tokens -= 1.0;
        Fate::Pass
    }
}

/// A packet as it was sent.
#[derive(Clone, Copy, Debug)]
pub struct Packet {
    pub at: Time,
    pub from: usize,
    pub kind: Kind,
    /// Which of its kind from this end, counted from 1.
    pub number: usize,
    pub segment: Segment,
    pub fate: Fate,
}

impl fmt::Display for Packet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Packet { at, from, kind, number, segment, fate } = self;
        write!(f, "{:>12.3} ms  {}", at.secs_f64() * 1e3, if *from == CLIENT { "client ->" } else { "<- server" })?;
        write!(f, "  {kind:?} {number}: {}..{}", segment.seq, segment.end())?;
        for (flag, name) in
            [(Flags::SYN, "SYN"), (Flags::FIN, "FIN"), (Flags::AE, "AE"), (Flags::CWR, "CWR"), (Flags::ECE, "ECE")]
        {
            if segment.flags.has(flag) {
                write!(f, " {name}")?;
            }
        }
        if segment.flags.has(Flags::ACK) {
            write!(f, " ack {} window {}", segment.ack, segment.window)?;
        }
        for (start, end) in segment.sacks.above(segment.ack) {
            write!(f, " sack {start}..{end}")?;
        }
        if segment.ecn != Ecn::NotEct {
            write!(f, " {:?}", segment.ecn)?;
        }
        if *fate == Fate::Pass { Ok(()) } else { write!(f, "  [{fate:?}]") }
    }
}

/// Strips the AccECN option of a segment, or zeroes its counters. Reports of what came twice are lost with it.
pub(super) fn spoil_option(segment: &mut Segment, zeroes: bool) {
    let Some(option) = segment.byte_counts() else { return };
    let mut sacks = SackBlocks::default();
    segment.sacks.above(segment.ack).for_each(|(start, end)| sacks.push(start - segment.ack, end - segment.ack));
    segment.sacks = sacks;
    segment.size -= option.option_bytes() as u16;
    if zeroes {
        segment.carry(&ByteCounts::new(option.order, [0; 3], option.counters().len()));
    }
}

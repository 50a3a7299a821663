//! This file reads what the kernel says of a discipline, by rtnetlink(7), in the form of `linux/pkt_sched.h`.
//!
//! These are the figures that `tc -s qdisc show` prints. One message asks for them and is answered at once, without a
//! program in between. The generic part (`struct gnet_stats_queue`) says how much was lost and what waits. Each
//! discipline's own structure says why: it may tell losses for want of room ([`Cause::TAIL`]) from those that the law
//! wanted ([`Cause::EARLY`]). If a discipline's structure is not known here, all its losses count as the law's.

use aqm::{Backlog, Cause, Gauges};

/// Causes of losses or marks, by [`Cause`].
pub type ByCause = [u64; Cause::ALL.len()];

/// The counts of a discipline since it was made.
#[derive(Clone, Copy, Debug, Default)]
pub struct Statistics {
    /// Packets lost.
    pub dropped: ByCause,
    /// Packets marked.
    pub marked: ByCause,
    /// What waits.
    pub backlog: Backlog,
    /// The law's state, where it shows it.
    pub gauges: Gauges,
}

/// RTM_GETQDISC, RTM_NEWQDISC.
const GET: u16 = 38;
const NEW: u16 = 36;
/// NLM_F_REQUEST | NLM_F_ECHO: the answer comes to the one who asked.
const FLAGS: u16 = 1 | 8;
/// `struct nlmsghdr`, `struct tcmsg`.
const HEADERS: usize = 16 + 20;

/// Asks for the discipline with this handle on the interface with this index.
pub fn request(interface: u32, handle: u32) -> [u8; HEADERS] {
    let mut message = [0; HEADERS];
    message[..4].copy_from_slice(&(HEADERS as u32).to_ne_bytes());
    message[4..6].copy_from_slice(&GET.to_ne_bytes());
    message[6..8].copy_from_slice(&FLAGS.to_ne_bytes());
    message[20..24].copy_from_slice(&interface.to_ne_bytes());
    message[24..28].copy_from_slice(&handle.to_ne_bytes());
    message
}

/// What the kernel answered; `None` if that is no description of a discipline.
pub fn answer(message: &[u8]) -> Option<Statistics> {
    let length = word(message, 0)? as usize;
    let message = message.get(..length).filter(|_| message.get(4..6) == Some(&NEW.to_ne_bytes()))?;
    let attributes = message.get(HEADERS..)?;
    // TCA_KIND, TCA_STATS2.
    let kind = attribute(attributes, 1)?.split(|&byte| byte == 0).next()?;
    let statistics = attribute(attributes, 7)?;
    // TCA_STATS_QUEUE, TCA_STATS_APP.
    let queue = attribute(statistics, 3)?;
    let own = attribute(statistics, 4).unwrap_or_default();
    let backlog = Backlog { packets: word(queue, 0)?, bytes: u64::from(word(queue, 4)?) };
    let told = Statistics { backlog, ..Statistics::default() };
    Some(read_own(told, kind, own, u64::from(word(queue, 8)?)))
}

/// What the structure of a kind of discipline adds, of which `dropped` packets were lost in all.
fn read_own(mut told: Statistics, kind: &[u8], own: &[u8], dropped: u64) -> Statistics {
    let count = |at: usize| word(own, 4 * at).map_or(0, u64::from);
    let (tail, early, forced) = match kind {
        b"pfifo" | b"bfifo" | b"pfifo_head_drop" | b"pfifo_fast" | b"sfq" | b"drr" | b"fq" => (dropped, 0, 0),
        // tc_red_xstats and tc_choke_xstats: pdrop, marked.
        b"red" | b"choke" => (count(1), count(3), 0),
        // tc_codel_xstats: drop_overlimit, ecn_mark, ce_mark.
        b"codel" => (count(5), count(6), count(8)),
        // tc_fq_codel_xstats: a type, then of tc_fq_codel_qd_stats drop_overlimit, ecn_mark, ce_mark.
        b"fq_codel" => (count(2), count(3), count(7)),
        // tc_pie_xstats: a probability of 64 bits, then overlimit and ecn_mark.
        b"pie" => {
            let probability = own.first_chunk().map(|bytes| u64::from_ne_bytes(*bytes) as f64 / u64::MAX as f64);
            told.gauges.probability = probability;
            (count(7), count(9), 0)
        }
        // tc_fq_pie_xstats: overlimit, overmemory, ecn_mark.
        b"fq_pie" => (count(2) + count(3), count(4), 0),
        // tc_sfb_xstats: queuedrop, childdrop, marked.
        b"sfb" => (count(3) + count(4), count(5), 0),
        b"cake" => {
            // TCA_CAKE_STATS_TIN_STATS, and of each tin ACKS_DROPPED_PACKETS and ECN_MARKED_PACKETS.
            let tins = attribute(own, 10).unwrap_or_default();
            let sum = |kind: u16| -> u64 {
                let tins = attributes(tins).filter_map(|(_, tin)| word(attribute(tin, kind)?, 0));
                tins.map(u64::from).sum()
            };
            told.dropped[Cause::FILTERED.index()] = sum(6);
            (0, sum(8), 0)
        }
        _ => (0, 0, 0),
    };
    let filtered = told.dropped[Cause::FILTERED.index()];
    told.dropped[Cause::TAIL.index()] = tail.min(dropped);
    told.dropped[Cause::EARLY.index()] = dropped.saturating_sub(tail + filtered);
    told.marked[Cause::EARLY.index()] = early;
    told.marked[Cause::FORCED.index()] = forced;
    told
}

/// The attributes of a message (`struct nlattr`: length, type, value, in steps of four bytes).
fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let (length, kind) = (half(bytes, 0)?, half(bytes, 2)?);
        let value = bytes.get(4..usize::from(length))?;
        bytes = bytes.get(usize::from(length).next_multiple_of(4)..).unwrap_or_default();
        // NLA_F_NESTED and NLA_F_NET_BYTEORDER are not of the type.
        Some((kind & 0x3fff, value))
    })
}

fn attribute(bytes: &[u8], kind: u16) -> Option<&[u8]> {
    attributes(bytes).find_map(|(found, value)| (found == kind).then_some(value))
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nested(kind: u16, value: &[u8]) -> Vec<u8> {
        let mut bytes = ((value.len() + 4) as u16).to_ne_bytes().to_vec();
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(value);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    fn words(words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }

    /// A description of a discipline with 5 packets of 7000 bytes waiting and 30 lost.
    fn description(kind: &str, own: &[u8]) -> Vec<u8> {
        let queue = nested(3, &words(&[5, 7000, 30, 0, 0]));
        let statistics = [nested(1, &[0; 12]), queue, nested(4, own)].concat();
        let attributes = [nested(1, &[kind.as_bytes(), &[0]].concat()), nested(7, &statistics)].concat();
        let mut message = request(3, 0x10_0000).to_vec();
        message[4..6].copy_from_slice(&NEW.to_ne_bytes());
        message.extend(attributes);
        let length = message.len() as u32;
        message[..4].copy_from_slice(&length.to_ne_bytes());
        message
    }

    #[test]
    fn losses_and_marks_are_told_by_cause() {
        let tin =
            |acks: u32, marks: u32| nested(1, &[nested(6, &words(&[acks])), nested(8, &words(&[marks]))].concat());
        let cake = nested(0x8000 | 10, &[tin(4, 1), tin(3, 2)].concat());
        let pie = [(u64::MAX / 4).to_ne_bytes().to_vec(), words(&[0, 0, 0, 900, 30, 12, 40, 6])].concat();
        // Tail, early, filtered; marks early, forced.
        for (kind, own, expected) in [
            ("bfifo", vec![], [30, 0, 0, 0, 0]),
            ("red", words(&[22, 8, 0, 5]), [8, 22, 0, 5, 0]),
            ("choke", words(&[10, 8, 0, 5, 6]), [8, 22, 0, 5, 0]),
            ("codel", words(&[1500, 1, 1, 0, 0, 2, 3, 0, 4]), [2, 28, 0, 3, 4]),
            ("fq_codel", words(&[0, 1500, 2, 3, 0, 0, 0, 4, 0, 0]), [2, 28, 0, 3, 4]),
            ("pie", pie, [12, 18, 0, 6, 0]),
            ("fq_pie", words(&[900, 20, 7, 1, 6, 0, 0, 0, 0]), [8, 22, 0, 6, 0]),
            ("sfb", words(&[20, 1, 1, 5, 3, 6, 0, 0, 0]), [8, 22, 0, 6, 0]),
            ("cake", cake, [0, 23, 7, 3, 0]),
            ("unheard_of", vec![1, 2, 3], [0, 30, 0, 0, 0]),
        ] {
            let told = answer(&description(kind, &own)).expect("a description");
            assert_eq!(told.backlog, Backlog { packets: 5, bytes: 7000 });
            let dropped = |cause: Cause| told.dropped[cause.index()];
            let marked = |cause: Cause| told.marked[cause.index()];
            let found = [
                dropped(Cause::TAIL),
                dropped(Cause::EARLY),
                dropped(Cause::FILTERED),
                marked(Cause::EARLY),
                marked(Cause::FORCED),
            ];
            assert_eq!(found, expected, "{kind}");
            let is_quarter = told.gauges.probability.is_some_and(|probability| (probability - 0.25).abs() < 1e-15);
            assert_eq!(is_quarter, kind == "pie");
        }
    }

    #[test]
    fn what_is_cut_short_is_no_description() {
        let whole = description("red", &words(&[22, 8, 0, 5]));
        assert!((0..whole.len()).all(|size| answer(&whole[..size]).is_none()));
        // NLMSG_ERROR.
        let mut error = whole;
        error[4..6].copy_from_slice(&2_u16.to_ne_bytes());
        assert!(answer(&error).is_none());
    }
}

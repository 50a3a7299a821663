//! CAKE's ACK filter loses acknowledgements that a later one of the same flow makes superfluous while they wait. That
//! saves a slow way back (tc-cake(8), "ack-filter"; Linux sch_cake.c, cake_ack_filter).

use super::super::pool::{Pool, Queue};
use crate::packet::{Ack, Headers, Packet};

/// How much is filtered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AckFilter {
    /// Nothing is filtered.
    Off,
    /// An acknowledgement with two others behind it is lost, so that a pair remains.
    On,
    /// A lone acknowledgement is lost too, if the next packet is the one that makes it superfluous.
    Aggressive,
}

impl AckFilter {
    /// The kind of filter that the parameter names.
    pub fn of(word: &str) -> Self {
        match word {
            "on" => Self::On,
            "aggressive" => Self::Aggressive,
            _ => Self::Off,
        }
    }

    /// The place before the packet in `queue` that `arriving`, which comes behind all of them, makes superfluous.
    pub fn find<P: Packet>(
        self,
        pool: &Pool<P>,
        queue: &Queue,
        arriving: &P,
        headers: &(impl Headers<P> + ?Sized),
    ) -> Option<u32> {
        if self == Self::Off || queue.is_empty() {
            return None;
        }
        let newer = headers.ack(arriving)?;
        let last = queue.backlog().packets as usize;
        // The superfluous one nearest to the head: the place before it, its flags, and its number in the queue.
        let mut found: Option<(u32, u8, usize)> = None;
        let mut count = 0;
        for (number, (before, held)) in (1..).zip(pool.iter(queue)) {
            if held.packet.flow() != arriving.flow() {
                continue;
            }
            let Some(older) = headers.ack(&held.packet) else { continue };
            // A change of the ECN echo is news: what was found would lose it.
            if found.is_some_and(|(_, echo, _)| echo != older.echo) {
                found = None;
                count -= 1;
            }
            if !older.is_pure || is_before(newer.number, older.number) || !is_covered(&older, &newer) {
                continue;
            }
            if found.is_none() {
                found = Some((before, older.echo, number));
            }
            count += 1;
            if count > 1 {
                return found.map(|(before, ..)| before);
            }
        }
        let (before, echo, number) = found?;
        let is_next = number == last && echo == newer.echo;
        (self == Self::Aggressive && is_next).then_some(before)
    }
}

/// Whether sequence number `a` comes before `b`, on the circle.
fn is_before(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) < 0
}

/// Whether `newer`, which acknowledges no less, also says all that the blocks of `older` say, and something more.
fn is_covered(older: &Ack, newer: &Ack) -> bool {
    let blocks = |ack: &Ack| ack.blocks.into_iter().take(usize::from(ack.count));
    let bytes = |ack: &Ack| blocks(ack).map(|(start, end)| u64::from(end.wrapping_sub(start))).sum::<u64>();
    let all_there = blocks(older).all(|(start, end)| {
        // A block below the acknowledgement reports a duplicate (RFC 2883): it is said once.
        !is_before(start, older.number)
            && blocks(newer).any(|(from, to)| !is_before(start, from) && !is_before(to, end))
    });
    let says_more = newer.number != older.number || bytes(newer) > bytes(older);
    all_there && says_more
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::qdisc::Held;
    use base::{Ecn, FlowKey, Time};

    #[derive(Clone, Copy)]
    struct Segment(u64, Option<Ack>);

    impl Packet for Segment {
        fn size(&self) -> u32 {
            40
        }
        fn ecn(&self) -> Ecn {
            Ecn::NotEct
        }
        fn mark(&mut self) {}
        fn flow(&self) -> FlowKey {
            FlowKey(self.0)
        }
    }

    struct Read;

    impl Headers<Segment> for Read {
        fn ack(&self, packet: &Segment) -> Option<Ack> {
            packet.1
        }
    }

    fn ack(number: u32) -> Ack {
        Ack { is_pure: true, number, ..Ack::default() }
    }

    /// Which of `queued`, numbered from 0, `arriving` makes superfluous.
    fn find(filter: AckFilter, queued: &[Segment], arriving: Segment) -> Option<usize> {
        let (mut pool, mut queue) = (Pool::default(), Queue::default());
        for packet in queued {
            pool.push(&mut queue, Held { packet: *packet, enqueued: Time::ZERO });
        }
        let before = filter.find(&pool, &queue, &arriving, &Read)?;
        pool.iter(&queue).position(|(place, _)| place == before)
    }

    #[test]
    fn an_overtaken_acknowledgement_goes_if_a_pair_remains() {
        let one = |number| Segment(1, Some(ack(number)));
        let other = Segment(2, Some(ack(1)));
        for (queued, on, aggressive) in [
            (vec![], None, None),
            (vec![one(10)], None, Some(0)),
            (vec![one(10), one(20)], Some(0), Some(0)),
            (vec![other, one(10), one(20)], Some(1), Some(1)),
            // Not next to the one that overtakes it.
            (vec![one(10), other], None, None),
            // A later number than the one that arrives, and the same one: a duplicate means something.
            (vec![one(40), one(20)], None, Some(1)),
            (vec![one(30), one(30)], None, None),
            // No TCP, and data.
            (vec![Segment(1, None), one(10)], None, Some(1)),
            (vec![Segment(1, Some(Ack { is_pure: false, ..ack(10) })), one(20)], None, Some(1)),
        ] {
            assert_eq!(find(AckFilter::Off, &queued, one(30)), None);
            assert_eq!(find(AckFilter::On, &queued, one(30)), on);
            assert_eq!(find(AckFilter::Aggressive, &queued, one(30)), aggressive);
        }
        // Numbers wrap.
        assert_eq!(find(AckFilter::On, &[one(u32::MAX - 9), one(2)], one(30)), Some(0));
    }

    #[test]
    fn a_change_of_the_echo_is_kept() {
        let echo = |number, echo| Segment(1, Some(Ack { echo, ..ack(number) }));
        let queued = [echo(10, 0), echo(20, 1), echo(25, 1)];
        assert_eq!(find(AckFilter::On, &queued, echo(30, 1)), Some(1));
        assert_eq!(find(AckFilter::Aggressive, &[echo(10, 0)], echo(30, 1)), None);
    }

    #[test]
    fn selective_acknowledgements_are_not_lost() {
        let sack = |number, blocks: &[(u32, u32)]| {
            let mut ack = ack(number);
            ack.blocks[..blocks.len()].copy_from_slice(blocks);
            ack.count = blocks.len() as u8;
            Segment(1, Some(ack))
        };
        let two = |blocks: &[(u32, u32)]| [sack(10, blocks), sack(10, blocks)];
        let on = |queued: &[Segment], arriving| find(AckFilter::On, queued, arriving);
        assert_eq!(on(&two(&[(20, 30)]), sack(10, &[(20, 40)])), Some(0), "the block has grown");
        assert_eq!(on(&two(&[(20, 30)]), sack(10, &[(20, 30)])), None, "nothing new");
        assert_eq!(on(&two(&[(20, 30)]), sack(10, &[(25, 40)])), None, "not all of it");
        assert_eq!(on(&two(&[(20, 30)]), sack(15, &[])), None, "the block is gone, though not acknowledged");
        assert_eq!(on(&two(&[(5, 10)]), sack(15, &[(5, 10)])), None, "a duplicate was reported");
    }
}

//! What fair queueing owes a flow that keeps to its share, whatever law acts on the queues.
//!
//! A flow of a tenth of the link, evenly spaced, beside one that sends twice the link's rate and does not respond. The
//! first one's queue is empty whenever it sends, so it goes first and waits for the packet in transmission, which is
//! shorter than its own gap, and for what is left of another's turn.

use crate::common::{Parcel, built};
use aqm::{Cause, Egress, Headers, Tap, registry};
use base::{Ecn, Rate, Span, Stream, Time};

const RATE: Rate = Rate::from_bps(10_000_000);
const SIZE: u32 = 1000;
const PACKET: Span = Span::from_us(800);
/// The flow that keeps to its share, and the one that does not.
const MODEST: u64 = 1;
const GREEDY: u64 = 2;

#[derive(Default)]
struct Losses {
    modest: u64,
    greedy: u64,
    /// Of the greedy flow, to make room for it or by its law.
    by_law: u64,
}

impl Tap<Parcel> for Losses {
    fn dropped(&mut self, packet: Parcel, cause: Cause, _now: Time) {
        if packet.flow == MODEST {
            self.modest += 1;
        } else {
            self.greedy += 1;
            self.by_law += u64::from(cause != Cause::TAIL);
        }
    }
    fn marked(&mut self, _packet: &Parcel, _cause: Cause, _now: Time) {}
}

impl Headers<Parcel> for Losses {}

#[test]
fn a_flow_within_its_share_neither_waits_nor_loses() {
    let mut laws_at_work = 0;
    for row in registry::fair_rows() {
        // No limit shared with the greedy flow stands in the way of the law.
        let qdisc = built::<Parcel>(&row.name, &[("limit", "1000000p")], RATE, Stream::named(1, "q"));
        let mut egress = Egress::new(RATE, qdisc);
        let (mut losses, mut delivered, mut longest) = (Losses::default(), 0_u64, Span::ZERO);
        for slot in 0..40_000_u64 {
            let now = Time::ZERO + Span::from_ns(PACKET.ns() / 2 * slot);
            while egress.next_event() <= now {
                if let Some(delivery) = egress.advance(now, &mut losses)
                    && delivery.packet.flow == MODEST
                {
                    delivered += 1;
                    longest = longest.max(delivery.waited);
                }
            }
            egress.offer(Parcel { number: slot, size: SIZE, ecn: Ecn::NotEct, flow: GREEDY }, now, &mut losses);
            if slot % 20 == 7 {
                egress.offer(Parcel { number: slot, size: SIZE, ecn: Ecn::NotEct, flow: MODEST }, now, &mut losses);
            }
        }
        egress.assert_conserved();
        assert_eq!(losses.modest, 0, "{}", row.name);
        assert!(delivered >= 1999, "{}: {delivered} of 2000", row.name);
        // The packet in transmission, and one more that the greedy flow's turn may still hold.
        assert!(longest.ns() <= 2 * PACKET.ns(), "{}: {longest:?}", row.name);
        laws_at_work += usize::from(losses.by_law > 0);
    }
    // BLUE and RIO-PS wait for a full queue, SRED counts flows of which it sees one, the steps only mark, and
    // DOCSIS-PIE has its own limit: the rest have dropped by now.
    assert!(laws_at_work >= registry::fair_rows().len() - 5, "{laws_at_work} laws dropped something");
}

#[test]
fn a_queue_that_refused_what_found_it_empty_is_idle() {
    // A burst brings the average above max. The queue has drained when a packet comes that is lost for it: no turn
    // finds that queue empty afterwards, and yet the average must have decayed by the next packet, an hour later.
    let written = [("limit", "1000000p"), ("min", "5p"), ("max", "15p"), ("wq", "0.1")];
    let mut egress = Egress::new(RATE, built::<Parcel>("fq_red", &written, RATE, Stream::named(1, "q")));
    let mut losses = Losses::default();
    let mut number = 0;
    let mut offer = |egress: &mut Egress<Parcel>, now: Time, losses: &mut Losses| {
        while egress.next_event() <= now {
            egress.advance(now, losses);
        }
        number += 1;
        egress.offer(Parcel { number, size: SIZE, ecn: Ecn::NotEct, flow: GREEDY }, now, losses);
    };
    for _ in 0..1000 {
        offer(&mut egress, Time::ZERO, &mut losses);
    }
    // A packet accepted on average of 16 or less, in which one in 50 at most was lost, and none above 15.
    let drained = Time::ZERO + Span::from_ns(PACKET.ns() * (1001 - losses.greedy));
    let before = losses.greedy;
    offer(&mut egress, drained, &mut losses);
    assert_eq!(losses.greedy, before + 1, "the average has not decayed at once");
    offer(&mut egress, drained + Span::from_secs(3600), &mut losses);
    assert_eq!(losses.greedy, before + 1, "an hour is idle");
    egress.assert_conserved();
}

//! A link that is called out of order says so, in every build: it neither clips a wait nor sends before its time.

use crate::common::{Deaf, Parcel, built, values};
use aqm::Egress;
use base::{Ecn, Rate, Stream, Time};

/// On it 1000 bytes take a millisecond.
const RATE: Rate = Rate::from_bps(8_000_000);

fn link(qdisc: &str) -> Egress<Parcel> {
    Egress::new(RATE, built(qdisc, &[], RATE, Stream::named(1, "q")))
}

fn offer(link: &mut Egress<Parcel>, us: u64) {
    link.offer(Parcel { number: us, size: 1000, ecn: Ecn::NotEct, flow: 1 }, at(us), &mut Deaf);
}

fn at(us: u64) -> Time {
    Time::from_ns(us * 1000)
}

#[test]
fn an_early_call_and_calls_at_one_instant_are_no_errors() {
    let mut link = link("pfifo");
    offer(&mut link, 10);
    offer(&mut link, 10);
    assert!(link.advance(at(5), &mut Deaf).is_none());
    assert_eq!(link.advance(at(1010), &mut Deaf).map(|delivery| delivery.at), Some(at(1010)));
    offer(&mut link, 1010);
}

#[test]
#[should_panic(expected = "time runs forwards: 0.000009000s comes after 0.000010000s")]
fn an_offer_before_another_is_caught() {
    let mut link = link("pfifo");
    offer(&mut link, 10);
    offer(&mut link, 9);
}

#[test]
#[should_panic(expected = "time runs forwards: 0.001009000s comes after 0.001010000s")]
fn an_offer_before_a_delivery_is_caught() {
    let mut link = link("pfifo");
    offer(&mut link, 10);
    link.advance(at(2000), &mut Deaf).expect("it has left");
    offer(&mut link, 1009);
}

#[test]
#[should_panic(expected = "what is due comes first: 0.001010000s before 0.001011000s")]
fn an_offer_past_a_delivery_that_is_due_is_caught() {
    let mut link = link("pfifo");
    offer(&mut link, 10);
    offer(&mut link, 1011);
}

#[test]
#[should_panic(expected = "what is due comes first: 0.015000000s before 0.016000000s")]
fn an_offer_past_a_tick_that_is_due_is_caught() {
    offer(&mut link("pie"), 16_000);
}

#[test]
#[should_panic(expected = "time runs forwards: 0.000009000s comes after 0.000010000s")]
fn a_change_of_parameters_in_the_past_is_caught() {
    let mut link = link("pfifo");
    offer(&mut link, 10);
    link.retune(&values("pfifo", &[], RATE).expect("defaults"), RATE, at(9));
}

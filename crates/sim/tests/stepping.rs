//! A run that is looked into and steered.

use base::{Span, Time};
use record::{ExchangeRow, QueueRow, Sink};
use scenario::{Resolved, resolve};
use sim::Simulation;

fn scenario(link: &str) -> Resolved {
    let text = format!(
        "duration = \"20s\"\nwarmup = \"0s\"\n[path]\nrtt = \"40ms\"\n[link]\nrate = \"10mbit\"\n{link}\n\
         [[traffic]]\nkind = \"bulk\"\nflows = 4\n[[traffic]]\nkind = \"poisson\"\narrivals = \"10hz\"\n\
         request = \"300b\"\nsize = \"9000b\"\n"
    );
    let read = |name: &str| Err(format!("{name}: there are no files here"));
    resolve(&text, "stepping.toml", &[], &read).expect("it makes sense")
}

/// Exchanges as they complete.
#[derive(Default)]
struct Heard(Vec<ExchangeRow>);

impl Sink for Heard {
    fn queue(&mut self, _: &QueueRow) {}
    fn exchange(&mut self, row: &ExchangeRow) {
        self.0.push(*row);
    }
    fn drop(&mut self, _: &record::DropRow) {}
}

fn at(seconds: u64) -> Time {
    Time::ZERO + Span::from_secs(seconds)
}

/// Exchanges of a whole run in steps of a second, and what `step` does after each.
fn stepped(resolved: &Resolved, mut step: impl FnMut(u64, &mut Simulation<'_>)) -> Vec<ExchangeRow> {
    let mut simulation = Simulation::new(resolved.scenario().expect("it has no load to calibrate"));
    let mut heard = Heard::default();
    simulation.start_measuring();
    step(0, &mut simulation);
    for second in 1..=20 {
        assert!(simulation.run_until(at(second), &mut heard, &mut |_| true));
        step(second, &mut simulation);
    }
    simulation.assert_conserved();
    heard.0
}

#[test]
fn to_look_and_to_set_what_is_already_so_changes_nothing() {
    let resolved = scenario("qdisc = { kind = \"pie\", target = \"20ms\" }");
    let alone = stepped(&resolved, |_, _| ());
    assert!(alone.len() > 100);
    let seen = stepped(&resolved, |_, simulation| {
        simulation.observe();
        simulation.set("link", 0, "target", "20ms").expect("it has a target");
    });
    assert_eq!(alone, seen);
}

#[test]
fn what_is_set_before_the_first_packet_is_as_if_the_scenario_said_so() {
    let said = stepped(&scenario("qdisc = { kind = \"codel\", target = \"20ms\" }"), |_, _| ());
    let set = stepped(&scenario("qdisc = { kind = \"codel\" }"), |second, simulation| {
        if second == 0 {
            simulation.set("link", 0, "target", "20ms").expect("it has a target");
            simulation.set("link", 1, "target", "20ms").expect("it has a target");
        }
    });
    assert_eq!(said, set);
}

#[test]
fn an_observation_is_what_happened_since_the_last_one() {
    let resolved = scenario("qdisc = { kind = \"pfifo\", limit = \"50p\" }");
    let (mut offered, mut delivered, mut dropped, mut waiting) = (0, 0, 0, 0);
    stepped(&resolved, |second, simulation| {
        let seen = simulation.observe();
        let forward = &seen.ports[0];
        assert_eq!((forward.time, forward.direction, seen.ports.len()), (at(second), 0, 2));
        assert_eq!(seen.connections.len(), 2);
        assert!(second < 10 || seen.under_way[0] == 4, "endless transfers are always under way");
        offered += forward.offered_packets;
        delivered += forward.delivered_packets;
        dropped += forward.dropped_packets;
        waiting = forward.queue_packets;
        assert!(second < 10 || forward.queue_delay_mean_s().is_some_and(|wait| wait > 0.02), "a full queue");
    });
    // One may be in transmission.
    let held = offered - delivered - dropped;
    assert!(held == waiting || held == waiting + 1, "{offered} {delivered} {dropped} {waiting}");
}

#[test]
fn what_cannot_be_set_is_one_line() {
    let resolved = scenario("qdisc = { kind = \"fq_codel\" }");
    let mut simulation = Simulation::new(resolved.scenario().expect("it has no load to calibrate"));
    let mut said = |link: &str, way, name: &str, text: &str| {
        let error = simulation.set(link, way, name, text).expect_err("it is refused").to_string();
        assert!(!error.contains('\n'));
        error
    };
    assert!(said("core", 0, "target", "5ms").contains("core.0: expected one of link"));
    assert!(said("link", 2, "target", "5ms").contains("0 for forward or 1 for reverse"));
    assert!(said("link", 0, "tarhet", "5ms").contains("target"), "what is meant is named");
    assert!(said("link", 0, "target", "soon").contains("target"));
    assert!(said("link", 0, "flows", "7").contains("flows"), "queues cannot be changed under packets");
    assert!(said("link", 0, "kind", "red").contains("cannot change while a run goes on"));
}

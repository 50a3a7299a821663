//! A law that is steered: what it counts, what is said and when it holds, and laws to choose among.

use aqm::registry::Registry;
use base::{Span, Time};
use law::steered::{self, Helm, Pilot, Policy, Seen};
use record::Discard;
use scenario::{Resolved, resolve_with};
use sim::Simulation;
use std::sync::{Arc, Mutex};

const STEP: Span = Span::from_ms(10);

fn resolved(registry: &Registry, qdisc: &str) -> Resolved {
    let text = format!(
        "duration = \"20s\"\n[link]\nrate = \"12mbit\"\nqdisc = {qdisc}\nreverse_qdisc = {{ kind = \"pfifo\" }}\n\
         [path]\nrtt = \"40ms\"\n[tcp]\necn = \"on\"\n[[traffic]]\nkind = \"bulk\"\nflows = 6\n\
         [[traffic]]\nkind = \"cbr\"\nrate = \"1200kbit\"\npacket = \"1500b\"\n"
    );
    resolve_with(registry, &text, "steered.toml", &[], &|_| Err(String::new())).expect("it resolves")
}

/// A probability that depends on all that was seen.
fn answer(seen: &Seen) -> f64 {
    let waited = seen.wait_sum_ns as f64 / 1e9 / f64::from(seen.delivered_packets.max(1));
    (0.8 * seen.probability + waited * 0.05).min(1.0)
}

fn about() -> Policy {
    let text = |text: &str| text.to_owned();
    Policy { name: text("mine"), doc: text("Does."), source: text("a test"), step: STEP, memory: 1 }
}

/// A law that is held in a scenario, and the helm of it.
fn held(laws: &[&str], qdisc: &str) -> (Resolved, Arc<Mutex<Option<Helm>>>) {
    let spec = |law: &&str| {
        let of_law = resolved(&Registry::builtin(), law);
        let qdisc = &of_law.scenario().expect("no load").links[0].qdiscs[0];
        (qdisc.entry.clone(), qdisc.values.clone())
    };
    let found: Arc<Mutex<Option<Helm>>> = Arc::default();
    let given = Arc::clone(&found);
    let give = move |helm| *given.lock().expect("nobody panics") = Some(helm);
    let entry = steered::held(laws.iter().map(spec).collect(), give).expect("they are laws");
    (resolved(&Registry::builtin().with(entry).expect("the name is free"), qdisc), found)
}

fn passed(simulation: &mut Simulation<'_>, steps: u64) {
    let until = Time::ZERO + STEP * steps;
    if until > Time::ZERO {
        simulation.run_until(Time::from_ns(until.ns() - 1), &mut Discard, &mut |_| true);
    }
}

#[test]
fn who_holds_a_law_and_a_policy_in_it_see_and_do_the_same() {
    see_and_do_the_same("", 0);
}

#[test]
fn so_they_do_where_the_rate_that_is_told_changes_at_the_end_of_a_step_and_within_one() {
    see_and_do_the_same(
        "\ntold_rate = \"present\"\nschedule = [{ at = \"1s\", rate = \"8mbit\" }, { at = \"7003ms\", rate = \"20mbit\" }, \
         { at = \"12s\", rate = \"12mbit\" }]",
        2,
    );
}

/// `more`: what a link has besides, in which the rate changes so often at the `ends` of steps.
fn see_and_do_the_same(more: &str, ends: u64) {
    let qdisc = &format!("{{ kind = \"KIND\", ecn = true, limit = \"60p\" }}{more}");
    let told: Arc<Mutex<Vec<(Seen, f64)>>> = Arc::default();
    let telling = Arc::clone(&told);
    let made = move || -> Result<Pilot, String> {
        let telling = Arc::clone(&telling);
        Ok(Box::new(move |seen: &Seen| {
            let said = answer(seen);
            telling.lock().expect("nobody panics").push((*seen, said));
            Ok(said)
        }))
    };
    let registry = Registry::builtin().with(steered::policy(about(), made).expect("it is one")).expect("it is free");
    let by_policy = resolved(&registry, &qdisc.replace("KIND", "mine"));
    let mut simulation = Simulation::new(by_policy.scenario().expect("no load"));
    passed(&mut simulation, 2000);
    let events = simulation.events();

    let (by_hand, helm) = held(&[], &qdisc.replace("KIND", "steered"));
    let mut simulation = Simulation::new(by_hand.scenario().expect("no load"));
    let helm = helm.lock().expect("nobody panics").clone().expect("the queue is made");
    let mut seen_by_hand = Vec::new();
    for step in 0..2000 {
        passed(&mut simulation, step);
        let seen = helm.take();
        let said = answer(&seen);
        helm.steer(said);
        seen_by_hand.push((seen, said));
    }
    passed(&mut simulation, 2000);
    // A policy is not asked again and again while nothing happens.
    let busy = |all: &[(Seen, f64)]| -> Vec<(Seen, f64)> {
        all.iter().filter(|(seen, _)| seen.offered_packets + seen.queue_packets > 0).copied().collect()
    };
    let (asked, held) = (busy(&told.lock().expect("nobody panics")), busy(&seen_by_hand));
    assert!(asked.len() > 1900 && asked.len() == held.len());
    assert!(asked == held, "they differ first at {:?}", asked.iter().zip(&held).find(|(one, other)| one != other));
    // Only the policy's ticks are more, where no change of the rate has it asked.
    assert_eq!(simulation.events(), events - (1999 - ends));
    let total = |of: fn(&Seen) -> u64| seen_by_hand.iter().map(|(seen, _)| of(seen)).sum::<u64>();
    assert!(total(|seen| u64::from(seen.marked_packets)) > 20, "flows are marked");
    assert!(total(|seen| u64::from(seen.dropped_packets)) > 0, "datagrams are lost");
}

#[test]
fn steps_count_every_packet_once() {
    let (resolved, helm) = held(&[], "{ kind = \"steered\", limit = \"40p\" }");
    let mut simulation = Simulation::new(resolved.scenario().expect("no load"));
    let helm = helm.lock().expect("nobody panics").clone().expect("the queue is made");
    helm.steer(0.005);
    let (mut total, mut waits) = (Seen::default(), 0);
    for step in 1..=1500 {
        passed(&mut simulation, step);
        let seen = helm.take();
        total.offered_packets += seen.offered_packets;
        total.delivered_packets += seen.delivered_packets;
        total.dropped_packets += seen.dropped_packets;
        assert_eq!(seen.rate_bps, 12_000_000);
        assert!(u64::from(seen.delivered_packets) * seen.wait_max_ns >= seen.wait_sum_ns);
        waits = seen.queue_packets;
    }
    assert_eq!(total.offered_packets, total.delivered_packets + total.dropped_packets + waits);
    let observed = simulation.observe();
    assert_eq!(observed.ports[0].queue_packets, waits);
    // What the meter counts as delivered has left the link: one packet may be on its way.
    let sent = observed.ports[0].delivered_packets;
    assert!(total.delivered_packets - sent <= 1, "{} {sent}", total.delivered_packets);
    assert_eq!(observed.ports[0].dropped_packets, total.dropped_packets);
}

#[test]
fn a_law_that_is_always_chosen_does_as_it_does_alone() {
    for law in ["pie", "codel", "red", "pfifo"] {
        let ecn = if law == "pfifo" { "" } else { ", ecn = true" };
        let alone = resolved(&Registry::builtin(), &format!("{{ kind = \"{law}\", limit = \"90p\"{ecn} }}"));
        let mut expected = Simulation::new(alone.scenario().expect("no load"));
        passed(&mut expected, 1000);
        let own = format!("{{ kind = \"{law}\", limit = \"90p\"{ecn} }}");
        let (by_choice, helm) = held(&[&own, "\"pi\""], "{ kind = \"steered\", limit = \"90p\", ecn = true }");
        let mut chosen = Simulation::new(by_choice.scenario().expect("no load"));
        assert!(helm.lock().expect("nobody panics").is_some());
        passed(&mut chosen, 1000);
        let counted = |simulation: &mut Simulation<'_>| {
            let row = simulation.observe().ports[0];
            (row.offered_packets, row.delivered_bytes, row.dropped_packets, row.marked_packets, row.queue_delay_sum)
        };
        assert_eq!(counted(&mut chosen), counted(&mut expected), "{law}");
    }
}

#[test]
fn another_law_is_chosen_while_packets_wait() {
    let (resolved, helm) = held(&["\"pfifo\"", "\"codel\""], "{ kind = \"steered\", limit = \"200p\" }");
    let mut simulation = Simulation::new(resolved.scenario().expect("no load"));
    let helm = helm.lock().expect("nobody panics").clone().expect("the queue is made");
    let mut wait_ms = Vec::new();
    for chosen in [0, 1, 0] {
        helm.choose(chosen);
        let first = 600 * wait_ms.len() as u64;
        passed(&mut simulation, first + 300);
        helm.take();
        passed(&mut simulation, first + 600);
        let seen = helm.take();
        wait_ms.push(seen.wait_sum_ns as f64 / 1e6 / f64::from(seen.delivered_packets));
    }
    // 200 packets of 1500 bytes take 200 ms; CoDel's target is 5 ms.
    assert!(wait_ms[0] > 100.0 && wait_ms[1] < 30.0 && wait_ms[2] > 100.0, "{wait_ms:?}");
}

#[test]
fn a_policy_that_misbehaves_ends_the_run_with_its_name() {
    for (said, what) in [
        (Ok(1.5), "the law mine answered the probability 1.5: expected one from 0 to 1 (in tick, at 0.000000 s)"),
        (Ok(f64::NAN), "the law mine answered the probability NaN"),
        (Err("failed: KeyError: 'x'".to_owned()), "the law mine failed: KeyError: 'x' (in tick"),
    ] {
        let made = move || -> Result<Pilot, String> {
            let said = said.clone();
            Ok(Box::new(move |_: &Seen| said.clone()))
        };
        let entry = steered::policy(about(), made).expect("it is one");
        let resolved = resolved(&Registry::builtin().with(entry).expect("it is free"), "{ kind = \"mine\" }");
        let mut simulation = Simulation::new(resolved.scenario().expect("no load"));
        let fault = aqm::fault::caught(|| passed(&mut simulation, 10)).expect_err("it is ended");
        assert!(fault.message().starts_with(what), "{}", fault.message());
    }
}

#[test]
fn what_is_no_law_is_not_chosen_and_what_is_no_policy_is_refused() {
    let fq = &resolved(&Registry::builtin(), "\"fq_codel\"");
    let qdisc = &fq.scenario().expect("no load").links[0].qdiscs[0];
    let refused = steered::held(vec![(qdisc.entry.clone(), qdisc.values.clone())], |_| ());
    assert!(refused.expect_err("it has queues").contains("fq_codel: has queues of its own"));
    let pilot = || -> Result<Pilot, String> { Ok(Box::new(|_: &Seen| Ok(0.0))) };
    assert!(steered::policy(Policy { name: "Mine".to_owned(), ..about() }, pilot).is_err());
    assert!(steered::policy(Policy { step: Span::from_ns(10), ..about() }, pilot).is_err());
}

#[test]
fn among_many_queues_a_policy_rests_where_nothing_happens() {
    let asked = Arc::new(Mutex::new(0_u64));
    let counting = Arc::clone(&asked);
    let made = move || -> Result<Pilot, String> {
        let counting = Arc::clone(&counting);
        Ok(Box::new(move |seen: &Seen| {
            *counting.lock().expect("nobody panics") += 1;
            Ok(answer(seen))
        }))
    };
    let registry = Registry::builtin().with(steered::policy(about(), made).expect("it is one")).expect("it is free");
    let resolved = resolved(&registry, "{ kind = \"fq_mine\" }");
    let mut simulation = Simulation::new(resolved.scenario().expect("no load"));
    passed(&mut simulation, 2000);
    let asked = *asked.lock().expect("nobody panics");
    // Seven flows in as many queues at most, of 1024.
    assert!(asked > 2000 && asked < 7 * 2001 + 1024 * 4, "{asked}");
}

#[test]
fn a_policy_that_rests_is_told_of_another_rate() {
    let rates: Arc<Mutex<Vec<u64>>> = Arc::default();
    let telling = Arc::clone(&rates);
    let made = move || -> Result<Pilot, String> {
        let telling = Arc::clone(&telling);
        Ok(Box::new(move |seen: &Seen| {
            telling.lock().expect("nobody panics").push(seen.rate_bps);
            Ok(0.0)
        }))
    };
    let registry = Registry::builtin().with(steered::policy(about(), made).expect("it is one")).expect("it is free");
    let text = "duration = \"2s\"\n[link]\nrate = \"12mbit\"\nqdisc = \"mine\"\nreverse_qdisc = \"pfifo\"\ntold_rate = \"present\"\n\
                schedule = [{ at = \"500ms\", rate = \"4mbit\" }]\n[path]\nrtt = \"40ms\"\n\
                [[traffic]]\nkind = \"cbr\"\nrate = \"1mbit\"\nstart = \"1s\"\n";
    let resolved = resolve_with(&registry, text, "steered.toml", &[], &|_| Err(String::new())).expect("it resolves");
    let mut simulation = Simulation::new(resolved.scenario().expect("no load"));
    passed(&mut simulation, 100);
    let told = rates.lock().expect("nobody panics");
    let changed = told.iter().position(|&bps| bps == 4_000_000);
    // It rests after three steps in which nothing happens, and the step of the change has the rate of before.
    assert!(told.len() < 10 && changed.is_some_and(|at| told[..at].iter().all(|&bps| bps == 12_000_000)), "{told:?}");
}

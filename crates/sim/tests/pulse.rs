//! A run tells how far it is, and can be broken off, however much happens in an interval of its queue table.

use crate::common::Kept;
use sim::Pulse;

/// A link on which hardly anything is sent and whose discipline ticks a hundred thousand times a second, in one
/// interval.
const TICKING: &str = "duration = '10s'\nwarmup = '0s'\nrecord.interval = '10s'\n\
    link = { rate = '10mbit', qdisc = { kind = 'pi', w = '100000hz' } }\n\
    [[traffic]]\nkind = 'cbr'\nflows = 1\nrate = '1kbit'\n";

fn pulses(most: usize) -> (Vec<Pulse>, bool) {
    let none = |name: &str| Err(format!("{name}: tests read no files"));
    let resolved = scenario::resolve(TICKING, "test.toml", &[], &none).expect("a scenario");
    let scenario = resolved.scenario().expect("nothing to calibrate");
    let mut seen = Vec::new();
    let outcome = sim::run(scenario, &mut Kept::default(), &mut |simulation| {
        seen.push(simulation.pulse());
        seen.len() < most
    });
    (seen, outcome.is_some())
}

#[test]
fn a_run_tells_how_far_it_is_within_an_interval() {
    let (seen, is_whole) = pulses(usize::MAX);
    // Two directions tick a hundred thousand times a second for ten seconds: two million events at least.
    let last = seen.last().expect("at the end of the interval");
    assert!(is_whole && last.ticks >= 1_999_998 && last.events >= last.ticks, "{last:?}");
    assert!(seen.len() as u64 >= last.events >> 16, "{} pulses of {last:?}", seen.len());
    assert!(seen.windows(2).all(|pair| pair[0].now <= pair[1].now && pair[0].events < pair[1].events));
}

#[test]
fn a_run_is_broken_off_within_an_interval() {
    let (seen, is_whole) = pulses(1);
    assert!(!is_whole && seen[0].now.secs_f64() < 10.0, "{seen:?}");
}

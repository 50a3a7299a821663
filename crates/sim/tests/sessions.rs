//! Web sessions and PackMime's connections in whole runs: the discipline changes neither what is asked for nor, where
//! demand is open loop, when; and servers take the time that is drawn.

use crate::common::Kept;
use record::ExchangeRow;
use std::collections::BTreeMap;

fn exchanges(model: &str, overrides: &[(&str, &str)]) -> Vec<ExchangeRow> {
    let how_many = if model == "packmime" { "arrivals = '140hz'" } else { "users = 1200" };
    let text = format!(
        "duration = '120s'\nwarmup = '0s'\nlink.rate = '10mbit'\ntcp.stack = 'freebsd4'\n\
         [[traffic]]\nkind = 'web'\nmodel = '{model}'\n{how_many}\ndirection = 'forward'\n"
    );
    let overrides: Vec<_> = overrides.iter().map(|&(key, value)| (key.to_owned(), value.to_owned())).collect();
    let resolved = scenario::resolve(&text, "sessions.toml", &overrides, &|_| Err("no files here".to_owned()))
        .expect("a sound scenario");
    let mut kept = Kept::default();
    sim::run(resolved.scenario().expect("users are given"), &mut kept, &mut |_| true).expect("not broken off");
    kept.exchanges
}

/// What each session asked for: its requests by instant, with their sizes.
fn requests(rows: &[ExchangeRow]) -> BTreeMap<(u32, u64), Vec<u64>> {
    let mut requests: BTreeMap<(u32, u64), Vec<u64>> = BTreeMap::new();
    for row in rows {
        requests.entry((row.source, row.start.ns())).or_default().push(row.response_bytes);
    }
    requests
}

#[test]
fn the_discipline_changes_no_demand() {
    // Near what ten megabits carry, so that the disciplines make a difference, and still nearly all is answered.
    for (model, users) in [("feldmann-pareto1", "1200"), ("kuzmanovic2005", "1700"), ("feldmann-exp2", "900")] {
        let [one, other] = ["{ kind = 'pfifo', limit = '200p' }", "{ kind = 'pi', qref = '5p' }"]
            .map(|qdisc| exchanges(model, &[("link.qdisc", qdisc), ("traffic.0.users", users)]));
        assert!(one.iter().zip(&other).any(|(a, b)| a.response_time != b.response_time), "{model}: no difference");
        let [one, other] = [one, other].map(|rows| requests(&rows));
        // All that both have, in time and size. What one of them lacks was not answered before the run ended: with
        // response times of a second or so, one in a hundred of two minutes' requests.
        let both: Vec<_> = one.iter().filter_map(|(when, what)| Some((what, other.get(when)?))).collect();
        assert!(both.len() > 3_000, "{model}: {} requests compared", both.len());
        assert!(both.iter().all(|(a, b)| a == b), "{model}");
        let answered = both.len() as f64 / one.len().min(other.len()) as f64;
        assert!(answered > 0.99, "{model}: {answered} of the requests are the same");
    }
}

#[test]
fn the_discipline_delays_pages_from_end_to_start() {
    // Small objects after one another, so that a slow page puts the next one off: on a tenth of the rate, fewer pages.
    let pages = |rate| {
        let closed = [("traffic.0.pages", "end-to-start"), ("traffic.0.inter_page", "2s"), ("link.rate", rate)];
        exchanges("feldmann-exp2", &closed).len() as f64
    };
    let (fast, slow) = (pages("100mbit"), pages("10mbit"));
    // 1,200 sessions, a page every 2 s and what it takes: 0.3 s on the idle link, where 60 Mb/s are asked for.
    assert!((0.9..1.1).contains(&(fast * 2.3 / 1200.0 / 120.0)), "{fast} pages");
    assert!(slow < fast / 4.0, "{slow} against {fast}: ten megabits carry a sixth");
}

/// Connections begin at the same instants, with the same first request; later ones wait for the responses.
#[test]
fn the_discipline_changes_no_demand_of_packmime() {
    let [one, other] = ["{ kind = 'pfifo', limit = '200p' }", "{ kind = 'pi', qref = '5p' }"]
        .map(|qdisc| exchanges("packmime", &[("link.qdisc", qdisc)]));
    let [one, other] = [one, other].map(|rows| requests(&rows));
    let begun_alike = one.iter().filter(|&(when, what)| other.get(when) == Some(what)).count();
    // 140 a second for two minutes, all but 9 % in connections of one exchange; the first of the others as well.
    assert!(begun_alike > 140 * 120 * 95 / 100, "{begun_alike} requests are the same");
}

/// Twice the same connections on an idle link, with and without the servers' delays: what they differ by is those.
#[test]
fn servers_take_time_to_answer() {
    let idle = |delay| {
        let overrides = [
            ("link.rate", "1gbit"),
            ("traffic.0.persistent", "0"),
            ("traffic.0.server_delay", delay),
            ("cooldown", "0s"),
        ];
        let rows = exchanges("packmime", &overrides);
        rows.iter().map(|row| (row.start.ns(), *row)).collect::<BTreeMap<_, _>>()
    };
    let (with, without) = (idle("true"), idle("false"));
    let delays: Vec<f64> = with
        .iter()
        .filter_map(|(when, row)| Some(row.response_time.secs_f64() - without.get(when)?.response_time.secs_f64()))
        .collect();
    let n = delays.len() as f64;
    assert!(n > 15_000.0, "{n} exchanges");
    // The server's acknowledgement of the request and the packets of others move an answer by less than a millisecond.
    assert!(delays.iter().all(|delay| (-0.001..0.101).contains(delay)));
    // A Weibull of shape 0.63 and scale 305 is below 10 with probability 0.1096.
    let longest = delays.iter().filter(|&&delay| delay > 0.0995).count() as f64 / n;
    assert!((longest - 0.1096).abs() < 4.0 * (0.1096 * 0.8904 / n).sqrt(), "{longest} of the delays are the longest");
}

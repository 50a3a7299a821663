//! Draws PackMime-HTTP alone, two hundred thousand connections at 400 a second, and checks every distribution against
//! the model's values: quantiles as found in 400,000 draws of ns-2.35's implementation, and closed forms.

use base::{Span, Stream, Time, maths};
use std::collections::{BTreeMap, BTreeSet};
use traffic::{Command, PackMime, PackMimeModel};

const RATE: f64 = 400.0;
const CONNECTIONS: usize = 200_000;

fn model(persistent: f64) -> PackMimeModel {
    PackMimeModel { connections_per_s: RATE, persistent, server_delay: true }
}

#[derive(Default)]
struct Connection {
    at: Time,
    requests: Vec<f64>,
    responses: Vec<f64>,
    delays_s: Vec<f64>,
    /// From a response to the next request.
    gaps_s: Vec<f64>,
    is_kept_open: bool,
}

/// The first `count` connections, over a network on which exchanges take up to `slowest_ms`; complete where they ended
/// within the run.
fn connections(persistent: f64, count: usize, slowest_ms: u64) -> Vec<Connection> {
    let streams = ["connections", "arrivals", "requests"].map(|name| Stream::named(1, name));
    let (mut packmime, model) = (PackMime::new(RATE, streams), model(persistent));
    let mut network = Stream::named(5, "network");
    // By time and number: a lane whose exchange ends, or a time that is over.
    let (mut events, mut number) = (BTreeMap::new(), 0);
    events.insert((Time::ZERO + packmime.begin(), 0), None);
    let (mut out, mut all, mut by_lane) = (Vec::new(), Vec::<Connection>::new(), BTreeMap::new());
    while all.len() < count {
        let ((now, _), lane) = events.pop_first().expect("there is always a next connection");
        match lane {
            None => packmime.wake(now, &model, &mut out),
            Some(lane) => packmime.completed(lane, now, &mut out),
        }
        for command in out.drain(..) {
            number += 1;
            let (lane, ask) = match command {
                Command::Think { span } => {
                    if let Some(index) = lane.and_then(|lane| by_lane.get(&lane)) {
                        let connection: &mut Connection = &mut all[*index];
                        connection.gaps_s.push(span.secs_f64());
                    }
                    events.insert((now + span, number), None);
                    continue;
                }
                Command::Close { lane } => {
                    by_lane.remove(&lane).expect("an open connection");
                    continue;
                }
                Command::Open { lane, ask, last, .. } => {
                    assert_eq!(last, lane == Command::NO_LANE);
                    if !last {
                        assert!(by_lane.insert(lane, all.len()).is_none(), "a lane has one connection at a time");
                    }
                    all.push(Connection { at: now, is_kept_open: !last, ..Connection::default() });
                    (lane, ask)
                }
                Command::Ask { lane, ask } => (lane, ask),
            };
            let index = if lane == Command::NO_LANE { all.len() - 1 } else { by_lane[&lane] };
            all[index].requests.push(f64::from(ask.request_bytes));
            all[index].responses.push(ask.response_bytes as f64);
            all[index].delays_s.push(ask.server_delay.secs_f64());
            events.insert((now + Span::from_ms(1 + network.below(slowest_ms)), number), Some(lane));
        }
    }
    all
}

fn logistic(x: f64) -> f64 {
    1.0 / (1.0 + maths::exp(-x))
}

/// The mean of a Weibull, rounded up: the sum of P(W > k).
fn mean_rounded_up(scale: f64, shape: f64) -> f64 {
    (0..1_000).map(|k| maths::exp(-maths::pow(f64::from(k) / scale, shape))).sum()
}

fn share(values: &[f64], up_to: f64) -> f64 {
    values.iter().filter(|&&x| x <= up_to).count() as f64 / values.len() as f64
}

/// The value is the quantile `p` within the 3 % that knots and rounding to bytes may cost, and the `slack` of a share.
fn is_quantile(name: &str, values: &[f64], p: f64, value: f64, slack: f64) {
    let [low, high] = [0.97, 1.03].map(|factor| share(values, value * factor));
    assert!(low - slack <= p && p <= high + slack, "{name}: {value} is between {low} and {high}, not at {p}");
}

/// Four standard errors of a share among as many independent values.
fn four_errors(p: f64, values: &[f64]) -> f64 {
    4.0 * (p * (1.0 - p) / values.len() as f64).sqrt()
}

fn near(name: &str, values: &[f64], wanted: f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let bound = 4.0 * (values.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / n / n).sqrt();
    assert!((mean - wanted).abs() <= bound, "{name}: {mean} against {wanted}");
}

#[test]
fn sizes_and_delays_have_their_quantiles() {
    let all = connections(0.0, CONNECTIONS, 300);
    let of = |f: fn(&Connection) -> f64| all.iter().map(f).collect::<Vec<f64>>();
    let responses = of(|c| c.responses[0]);

    let (validations, downloads): (Vec<f64>, Vec<f64>) = responses.iter().partition(|&&x| x <= 275.0);
    for (p, value) in [(0.10, 75.0), (0.50, 141.0), (0.90, 249.0)] {
        is_quantile("validation", &validations, p, value, four_errors(p, &validations));
    }
    for (p, value) in [
        (0.25, 691.0),
        (0.50, 2_258.0),
        (0.75, 8_895.0),
        (0.90, 20_311.0),
        (0.95, 35_871.0),
        (0.99, 93_108.0),
        (0.999, 604_295.0),
    ] {
        is_quantile("download", &downloads, p, value, four_errors(p, &downloads));
    }
    // Runs of both: their mean lengths give the share, and that they are runs the number of turns.
    let octaves = maths::ln(RATE) * std::f64::consts::LOG2_E;
    let validation_run = mean_rounded_up(0.775, logistic(0.718 + 0.357 * octaves));
    let download_run = mean_rounded_up(3.11, logistic(1.293 + 0.316 * octaves));
    let turns = responses.windows(2).filter(|pair| pair[0] <= 275.0 && pair[1] > 275.0).count() as f64;
    // The number of pairs of runs has at most the variance of a Poisson process's, as run lengths vary less than
    // exponential ones do; so has the share.
    let pairs = CONNECTIONS as f64 / (validation_run + download_run);
    assert!((turns - pairs).abs() < 4.0 * pairs.sqrt(), "{turns} runs against {pairs}");
    let found = validations.len() as f64 / CONNECTIONS as f64;
    let wanted = validation_run / (validation_run + download_run);
    assert!((found - wanted).abs() < 4.0 * wanted / pairs.sqrt(), "{found} against {wanted}");

    // Requests are long-range dependent: at this rate 1.2 % of their variance, of which n^(2H-2) = 0.01 is left in the
    // mean of so many, H 0.81: a standard error of 0.011 in the normal, at most 0.4 of that in a share. Four of them.
    let requests = of(|c| c.requests[0]);
    for (p, value) in [(0.10, 280.0), (0.25, 351.0), (0.50, 420.0), (0.75, 514.0), (0.90, 869.0), (0.99, 3_062.0)] {
        is_quantile("request", &requests, p, value, 0.018);
    }

    let delays = of(|c| c.delays_s[0]);
    assert!(delays.iter().all(|&delay| 0.0 < delay && delay <= 0.1));
    for longer_than in [0.002, 0.01, 0.0999] {
        let p = 1.0 - maths::exp(-maths::pow(1.0 / longer_than / 305.0, 0.63));
        let found = 1.0 - share(&delays, longer_than);
        assert!((found - p).abs() < four_errors(p, &delays), "over {longer_than} s: {found} against {p}");
    }
}

#[test]
fn arrivals_have_the_rate() {
    // 2 % of their variance is long-range dependent with H 0.83, of which n^(2H-2) = 0.016 is left in the mean: a
    // standard error of 1.8 % in the normal, and as much in nearly exponential gaps. Four of them.
    let last = connections(0.0, CONNECTIONS, 300).last().expect("there are some").at;
    let rate = CONNECTIONS as f64 / last.secs_f64();
    assert!((rate / RATE - 1.0).abs() < 0.072, "{rate}");
}

#[test]
fn persistent_connections_are_as_the_model_has_them() {
    let all = connections(0.09, CONNECTIONS / 2, 300);
    near("persistent", &all.iter().map(|c| f64::from(u8::from(c.is_kept_open))).collect::<Vec<_>>(), 0.09);

    let all = connections(1.0, CONNECTIONS, 300);
    // Those of the first half have ended, but for one in a thousand: they had over four minutes, and one time between
    // pages in five hundred is longer.
    let ended = &all[..CONNECTIONS / 2];
    // A rounded up exponential of mean m has the mean 1/(1 - e^(-1/m)).
    let rounded_up = |mean: f64| 1.0 / (1.0 - maths::exp(-1.0 / mean));
    let several = 1.0 + rounded_up(1.578);
    let pages = 1.0 + rounded_up(0.417);
    let wanted = 0.82 * several + 0.18 * pages * (0.31 * several + 0.69);
    near("exchanges", &ended.iter().map(|c| c.requests.len() as f64).collect::<Vec<_>>(), wanted);
    // All of a connection's requests are of one size, and after a validation its responses too.
    let one_size = |sizes: &[f64]| sizes.iter().all(|&size| size == sizes[0]);
    assert!(ended.iter().all(|c| one_size(&c.requests)));
    assert!(ended.iter().filter(|c| c.responses[0] <= 275.0).all(|c| one_size(&c.responses)));

    // One value of each connection, so that they are independent.
    let later: Vec<f64> =
        ended.iter().filter(|c| c.responses[0] > 275.0).filter_map(|c| c.responses.get(1).copied()).collect();
    let response = Powers { location: 10.62, spread: 0.94, shape: 3.22, error: 2.43 };
    for x in [50.0, 300.0, 1_574.0, 8_000.0, 50_000.0] {
        // Whole bytes: at most x are those below x + 1.
        is_share(&format!("later responses up to {x} B"), &later, x, response.at_most(x + 1.0));
    }
    // The first gap is one between pages where the first page of several has a single object.
    let gaps: Vec<f64> = ended.iter().map(|c| c.gaps_s[0]).collect();
    let between_pages = Powers { location: 3.22, spread: 0.73, shape: 1.85, error: 1.21 };
    let between_objects = Powers { location: -4.15, spread: 3.12, shape: 2.35, error: 1.57 };
    for x in [0.001, 0.01, 0.056, 0.3, 3.0, 9.3, 30.0] {
        let wanted = 0.18 * 0.69 * between_pages.at_most(x) + (1.0 - 0.18 * 0.69) * between_objects.at_most(x);
        is_share(&format!("first gaps up to {x} s"), &gaps, x, wanted);
    }
}

/// 2^N(m, `error` times a gamma of `shape` and mean 1), m from N(`location`, `spread`).
struct Powers {
    location: f64,
    spread: f64,
    shape: f64,
    error: f64,
}

impl Powers {
    /// P(X <= x), as the mean over the gamma.
    fn at_most(&self, x: f64) -> f64 {
        let mut stream = Stream::named(8, "integral");
        let n = 400_000;
        let octaves = maths::ln(x) * std::f64::consts::LOG2_E - self.location;
        let mut given_gamma = || {
            let variance = self.spread + self.error * gamma_by_sums(self.shape, &mut stream) / self.shape;
            maths::normal_cumulative(octaves / variance.sqrt())
        };
        (0..n).map(|_| given_gamma()).sum::<f64>() / f64::from(n)
    }
}

/// The share of values up to `x` is as wanted; four standard errors, and half of that for what is wanted, which is an
/// integral over four times as many draws.
fn is_share(name: &str, values: &[f64], x: f64, wanted: f64) {
    let found = share(values, x);
    assert!((found - wanted).abs() < 1.5 * four_errors(wanted, values), "{name}: {found} against {wanted}");
}

/// A gamma by Johnk's and the sum of exponentials, another way than the model's own.
fn gamma_by_sums(shape: f64, stream: &mut Stream) -> f64 {
    let whole = shape.floor();
    let rest = shape - whole;
    let exponentials = (0..whole as u32).map(|_| -maths::ln(stream.open_unit())).sum::<f64>();
    loop {
        let [x, y] = [1.0 / rest, 1.0 / (1.0 - rest)].map(|power| maths::pow(stream.open_unit(), power));
        if x + y <= 1.0 {
            return exponentials - x / (x + y) * maths::ln(stream.open_unit());
        }
    }
}

#[test]
fn the_network_does_not_change_the_demands() {
    let [fast, slow] = [20, 5_000].map(|ms| connections(0.5, 20_000, ms));
    let mut instants = BTreeSet::new();
    for (a, b) in fast.iter().zip(&slow) {
        assert_eq!(a.at, b.at, "connections begin whatever happens");
        instants.insert(a.at);
        // What one has not got to within the run, the other may have.
        let both = a.requests.len().min(b.requests.len());
        assert_eq!(a.requests[..both], b.requests[..both]);
        assert_eq!(a.responses[..both], b.responses[..both]);
        assert_eq!(a.delays_s[..both], b.delays_s[..both]);
        let both = a.gaps_s.len().min(b.gaps_s.len());
        assert_eq!(a.gaps_s[..both], b.gaps_s[..both]);
    }
    assert!(instants.len() > 19_990, "gaps differ");
}

//! Draws every set of web sessions alone and checks its distributions against what is stated of them: quantiles, and
//! means of values cut at some multiple of the mean, for a Pareto of shape 1.2 has no variance and its sample's mean no
//! standard error. All bounds are four standard errors of what was found.

use base::{Distribution, Span, Stream, Time, maths};
use std::collections::{BTreeMap, BTreeSet};
use traffic::{Command, Pages, Residual, Session, SessionModel, Sizes};

/// What a set states of a quantity: P(X > x), the values at which to look, and whether it is rounded up.
enum Stated {
    Pareto { mean: f64, shape: f64 },
    Exponential { mean: f64 },
    Always(f64),
}
use Stated::{Always, Exponential, Pareto};

impl Stated {
    /// P(X > x).
    fn beyond(&self, x: f64) -> f64 {
        match *self {
            Pareto { mean, shape } => maths::pow(mean * (shape - 1.0) / shape / x, shape).min(1.0),
            Exponential { mean } => maths::exp(-x / mean),
            Always(value) => f64::from(u8::from(x < value)),
        }
    }

    fn mean(&self) -> f64 {
        match *self {
            Pareto { mean, .. } | Exponential { mean } | Always(mean) => mean,
        }
    }

    /// E min(X, c): the integral of P(X > x) up to c.
    fn mean_up_to(&self, c: f64) -> f64 {
        match *self {
            Pareto { mean, shape } => {
                let scale = mean * (shape - 1.0) / shape;
                scale + scale / (shape - 1.0) * (1.0 - maths::pow(scale / c, shape - 1.0))
            }
            Exponential { mean } => mean * (1.0 - maths::exp(-c / mean)),
            Always(value) => value.min(c),
        }
    }
}

struct Set {
    name: &'static str,
    inter_page: Stated,
    objects: Stated,
    inter_object: Stated,
    /// `None`: the responses of the UNC web model.
    size: Option<Stated>,
}

/// Feldmann et al., SIGCOMM 1999, as the page on them has it.
const SETS: [Set; 6] = [
    Set {
        name: "feldmann-pareto1",
        inter_page: Pareto { mean: 50.0, shape: 2.0 },
        objects: Pareto { mean: 4.0, shape: 1.2 },
        inter_object: Pareto { mean: 0.5, shape: 1.5 },
        size: Some(Pareto { mean: 12_000.0, shape: 1.2 }),
    },
    Set {
        name: "feldmann-pareto2",
        inter_page: Pareto { mean: 10.0, shape: 2.0 },
        objects: Pareto { mean: 3.0, shape: 1.5 },
        inter_object: Pareto { mean: 0.5, shape: 1.5 },
        size: Some(Pareto { mean: 12_000.0, shape: 1.2 }),
    },
    Set {
        name: "feldmann-exp1",
        inter_page: Pareto { mean: 25.0, shape: 2.0 },
        objects: Always(1.0),
        inter_object: Always(0.0),
        size: Some(Exponential { mean: 12_000.0 }),
    },
    Set {
        name: "feldmann-exp2",
        inter_page: Exponential { mean: 10.0 },
        objects: Always(1.0),
        inter_object: Always(0.0),
        size: Some(Exponential { mean: 12_000.0 }),
    },
    Set {
        name: "feldmann-constant",
        inter_page: Always(10.0),
        objects: Always(1.0),
        inter_object: Always(0.0),
        size: Some(Always(1e6)),
    },
    Set {
        name: "kuzmanovic2005",
        inter_page: Pareto { mean: 50.0, shape: 2.0 },
        objects: Pareto { mean: 4.0, shape: 1.2 },
        inter_object: Pareto { mean: 0.5, shape: 1.5 },
        size: None,
    },
];

fn model(name: &str) -> SessionModel {
    SessionModel::named(name).expect("the model has this name")
}

#[test]
fn every_set_has_the_distributions_that_are_stated() {
    assert_eq!(SETS.map(|set| set.name), SessionModel::NAMES);
    for set in SETS {
        let drawn = draw(&model(set.name), 250_000);
        let is = |what: &str| format!("{}: {what}", set.name);
        follows(&is("time between pages"), &drawn.inter_page_s, &set.inter_page);
        follows(&is("time between objects"), &drawn.inter_object_s, &set.inter_object);
        rounded_up_follows(&is("objects a page"), &drawn.objects, &set.objects);
        if let Some(size) = &set.size {
            follows(&is("size"), &drawn.sizes, size);
        }
    }
}

#[test]
fn kuzmanovics_sizes_are_smiths() {
    let model = model("kuzmanovic2005");
    // Kuzmanovic 2005: mean 7.2 kB; the top 15 % of sizes carry 80 % of the bytes.
    assert!((model.size.mean() - 7_200.0).abs() < 50.0, "{}", model.size.mean());
    let sizes = draw(&model, 250_000).sizes;
    let top = model.size.quantile(0.85);
    let mean = sizes.iter().sum::<f64>() / sizes.len() as f64;
    near("the mean", &sizes, model.size.mean());
    // The share of bytes above the quantile, as a ratio of means (delta method); the model has 80.7 %.
    let deviations: Vec<f64> = sizes.iter().map(|&x| (if x > top { x } else { 0.0 } - 0.807 * x) / mean).collect();
    near("bytes in the top 15 %, less 0.807", &deviations, 0.0);
}

/// The mean number of objects is that of a Pareto rounded up: 1 + s^a ζ(a).
#[test]
fn rounding_up_makes_pages_larger_than_stated() {
    for (name, scale, shape, zeta, mean) in
        [("feldmann-pareto1", 2.0 / 3.0, 1.2, 5.591_582, 4.44), ("feldmann-pareto2", 1.0, 1.5, 2.612_375, 3.61)]
    {
        assert_eq!(model(name).objects, Distribution::Pareto { scale, shape }, "{name}");
        let objects: f64 = 1.0 + maths::pow(scale, shape) * zeta;
        assert!((objects - mean).abs() < 0.005, "{name}: {objects}");
    }
}

/// Pages begin at their long-term rate from the first instant on: of a stationary renewal process, t/mean in any
/// window t. Half a minute is less than the mean.
#[test]
fn populations_start_stationary() {
    let window = Time::ZERO + Span::from_secs(30);
    for set in SETS {
        let model = SessionModel { objects: Distribution::Constant(1.0), ..model(set.name) };
        let between = Residual::of(&model.inter_page);
        let mut out = Vec::new();
        let pages: Vec<f64> = (0..20_000)
            .map(|number| {
                let mut session = Session::new(Stream::named(9, &format!("session/{number}")));
                let mut at = Time::ZERO + session.begin(&model, &between);
                let mut pages = 0.0;
                while at < window {
                    session.wake(at, &model, &mut out);
                    pages += 1.0;
                    for command in out.drain(..) {
                        if let Command::Think { span } = command {
                            at += span;
                        }
                    }
                }
                pages
            })
            .collect();
        near(set.name, &pages, 30.0 / set.inter_page.mean());
    }
}

/// What is asked for does not depend on when it is answered, in neither reading; start-to-start, neither does when it
/// is asked for.
#[test]
fn the_network_does_not_change_the_demands() {
    for set in SETS {
        for pages in [Pages::StartToStart, Pages::EndToStart] {
            let model = SessionModel { pages, ..model(set.name) };
            let [fast, slow] = [30, 3_000].map(|ms| demands(&model, ms));
            let both = fast.len().min(slow.len());
            assert!(both > 100, "{}: {both} objects", set.name);
            let is_same = |(a, b): (&Asked, &Asked)| a.what == b.what && (a.at == b.at || pages == Pages::EndToStart);
            assert!(fast.iter().zip(&slow).all(is_same), "{} {pages:?}", set.name);
            assert_eq!(fast.len() == slow.len(), pages == Pages::StartToStart, "{} {pages:?}", set.name);
            assert_eq!(fast, demands(&model, 30), "the same stream asks for the same");
            // Every page has a path of its own, which all of its objects share.
            let paths = |asked: &[Asked]| asked.iter().map(|a| a.what.1).collect::<BTreeSet<_>>().len();
            assert_eq!(paths(&fast), fast.iter().filter(|a| a.what.2).count(), "{}", set.name);
        }
    }
}

#[derive(PartialEq, Debug)]
struct Asked {
    at: Time,
    /// Bytes, round-trip time, whether it is a page's first.
    what: (u64, u64, bool),
}

/// What one session asks for in an hour and a half when objects take up to `slowest_ms`.
fn demands(model: &SessionModel, slowest_ms: u64) -> Vec<Asked> {
    let mut session = Session::new(Stream::named(4, "traffic/0/session/7"));
    let mut network = Stream::named(4, "network");
    // By time and number: whether it is a time that is over rather than an object that has arrived.
    let (mut events, mut number) = (BTreeMap::new(), 0);
    events.insert((Time::ZERO + session.begin(model, &Residual::of(&model.inter_page)), 0), true);
    let (mut out, mut asked) = (Vec::new(), Vec::new());
    while let Some(((now, _), is_time)) = events.pop_first() {
        if now > Time::ZERO + Span::from_secs(5_400) {
            break;
        }
        if is_time {
            session.wake(now, model, &mut out)
        } else {
            session.ended(now, model, &mut out)
        }
        for command in out.drain(..) {
            number += 1;
            match command {
                Command::Think { span } => events.insert((now + span, number), true),
                Command::Open { rtt_unit, ask, .. } => {
                    asked.push(Asked { at: now, what: (ask.response_bytes, rtt_unit.to_bits(), ask.top_level) });
                    events.insert((now + Span::from_ms(1 + network.below(slowest_ms)), number), false)
                }
                Command::Ask { .. } | Command::Close { .. } => panic!("{command:?} on a connection for one object"),
            };
        }
    }
    asked
}

#[derive(Default)]
struct Drawn {
    inter_page_s: Vec<f64>,
    objects: Vec<f64>,
    inter_object_s: Vec<f64>,
    sizes: Vec<f64>,
}

/// Fetches pages one after the other: all objects of each, however many, and the time to the next.
fn draw(model: &SessionModel, pages: usize) -> Drawn {
    let model = SessionModel { pages: Pages::EndToStart, ..model.clone() };
    let mut session = Session::new(Stream::named(1, "draws"));
    let mut now = Time::ZERO + session.begin(&model, &Residual::of(&model.inter_page));
    let (mut drawn, mut out) = (Drawn::default(), Vec::new());
    while drawn.objects.len() < pages {
        let mut objects = 0;
        loop {
            session.wake(now, &model, &mut out);
            objects += 1;
            let mut gap = None;
            for command in out.drain(..) {
                match command {
                    Command::Open { ask, .. } => drawn.sizes.push(ask.response_bytes as f64),
                    Command::Think { span } => gap = Some(span),
                    Command::Ask { .. } | Command::Close { .. } => panic!("{command:?}"),
                }
            }
            let Some(gap) = gap else { break };
            drawn.inter_object_s.push(gap.secs_f64());
            now += gap;
        }
        drawn.objects.push(f64::from(objects));
        for _ in 0..objects {
            session.ended(now, &model, &mut out);
        }
        let Some(Command::Think { span }) = out.pop() else { panic!("the page is over") };
        drawn.inter_page_s.push(span.secs_f64());
        now += span;
    }
    drawn
}

/// Quantiles, and means of values cut at two and at thirty times the mean.
fn follows(name: &str, values: &[f64], stated: &Stated) {
    if let Always(value) = *stated {
        assert!(values.iter().all(|&x| x == value), "{name}");
        return;
    }
    for part in [0.1, 0.5, 1.0, 3.0, 30.0] {
        let x = part * stated.mean();
        share(&format!("{name}, over {x}"), values, x, stated.beyond(x));
    }
    for multiple in [2.0, 30.0] {
        let c = multiple * stated.mean();
        let cut: Vec<f64> = values.iter().map(|&x| x.min(c)).collect();
        near(&format!("{name}, cut at {c}"), &cut, stated.mean_up_to(c));
    }
}

/// The same for whole numbers: P(ceil X > k) is P(X > k).
fn rounded_up_follows(name: &str, values: &[f64], stated: &Stated) {
    if let Always(value) = *stated {
        assert!(values.iter().all(|&x| x == value), "{name}");
        return;
    }
    for k in [1, 2, 4, 10, 100] {
        share(&format!("{name}, over {k}"), values, f64::from(k), stated.beyond(f64::from(k)));
    }
    let cut: Vec<f64> = values.iter().map(|&x| x.min(100.0)).collect();
    near(&format!("{name}, cut at 100"), &cut, 1.0 + (1..100).map(|k| stated.beyond(f64::from(k))).sum::<f64>());
}

fn share(name: &str, values: &[f64], x: f64, wanted: f64) {
    let n = values.len() as f64;
    let found = values.iter().filter(|&&value| value > x).count() as f64 / n;
    let bound = 4.0 * (wanted * (1.0 - wanted) / n).sqrt();
    assert!((found - wanted).abs() <= bound, "{name}: {found} against {wanted}");
}

fn near(name: &str, values: &[f64], wanted: f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let bound = 4.0 * (values.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / n / n).sqrt();
    assert!((mean - wanted).abs() <= bound.max(1e-9 * wanted), "{name}: {mean} against {wanted}");
}

/// A scenario may state sizes in any form.
#[test]
fn sizes_may_be_stated() {
    let model = SessionModel { size: Sizes::Stated(Distribution::Constant(5_000.0)), ..model("feldmann-exp2") };
    assert!(draw(&model, 10).sizes.iter().all(|&size| size == 5_000.0));
}

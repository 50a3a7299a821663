//! Draws the UNC web model alone, two million exchanges, and checks every figure the studies state of it.
//!
//! Each anchor must lie in its band twice: exactly, where the model has a closed form, and as found in the draws, which
//! may miss the band by four standard errors of what was found.

#![expect(clippy::print_stdout, reason = "the table of anchors is for people to read")]

use base::{Span, Stream};
use std::collections::VecDeque;
use traffic::{Browser, Command, Piecewise, WebModel};

const EXCHANGES: usize = 2_000_000;

struct Drawn {
    responses: Vec<f64>,
    requests: Vec<f64>,
    objects_a_page: Vec<f64>,
    think_s: Vec<f64>,
    /// 1 for an exchange on a persistent connection, else 0.
    on_persistent: Vec<f64>,
    /// 1 for a persistent connection opened, 0 for another.
    opened_persistent: Vec<f64>,
}

struct Anchor {
    name: &'static str,
    wanted: &'static str,
    band: (f64, f64),
    model: Option<f64>,
    found: f64,
    error: f64,
}

#[test]
fn the_unc_model_has_the_figures_the_studies_state() {
    let model = WebModel::named("unc2001").expect("the model has this name");
    let drawn = draw(&model);
    let size = &model.embedded;
    assert_eq!(size, &model.top_level, "one distribution, so that closed forms speak for all responses");

    let mut sorted = drawn.responses.clone();
    sorted.sort_by(f64::total_cmp);
    let top = sorted[sorted.len() * 85 / 100];
    let top_model = size.quantile(0.85);
    let cycle = model.page_time + model.think.mean();
    // Bits of 10,000 users' exchanges, both ways, that one direction carries: its own side's responses and the other
    // side's requests make one whole exchange. 14 headers of 40 bytes: 3 to open and 4 to close six exchanges in ten, a
    // request, 5.6 segments, an ACK for two of them. A header more or less is 0.5 %.
    let load = |objects: f64, bytes: f64| 10_000.0 * objects / cycle * (bytes + 14.0 * 40.0) * 8.0;
    let objects = mean(&drawn.objects_a_page);
    let load = |objects: f64| load(objects, size.mean() + model.request.mean()) * 1e-6;

    let anchors = [
        // 7.2 kB stated to two digits.
        anchor("mean response, B", "7.2 kB", (7_150.0, 7_250.0), Some(size.mean()), &drawn.responses, |x| x),
        // Whole percents, and the two sides of 85 % cannot be met better together with the 10 kB figures.
        share("bytes in the top 15 % of sizes", "80 %", (0.79, 0.81), 1.0 - size.mass_share(top_model), &drawn, |x| {
            x > top
        }),
        count("responses up to 10 kB", "about 90 %", (0.89, 0.91), size.cumulative(1e4), &drawn, |x| x <= 1e4),
        share("bytes in them", "< 25 %", (0.20, 0.25), size.mass_share(1e4), &drawn, |x| x <= 1e4),
        count("responses over 1 MB", "< 1 %", (0.0, 0.01), 1.0 - size.cumulative(1e6), &drawn, |x| x > 1e6),
        share("bytes in them", "about 25 %", (0.24, 0.26), 1.0 - size.mass_share(1e6), &drawn, |x| x > 1e6),
        count("responses up to 2.5 kB", "about 70 %", (0.69, 0.71), size.cumulative(2.5e3), &drawn, |x| x <= 2.5e3),
        share("bytes up to 2 kB", "<= 6-8 %", (0.05, 0.08), size.mass_share(2e3), &drawn, |x| x <= 2e3),
        share("bytes up to 2.5 kB", "6-8 %", (0.06, 0.08), size.mass_share(2.5e3), &drawn, |x| x <= 2.5e3),
        share("bytes up to 3 kB", "6-8 %", (0.06, 0.08), size.mass_share(3e3), &drawn, |x| x <= 3e3),
        anchor("mean request, B", "some 350", (330.0, 370.0), Some(model.request.mean()), &drawn.requests, |x| x),
        anchor("objects a page", "5-6", (5.0, 6.0), None, &drawn.objects_a_page, |x| x),
        anchor("objects on persistent connections", "about 50 %", (0.48, 0.52), None, &drawn.on_persistent, |x| x),
        anchor("persistent among new connections", "about 15 %", (0.14, 0.17), None, &drawn.opened_persistent, |x| x),
        // 1.3 kB/s a user each way are 0.16 exchanges/s, so a page of 5 to 6 every 34 to 37 s; half a second for the
        // page itself more or less.
        anchor("a page every, s", "about 35", (33.0, 38.0), Some(cycle), &drawn.think_s, |x| x + model.page_time),
        Anchor {
            name: "load of 20,000 users a direction, Mb/s",
            wanted: "105, within 3 %",
            band: (105.0 * 0.97, 105.0 * 1.03),
            model: None,
            found: load(objects),
            error: load(error(&drawn.objects_a_page, objects)),
        },
    ];
    println!("{:40} | {:16} | {:>10} | {:>10} | {:>9}", "anchor", "wanted", "model", "found", "std error");
    for a in &anchors {
        let model = a.model.map_or_else(|| "-".to_string(), |m| format!("{m:.5}"));
        println!("{:40} | {:16} | {model:>10} | {:>10.5} | {:>9.5}", a.name, a.wanted, a.found, a.error);
    }
    for a in &anchors {
        let (low, high) = a.band;
        let slack = 4.0 * a.error;
        assert!((low - slack..=high + slack).contains(&a.found), "{}: {} outside {:?}", a.name, a.found, a.band);
        if let Some(model) = a.model {
            assert!((low..=high).contains(&model), "{}: the model's {model} outside {:?}", a.name, a.band);
            assert!((a.found - model).abs() <= slack, "{}: drew {}, the model says {model}", a.name, a.found);
        }
    }
}

#[test]
fn sizes_pages_and_pauses_are_heavy_tailed() {
    // Twenty times the mean is past e^-20 = 2e-9 of an exponential distribution; a Pareto tail of shape 1.2 to 1.5 is
    // still at 1e-4 to 1e-2 of the population there.
    let model = WebModel::named("unc2001").expect("the model has this name");
    let beyond = |d: &Piecewise| 1.0 - d.cumulative(20.0 * d.mean());
    for (name, d) in [("response", &model.embedded), ("objects", &model.objects), ("think", &model.think)] {
        println!("{name}: P(X > 20 mean) = {:.2e}", beyond(d));
        assert!(beyond(d) > 1e-4, "{name}");
    }
}

/// Lets a thousand users fetch pages over a network that answers in a scrambled order.
fn draw(model: &WebModel) -> Drawn {
    let mut drawn = Drawn {
        responses: Vec::new(),
        requests: Vec::new(),
        objects_a_page: Vec::new(),
        think_s: Vec::new(),
        on_persistent: Vec::new(),
        opened_persistent: Vec::new(),
    };
    let mut out = Vec::new();
    let mut order = Stream::named(1, "order");
    for user in 0.. {
        let mut browser = Browser::new(Stream::named(1, &format!("traffic/0/user/{user}")));
        let mut pages = 0;
        let mut think = Some(Span::ZERO);
        let mut under_way: VecDeque<u32> = VecDeque::new();
        let mut lane_persists = [false; 32];
        while pages < 400 {
            match think.take() {
                Some(_) => {
                    pages += 1;
                    drawn.objects_a_page.push(0.0);
                    browser.think_over(model, &mut out);
                }
                None => {
                    let pick = order.below(under_way.len() as u64) as usize;
                    let lane = under_way.remove(pick).expect("a page under way has an exchange under way");
                    browser.completed(lane, model, &mut out);
                }
            }
            for command in out.drain(..) {
                let (lane, ask) = match command {
                    Command::Open { lane, ask, last, .. } => {
                        lane_persists[lane as usize] = !last;
                        drawn.opened_persistent.push(if last { 0.0 } else { 1.0 });
                        (lane, ask)
                    }
                    Command::Ask { lane, ask } => (lane, ask),
                    Command::Close { .. } => continue,
                    Command::Think { span } => {
                        drawn.think_s.push(span.secs_f64());
                        think = Some(span);
                        continue;
                    }
                };
                under_way.push_back(lane);
                drawn.responses.push(ask.response_bytes as f64);
                drawn.requests.push(f64::from(ask.request_bytes));
                drawn.on_persistent.push(if lane_persists[lane as usize] { 1.0 } else { 0.0 });
                *drawn.objects_a_page.last_mut().expect("a page was begun") += 1.0;
            }
        }
        if drawn.responses.len() >= EXCHANGES {
            break;
        }
    }
    drawn
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The standard error of the mean.
fn error(values: &[f64], mean: f64) -> f64 {
    let n = values.len() as f64;
    (values.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / n / n).sqrt()
}

fn anchor(
    name: &'static str,
    wanted: &'static str,
    band: (f64, f64),
    model: Option<f64>,
    values: &[f64],
    map: impl Fn(f64) -> f64,
) -> Anchor {
    let mapped: Vec<f64> = values.iter().map(|&x| map(x)).collect();
    let found = mean(&mapped);
    Anchor { name, wanted, band, model, found, error: error(&mapped, found) }
}

/// The share of responses that `is_in`.
fn count(
    name: &'static str,
    wanted: &'static str,
    band: (f64, f64),
    model: f64,
    drawn: &Drawn,
    is_in: impl Fn(f64) -> bool,
) -> Anchor {
    anchor(name, wanted, band, Some(model), &drawn.responses, |x| if is_in(x) { 1.0 } else { 0.0 })
}

/// The share of bytes in responses that `is_in`; its error is that of a ratio of means (delta method).
fn share(
    name: &'static str,
    wanted: &'static str,
    band: (f64, f64),
    model: f64,
    drawn: &Drawn,
    is_in: impl Fn(f64) -> bool,
) -> Anchor {
    let inside = |x: f64| if is_in(x) { x } else { 0.0 };
    let all = mean(&drawn.responses);
    let found = mean(&drawn.responses.iter().map(|&x| inside(x)).collect::<Vec<_>>()) / all;
    let deviations: Vec<f64> = drawn.responses.iter().map(|&x| (inside(x) - found * x) / all).collect();
    Anchor { name, wanted, band, model: Some(model), found, error: error(&deviations, 0.0) }
}

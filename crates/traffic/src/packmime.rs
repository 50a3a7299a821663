//! PackMime-HTTP: web connections at a stated rate, from measured traffic of Bell Labs and the University of North
//! Carolina (Cao, Cleveland, Gao, Jeffay, Smith and Weigle, "Stochastic models for generating synthetic HTTP source
//! traffic", INFOCOM 2004), with the values that its implementation in ns-2.35 has.
//!
//! The model is one of connections, not of users: they begin at instants that do not depend on the network. Within a
//! persistent connection a request waits for the response before it, and then for a time that is drawn.
//!
//! R is the rate, in connections a second; L is the logistic function; N(m, v) a normal with variance v.
//!
//! | quantity | distribution |
//! |---|---|
//! | time between connections | Weibull, mean 1/R, shape L(0.352 + 0.388 log2 R) |
//! | its dependence | a [`Farima`] of order 0.33, noise L(0.333 + 0.414 log2 R) |
//! | persistent | 9 % of the connections |
//! | pages of a persistent connection | 1 with probability 0.82, else 1 + exponential, mean 0.417, rounded up |
//! | objects of a page | of several pages: 1 with probability 0.69; else 1 + exponential, mean 1.578, rounded up |
//! | time between pages, s | 2^N(m, 1.21 g), m from N(3.22, 0.73), g from Gamma(1.85), mean 1 |
//! | time between objects, s | 2^N(m, 1.57 g), m from N(-4.15, 3.12), g from Gamma(2.35), mean 1 |
//! | request, B | measured quantiles; one size a connection |
//! | its dependence | order 0.31, noise L(0.123 + 0.494 log2 R) |
//! | response, B | in turns a run of cache validations, at most 275 B, and one of downloads; measured quantiles |
//! | length of a run of validations | Weibull, scale 0.775, shape L(0.718 + 0.357 log2 R), rounded up |
//! | length of a run of downloads | Weibull, scale 3.11, shape L(1.293 + 0.316 log2 R), rounded up |
//! | later responses of a connection, B | 2^N(m, 2.43 g), m from N(10.62, 0.94), g from Gamma(3.22), mean 1 |
//! | the same after a validation | of its size |
//! | delay at the server, s | 1/max(10, Weibull of shape 0.63 and scale 305) |
//!
//! # Deviations
//! - m and g are drawn for each connection, as in the model, where they make connections differ. ns-2 draws those of
//!   the times once for all connections.
//! - A request depends on 1,000 before it, in ns-2 on 5,000.
//! - Sizes end where the tables of ns-2 do: requests at 886 kB, first responses at 61.6 MB. It extrapolates beyond, for
//!   one response in 300,000. Later responses of a connection, which have no table, end at 2^26 bytes.

use crate::farima::{Farima, normal};
use crate::web::{Command, Exchange};
use base::{Distribution, Span, Stream, Time, maths};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The parameters of the model.
#[derive(Clone, PartialEq, Debug)]
pub struct PackMimeModel {
    /// New connections a second, of all directions; R is that of one.
    pub connections_per_s: f64,
    /// Share of connections that are persistent.
    pub persistent: f64,
    /// Whether servers take time to answer.
    pub server_delay: bool,
}

/// The model's share of persistent connections.
pub const PERSISTENT: f64 = 0.09;

/// A response up to this size says that the cache is up to date, bytes.
const VALIDATION_MAX: u64 = 275;

/// One over the delay at the server, 1/s, as far as it is above 10.
const SERVER_FREQUENCY: Distribution = Distribution::Weibull { scale: 305.0, shape: 0.63 };

/// Where sizes end, bytes.
const SIZE_MAX: u64 = 1 << 26;

/// The source of the model's connections, and those under way.
#[derive(Clone, Debug)]
pub struct PackMime {
    stream: Stream,
    arrivals: Farima,
    requests: Farima,
    gap: Distribution,
    /// Lengths of runs of validations and of downloads.
    runs: [Distribution; 2],
    /// How many responses are left of the run under way.
    run_left: f64,
    /// Whether the responses of that run are downloads.
    is_download: bool,
    next_arrival: Time,
    /// Persistent connections by slot, and the slots that are free.
    connections: Vec<Persistent>,
    free: Vec<u32>,
    /// When slots ask again.
    due: BinaryHeap<Reverse<(Time, u32)>>,
}

/// A persistent connection under way.
#[derive(Clone, Debug)]
struct Persistent {
    stream: Stream,
    request_bytes: u32,
    /// The size of every response, if the first one was a validation.
    fixed_response: Option<u64>,
    response: PowerOfTwo,
    page_gap: PowerOfTwo,
    object_gap: PowerOfTwo,
    is_single_page: bool,
    /// Pages that are still to be asked for after this one.
    pages_left: u32,
    /// Objects of this page that are still to be asked for.
    objects_left: u32,
    /// The connection was given up while it waited to ask again.
    is_lost: bool,
}

/// Two to the power of a normal, whose mean and variance each connection has for itself.
#[derive(Clone, Copy, Debug)]
struct PowerOfTwo {
    mean: f64,
    deviation: f64,
}

impl PackMime {
    /// A source of `per_s` connections a second. The random streams are for what connections ask for, for the times
    /// between them, and for the sizes of requests.
    pub fn new(per_s: f64, [stream, arrivals, requests]: [Stream; 3]) -> Self {
        let octaves = log2(per_s);
        let of_rate = |intercept: f64, slope: f64| 1.0 / (1.0 + maths::exp(-(intercept + slope * octaves)));
        let shape = of_rate(0.352, 0.388);
        Self {
            stream,
            arrivals: Farima::new(arrivals, 0.33, of_rate(0.333, 0.414)),
            requests: Farima::new(requests, 0.31, of_rate(0.123, 0.494)),
            gap: Distribution::Weibull { scale: 1.0 / (per_s * maths::gamma(1.0 + 1.0 / shape)), shape },
            runs: [
                Distribution::Weibull { scale: 0.775, shape: of_rate(0.718, 0.357) },
                Distribution::Weibull { scale: 3.11, shape: of_rate(1.293, 0.316) },
            ],
            run_left: 0.0,
            is_download: false,
            next_arrival: Time::ZERO,
            connections: Vec::new(),
            free: Vec::new(),
            due: BinaryHeap::new(),
        }
    }

    /// How long after the start of the run the first connection begins. There are no connections before it.
    pub fn begin(&mut self) -> Span {
        let gap = Span::from_secs_f64(self.gap.quantile(self.arrivals.next_unit()));
        self.next_arrival = Time::ZERO + gap;
        gap
    }

    /// Begins the connection or the request that is due, since a [`Command::Think`] is over. Call it once for each such
    /// command, in the order of their ends. The lanes of persistent connections are their slots.
    pub fn wake(&mut self, now: Time, model: &PackMimeModel, out: &mut Vec<Command>) {
        match self.due.peek() {
            Some(&Reverse((due, slot))) if due < self.next_arrival => {
                self.due.pop();
                if self.connections[slot as usize].is_lost {
                    self.free.push(slot);
                } else {
                    let ask = self.next_request(slot, model);
                    out.push(Command::Ask { lane: slot, ask });
                }
            }
            _ => self.begin_connection(now, model, out),
        }
    }

    /// Goes on after the whole response on `lane` has arrived.
    pub fn completed(&mut self, lane: u32, now: Time, out: &mut Vec<Command>) {
        if lane == Command::NO_LANE {
            return;
        }
        let connection = &mut self.connections[lane as usize];
        let gap = match (connection.objects_left, connection.pages_left) {
            (0, 0) => {
                out.push(Command::Close { lane });
                self.free.push(lane);
                return;
            }
            (0, _) => {
                connection.next_page();
                connection.page_gap.draw(&mut connection.stream)
            }
            _ => connection.object_gap.draw(&mut connection.stream),
        };
        let span = Span::from_secs_f64(gap);
        self.due.push(Reverse((now + span, lane)));
        out.push(Command::Think { span });
    }

    /// Gives up the rest of the connection of `lane`, which failed `while_asking` or between two requests.
    pub fn failed(&mut self, lane: u32, while_asking: bool) {
        if lane == Command::NO_LANE {
            return;
        }
        if while_asking {
            self.free.push(lane);
        } else {
            self.connections[lane as usize].is_lost = true;
        }
    }

    fn begin_connection(&mut self, now: Time, model: &PackMimeModel, out: &mut Vec<Command>) {
        let is_persistent = self.stream.chance(model.persistent);
        let request_bytes = request(self.requests.next_unit());
        let response_bytes = self.response();
        let rtt_unit = self.stream.open_unit();
        let server_delay = server_delay(model, &mut self.stream);
        let own = self.stream.bits();
        let mut lane = Command::NO_LANE;
        let mut is_last = true;
        if is_persistent {
            let connection = Persistent::new(Stream::named(own, "connection"), request_bytes, response_bytes);
            is_last = connection.objects_left + connection.pages_left == 0;
            if !is_last {
                lane = self.keep(connection);
            }
        }
        let ask = Exchange { request_bytes, response_bytes, top_level: true, server_delay };
        out.push(Command::Open { lane, rtt_unit, ask, last: is_last });
        let span = Span::from_secs_f64(self.gap.quantile(self.arrivals.next_unit()));
        self.next_arrival = now + span;
        out.push(Command::Think { span });
    }

    fn keep(&mut self, connection: Persistent) -> u32 {
        if let Some(slot) = self.free.pop() {
            self.connections[slot as usize] = connection;
            return slot;
        }
        self.connections.push(connection);
        self.connections.len() as u32 - 1
    }

    fn next_request(&mut self, slot: u32, model: &PackMimeModel) -> Exchange {
        let connection = &mut self.connections[slot as usize];
        connection.objects_left -= 1;
        let stream = &mut connection.stream;
        let response_bytes = connection.fixed_response.unwrap_or_else(|| whole_bytes(connection.response.draw(stream)));
        let server_delay = server_delay(model, stream);
        Exchange { request_bytes: connection.request_bytes, response_bytes, top_level: false, server_delay }
    }

    /// Draws a response of the run under way, or of the next one.
    fn response(&mut self) -> u64 {
        if self.run_left <= 0.0 {
            self.is_download = !self.is_download;
            self.run_left = self.runs[usize::from(self.is_download)].draw(&mut self.stream).ceil();
        }
        self.run_left -= 1.0;
        whole_bytes(response_quantile(self.is_download, self.stream.open_unit()))
    }
}

impl Persistent {
    fn new(mut stream: Stream, request_bytes: u32, first_response: u64) -> Self {
        let more_pages = if stream.chance(0.82) { 0.0 } else { exponential(0.417, &mut stream).ceil() };
        let mut connection = Self {
            request_bytes,
            fixed_response: (first_response <= VALIDATION_MAX).then_some(first_response),
            response: PowerOfTwo::of_connection((10.62, 0.94), (3.22, 2.43), &mut stream),
            page_gap: PowerOfTwo::of_connection((3.22, 0.73), (1.85, 1.21), &mut stream),
            object_gap: PowerOfTwo::of_connection((-4.15, 3.12), (2.35, 1.57), &mut stream),
            is_single_page: more_pages == 0.0,
            pages_left: more_pages as u32 + 1,
            objects_left: 0,
            is_lost: false,
            stream,
        };
        connection.next_page();
        // The first object of the first page is asked for as the connection opens.
        connection.objects_left -= 1;
        connection
    }

    fn next_page(&mut self) {
        self.pages_left -= 1;
        let is_single_object = !self.is_single_page && self.stream.chance(0.69);
        let more = if is_single_object { 0.0 } else { exponential(1.578, &mut self.stream).ceil() };
        self.objects_left = more as u32 + 1;
    }
}

impl PowerOfTwo {
    /// Draws the parameters of one connection: a normal `mean` by (mean, variance), a gamma `variance` by (shape,
    /// mean).
    fn of_connection(mean: (f64, f64), variance: (f64, f64), stream: &mut Stream) -> Self {
        let variance_drawn = variance.1 * gamma(variance.0, stream) / variance.0;
        Self { mean: mean.0 + mean.1.sqrt() * normal(stream), deviation: variance_drawn.sqrt() }
    }

    fn draw(self, stream: &mut Stream) -> f64 {
        exp2(self.mean + self.deviation * normal(stream))
    }
}

/// The response, a download or a validation of a cache, at probability `p` in (0, 1), bytes.
pub fn response_quantile(is_download: bool, p: f64) -> f64 {
    if is_download { DOWNLOADS.quantile(p) } else { VALIDATIONS.quantile(p) }
}

/// The request at probability `p` in (0, 1), bytes.
pub fn request_quantile(p: f64) -> f64 {
    f64::from(request(p))
}

/// The request at probability `p`.
fn request(p: f64) -> u32 {
    let bytes = if p < 0.5 { REQUESTS_LOW.quantile(2.0 * p) } else { REQUESTS_HIGH.quantile(2.0 * p - 1.0) };
    bytes as u32
}

fn whole_bytes(bytes: f64) -> u64 {
    (bytes as u64).clamp(1, SIZE_MAX)
}

/// Draws the delay at the server, even if the model has none, so that all other draws stay the same without it.
fn server_delay(model: &PackMimeModel, stream: &mut Stream) -> Span {
    let frequency = SERVER_FREQUENCY.draw(stream);
    if model.server_delay { Span::from_secs_f64(1.0 / frequency.max(10.0)) } else { Span::ZERO }
}

/// The delay at the server at probability `p` in (0, 1), s.
pub fn server_delay_quantile(p: f64) -> f64 {
    1.0 / SERVER_FREQUENCY.quantile(1.0 - p).max(10.0)
}

fn exponential(mean: f64, stream: &mut Stream) -> f64 {
    Distribution::Exponential { mean }.draw(stream)
}

/// A gamma of this shape, at least 1, and scale 1 (Marsaglia and Tsang 2000).
fn gamma(shape: f64, stream: &mut Stream) -> f64 {
    let d = shape - 1.0 / 3.0;
    let c = 1.0 / (9.0 * d).sqrt();
    loop {
        let x = normal(stream);
        let v = maths::powi(1.0 + c * x, 3);
        if v > 0.0 && maths::ln(stream.open_unit()) < 0.5 * x * x + d - d * v + d * maths::ln(v) {
            return d * v;
        }
    }
}

fn log2(x: f64) -> f64 {
    maths::ln(x) * std::f64::consts::LOG2_E
}

fn exp2(x: f64) -> f64 {
    maths::exp(x * std::f64::consts::LN_2)
}

/// A quantile function as knots (where, value), linear in between and beyond.
struct Knots {
    /// In which terms the knots are.
    scale: Scale,
    knots: &'static [(f64, f64)],
}

enum Scale {
    /// Probability p and value.
    Plain,
    /// log2 (1 - p) and log2 of the value, so that a straight line is a Pareto tail.
    Logarithms,
}

/// Responses that validate a cache. Knots of the hundred in ns-2's table, within 1 % or 1.5 B of all.
static VALIDATIONS: Knots = Knots {
    scale: Scale::Plain,
    knots: &[
        (0.0, 4.5),
        (0.0203, 40.8),
        (0.0304, 53.0),
        (0.0405, 61.5),
        (0.091, 73.1),
        (0.1011, 74.8),
        (0.1314, 93.6),
        (0.1718, 107.0),
        (0.2728, 121.6),
        (0.6364, 153.9),
        (0.6869, 165.0),
        (0.7273, 183.4),
        (0.7576, 200.6),
        (0.8384, 225.7),
        (0.9495, 266.7),
        (1.0, 272.2),
    ],
};

/// Other responses; from 50 kB on a Pareto tail of shape 1.23. Within 2 % of ns-2's table.
static DOWNLOADS: Knots = Knots {
    scale: Scale::Logarithms,
    knots: &[
        (-18.18, 25.88),
        (-5.510, 15.603),
        (-5.143, 15.378),
        (-4.592, 15.205),
        (-4.225, 15.098),
        (-4.041, 15.004),
        (-3.674, 14.693),
        (-2.940, 13.925),
        (-2.205, 13.344),
        (-2.022, 13.148),
        (-1.838, 12.901),
        (-1.654, 12.601),
        (-1.471, 12.251),
        (-1.287, 11.855),
        (-1.103, 11.413),
        (-0.736, 10.410),
        (-0.185, 8.702),
        (0.0, 8.108),
    ],
};

/// The lower half of the requests. Within 1 % or 2 B of ns-2's table.
static REQUESTS_LOW: Knots = Knots {
    scale: Scale::Plain,
    knots: &[
        (0.0, 51.0),
        (0.0101, 93.8),
        (0.0202, 123.3),
        (0.0404, 168.8),
        (0.0505, 184.3),
        (0.0707, 200.0),
        (0.1010, 217.6),
        (0.1414, 253.1),
        (0.1818, 273.8),
        (0.3839, 330.0),
        (0.7172, 381.8),
        (1.0, 421.8),
    ],
};

/// The upper half; a Pareto tail of shape 1.49 from 1.2 kB on. Within 2 %.
static REQUESTS_HIGH: Knots = Knots {
    scale: Scale::Logarithms,
    knots: &[
        (-17.78, 19.758),
        (-3.598, 10.209),
        (-3.060, 9.935),
        (-2.162, 9.719),
        (-1.803, 9.547),
        (-1.085, 9.052),
        (-0.726, 8.882),
        (0.0, 8.724),
    ],
};

impl Knots {
    /// The value at probability `p` in (0, 1).
    fn quantile(&self, p: f64) -> f64 {
        let x = match self.scale {
            Scale::Plain => p,
            Scale::Logarithms => log2(1.0 - p),
        };
        let (first, last) = (self.knots[0], self.knots[self.knots.len() - 1]);
        let above = self.knots.partition_point(|knot| knot.0 < x).clamp(1, self.knots.len() - 1);
        let ((x0, y0), (x1, y1)) = (self.knots[above - 1], self.knots[above]);
        let x = x.clamp(first.0, last.0);
        let y = y0 + (y1 - y0) * (x - x0) / (x1 - x0);
        match self.scale {
            Scale::Plain => y,
            Scale::Logarithms => exp2(y),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gammas_have_their_mean_and_variance() {
        for shape in [1.85, 2.35, 3.22] {
            let mut stream = Stream::named(1, "gamma");
            let n = 100_000;
            let draws: Vec<f64> = (0..n).map(|_| gamma(shape, &mut stream)).collect();
            // Both are the shape; the fourth central moment is 3 shape^2 + 6 shape. Four standard errors.
            let mean = draws.iter().sum::<f64>() / f64::from(n);
            assert!((mean - shape).abs() < 4.0 * (shape / f64::from(n)).sqrt(), "{shape}: mean {mean}");
            let variance = draws.iter().map(|x| (x - shape) * (x - shape)).sum::<f64>() / f64::from(n);
            let error = ((2.0 * shape * shape + 6.0 * shape) / f64::from(n)).sqrt();
            assert!((variance - shape).abs() < 4.0 * error, "{shape}: variance {variance}");
        }
    }
}

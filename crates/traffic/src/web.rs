//! Web users think, fetch a page, and think again.
//!
//! A [`Browser`] is one user (Smith, Hernandez-Campos, Jeffay and Ott, SIGMETRICS 2001). A page is a top-level object
//! and, once that has arrived, its embedded objects, fetched in order over a limited number of connections at a time.
//! The user is closed-loop: a page that takes longer puts the next one off, so that a slower network is asked for less.
//!
//! A page either uses persistent connections (HTTP/1.1), which the browser closes when it has nothing more to ask, or
//! a new connection for every object (HTTP/1.0), which the server closes. Servers answer at once.
//!
//! **What a user asks for never depends on the network.** Each user owns a random stream. A page's kind, number of
//! objects and following think time are drawn when it begins; each object costs the same three draws (request,
//! response, round-trip time) and objects are begun in their order whatever the order in which they complete. Two
//! disciplines are therefore compared under the same demands, and no plan of the page needs to be stored.

use crate::piecewise::Piecewise;
use crate::unc2001;
use base::Span;
use base::Stream;

/// One request and its response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// Bytes the client sends.
    pub request_bytes: u32,
    /// Bytes the server answers with, HTTP header included.
    pub response_bytes: u64,
    /// Whether this is the page itself rather than an object embedded in it.
    pub top_level: bool,
    /// What the server takes to answer.
    pub server_delay: Span,
}

/// What a browser wants done.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Command {
    /// Open a connection on `lane` and ask on it. A connection that the lane held before is over.
    Open {
        /// Which of the browser's parallel connections, from 0; [`Command::NO_LANE`] if nothing more is asked on it.
        lane: u32,
        /// The path's round-trip time, as a quantile in (0, 1) of whatever distribution the scenario states.
        rtt_unit: f64,
        /// What to ask.
        ask: Exchange,
        /// Whether the server closes the connection after this response (HTTP/1.0).
        last: bool,
    },
    /// Ask on the open connection of `lane`.
    Ask {
        /// Which connection.
        lane: u32,
        /// What to ask.
        ask: Exchange,
    },
    /// The browser closes its persistent connection of `lane`.
    Close {
        /// Which connection.
        lane: u32,
    },
    /// Call [`Browser::think_over`], [`crate::Session::wake`] or [`crate::PackMime::wake`] after this span.
    Think {
        /// How long the user thinks.
        span: Span,
    },
}

impl Command {
    /// The lane of a connection on which nothing more is asked.
    pub const NO_LANE: u32 = u32::MAX;
}

/// The population a web user is drawn from.
#[derive(Clone, Debug, PartialEq)]
pub struct WebModel {
    /// Think time between the end of a page and the next one, s.
    pub think: Piecewise,
    /// Objects of a page, the top-level one included; what is drawn is rounded down.
    pub objects: Piecewise,
    /// Size of a request, bytes.
    pub request: Piecewise,
    /// Size of the response that is the page itself, bytes.
    pub top_level: Piecewise,
    /// Size of the response that is an embedded object, bytes.
    pub embedded: Piecewise,
    /// Share of pages fetched over persistent connections.
    pub persistent_pages: f64,
    /// Connections a page without persistent ones may have open at a time, 1 to 32.
    pub parallel: u8,
    /// Persistent connections a page may have open, 1 to 32.
    pub persistent_parallel: u8,
    /// How long a page takes on an idle network, s: only the start of a run depends on it, see [`Browser::begin`].
    pub page_time: f64,
}

impl WebModel {
    /// The names that [`Self::named`] knows.
    pub const NAMES: &[&str] = &["unc2001"];

    /// The model called `name`.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "unc2001" => Some(unc2001::model()),
            _ => None,
        }
    }

    /// The same population with this mean think time, s; the shape of the think times stays.
    pub fn with_think_mean(mut self, mean: f64) -> Self {
        self.think = self.think.scaled(mean / self.think.mean());
        self
    }
}

/// One web user.
#[derive(Clone, Debug)]
pub struct Browser {
    stream: Stream,
    /// The think time after the page under way.
    think: Span,
    /// Objects of the page under way that have not been begun.
    unasked: u32,
    /// One bit a lane: an exchange is under way.
    busy: u32,
    is_persistent: bool,
    /// The page's top-level object has not arrived, so that whatever is begun is this object.
    is_first: bool,
}

impl Browser {
    /// A user with a random stream of its own.
    pub fn new(stream: Stream) -> Self {
        Self { stream, think: Span::ZERO, unasked: 0, busy: 0, is_persistent: false, is_first: false }
    }

    /// How long after the start of the run this user's first page begins. The population starts as if it had always
    /// been there: a user is found thinking, with what is left of a think time to wait, or on a page, which then takes
    /// what is left of [`WebModel::page_time`] and a whole think time. What the pages under way would still have
    /// transferred is missing at first: with the UNC model 30 % of the load in the first ten seconds, 3 % in the
    /// second half minute, 1 % in the second minute. The warm-up of a run covers that.
    pub fn begin(&mut self, model: &WebModel) -> Span {
        let cycle = model.page_time + model.think.mean();
        let instant = self.stream.open_unit() * cycle;
        Span::from_secs_f64(if instant < model.page_time {
            instant + model.think.draw(&mut self.stream)
        } else {
            model.think.draw_residual(&mut self.stream)
        })
    }

    /// Begins the next page, since the user has thought.
    pub fn think_over(&mut self, model: &WebModel, out: &mut Vec<Command>) {
        debug_assert!(self.busy == 0 && self.unasked == 0, "a user fetches one page at a time");
        self.is_persistent = self.stream.chance(model.persistent_pages);
        self.unasked = (model.objects.draw(&mut self.stream) as u32).max(1);
        self.think = Span::from_secs_f64(model.think.draw(&mut self.stream));
        self.is_first = true;
        self.begin_object(0, false, model, out);
    }

    /// Goes on after the whole response on `lane` has arrived.
    pub fn completed(&mut self, lane: u32, model: &WebModel, out: &mut Vec<Command>) {
        self.go_on(lane, self.is_persistent, model, out);
    }

    /// Goes on after the connection of `lane` was given up, for example because its SYN was repeated too often. Its
    /// exchange is lost, and the page goes on without it.
    pub fn failed(&mut self, lane: u32, model: &WebModel, out: &mut Vec<Command>) {
        self.go_on(lane, false, model, out);
    }

    /// Goes on after the exchange on `lane` is over; the lane `is_open` or not.
    fn go_on(&mut self, lane: u32, is_open: bool, model: &WebModel, out: &mut Vec<Command>) {
        debug_assert!(self.busy & (1 << lane) != 0, "an exchange was under way");
        self.busy &= !(1 << lane);
        let is_page = std::mem::take(&mut self.is_first);
        if self.unasked > 0 {
            self.begin_object(lane, is_open, model, out);
        } else if is_open {
            out.push(Command::Close { lane });
        }
        if is_page {
            // The page names its embedded objects, which are fetched on as many lanes as allowed.
            let lanes = u32::from(if self.is_persistent { model.persistent_parallel } else { model.parallel });
            for other in (0..lanes).filter(|&other| other != lane) {
                if self.unasked == 0 {
                    break;
                }
                self.begin_object(other, false, model, out);
            }
        }
        if self.busy == 0 {
            out.push(Command::Think { span: self.think });
        }
    }

    /// Begins the next object of the page on `lane`.
    fn begin_object(&mut self, lane: u32, is_open: bool, model: &WebModel, out: &mut Vec<Command>) {
        self.unasked -= 1;
        self.busy |= 1 << lane;
        // The same draws for every object, needed or not: see the top.
        let sizes = if self.is_first { &model.top_level } else { &model.embedded };
        let ask = Exchange {
            request_bytes: (model.request.draw(&mut self.stream) + 0.5) as u32,
            response_bytes: (sizes.draw(&mut self.stream) + 0.5) as u64,
            top_level: self.is_first,
            server_delay: Span::ZERO,
        };
        let rtt_unit = self.stream.open_unit();
        out.push(if is_open {
            Command::Ask { lane, ask }
        } else {
            Command::Open { lane, rtt_unit, ask, last: !self.is_persistent }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Constant demands, so that the commands can be written down; the page has `objects`.
    fn model(objects: f64, persistent: bool, parallel: u8) -> WebModel {
        let always = |value: f64| Piecewise::new(&[(value, 0.0), (value, 1.0)]);
        WebModel {
            think: always(30.0),
            objects: always(objects),
            request: always(300.0),
            top_level: always(5_000.0),
            embedded: always(2_000.0),
            persistent_pages: if persistent { 1.0 } else { 0.0 },
            parallel,
            persistent_parallel: parallel,
            page_time: 1.0,
        }
    }

    /// Commands in short: O and o open for the page and for an object (with ! if the server closes), a asks,
    /// c closes, t thinks.
    fn in_short(out: &mut Vec<Command>) -> String {
        let words = out.drain(..).map(|command| match command {
            Command::Open { lane, ask, last, .. } => {
                format!("{}{lane}{}", if ask.top_level { "O" } else { "o" }, if last { "!" } else { "" })
            }
            Command::Ask { lane, ask } => {
                assert!(!ask.top_level, "a page opens with a connection");
                format!("a{lane}")
            }
            Command::Close { lane } => format!("c{lane}"),
            Command::Think { span } => {
                assert_eq!(span, Span::from_secs(30));
                "t".to_string()
            }
        });
        words.collect::<Vec<_>>().join(" ")
    }

    /// Begins a page, then lets the exchanges of `lanes` end in turn, as failures where negative (-1 is lane 0).
    fn page(model: &WebModel, lanes: &[i8]) -> Vec<String> {
        let mut browser = Browser::new(Stream::named(1, "user"));
        let mut out = Vec::new();
        browser.think_over(model, &mut out);
        let mut steps = vec![in_short(&mut out)];
        for &lane in lanes {
            match u32::try_from(lane) {
                Ok(lane) => browser.completed(lane, model, &mut out),
                Err(_) => browser.failed((-1 - lane) as u32, model, &mut out),
            }
            steps.push(in_short(&mut out));
        }
        steps
    }

    #[test]
    fn a_connection_an_object() {
        assert_eq!(page(&model(1.0, false, 2), &[0]), ["O0!", "t"]);
        assert_eq!(page(&model(4.0, false, 2), &[0, 1, 1, 0]), ["O0!", "o0! o1!", "o1!", "", "t"]);
        assert_eq!(page(&model(2.9, false, 4), &[0, 0]), ["O0!", "o0!", "t"], "2.9 objects are 2");
    }

    #[test]
    fn persistent_connections() {
        assert_eq!(page(&model(1.0, true, 2), &[0]), ["O0", "c0 t"]);
        assert_eq!(page(&model(3.0, true, 1), &[0, 0, 0]), ["O0", "a0", "a0", "c0 t"]);
        assert_eq!(page(&model(4.0, true, 2), &[0, 1, 0, 1]), ["O0", "a0 o1", "a1", "c0", "c1 t"]);
    }

    #[test]
    fn a_lost_connection_loses_its_exchange_only() {
        assert_eq!(page(&model(3.0, false, 1), &[-1, -1, 0]), ["O0!", "o0!", "o0!", "t"]);
        assert_eq!(page(&model(3.0, true, 1), &[-1, 0, -1]), ["O0", "o0", "a0", "t"]);
    }

    #[test]
    fn the_network_does_not_change_the_demands() {
        let model = unc2001::model();
        // The demands of one user when exchanges end first come first served, last come first served, or fail.
        let demands = |order: usize| {
            let mut browser = Browser::new(Stream::named(4, "traffic/0/user/7"));
            let (mut out, mut under_way, mut asked) = (Vec::new(), Vec::new(), Vec::new());
            while asked.len() < 5_000 {
                match under_way.len() {
                    0 => browser.think_over(&model, &mut out),
                    n if order == 0 => browser.completed(under_way.remove(n - 1), &model, &mut out),
                    _ if order == 1 => browser.completed(under_way.remove(0), &model, &mut out),
                    _ => browser.failed(under_way.remove(0), &model, &mut out),
                }
                for command in out.drain(..) {
                    match command {
                        Command::Open { lane, ask, .. } | Command::Ask { lane, ask } => {
                            under_way.push(lane);
                            asked.push((ask, Span::ZERO));
                        }
                        Command::Close { .. } => {}
                        Command::Think { span } => asked.last_mut().expect("a page was fetched").1 = span,
                    }
                }
            }
            asked.truncate(5_000);
            asked
        };
        let first = demands(0);
        assert_eq!(first, demands(1));
        assert_eq!(first, demands(2));
    }

    #[test]
    fn a_population_starts_stationary() {
        // Pages that take no time make each user a renewal process: found long after its beginning, it has t/mean
        // renewals in any window t. Half a minute is much shorter than the think time's tail, where a population that
        // began with whole think times would be wrong by far.
        let model = WebModel { page_time: 0.0, ..unc2001::model() };
        let (users, window) = (20_000, 30.0);
        let counts: Vec<f64> = (0..users)
            .map(|user| {
                let mut stream = Stream::named(9, &format!("think/{user}"));
                let mut at = Browser::new(Stream::named(9, &format!("begin/{user}"))).begin(&model).secs_f64();
                let mut pages = 0.0;
                while at < window {
                    pages += 1.0;
                    at += model.think.draw(&mut stream);
                }
                pages
            })
            .collect();
        let mean = counts.iter().sum::<f64>() / users as f64;
        let variance = counts.iter().map(|c| (c - mean) * (c - mean)).sum::<f64>() / users as f64;
        // Four standard errors.
        let bound = 4.0 * (variance / users as f64).sqrt();
        assert!((mean - window / model.think.mean()).abs() < bound, "{mean} pages a user");
    }
}

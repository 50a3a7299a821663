//! Web sessions after Feldmann et al.: pages at intervals, objects at intervals, every object a connection of its own.
//!
//! A [`Session`] is one user who fetches pages for ever (Feldmann, Gilbert, Huang and Willinger, "Dynamics of IP
//! traffic", SIGCOMM 1999). A page has a number of objects; they are begun one after the other with gaps between their
//! beginnings, whether or not earlier ones have arrived, each over a new connection that the server closes (HTTP/1.0).
//! All objects of a page come from one server, so that they share a round-trip time.
//!
//! The time between pages can count from two instants ([`Pages`]):
//!
//! - **start-to-start**: the time between pages runs from the beginning of one to the beginning of the next. Pages may
//!   overlap. The session is an open loop: neither what is asked for nor when depends on the network.
//! - **end-to-start**: it runs from the arrival of the last object. The session is a closed loop: a slower network is
//!   asked for less.
//!
//! **What a session asks for never depends on the network.** It owns a random stream. A page costs three draws (number
//! of objects, time to the next page, round-trip time) and each object two (size, gap to the next); pages and objects
//! are begun at times that are drawn, or, end-to-start, one page at a time.
//!
//! The order of draws and the rounding (numbers of objects upwards) follow the only generator of this model that the
//! studies used, ns-2's `PagePool/WebTraf`.

use crate::piecewise::Piecewise;
use crate::residual::Residual;
use crate::web::{Command, Exchange};
use crate::{MOST_BYTES, feldmann, unc2001};
use base::{Distribution, Span, Stream, Time};

/// What the time between two pages counts from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pages {
    /// From the beginning of one page to the beginning of the next.
    StartToStart,
    /// From the end of one page to the beginning of the next.
    EndToStart,
}

/// Sizes of objects, bytes.
#[derive(Clone, PartialEq, Debug)]
pub enum Sizes {
    /// In a form that a scenario can state.
    Stated(Distribution),
    /// The responses of the UNC web model.
    Unc2001(Piecewise),
}

/// The population a session is drawn from.
#[derive(Clone, PartialEq, Debug)]
pub struct SessionModel {
    /// What [`Self::inter_page`] counts from.
    pub pages: Pages,
    /// Time between pages, s.
    pub inter_page: Distribution,
    /// Objects of a page; what is drawn is rounded up.
    pub objects: Distribution,
    /// Time from the beginning of an object to the beginning of the next, s.
    pub inter_object: Distribution,
    /// Size of an object, bytes.
    pub size: Sizes,
    /// Size of a request, bytes.
    pub request_bytes: u32,
}

/// One session.
#[derive(Clone, Debug)]
pub struct Session {
    stream: Stream,
    /// When the next page begins; never while this depends on the end of the page under way.
    next_page: Time,
    /// The time from the end of the page under way to the next page.
    rest: Span,
    /// Connections under way.
    open: u32,
    /// Pages of which objects are still to be begun.
    unfinished: Vec<Page>,
}

/// A page of which objects are still to be begun.
#[derive(Clone, Copy, Debug)]
struct Page {
    /// When the next one is.
    due: Time,
    unasked: u32,
    rtt_unit: f64,
}

/// The most objects of a page: half a second apart they take six days.
pub const MOST_OBJECTS: f64 = 1e6;

impl Sizes {
    /// The responses of the UNC web model.
    pub fn unc2001() -> Self {
        Self::Unc2001(unc2001::response())
    }

    /// The size below which the fraction `u` in (0, 1) lies.
    pub fn quantile(&self, u: f64) -> f64 {
        match self {
            Self::Stated(distribution) => distribution.quantile(u),
            Self::Unc2001(piecewise) => piecewise.quantile(u),
        }
    }

    /// The mean.
    pub fn mean(&self) -> f64 {
        match self {
            Self::Stated(distribution) => distribution.mean(),
            Self::Unc2001(piecewise) => piecewise.mean(),
        }
    }

    fn draw(&self, stream: &mut Stream) -> u64 {
        let bytes = match self {
            Self::Stated(distribution) => distribution.draw(stream),
            Self::Unc2001(piecewise) => piecewise.draw(stream),
        };
        ((bytes + 0.5) as u64).clamp(1, MOST_BYTES)
    }
}

impl SessionModel {
    /// The names that [`Self::named`] knows.
    pub const NAMES: &[&str] = &feldmann::NAMES;

    /// The model called `name`.
    pub fn named(name: &str) -> Option<Self> {
        feldmann::named(name)
    }

    /// How long the pages of a population are being asked for, s: the mean from the beginning of the first object to
    /// that of the last; zero where it is infinite.
    fn asking_time(&self) -> f64 {
        let mean = (self.objects.mean() - 1.0).max(0.0) * self.inter_object.mean();
        if mean.is_finite() { mean } else { 0.0 }
    }
}

impl Session {
    /// A session with a random stream of its own.
    pub fn new(stream: Stream) -> Self {
        Self { stream, next_page: Time::NEVER, rest: Span::ZERO, open: 0, unfinished: Vec::new() }
    }

    /// How long after the start of the run this session's first page begins; `between` is the residual of the model's
    /// time between pages. Pages begin at their long-term rate from the first instant on. What is missing at first are
    /// the later objects of pages that would have been under way.
    pub fn begin(&mut self, model: &SessionModel, between: &Residual) -> Span {
        let left = between.draw(&mut self.stream);
        let wait = match model.pages {
            Pages::StartToStart => left,
            Pages::EndToStart => {
                // The session is found between two pages, or on one. On one, it waits for the rest of it and a whole
                // time between pages.
                let (asking, mean) = (model.asking_time(), between.mean());
                let instant = self.stream.open_unit() * (asking + mean);
                if instant < asking { instant + model.inter_page.draw(&mut self.stream) } else { left }
            }
        };
        let wait = Span::from_secs_f64(wait);
        self.next_page = Time::ZERO + wait;
        wait
    }

    /// Begins the page or the object that is due, since a [`Command::Think`] is over. Call it once for each such
    /// command, in the order of their ends.
    pub fn wake(&mut self, now: Time, model: &SessionModel, out: &mut Vec<Command>) {
        let first = (0..self.unfinished.len()).min_by_key(|&i| self.unfinished[i].due);
        match first.filter(|&i| self.unfinished[i].due < self.next_page) {
            Some(index) => {
                let page = self.begin_object(self.unfinished[index], now, false, model, out);
                if page.unasked > 0 {
                    self.unfinished[index] = page;
                } else {
                    self.unfinished.swap_remove(index);
                }
            }
            None => {
                let page = self.begin_page(now, model, out);
                let page = self.begin_object(page, now, true, model, out);
                if page.unasked > 0 {
                    self.unfinished.push(page);
                }
            }
        }
    }

    /// Goes on after an object has arrived whole, or its connection was given up.
    pub fn ended(&mut self, now: Time, model: &SessionModel, out: &mut Vec<Command>) {
        debug_assert!(self.open > 0, "a connection was under way");
        self.open -= 1;
        if model.pages == Pages::EndToStart && self.open == 0 && self.unfinished.is_empty() {
            self.next_page = now + self.rest;
            out.push(Command::Think { span: self.rest });
        }
    }

    fn begin_page(&mut self, now: Time, model: &SessionModel, out: &mut Vec<Command>) -> Page {
        let unasked = model.objects.draw(&mut self.stream).ceil().clamp(1.0, MOST_OBJECTS) as u32;
        self.rest = Span::from_secs_f64(model.inter_page.draw(&mut self.stream));
        self.next_page = match model.pages {
            Pages::StartToStart => {
                out.push(Command::Think { span: self.rest });
                now + self.rest
            }
            Pages::EndToStart => Time::NEVER,
        };
        Page { due: now, unasked, rtt_unit: self.stream.open_unit() }
    }

    /// Begins an object of `page` and gives back what is left of it.
    fn begin_object(
        &mut self,
        page: Page,
        now: Time,
        top_level: bool,
        model: &SessionModel,
        out: &mut Vec<Command>,
    ) -> Page {
        let response_bytes = model.size.draw(&mut self.stream);
        let gap = Span::from_secs_f64(model.inter_object.draw(&mut self.stream));
        let request_bytes = model.request_bytes;
        let ask = Exchange { request_bytes, response_bytes, top_level, server_delay: Span::ZERO };
        self.open += 1;
        out.push(Command::Open { lane: Command::NO_LANE, rtt_unit: page.rtt_unit, ask, last: true });
        if page.unasked > 1 {
            out.push(Command::Think { span: gap });
        }
        Page { due: now + gap, unasked: page.unasked - 1, ..page }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Span = Span::from_secs(1);

    /// Constant demands: a page every 10 s, objects a second apart.
    fn model(objects: f64, pages: Pages) -> SessionModel {
        SessionModel {
            pages,
            inter_page: Distribution::Constant(10.0),
            objects: Distribution::Constant(objects),
            inter_object: Distribution::Constant(1.0),
            size: Sizes::Stated(Distribution::Constant(2_000.0)),
            request_bytes: 350,
        }
    }

    /// Runs a session for `seconds` over a network on which every object takes `taken`: the times at which objects are
    /// asked for, in seconds after the first, the first of each page negative.
    fn asked(model: &SessionModel, taken: Span, seconds: u64) -> Vec<i64> {
        let mut session = Session::new(Stream::named(1, "session"));
        let first = Time::ZERO + session.begin(model, &Residual::of(&model.inter_page));
        // What is to come: when, and whether a connection ends rather than a time.
        let mut events = vec![(first, false)];
        let (mut out, mut asked) = (Vec::new(), Vec::new());
        while let Some(next) = (0..events.len()).min_by_key(|&i| events[i]) {
            let (now, is_end) = events.swap_remove(next);
            if now > first + SECOND * seconds {
                break;
            }
            if is_end {
                session.ended(now, model, &mut out)
            } else {
                session.wake(now, model, &mut out)
            }
            for command in out.drain(..) {
                match command {
                    Command::Think { span } => events.push((now + span, false)),
                    Command::Open { ask, last, .. } => {
                        assert!(last, "every object has a connection of its own");
                        let at = (now.since(first).ns() / SECOND.ns()) as i64;
                        asked.push(if ask.top_level { -at } else { at });
                        events.push((now + taken, true));
                    }
                    Command::Ask { .. } | Command::Close { .. } => panic!("{command:?} on a connection for one object"),
                }
            }
        }
        asked
    }

    #[test]
    fn pages_from_start_to_start() {
        let model = model(2.5, Pages::StartToStart);
        // Whatever the network does; 2.5 objects are 3.
        for taken in [Span::from_ms(10), SECOND * 25] {
            assert_eq!(asked(&model, taken, 21), [0, 1, 2, -10, 11, 12, -20, 21]);
        }
    }

    #[test]
    fn pages_from_end_to_start() {
        let model = model(2.0, Pages::EndToStart);
        // The second object is asked for a second after the first and takes half a second, so 11.5 s from page to page.
        assert_eq!(asked(&model, Span::from_ms(500), 25), [0, 1, -11, 12, -23, 24]);
        // Objects are not waited for within a page: 1 + 4 + 10 s.
        assert_eq!(asked(&model, SECOND * 4, 32), [0, 1, -15, 16, -30, 31]);
    }

    #[test]
    fn pages_overlap() {
        let model = SessionModel { inter_object: Distribution::Constant(4.0), ..model(4.0, Pages::StartToStart) };
        assert_eq!(asked(&model, SECOND, 24), [0, 4, 8, -10, 12, 14, 18, -20, 22, 24]);
    }
}

//! Web sessions after Feldmann et al.: pages at intervals, each object over a connection of its own.

use super::{LOAD, USERS, Web, population};
use crate::demand::{Carries, Demand, Expected, Lanes, Site, Source};
use crate::distribution::{self, Quantity};
use crate::error::Error;
use crate::kinds::keys::MOST_ASKED;
use crate::kinds::{Asked, Key, Model, Takes};
use crate::section::Section;
use crate::units;
use crate::voice::{Asks, Turn, Voice};
use crate::written::Written;
use base::{Distribution, Time};
use traffic::session::MOST_OBJECTS;
use traffic::{Pages, Residual, Session, SessionModel, Sizes};

/// Web sessions.
#[derive(Clone, Debug)]
pub struct Sessions {
    /// The model, with its parameters filled in.
    pub model: SessionModel,
    /// How many sessions in all; half of them each way where the direction is both.
    pub users: u32,
}

const READINGS: [(&str, Pages); 2] = [("start-to-start", Pages::StartToStart), ("end-to-start", Pages::EndToStart)];
/// The word of `size` for the responses of that model.
const UNC2001: &str = "unc2001";

const PAGES: Key = Key {
    name: "pages",
    takes: Takes::Word(&[READINGS[0].0, READINGS[1].0]),
    default: READINGS[0].0,
    doc: "what inter_page counts from: start-to-start or end-to-start",
};
const INTER_PAGE: Key = Key {
    name: "inter_page",
    takes: Takes::Drawn("time or distribution"),
    default: "",
    doc: "time between pages, in the mean at least 1ms",
};
const OBJECTS: Key = Key {
    name: "objects",
    takes: Takes::Drawn("number or distribution"),
    default: "",
    doc: "objects of a page, rounded up, one at least",
};
const INTER_OBJECT: Key =
    Key { name: "inter_object", doc: "time from the beginning of an object to that of the next", ..INTER_PAGE };
const SIZE: Key = Key {
    name: "size",
    takes: Takes::Drawn("size or distribution"),
    default: "",
    doc: "size of an object; unc2001: the responses of that model",
};
const REQUEST: Key =
    Key { name: "request", takes: Takes::Size(1, MOST_ASKED), default: "350b", doc: "size of a request" };

const FELDMANN: &str = "Feldmann, Gilbert, Huang and Willinger, SIGCOMM 1999, as quoted by pttcp (Cambridge, 2000)";

/// A set of web sessions: what is drawn of pages, objects and sizes.
const fn model(name: &'static str, doc: &'static str, source: &'static str, keys: &'static [Key; 8]) -> Model {
    Model { name, doc, source, keys, words: &[("", "{users|web session} ({model})")] }
}

/// The keys of a set of web sessions, with its own defaults.
const fn keys(
    inter_page: &'static str,
    objects: &'static str,
    inter_object: &'static str,
    size: &'static str,
) -> [Key; 8] {
    [
        USERS,
        LOAD,
        PAGES,
        Key { default: inter_page, ..INTER_PAGE },
        Key { default: objects, ..OBJECTS },
        Key { default: inter_object, ..INTER_OBJECT },
        Key { default: size, ..SIZE },
        REQUEST,
    ]
}

pub(super) const PARETO1: Model = model(
    "feldmann-pareto1",
    "Web sessions: a page every 50 s, of four objects, each a connection of its own",
    FELDMANN,
    &const {
        keys(
            "pareto, mean 50s, shape 2",
            "pareto, mean 4, shape 1.2",
            "pareto, mean 0.5s, shape 1.5",
            "pareto, mean 12000b, shape 1.2",
        )
    },
);
pub(super) const PARETO2: Model = model(
    "feldmann-pareto2",
    "Web sessions: a page every 10 s, of three objects, each a connection of its own",
    FELDMANN,
    &const {
        keys(
            "pareto, mean 10s, shape 2",
            "pareto, mean 3, shape 1.5",
            "pareto, mean 0.5s, shape 1.5",
            "pareto, mean 12000b, shape 1.2",
        )
    },
);
pub(super) const EXP1: Model = model(
    "feldmann-exp1",
    "Web sessions: one object every 25 s, of exponential size",
    FELDMANN,
    &const { keys("pareto, mean 25s, shape 2", "1", "0s", "exponential, mean 12000b") },
);
pub(super) const EXP2: Model = model(
    "feldmann-exp2",
    "Web sessions: one object every 10 s, all exponential",
    FELDMANN,
    &const { keys("exponential, mean 10s", "1", "0s", "exponential, mean 12000b") },
);
pub(super) const CONSTANT: Model = model(
    "feldmann-constant",
    "Web sessions: a megabyte every 10 s",
    FELDMANN,
    &const { keys("10s", "1", "0s", "1000000b") },
);
pub(super) const KUZMANOVIC2005: Model = model(
    "kuzmanovic2005",
    "Web sessions of feldmann-pareto1 with the response sizes of unc2001",
    "Kuzmanovic, SIGCOMM 2005: pages of Feldmann et al., sizes of Smith et al.",
    &const { keys("pareto, mean 50s, shape 2", "pareto, mean 4, shape 1.2", "pareto, mean 0.5s, shape 1.5", "unc2001") },
);

/// Reads a block of sessions.
pub(super) fn read(block: &Section<'_>, name: &str, mut model: SessionModel) -> Result<Asked<Web>, Error> {
    /// A mean below this is a mistaken unit, and a run with it would never end.
    const SHORTEST: f64 = 1e-3;
    model.pages = block.read(PAGES.name, model.pages, |entry| entry.word(&READINGS))?;
    model.inter_page = block.read(INTER_PAGE.name, model.inter_page, |entry| {
        let inter_page = distribution::read(entry, Quantity::Time)?;
        if inter_page.mean() >= SHORTEST {
            return Ok(inter_page);
        }
        Err(entry.expected(format!("times between pages of at least {} in the mean", units::write_seconds(SHORTEST))))
    })?;
    model.objects = block.read(OBJECTS.name, model.objects, |entry| distribution::read(entry, Quantity::Count))?;
    model.inter_object =
        block.read(INTER_OBJECT.name, model.inter_object, |entry| distribution::read(entry, Quantity::Time))?;
    model.size = block.read(SIZE.name, model.size, |entry| match entry.text() {
        Ok(UNC2001) => Ok(Sizes::unc2001()),
        _ => distribution::read(entry, Quantity::Size).map(Sizes::Stated),
    })?;
    model.request_bytes = REQUEST.size(block)?;

    let (pages, _) = READINGS.iter().find(|(_, pages)| *pages == model.pages).expect("both readings have names");
    let written = |distribution: &Distribution, quantity| distribution::write(distribution, quantity);
    let size = match &model.size {
        Sizes::Stated(size) => written(size, Quantity::Size),
        Sizes::Unc2001(_) => Written::Text(UNC2001.to_owned()),
    };
    let own = vec![
        (PAGES.name, Written::Text((*pages).to_owned())),
        (INTER_PAGE.name, written(&model.inter_page, Quantity::Time)),
        (OBJECTS.name, written(&model.objects, Quantity::Count)),
        (INTER_OBJECT.name, written(&model.inter_object, Quantity::Time)),
        (SIZE.name, size),
        (REQUEST.name, Written::Text(units::write_bytes(f64::from(model.request_bytes)))),
    ];
    population(block, name, own, |users| Web::Sessions(Sessions { model, users }))
}

impl Demand for Sessions {
    fn carries(&self) -> Carries {
        Carries::Exchanges
    }

    fn sources<'s>(&'s self, site: &Site<'s>, out: &mut Vec<Source<'s>>) {
        let between = Residual::of(&self.model.inter_page);
        for number in 0..self.users {
            let mut session = Session::new(site.stream("session", number));
            let first = Time::ZERO + session.begin(&self.model, &between);
            out.push(site.asking(number, first, Lanes::Any, Visitor { session, model: &self.model }));
        }
    }

    fn expected(&self) -> Expected {
        /// Quantiles of the number of objects whose mean is taken.
        const QUANTILES: u32 = 4096;
        let at = |k: u32| (f64::from(k) + 0.5) / f64::from(QUANTILES);
        let drawn = |k| self.model.objects.quantile(at(k)).clamp(1.0, MOST_OBJECTS);
        let objects = (0..QUANTILES).map(drawn).sum::<f64>() / f64::from(QUANTILES);
        let apart_s = self.model.inter_object.mean();
        let is_closed = self.model.pages == Pages::EndToStart;
        let page_s = if is_closed { objects * apart_s } else { 0.0 };
        Expected::Sessions {
            users: self.users,
            is_closed,
            pages_per_s: f64::from(self.users) / (self.model.inter_page.mean() + page_s),
            objects,
            apart_s,
            bytes: self.model.size.mean(),
        }
    }

    fn count(&self) -> u32 {
        self.users
    }
}

struct Visitor<'s> {
    session: Session,
    model: &'s SessionModel,
}

impl Asks for Visitor<'_> {
    fn turn(&mut self, turn: Turn, voice: &mut Voice<'_>) {
        let at = voice.at;
        voice.pages(voice.number(), |out| match turn {
            Turn::Due => self.session.wake(at, self.model, out),
            Turn::Completed(_) | Turn::Failed(_) => self.session.ended(at, self.model, out),
            Turn::Lost(_) => {}
        });
    }
}

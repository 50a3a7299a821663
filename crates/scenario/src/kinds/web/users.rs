//! Closed-loop web users think, fetch a page, and think again.

use super::{LOAD, USERS, Web, population};
use crate::demand::{Carries, Demand, Expected, Lanes, Site, Source};
use crate::error::Error;
use crate::kinds::{Asked, Key, Model, Takes};
use crate::section::Section;
use crate::units;
use crate::voice::{Asks, Turn, Voice};
use crate::written::Written;
use base::Time;
use traffic::{Browser, WebModel};

/// Closed-loop web users.
#[derive(Clone, Debug)]
pub struct Users {
    /// The model, with its parameters filled in.
    pub model: WebModel,
    /// How many users in all; half of them each way where the direction is both.
    pub users: u32,
}

const PARALLEL: Key = Key {
    name: "parallel",
    takes: Takes::Count(1, 32),
    default: "2",
    doc: "connections a page without persistent ones has open at a time",
};
const PERSISTENT_PARALLEL: Key =
    Key { name: "persistent_parallel", default: "1", doc: "persistent connections a page has open", ..PARALLEL };
const PERSISTENT: Key = Key {
    name: "persistent",
    takes: Takes::Number(0.0, 1.0),
    default: "0.5",
    doc: "share of pages fetched over persistent connections",
};
const THINK_MEAN: Key = Key {
    name: "think_mean",
    takes: Takes::Drawn("time"),
    default: "32700ms",
    doc: "mean time from the end of a page to the next",
};

pub(super) const UNC2001: Model = Model {
    name: "unc2001",
    doc: "Closed-loop web users: think, fetch a page of five to six objects, think again",
    source: "Smith, Hernandez-Campos, Jeffay and Ott, SIGMETRICS 2001; the anchors of le2003, le2004 and \
             kuzmanovic2005",
    keys: &[USERS, LOAD, PARALLEL, PERSISTENT_PARALLEL, PERSISTENT, THINK_MEAN],
    words: &[("", "{users|web user} ({model})")],
};

/// Reads a block of users.
pub(super) fn read(block: &Section<'_>, name: &str, mut model: WebModel) -> Result<Asked<Web>, Error> {
    model.parallel = lanes(block, &PARALLEL)?;
    model.persistent_parallel = lanes(block, &PERSISTENT_PARALLEL)?;
    model.persistent_pages = PERSISTENT.number(block)?;
    let think_mean = block.read(THINK_MEAN.name, model.think.mean(), |entry| {
        let mean = entry.quantity(units::seconds)?;
        if mean > 0.0 { Ok(mean) } else { Err(entry.expected("a think time above zero")) }
    })?;
    // A scaling by 1 up to rounding would still change the last bits of every think time.
    if think_mean != model.think.mean() {
        model = model.with_think_mean(think_mean);
    }
    let own = vec![
        (PARALLEL.name, Written::Integer(u64::from(model.parallel))),
        (PERSISTENT_PARALLEL.name, Written::Integer(u64::from(model.persistent_parallel))),
        (PERSISTENT.name, Written::Number(model.persistent_pages)),
        (THINK_MEAN.name, Written::Text(units::write_seconds(think_mean))),
    ];
    population(block, name, own, |users| Web::Users(Users { model, users }))
}

fn lanes(block: &Section<'_>, key: &Key) -> Result<u8, Error> {
    Ok(u8::try_from(key.count(block)?).expect("the range ends below 2^8"))
}

impl Demand for Users {
    fn carries(&self) -> Carries {
        Carries::Exchanges
    }

    fn sources<'s>(&'s self, site: &Site<'s>, out: &mut Vec<Source<'s>>) {
        let lanes = Lanes::Few(self.model.parallel.max(self.model.persistent_parallel).into());
        for number in 0..self.users {
            let mut browser = Browser::new(site.stream("user", number));
            let first = Time::ZERO + browser.begin(&self.model);
            out.push(site.asking(number, first, lanes, User { browser, model: &self.model }));
        }
    }

    fn expected(&self) -> Expected {
        Expected::Users(self.users)
    }

    fn count(&self) -> u32 {
        self.users
    }
}

struct User<'s> {
    browser: Browser,
    model: &'s WebModel,
}

impl Asks for User<'_> {
    fn turn(&mut self, turn: Turn, voice: &mut Voice<'_>) {
        voice.pages(voice.number(), |out| match turn {
            Turn::Due => self.browser.think_over(self.model, out),
            Turn::Completed(lane) => self.browser.completed(lane, self.model, out),
            Turn::Failed(lane) => self.browser.failed(lane, self.model, out),
            Turn::Lost(_) => {}
        });
    }
}

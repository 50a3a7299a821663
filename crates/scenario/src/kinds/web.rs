//! Web traffic: users who think and fetch pages, readers of pages of today, sessions after Feldmann et al., and the
//! connections of PackMime-HTTP.
//!
//! Each model has a file with its [`Model`], and a line in `MODELS`.

mod packmime;
mod readers;
mod sessions;
mod users;

pub use readers::Readers;
pub use sessions::Sessions;
pub use users::Users;

use super::keys::MOST;
use super::{Asked, Key, Kind, Model, Row, Takes};
use crate::blocks::{Asking, MODEL};
use crate::demand::{Carries, Demand, Expected, Site, Source};
use crate::error::Error;
use crate::scenario::Direction;
use crate::section::Section;
use crate::units;
use crate::written::{Fields, Written};
use std::ops::Deref;
use traffic::{PackMimeModel, SessionModel, WebModel};

/// Web traffic of one of its models.
#[derive(Clone, Debug)]
pub enum Web {
    /// Closed-loop users.
    Users(Users),
    /// Readers of pages of today.
    Readers(Readers),
    /// Sessions after Feldmann et al.
    Sessions(Sessions),
    /// Connections at a rate.
    PackMime(PackMimeModel),
}

const USERS: Key = Key {
    name: "users",
    takes: Takes::Count(1, MOST),
    default: "required unless load is given",
    doc: "users in all, half of them each way",
};
const LOAD: Key = Key {
    name: "load",
    takes: Takes::Rate,
    default: "",
    doc: "calibrated: the throughput the users would make on the uncongested link",
};

const MODELS: &[Model] = &[
    users::UNC2001,
    sessions::PARETO1,
    sessions::PARETO2,
    sessions::EXP1,
    sessions::EXP2,
    sessions::CONSTANT,
    sessions::KUZMANOVIC2005,
    packmime::PACKMIME,
    readers::ARCHIVE2024,
];

impl Kind for Web {
    const ROW: Row = Row {
        name: "web",
        called: &["http", "https", "www", "pages", "browsing"],
        speaks_tcp: true,
        is_recorded: true,
        // The web studies loaded both directions of the link alike.
        direction: (Direction::Both, "which way responses flow: forward, reverse or both"),
        own: None,
        applications: &["pages"],
        models: MODELS,
    };

    fn read(asking: &mut Asking<'_, '_>) -> Result<Asked<Self>, Error> {
        let block = asking.block;
        let names: Vec<(&'static str, &'static Model)> = MODELS.iter().map(|model| (model.name, model)).collect();
        let model = block.read(MODEL, &MODELS[0], |entry| entry.word(&names))?;
        // Keys of other models are refused.
        let is_own = |key: &Key| model.keys.iter().any(|own| own.name == key.name);
        let foreign = MODELS.iter().flat_map(|other| other.keys).filter(|key| !is_own(key));
        if let Some(entry) = foreign.into_iter().find_map(|key| block.get(key.name)) {
            return Err(entry.error(format!("does not go with model = \"{}\"", model.name)));
        }
        match (WebModel::named(model.name), SessionModel::named(model.name)) {
            (Some(drawn), _) => users::read(block, model.name, drawn),
            (None, Some(drawn)) => sessions::read(block, model.name, drawn),
            (None, None) if model.name == readers::ARCHIVE2024.name => readers::read(block, model.name),
            (None, None) => packmime::read(block, model.name, asking.direction),
        }
    }
}

/// How many users or sessions there are, or the load that they are to offer.
fn population(
    block: &Section<'_>,
    name: &str,
    own: Fields,
    workload: impl FnOnce(u32) -> Web,
) -> Result<Asked<Web>, Error> {
    let load = block.get(LOAD.name).map(|entry| Ok::<_, Error>((entry.rate()?, entry))).transpose()?;
    let users = block.get(USERS.name).map(|entry| entry.count(1..=MOST)).transpose()?;
    let mut written = vec![(MODEL, Written::Text(name.to_owned()))];
    if let Some((load, _)) = &load {
        written.push((LOAD.name, Written::Text(units::write_rate(*load))));
    }
    if let Some(users) = users {
        written.push((USERS.name, Written::Integer(u64::from(users))));
    }
    written.extend(own);
    match (users, load) {
        (Some(users), _) => Ok(Asked::known(workload(users), written)),
        (None, Some((load, entry))) => {
            let error = entry.error("needs calibration: the number of users that offers this load is not known");
            Ok(Asked { workload: Err((load, error)), written })
        }
        (None, None) => Err(block.missing(USERS.name, "users = 18670 or load = \"98mbit\"")),
    }
}

impl Deref for Web {
    type Target = dyn Demand;

    fn deref(&self) -> &Self::Target {
        match self {
            Self::Users(users) => users,
            Self::Readers(readers) => readers,
            Self::Sessions(sessions) => sessions,
            Self::PackMime(model) => model,
        }
    }
}

impl Demand for Web {
    fn carries(&self) -> Carries {
        Carries::Exchanges
    }

    fn sources<'s>(&'s self, site: &Site<'s>, out: &mut Vec<Source<'s>>) {
        (**self).sources(site, out);
    }

    fn expected(&self) -> Expected {
        (**self).expected()
    }

    fn count(&self) -> u32 {
        (**self).count()
    }

    fn numbers_arrivals(&self) -> bool {
        (**self).numbers_arrivals()
    }
}

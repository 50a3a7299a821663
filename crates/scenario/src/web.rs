//! Blocks of web traffic: users, whose keys are those of `unc2001`, sessions after Feldmann et al., and the connections
//! of PackMime-HTTP.

use crate::blocks::{Asked, MOST, arrivals};
use crate::distribution::{self, Quantity};
use crate::error::Error;
use crate::scenario::{Sessions, Web, Workload};
use crate::section::Section;
use crate::units;
use crate::written::{Fields, Written};
use base::Distribution;
use traffic::packmime::PERSISTENT;
use traffic::{PackMimeModel, Pages, SessionModel, Sizes, WebModel};

/// The keys of every model.
pub(crate) const KEYS: &[&str] = &["model"];
/// Those of users and sessions.
pub(crate) const POPULATION_KEYS: &[&str] = &["load", "users"];
/// Those of users.
pub(crate) const USER_KEYS: &[&str] = &["parallel", "persistent_parallel", "persistent", "think_mean"];
/// Those of PackMime-HTTP.
pub(crate) const PACKMIME_KEYS: &[&str] = &["arrivals", "persistent", "server_delay"];
/// Those of sessions.
pub(crate) const SESSION_KEYS: &[&str] = &["pages", "inter_page", "objects", "inter_object", "size", "request"];

const PAGES: [(&str, Pages); 2] = [("start-to-start", Pages::StartToStart), ("end-to-start", Pages::EndToStart)];
const PACKMIME: &str = "packmime";
/// What a session's key `size` calls the responses of that model.
const UNC2001: &str = "unc2001";

/// Reads a block of any model.
pub(crate) fn read(block: &Section<'_>) -> Result<Asked, Error> {
    let name = block.read("model", WebModel::NAMES[0], |entry| {
        let names: Vec<(&'static str, &'static str)> =
            WebModel::NAMES.iter().chain(SessionModel::NAMES).chain(&[PACKMIME]).map(|&name| (name, name)).collect();
        entry.word(&names)
    })?;
    match (WebModel::named(name), SessionModel::named(name)) {
        (Some(model), _) => users(block, name, model),
        (None, Some(model)) => sessions(block, name, model),
        (None, None) => packmime(block, name),
    }
}

/// Closed-loop web users.
fn users(block: &Section<'_>, name: &str, mut model: WebModel) -> Result<Asked, Error> {
    refuse(block, &[SESSION_KEYS, PACKMIME_KEYS], USER_KEYS, name)?;
    model.parallel = lanes(block, "parallel", model.parallel)?;
    model.persistent_parallel = lanes(block, "persistent_parallel", model.persistent_parallel)?;
    model.persistent_pages =
        block.read("persistent", model.persistent_pages, |entry| entry.number_within(0.0..=1.0))?;
    let think_mean = block.read("think_mean", model.think.mean(), |entry| {
        let mean = entry.quantity(units::seconds)?;
        if mean > 0.0 { Ok(mean) } else { Err(entry.expected("a think time above zero")) }
    })?;
    // Scaling by a factor that is 1 up to rounding would still change the last bits of every think time.
    if think_mean != model.think.mean() {
        model = model.with_think_mean(think_mean);
    }
    let own = vec![
        ("parallel", Written::Integer(u64::from(model.parallel))),
        ("persistent_parallel", Written::Integer(u64::from(model.persistent_parallel))),
        ("persistent", Written::Number(model.persistent_pages)),
        ("think_mean", Written::Text(units::write_seconds(think_mean))),
    ];
    population(block, name, own, |users| Workload::Web(Web { model, users }))
}

/// Sessions of pages.
fn sessions(block: &Section<'_>, name: &str, mut model: SessionModel) -> Result<Asked, Error> {
    /// Below this mean a session is a mistaken unit, and a run of it never ends.
    const SHORTEST: f64 = 1e-3;
    refuse(block, &[USER_KEYS, PACKMIME_KEYS], SESSION_KEYS, name)?;
    model.pages = block.read("pages", model.pages, |entry| entry.word(&PAGES))?;
    model.inter_page = block.read("inter_page", model.inter_page, |entry| {
        let inter_page = distribution::read(entry, Quantity::Time)?;
        if inter_page.mean() >= SHORTEST {
            return Ok(inter_page);
        }
        Err(entry.expected(format!("times between pages of at least {} in the mean", units::write_seconds(SHORTEST))))
    })?;
    model.objects = block.read("objects", model.objects, |entry| distribution::read(entry, Quantity::Count))?;
    model.inter_object =
        block.read("inter_object", model.inter_object, |entry| distribution::read(entry, Quantity::Time))?;
    model.size = block.read("size", model.size, |entry| match entry.text() {
        Ok(UNC2001) => Ok(Sizes::unc2001()),
        _ => distribution::read(entry, Quantity::Size).map(Sizes::Stated),
    })?;
    let request = block.read("request", u64::from(model.request_bytes), |entry| entry.size_within(1..=1 << 30))?;
    model.request_bytes = u32::try_from(request).expect("the range ends below 2^32");

    let (pages, _) = PAGES.iter().find(|(_, pages)| *pages == model.pages).expect("both readings have names");
    let written = |distribution: &Distribution, quantity| distribution::write(distribution, quantity);
    let size = match &model.size {
        Sizes::Stated(size) => written(size, Quantity::Size),
        Sizes::Unc2001(_) => Written::Text(UNC2001.to_owned()),
    };
    let own = vec![
        ("pages", Written::Text((*pages).to_owned())),
        ("inter_page", written(&model.inter_page, Quantity::Time)),
        ("objects", written(&model.objects, Quantity::Count)),
        ("inter_object", written(&model.inter_object, Quantity::Time)),
        ("size", size),
        ("request", Written::Text(units::write_bytes(request as f64))),
    ];
    population(block, name, own, |users| Workload::Sessions(Sessions { model, users }))
}

/// Connections that begin at random instants.
fn packmime(block: &Section<'_>, name: &str) -> Result<Asked, Error> {
    /// The Weibull's shape falls with the rate: 0.59 here, 0.03 at a thousandth of it, where nearly all gaps are
    /// nothing and the mean is in one that never comes.
    const FEWEST: f64 = 1.0;
    refuse(block, &[POPULATION_KEYS, USER_KEYS, SESSION_KEYS], PACKMIME_KEYS, name)?;
    let connections_per_s = arrivals(block)?;
    if connections_per_s < FEWEST
        && let Some(entry) = block.get("arrivals")
    {
        let fewest = units::write_frequency(FEWEST);
        return Err(
            entry.expected(format!("at least {fewest}: below, the model's connections come in bursts without end"))
        );
    }
    let persistent = block.read("persistent", PERSISTENT, |entry| entry.number_within(0.0..=1.0))?;
    let server_delay = block.read("server_delay", true, |entry| entry.flag())?;
    let written = vec![
        ("model", Written::Text(name.to_owned())),
        ("arrivals", Written::Text(units::write_frequency(connections_per_s))),
        ("persistent", Written::Number(persistent)),
        ("server_delay", Written::Flag(server_delay)),
    ];
    Ok((Ok(Workload::PackMime(PackMimeModel { connections_per_s, persistent, server_delay })), written))
}

/// How many users or sessions there are, or the load that they are to offer.
fn population(
    block: &Section<'_>,
    name: &str,
    own: Fields,
    workload: impl FnOnce(u32) -> Workload,
) -> Result<Asked, Error> {
    let load = block.get("load").map(|entry| Ok::<_, Error>((entry.rate()?, entry))).transpose()?;
    let users = block.get("users").map(|entry| entry.count(1..=MOST)).transpose()?;
    let mut written = vec![("model", Written::Text(name.to_owned()))];
    if let Some((load, _)) = &load {
        written.push(("load", Written::Text(units::write_rate(*load))));
    }
    if let Some(users) = users {
        written.push(("users", Written::Integer(u64::from(users))));
    }
    written.extend(own);
    match (users, load) {
        (Some(users), _) => Ok((Ok(workload(users)), written)),
        (None, Some((load, entry))) => {
            let error = entry.error("needs calibration: the number of users that offers this load is not known");
            Ok((Err((load, error)), written))
        }
        (None, None) => Err(block.missing("users", "users = 18670 or load = \"98mbit\"")),
    }
}

/// Refuses the keys of other models that are not `own` ones.
fn refuse(block: &Section<'_>, others: &[&[&str]], own: &[&str], model: &str) -> Result<(), Error> {
    let foreign = others.concat().into_iter().find(|key| !own.contains(key) && block.get(key).is_some());
    match foreign.and_then(|key| block.get(key)) {
        Some(entry) => Err(entry.error(format!("does not go with model = \"{model}\""))),
        None => Ok(()),
    }
}

fn lanes(block: &Section<'_>, name: &str, default: u8) -> Result<u8, Error> {
    let lanes = block.read(name, u32::from(default), |entry| entry.count(1..=32))?;
    Ok(u8::try_from(lanes).expect("the range ends below 2^8"))
}

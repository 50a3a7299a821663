//! This file turns text into a scenario, and the scenario back into text that says everything.

use crate::blocks::{self, Surroundings};
use crate::bounds::{MOST_BLOCKS, MOST_TEXT};
use crate::distribution;
use crate::document::{self, Files, Node};
use crate::error::Error;
use crate::homes::{self, Origins};
use crate::hosts;
use crate::impairments;
use crate::kept::{self, KeptFile};
use crate::kinds::Reached;
use crate::link::{self, LINK, LINKS};
use crate::live::{self, Maker};
use crate::network;
use crate::scenario::{LoadRequest, Path, Record, RttSpec, Scenario, Traffic};
use crate::section::{Context, Entry, Section};
use crate::stacks::{self, STACKS, Stacks};
use crate::units;
use crate::written::{self, Document, Fields, Written};
use aqm::registry::Registry;
use base::{Distribution, Rate, Span};

/// A scenario that has been read and checked.
#[derive(Clone, Debug)]
pub struct Resolved {
    scenario: Result<Scenario, Error>,
    loads: Vec<LoadRequest>,
    load_places: Vec<String>,
    reached: Vec<(usize, Reached)>,
    text: String,
    document: Document,
    digest: String,
    files: Vec<KeptFile>,
}

impl Resolved {
    /// The scenario. While a load is still to be calibrated, it is an error that names the first such load.
    pub fn scenario(&self) -> Result<&Scenario, Error> {
        self.scenario.as_ref().map_err(Error::clone)
    }

    /// The loads whose number of users is not known, in the order of the blocks. Find these numbers, then resolve again
    /// with an override of `traffic.N.users` for each.
    pub fn loads(&self) -> &[LoadRequest] {
        &self.loads
    }

    /// The place of each of [`Self::loads`], for errors: the file and the line, or `override`.
    pub fn load_places(&self) -> &[String] {
        &self.load_places
    }

    /// The loads for which connections were chosen from a set, with the indices of their blocks.
    pub fn reached(&self) -> &[(usize, Reached)] {
        &self.reached
    }

    /// The complete scenario as TOML, every default filled in and every distribution file copied in. It resolves to
    /// itself.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// What [`Self::text`] says, to be serialized.
    pub fn document(&self) -> &Document {
        &self.document
    }

    /// SHA-256 of [`Self::text`] without the name and the names of files, in hexadecimal: two scenarios with the same
    /// digest are the same experiment.
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// The files that the resolved scenario still needs, in the order of their first mention. Keep them beside the
    /// text, so that it can be resolved again.
    pub fn files(&self) -> &[KeptFile] {
        &self.files
    }
}

const KEYS: &[&str] = &[
    "name", "duration", "warmup", "cooldown", "seed", LINK, LINKS, "path", STACKS, "tcp", "traffic", "record", "live",
];
/// The largest seed: TOML's integers end here.
const LARGEST_SEED: u64 = i64::MAX as u64;
const NEED_TRAFFIC: &str = "at least one [[traffic]] block";

/// Reads the scenario in `text`, which errors call `origin`, with `overrides` of dotted keys applied before anything
/// is checked.
///
/// An override's value is TOML; text that is none, such as `24p`, is taken as a string. A table as a value replaces
/// the whole table: `("link.qdisc", "{ kind = 'red' }")` leaves nothing of the discipline in the file.
///
/// # Errors
/// The first thing that is wrong, in one line.
pub fn resolve(text: &str, origin: &str, overrides: &[(String, String)], files: Files<'_>) -> Result<Resolved, Error> {
    resolve_with(&Registry::builtin(), text, origin, overrides, files)
}

/// Resolves a scenario that may name the disciplines of `registry`, otherwise as [`resolve`].
///
/// # Errors
/// The first thing that is wrong, in one line.
pub fn resolve_with(
    registry: &Registry,
    text: &str,
    origin: &str,
    overrides: &[(String, String)],
    files: Files<'_>,
) -> Result<Resolved, Error> {
    let context = Context { origin, files, registry };
    let (document, origins) = document(text, overrides, context)?;
    read(&document, context).map_err(|error| origins.of_file(error))
}

/// Reads the scenario of a tree.
fn read(document: &Node, context: Context<'_>) -> Result<Resolved, Error> {
    let origin = context.origin;
    let root = Section::root(document, context);
    root.only(&[KEYS])?;

    let name = root.read("name", stem(origin).to_owned(), |entry| entry.text().map(str::to_owned))?;
    let times = times(&root)?;
    let seed = root.read("seed", 1, |entry| entry.whole(0..=LARGEST_SEED))?;
    let (links, links_written) = network::read(&root)?;
    let (path, path_written) = path(&root.section("path")?)?;
    let stacks = Stacks::read(&root.section(STACKS)?)?;
    let tcp = tcp(&root)?;
    let tcp_written = hosts::write(&hosts::read(&stacks, &tcp, None)?);
    let (record, record_written) = record(&root.section("record")?, times.duration)?;
    let (live, live_written) = live::read(&root.section("live")?, &links)?;
    if live.qdisc == Maker::Kernel {
        link::need_what_kernels_do(&root)?;
    }

    let mut traffic = Vec::new();
    let mut loads = Vec::new();
    let mut load_places = Vec::new();
    let mut reached = Vec::new();
    let mut unknown = None;
    let mut blocks_written = Vec::new();
    let around = Surroundings {
        stacks: &stacks,
        tcp: &tcp,
        rtt: &path.rtt,
        links: &links,
        access_rate: path.access_rate,
        hosts_share: path.hosts_share,
        duration: times.duration,
        warmup: times.warmup,
        cooldown: times.cooldown,
        seed,
    };
    let blocks = root.require("traffic", NEED_TRAFFIC, |entry| match entry.list(NEED_TRAFFIC)? {
        list if list.is_empty() => Err(entry.expected(NEED_TRAFFIC)),
        list if list.len() > MOST_BLOCKS => {
            Err(list[MOST_BLOCKS].error(format!("expected at most {MOST_BLOCKS} blocks of traffic")))
        }
        list => Ok(list),
    })?;
    let mut routes = Vec::new();
    for (index, entry) in blocks.iter().enumerate() {
        let block = blocks::read(index, entry, &around)?;
        blocks_written.push(block.written);
        routes.push(block.route);
        match block.traffic {
            Ok(block) => {
                need_hosts(entry, &block, &path)?;
                let found = block.workload.vectors().and_then(|vectors| vectors.reached);
                reached.extend(found.map(|found| (index, found)));
                traffic.push(block);
            }
            Err((load, error)) => {
                loads.push(load);
                load_places.push(error.place.clone());
                unknown.get_or_insert(error);
            }
        }
    }
    network::need_use(&root, &links, &routes)?;

    let mut fields = vec![
        ("name", Written::Text(name.clone())),
        ("duration", Written::Text(units::write_span(times.duration))),
        ("warmup", Written::Text(units::write_span(times.warmup))),
        ("cooldown", Written::Text(units::write_span(times.cooldown))),
        ("seed", Written::Integer(seed)),
        links_written,
        ("path", Written::Section(path_written)),
    ];
    fields.extend(stacks.write()?.map(|written| (STACKS, written)));
    fields.extend([
        ("tcp", Written::Section(tcp_written)),
        ("traffic", Written::Blocks(blocks_written)),
        ("record", Written::Section(record_written)),
    ]);
    if !live_written.is_empty() {
        fields.push(("live", Written::Section(live_written)));
    }
    let Times { duration, warmup, cooldown } = times;
    let scenario = match unknown {
        None => Ok(Scenario { name, duration, warmup, cooldown, seed, links, path, traffic, record, live }),
        Some(error) => Err(error),
    };
    let text = text_of(&fields, origin)?;
    Ok(Resolved {
        scenario,
        loads,
        load_places,
        reached,
        text,
        digest: kept::hexadecimal(&written::essence(&fields)),
        files: kept_files(&fields),
        document: Document(fields),
    })
}

/// The fields as a text that can be read again.
fn text_of(fields: &Fields, origin: &str) -> Result<String, Error> {
    let text = written::toml(fields);
    if text.len() <= MOST_TEXT {
        return Ok(text);
    }
    let problem = format!(
        "{} bytes long with every table copied in, expected at most {MOST_TEXT}: fewer points or blocks",
        text.len()
    );
    Err(Error { place: origin.to_owned(), key: String::new(), value: None, problem })
}

/// The section `[tcp]`, which holds for hosts where a block says nothing else.
fn tcp<'a>(root: &Section<'a>) -> Result<Section<'a>, Error> {
    let tcp = root.section("tcp")?;
    hosts::refuse_former(&tcp)?;
    tcp.only(&[hosts::KEYS])?;
    Ok(tcp)
}

/// Reads the text into a tree: with overrides applied, short forms expanded, and profiles copied in. Beside it, whose
/// blocks its blocks of traffic are.
fn document(text: &str, overrides: &[(String, String)], context: Context<'_>) -> Result<(Node, Origins), Error> {
    let mut document = document::parse(text, context.origin)?;
    document::write_out(&mut document);
    for (key, value) in overrides {
        document::apply_override(&mut document, key, value)?;
        document::write_out(&mut document);
    }
    let origins = homes::write_out(&mut document, context)?;
    stacks::copy_in(&mut document, context).map_err(|error| origins.of_file(error))?;
    Ok((document, origins))
}

struct Times {
    duration: Span,
    warmup: Span,
    cooldown: Span,
}

fn times(root: &Section<'_>) -> Result<Times, Error> {
    let longest = Span::from_secs_f64(units::MAX_SECONDS);
    let duration = root.read("duration", Span::from_secs(300), |entry| entry.span_within(Span::from_ms(1), longest))?;
    // A fifth: 60 of 300 seconds.
    let warmup = root.read("warmup", duration / 5, |entry| entry.span())?;
    let cooldown = root.read("cooldown", Span::ZERO, |entry| entry.span())?;
    if warmup + cooldown < duration {
        return Ok(Times { duration, warmup, cooldown });
    }
    let [all, after] = [duration, cooldown].map(units::write_span);
    let expected = format!("less than the duration {all} together with a cooldown of {after}");
    Err(match (root.get("warmup"), root.get("cooldown")) {
        (Some(entry), _) => entry.expected(expected),
        (None, Some(entry)) => entry.expected(format!("less than the duration {all} less the warmup")),
        (None, None) => unreachable!("a fifth is less than the whole"),
    })
}

/// Refuses hosts without number where they are to share links.
fn need_hosts(entry: &Entry<'_>, block: &Traffic, path: &Path) -> Result<(), Error> {
    const HOSTS: &str = "hosts";
    if !path.hosts_share || block.numbers_its_hosts() {
        return Ok(());
    }
    let expected = "how many hosts its flows take turns at, at each end: with path.access = \"host\" these share links";
    let block = entry.section("a table")?;
    Err(block.get(HOSTS).map_or_else(|| block.missing(HOSTS, expected), |given| given.expected(expected)))
}

/// Whose access links are: whether the connections of a host share them.
const ACCESS: [(&str, bool); 2] = [("connection", false), ("host", true)];

fn path(section: &Section<'_>) -> Result<(Path, Fields), Error> {
    section.only(&[&["access_rate", "access", "rtt"], impairments::KEYS])?;
    let access_rate = section.read("access_rate", Rate::from_bps(1_000_000_000), |entry| entry.rate())?;
    let hosts_share = section.read("access", false, |entry| entry.word(&ACCESS))?;
    // The range of the web studies (Le et al. 2003).
    let studied = RttSpec::Drawn(Distribution::Uniform(0.010, 0.150));
    let rtt = section.read("rtt", studied, distribution::read_rtt)?;
    let mut written =
        vec![("access_rate", Written::Text(units::write_rate(access_rate))), ("rtt", distribution::write_rtt(&rtt))];
    if hosts_share {
        let (word, _) = ACCESS[1];
        written.push(("access", Written::Text(word.to_owned())));
    }
    let (impairments, impaired) = impairments::read(section)?;
    written.extend(impaired);
    Ok((Path { access_rate, hosts_share, rtt, impairments }, written))
}

fn record(section: &Section<'_>, duration: Span) -> Result<(Record, Fields), Error> {
    section.only(&[&["interval", "drops", "exchanges", "demands", "flows"]])?;
    let shortest = Span::from_us(10);
    let default = Span::from_ms(100).min(duration);
    let interval = section.read("interval", default, |entry| entry.span_within(shortest, duration))?;
    let drops = section.read("drops", false, |entry| entry.flag())?;
    let exchanges = section.read("exchanges", true, |entry| entry.flag())?;
    let demands = section.read("demands", false, |entry| entry.flag())?;
    let flows = section.get("flows").map(|entry| entry.span_within(Span::from_ms(1), duration)).transpose()?;
    let mut written = vec![
        ("interval", Written::Text(units::write_span(interval))),
        ("drops", Written::Flag(drops)),
        ("exchanges", Written::Flag(exchanges)),
        ("demands", Written::Flag(demands)),
    ];
    // It is written only where it is asked for, so that scenarios without it keep their text and digest.
    written.extend(flows.map(|every| ("flows", Written::Text(units::write_span(every)))));
    Ok((Record { interval, drops, exchanges, demands, flows }, written))
}

/// The name of a file without its folder and ending, which names a scenario without a name.
fn stem(origin: &str) -> &str {
    let file = origin.rsplit(['/', '\\']).next().unwrap_or(origin);
    file.strip_suffix(".toml").unwrap_or(file)
}

fn kept_files(fields: &Fields) -> Vec<KeptFile> {
    let mut files = Vec::new();
    fields.iter().for_each(|(_, value)| value.files(&mut files));
    let mut seen = std::collections::BTreeSet::new();
    files.retain(|kept| seen.insert(kept.clone()));
    files
}

//! A block of kind `homes` stands for the blocks of what people do at home: pages, video, calls, games, downloads,
//! backups. It is replaced by these before anything else is read, so that results have each application by itself.
//!
//! How many of all homes do what in the busy hour: OpenVault's Broadband Insights have 698 GB a month of a subscriber
//! in the mean (fourth quarter of 2024), which are 2.1 Mb/s all day. In the busy hour this is taken for half again as
//! much, and two thirds of it for video: 2.1 Mb/s, of a ladder up to 5.8 Mb/s some 0.4 films a home. The others were
//! chosen: nobody publishes how many people browse, talk and play at the same time.

use crate::blocks::{APPLICATION, RTT};
use crate::document::{Data, Node, Place};
use crate::error::Error;
use crate::hosts;
use crate::kinds::{Key, Model, Row, Takes};
use crate::network::{ROUTE_KEYS, RTT_TICK};
use crate::scenario::Direction;
use crate::section::{Context, Section};
use std::collections::BTreeMap;

/// The word that such a block has as its kind.
pub(crate) const HOMES: &str = "homes";

/// More homes are no access network.
const MOST_HOMES: u32 = 100_000;
/// More of one application in a home are no home.
const MOST_EACH: f64 = 100.0;

const COUNT: Key =
    Key { name: HOMES, takes: Takes::Count(1, MOST_HOMES), default: "required", doc: "homes behind the link" };

const fn share(name: &'static str, default: &'static str, doc: &'static str) -> Key {
    Key { name, takes: Takes::Number(0.0, MOST_EACH), default, doc }
}

const BROWSING: Key = share("browsing", "0.3", "people of a home who read web pages at the same time");
const VIDEO: Key = share("video", "0.4", "films of a home that are watched");
const CALLS: Key = share("calls", "0.1", "calls of a home");
const GAMES: Key = share("games", "0.1", "games of a home");
const DOWNLOADS: Key = share("downloads", "0.05", "downloads of a home that do not end within the run");
const BACKUPS: Key = share("backups", "0.05", "uploads of a home that do not end within the run");

/// What is known of such a block, for catalogues.
pub const ROW: Row = Row {
    name: HOMES,
    called: &[],
    speaks_tcp: true,
    is_recorded: false,
    direction: (Direction::Forward, ""),
    own: None,
    applications: &[],
    models: &[Model {
        name: "",
        doc: "Homes in the busy hour: the blocks of pages, video, calls, games, downloads and backups",
        source: "OpenVault Broadband Insights, 4Q 2024, for video; the other shares were chosen",
        keys: &[COUNT, BROWSING, VIDEO, CALLS, GAMES, DOWNLOADS, BACKUPS],
        words: &[("", "people in {homes|home}")],
    }],
};

/// An application: its share, the key that says how many there are, and the other keys of its block.
struct Application {
    share: Key,
    label: &'static str,
    count: &'static str,
    /// Sources of each: of calls and games one each way.
    sources: i64,
    keys: &'static [(&'static str, &'static str)],
    /// Keys of its own that the block of homes may have.
    own: &'static [&'static str],
}

const PROBE: (&str, &str) = ("kind", "probe");
const BOTH: (&str, &str) = ("direction", "both");
const BULK: (&str, &str) = ("kind", "bulk");

const APPLICATIONS: [Application; 6] = [
    Application {
        share: BROWSING,
        label: "pages",
        count: "users",
        sources: 1,
        keys: &[("kind", "web"), ("model", "archive2024"), ("direction", "forward")],
        own: &["protocol", "think"],
    },
    Application {
        share: VIDEO,
        label: "video",
        count: "viewers",
        sources: 1,
        keys: &[("kind", "video")],
        own: &["rule", "ladder", "buffer"],
    },
    Application { share: CALLS, label: "calls", count: "flows", sources: 2, keys: &[PROBE, BOTH], own: &[] },
    Application {
        share: GAMES,
        label: "games",
        count: "flows",
        sources: 2,
        keys: &[PROBE, BOTH, ("interval", "33ms"), ("packet", "100b")],
        own: &[],
    },
    Application { share: DOWNLOADS, label: "downloads", count: "flows", sources: 1, keys: &[BULK], own: &[] },
    Application {
        share: BACKUPS,
        label: "backups",
        count: "flows",
        sources: 1,
        keys: &[BULK, ("direction", "reverse")],
        own: &[],
    },
];

/// Which block of the file each block of the document is of, where there is a block of homes.
#[derive(Default)]
pub(crate) struct Origins(Vec<usize>);

impl Origins {
    /// The error as the file has its blocks of traffic: who wrote one block of homes knows of no others.
    pub fn of_file(&self, mut error: Error) -> Error {
        if let Some(rest) = error.key.strip_prefix(BLOCKS) {
            let (number, behind) = rest.split_at(rest.find('.').unwrap_or(rest.len()));
            if let Some(origin) = number.parse().ok().and_then(|number: usize| self.0.get(number)) {
                error.key = format!("{BLOCKS}{origin}{behind}");
            }
        }
        error
    }
}

const BLOCKS: &str = "traffic.";

/// Replaces each block of homes by the blocks of its applications.
///
/// # Errors
/// The first thing that is wrong with such a block, in one line.
pub(crate) fn write_out(document: &mut Node, context: Context<'_>) -> Result<Origins, Error> {
    let Data::Table(table) = &document.data else { return Ok(Origins::default()) };
    let Some(Node { data: Data::List(list), .. }) = table.get("traffic") else { return Ok(Origins::default()) };
    if !list.iter().any(is_homes) {
        return Ok(Origins::default());
    }
    let root = Section::root(document, context);
    let entries = root.get("traffic").expect("it is there").list("")?;
    let mut blocks = Vec::new();
    let mut origins = Vec::new();
    for (origin, (node, entry)) in list.iter().zip(&entries).enumerate() {
        if is_homes(node) {
            blocks.extend(expanded(&entry.section("a table with a kind")?, node)?);
        } else {
            blocks.push(node.clone());
        }
        origins.resize(blocks.len(), origin);
    }
    let Data::Table(table) = &mut document.data else { unreachable!("a document is a table") };
    table.get_mut("traffic").expect("it is there").data = Data::List(blocks);
    Ok(Origins(origins))
}

fn is_homes(block: &Node) -> bool {
    let Data::Table(table) = &block.data else { return false };
    table.get("kind").is_some_and(|kind| matches!(&kind.data, Data::Text(word) if word == HOMES))
}

/// The blocks of a block of homes.
fn expanded(block: &Section<'_>, node: &Node) -> Result<Vec<Node>, Error> {
    let own: Vec<&str> = ROW.models[0].keys.iter().map(|key| key.name).collect();
    let of_one: Vec<&str> = APPLICATIONS.iter().flat_map(|application| application.own.iter().copied()).collect();
    block.only(&[&["kind", RTT], &own, &of_one, ROUTE_KEYS, &[RTT_TICK], hosts::KEYS])?;
    let Takes::Count(low, high) = COUNT.takes else { unreachable!("it is a count") };
    let homes = block.require(COUNT.name, "how many homes there are", |entry| entry.count(low..=high))?;
    let Data::Table(given) = &node.data else { unreachable!("it was read as a table") };
    let mut blocks = Vec::new();
    for application in &APPLICATIONS {
        let each = application.share.number(block)?;
        if each == 0.0 {
            continue;
        }
        // One at least, so that results say what each application gets.
        let count = (f64::from(homes) * each).round().max(1.0) as i64;
        let place = given.get(application.share.name).map_or(node.place, |node| node.place);
        let mut keys: BTreeMap<String, Node> = BTreeMap::new();
        for (key, value) in application.keys.iter().chain(&[(APPLICATION, application.label)]) {
            keys.insert((*key).to_owned(), at(place, Data::Text((*value).to_owned())));
        }
        keys.insert(application.count.to_owned(), at(place, Data::Integer(count * application.sources)));
        let speaks_tcp = !application.keys.contains(&PROBE);
        let shared = ROUTE_KEYS.iter().chain(application.own).copied().chain([RTT]);
        let of_tcp = hosts::KEYS.iter().copied().chain([RTT_TICK]);
        let passed = shared.chain(of_tcp.filter(|_| speaks_tcp));
        for key in passed {
            if let Some(value) = given.get(key) {
                keys.insert(key.to_owned(), value.clone());
            }
        }
        blocks.push(at(node.place, Data::Table(keys)));
    }
    if blocks.is_empty() {
        let expected = "at least one share above 0: nobody does anything";
        return Err(match block.get(BROWSING.name) {
            Some(entry) => entry.expected(expected),
            None => block.missing(BROWSING.name, expected),
        });
    }
    Ok(blocks)
}

fn at(place: Place, data: Data) -> Node {
    Node { data, place }
}

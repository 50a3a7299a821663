//! This crate turns text into checked values: quantities with units, distributions, scenarios.
//!
//! [`resolve()`] reads the text of a scenario, applies overrides and fills in every default. It refuses whatever does
//! not make sense, with one line that names the file, the key, the value and what was expected. A scenario that leaves
//! this crate is complete and consistent, so that whoever runs it need not look for errors again.
//!
//! Each kind of traffic is a file in `kinds`. It reads its blocks and makes their sources of demand ([`Source`]). A
//! source is told what happened ([`Turn`]) and says what is to be done ([`Command`]).
//!
//! Nothing here opens a file: the text of a file that a scenario names comes through [`Files`]. Distributions are
//! copied into the resolved text; larger files are named there with the digest of their content ([`KeptFile`]).

pub mod bounds;
pub mod units;

mod addressing;
mod blocks;
mod changing;
mod demand;
mod distribution;
mod document;
mod error;
mod homes;
mod hosts;
mod impairments;
mod kept;
mod kinds;
mod known_as;
mod law;
mod link;
mod live;
mod nesting;
mod network;
mod qdisc;
mod resolve;
mod rows;
mod scenario;
mod section;
mod stacks;
mod voice;
mod written;

pub use demand::{Carries, Demand, Expected, Lanes, Site, Source};
pub use distribution::{Quantity, read_table};
pub use document::{Files, check_toml};
pub use error::Error;
pub use homes::ROW as HOMES;
pub use impairments::{Impairment, Impairments, Reorder};
pub use kept::KeptFile;
pub use kinds::{
    Bulk, Cbr, Key, Model, OnOff, Poisson, Probes, Reached, Readers, Replay, Row, Sessions, Takes, Tmix, UdpPoisson,
    UdpTrace, Users, Video, Web, Workload, rows as kinds,
};
pub use known_as::{known_as, names as known_as_names};
pub use live::{Capture, Family, Live, Maker};
pub use network::Built;
pub use resolve::{Resolved, resolve, resolve_with};
pub use scenario::{
    Direction, Hosts, Link, LoadRequest, Path, QdiscSpec, Record, Route, RttSpec, Scenario, ToldRate, Traffic,
};
pub use voice::{Asks, Command, Opening, Owner, Turn, Voice, opens};
pub use written::Document;

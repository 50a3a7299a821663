//! Text to checked values: units, distributions, scenarios.
//!
//! [`resolve()`] reads the text of a scenario, applies overrides, fills in every default and refuses whatever does not
//! make sense with one line that names the file, the key, the value and what was expected. What leaves this crate is
//! complete and consistent: whoever runs it need not look for errors again.
//!
//! Nothing here opens a file: the text of a file that a scenario names comes through [`Files`]. Distributions are
//! copied into the resolved text; larger files are named there with the digest of their content ([`KeptFile`]).

pub mod bounds;
pub mod units;

mod addressing;
mod blocks;
mod changing;
mod distribution;
mod document;
mod error;
mod hosts;
mod impairments;
mod kept;
mod law;
mod link;
mod live;
mod nesting;
mod network;
mod qdisc;
mod replay;
mod resolve;
mod scenario;
mod section;
mod stacks;
mod tmix;
mod udp;
mod web;
mod written;

pub use distribution::{Quantity, read_table};
pub use document::{Files, check_toml};
pub use error::Error;
pub use impairments::{Impairment, Impairments, Reorder};
pub use kept::KeptFile;
pub use live::{Capture, Family, Live, Maker};
pub use network::Built;
pub use resolve::{LoadRequest, Resolved, resolve, resolve_with};
pub use scenario::{
    Bulk, Cbr, Direction, Hosts, Link, Path, Poisson, QdiscSpec, Reached, Record, Route, RttSpec, Scenario, Sessions,
    Tmix, Traffic, Udp, UdpSource, Web, Workload,
};
pub use written::Document;

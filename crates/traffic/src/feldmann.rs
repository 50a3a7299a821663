//! This file has the parameters of web sessions: five sets by Feldmann, Gilbert, Huang and Willinger, "Dynamics of IP
//! traffic: a study of the role of variability and the impact of control", SIGCOMM 1999, and the set that Kuzmanovic
//! (SIGCOMM 2005) made of one of them. [`crate::session`] says what a session does.
//!
//! | model | time between pages | objects a page | time between objects | size of an object |
//! |---|---|---|---|---|
//! | `feldmann-pareto1` | Pareto, mean 50 s, shape 2 | Pareto, 4, 1.2 | Pareto, 0.5 s, 1.5 | Pareto, 12 kB, 1.2 |
//! | `feldmann-pareto2` | Pareto, mean 10 s, shape 2 | Pareto, 3, 1.5 | Pareto, 0.5 s, 1.5 | Pareto, 12 kB, 1.2 |
//! | `feldmann-exp1` | Pareto, mean 25 s, shape 2 | 1 | - | exponential, 12 kB |
//! | `feldmann-exp2` | exponential, 10 s | 1 | - | exponential, 12 kB |
//! | `feldmann-constant` | 10 s | 1 | - | 1 MB |
//! | `kuzmanovic2005` | as Pareto 1 | as Pareto 1 | as Pareto 1 | the responses of `unc2001`, mean 7.2 kB |
//!
//! The sets are quoted in the source text of `pttcp` (University of Cambridge Computer Laboratory, 2000). kB and MB are
//! powers of ten.
//!
//! **Pareto** here is ns-2's: scale times u^(-1/shape), with the scale set so that the mean is as stated. Objects with
//! a mean of 4 therefore begin at 0.67. Rounding them up makes their mean 1 + s^a ζ(a), with s the scale, a the shape
//! and ζ Riemann's function: 4.44 instead of 4, 3.61 instead of 3.
//!
//! No tail is cut off. At shape 1.2 the mean of a sample therefore stays below that of the distribution, by about 12 %
//! for the sizes in runs as long as the studies', because the rest lies in objects so large that few runs have one. So
//! calibration, not a product of means, tells what a population offers in a run.
//!
//! **Where the time between pages counts from.** Start-to-start is the default of every set here. Until November 2001
//! ns-2's generator knew nothing else, so that Brandauer et al. (ISCC 2001) had it. In 2005 ns-2 had both, with
//! end-to-start as the default; but Kuzmanovic recorded the requests on an uncongested link and replayed them at the
//! same instants on the congested one, which start-to-start does by itself.
//!
//! **What is not known of the originals**; each is a key of the scenario:
//! - the parameters of Brandauer et al., which are "based on" Feldmann et al. Pareto 1 gives 8.5 kb/s of objects a
//!   session, so 6.8 to 12 Mb/s for their 800 to 1400 sessions. This fits what they say of these.
//! - Kuzmanovic's objects a page and times between objects.
//! - the size of a request. Here it is 350 B, one segment, as was usual; ns-2 sends one packet.

use crate::session::{Pages, SessionModel, Sizes};
use base::Distribution;

/// The names of the models.
pub const NAMES: [&str; 6] =
    ["feldmann-pareto1", "feldmann-pareto2", "feldmann-exp1", "feldmann-exp2", "feldmann-constant", "kuzmanovic2005"];

/// The request of all of them, bytes.
const REQUEST: u32 = 350;

/// The model called `name`.
pub fn named(name: &str) -> Option<SessionModel> {
    let sizes = Sizes::Stated(pareto(2_000.0, 1.2));
    let small = Sizes::Stated(Distribution::Exponential { mean: 12_000.0 });
    match name {
        "feldmann-pareto1" => Some(pages(pareto(25.0, 2.0), pareto(2.0 / 3.0, 1.2), sizes)),
        "feldmann-pareto2" => Some(pages(pareto(5.0, 2.0), pareto(1.0, 1.5), sizes)),
        "feldmann-exp1" => Some(single_objects(pareto(12.5, 2.0), small)),
        "feldmann-exp2" => Some(single_objects(Distribution::Exponential { mean: 10.0 }, small)),
        "feldmann-constant" => {
            Some(single_objects(Distribution::Constant(10.0), Sizes::Stated(Distribution::Constant(1e6))))
        }
        "kuzmanovic2005" => Some(pages(pareto(25.0, 2.0), pareto(2.0 / 3.0, 1.2), Sizes::unc2001())),
        _ => None,
    }
}

fn pages(inter_page: Distribution, objects: Distribution, size: Sizes) -> SessionModel {
    let inter_object = pareto(1.0 / 6.0, 1.5);
    SessionModel { pages: Pages::StartToStart, inter_page, objects, inter_object, size, request_bytes: REQUEST }
}

fn single_objects(inter_page: Distribution, size: Sizes) -> SessionModel {
    let (objects, inter_object) = (Distribution::Constant(1.0), Distribution::Constant(0.0));
    SessionModel { pages: Pages::StartToStart, inter_page, objects, inter_object, size, request_bytes: REQUEST }
}

/// A Pareto by its scale, the smallest value, which is the mean times (shape - 1)/shape.
const fn pareto(scale: f64, shape: f64) -> Distribution {
    Distribution::Pareto { scale, shape }
}

//! The web sessions of Feldmann, Gilbert, Huang and Willinger, "Dynamics of IP traffic: a study of the role of
//! variability and the impact of control", SIGCOMM 1999: five sets of parameters; and what Kuzmanovic (SIGCOMM 2005)
//! made of them. What a session is and does: [`crate::session`].
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
//! **Pareto** here is ns-2's: scale times u^(-1/shape), the scale set so that the mean is as stated. Objects, mean 4,
//! therefore begin at 0.67, and rounding them up makes their mean 4.44 (3.61 for a mean of 3): 1 + s^a ζ(a), with s the
//! scale, a the shape and ζ Riemann's. Nothing is cut off. At shape 1.2 a sample's mean stays below the
//! distribution's, by 12 % or so for the sizes in runs of the studies' lengths, for the rest is in objects so large
//! that few runs have one: what a population offers in a run is found by calibration, not by multiplying means.
//!
//! **Which reading of the time between pages.** ns-2's generator knew start-to-start only until November 2001, so
//! that is what Brandauer et al. (ISCC 2001) had; in 2005 both were there, end-to-start the default. Kuzmanovic
//! recorded the requests on an uncongested link and replayed them at the same instants on the congested one, which
//! start-to-start does by itself: it is the default of every set here.
//!
//! **Not known of the originals**: the table of parameters of Brandauer et al. ("based on" Feldmann et al.; Pareto 1
//! gives 8.5 kb/s of objects a session, 6.8 to 12 Mb/s for their 800 to 1400, which fits what they say of these);
//! objects a page and times between objects of Kuzmanovic; the request, here 350 B, one segment, as was usual (ns-2
//! sends one packet). Each is a key of the scenario.

use crate::session::{Pages, SessionModel, Sizes};
use base::Distribution;

/// What the models are called.
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

/// By its scale, the smallest value, which is the mean times (shape - 1)/shape.
const fn pareto(scale: f64, shape: f64) -> Distribution {
    Distribution::Pareto { scale, shape }
}

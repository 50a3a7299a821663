//! The web users of the UNC studies: Smith, Hernandez-Campos, Jeffay and Ott, "What TCP/IP protocol headers can tell
//! us about the web", SIGMETRICS 2001, as used by Le, Aikat, Jeffay and Smith (SIGCOMM 2003, ICNP 2004, ToN 2007) and,
//! for its sizes, by Kuzmanovic (SIGCOMM 2005).
//!
//! The empirical distribution functions were once published and are lost. What is here has their shape as far as the
//! papers state it, in few pieces. Every figure they state of the demand holds at once: `tests/anchors.rs` draws the
//! model and checks. The last two figures depend on TCP as well.
//!
//! | stated | by | this model |
//! |---|---|---|
//! | mean response 7.2 kB | Kuzmanovic 2005 | 7.20 kB |
//! | the top 15 % of sizes carry 80 % of the bytes | Kuzmanovic 2005 | 80.7 % |
//! | about 90 % of responses are at most 10 kB ... | Le 2004 | 89.5 % |
//! | ... and carry under 25 % of the bytes | Le 2004 | 24.8 % |
//! | responses over 1 MB are under 1 % ... | Le 2004 | 0.059 % |
//! | ... and carry about 25 % of the bytes | Le 2004 | 24.7 % |
//! | responses of 2-3 kB and less are about 70 % ... | Le 2004 | 70.0 % up to 2.6 kB |
//! | ... and carry 6-8 % of the bytes | Le 2004 | 7.0 % |
//! | about half the objects come over persistent connections | Smith 2001 | 50 % |
//! | sizes, page sizes and think times are heavy-tailed | Smith 2001, Le 2004 | tail shapes 1.2, 1.5, 1.5 |
//! | 20,000 users, half on each side, put 105 Mb/s on each direction of an idle link | Le 2004 | see [`THINK_MEAN`] |
//! | Hurst parameter of the uncongested traffic 0.8-0.9 | Kuzmanovic 2005 | 0.83-0.88, see below |
//! | packets on the link a little over 500 B | Le 2007 | 580, see below |
//!
//! | element | form | why |
//! |---|---|---|
//! | response | 13 quantiles, from 1 MB a Pareto tail | the figures above |
//! | request | quantiles, mean 352 B | about 350 B was usual; one segment, so only the mean matters |
//! | objects a page | quantiles, from 8 a Pareto tail; mean 5.4 | 5 to 6 exchanges a page, most pages far fewer |
//! | think time | quantiles, from the 75 % point a Pareto tail of shape 1.5 | shape: Crovella and Bestavros 1997 |
//! | persistent | half of the pages, one connection each | gives half of the objects and 15.5 % of the connections |
//! | parallel | 2 connections for a page without persistent ones | as Internet Explorer; 4 as Netscape of the day |
//! | server delay | none | the studies emulate none |
//!
//! **Where the tails end.** The studies' largest response is near 1 GB, which takes over an hour through a 16 kB window
//! at 80 ms (200 kB/s). In runs of minutes such objects would only make the load drift upwards and differ from seed to
//! seed. Responses therefore end at 30 MB: the longest transfers take 2.5 minutes at the mean round-trip time, 5 % of
//! the bytes belong to responses that take longer than a minute, and the bytes requested on one side in four minutes
//! at 105 Mb/s scatter by 2.6 % between seeds (9 % with a tail to 1 GB). Responses between 300 kB and 30 MB are a
//! little more frequent to make up for what is cut, so that those over 1 MB still carry their quarter. Think times end
//! at an hour of the unscaled shape: a user who is away longer has left. Pages end at 200 objects.
//!
//! **What TCP adds.** The last two figures were estimated with a train of packets for every transfer (slow start to a
//! 16 kB window, an ACK for two segments, round-trip times of 10 to 150 ms, 20,000 users, an idle link).
//! The variance-time plot from 20 or 80 ms to 80 s has H between 0.83 and 0.88. The scales do not behave alike, though:
//! below 0.3 s windows arrive as bursts and nothing scales. A Haar wavelet with all octaves alike has 0.83 from 20 ms,
//! 0.92 from 80 ms, 0.93 to 0.99 above 0.6 s: more than (3 - 1.2)/2 = 0.9, what the tail's shape alone would give, as
//! transfers at full window run at a steady rate for seconds. The sizes leave no room for less: with a quarter of the
//! bytes over 1 MB the steepest tail that fits (shape 1.35, to 1 GB) lowers it by 0.02.
//! The mean IP packet is 580 B, or 620 B where FINs ride on data: with 7.2 kB a response and half of the objects on
//! persistent connections there are no more small packets than that. An ACK for each segment would make it 505 B; the
//! hosts of the studies may have sent window updates between their ACKs.
//!
//! **Not known of the original**: the functions between the figures stated, whether top-level and embedded responses
//! differ (here they do not), servers a page, how many consecutive pages come from one server (here every page opens
//! connections of its own), the think times' scale.

use crate::piecewise::Piecewise;
use crate::web::WebModel;

/// Mean think time, s: the one calibrated constant, set so that 20,000 users offer 105 Mb/s, IP headers included, to
/// each direction of an idle link. A page is 5.44 exchanges and 0.9 s; an exchange is 8.1 kB of IP packets in both
/// directions together (response, request, 14 headers, SYN options), so 210 Mb/s are 3,235 exchanges/s and a user
/// begins a page every 33.6 s.
pub const THINK_MEAN: f64 = 32.7;

/// The model.
pub fn model() -> WebModel {
    let response = response();
    WebModel {
        think: Piecewise::with_tail(&[(1.0, 0.0), (4.0, 0.15), (12.0, 0.45), (30.0, 0.75)], 1.5, 3_600.0),
        objects: Piecewise::with_tail(&[(1.0, 0.0), (2.0, 0.4), (4.0, 0.6), (8.0, 0.82)], 1.5, 200.0),
        request: Piecewise::new(&[
            (150.0, 0.0),
            (260.0, 0.20),
            (320.0, 0.50),
            (390.0, 0.75),
            (520.0, 0.94),
            (1_300.0, 1.0),
        ]),
        top_level: response.clone(),
        embedded: response,
        persistent_pages: 0.5,
        parallel: 2,
        persistent_parallel: 1,
        page_time: 0.9,
    }
    .with_think_mean(THINK_MEAN)
}

/// Response sizes, bytes. The crowd between 5 and 10 kB is forced: with 20 % of the bytes below the 85 % point and 7 %
/// below the 70 % point, those between must average some 6 kB.
pub(crate) fn response() -> Piecewise {
    Piecewise::with_tail(
        &[
            (80.0, 0.0),
            (200.0, 0.10),
            (360.0, 0.31),
            (1_000.0, 0.52),
            (2_600.0, 0.70),
            (5_200.0, 0.724),
            (7_600.0, 0.85),
            (10_000.0, 0.895),
            (17_000.0, 0.949),
            (30_000.0, 0.977_2),
            (100_000.0, 0.995_0),
            (300_000.0, 0.998_3),
            (1_000_000.0, 0.999_41),
        ],
        1.2,
        30e6,
    )
}

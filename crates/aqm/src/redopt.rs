//! REDopt computes RED's parameters from the link, the round-trip time and the number of flows. The queue of flows that
//! last then settles in the middle of the band, and swings little.
//!
//! Source: Ziegler, Brandauer and Fdida, "A Quantitative Model for the Parameter Setting of RED with TCP Traffic",
//! IWQoS 2001, as used by Brandauer et al., "Comparison of Tail Drop and Active Queue Management Performance for
//! Bulk-Data and Web-like Internet Traffic", ISCC 2001 ("the study"). Only the idea and what the study tells of it are
//! followed: the model's own equations were not at hand, and this is a reconstruction.
//!
//! | source | here |
//! |---|---|
//! | bottleneck bandwidth, RTT, number of flows | [`Network`] |
//! | TCP bandwidth less UDP: `C - R_udp (1 - P_loss)` | `for_tcp` in [`design`] |
//! | `maxth - minth` linear in the bandwidth-delay product and the flows | `band` |
//! | equilibrium at `(minth + maxth) / 2` | `queue` |
//! | `maxp` = 2 x drop probability, x 1.1 | [`resolve`] |
//!
//! The drop probability is where the flows' rate by the formula of Padhye, Firoiu, Towsley and Kurose (SIGCOMM 1998,
//! with a timeout of four round trips as in RFC 5348) fills what UDP leaves of the link. The weight forgets nine tenths
//! in a period of TCP's sawtooth (Firoiu and Borden, INFOCOM 2000).
//!
//! Three things are unconfirmed: the constants of the band, which are parameters; that the lower threshold is a third
//! of the band's width; and that the buffer is half as much again as the upper threshold.
//!
//! The discipline is RED itself, without gentle, with these parameters wherever they were not given. They are for one
//! queue that all flows share, so that there is no form of it under fair queueing.

use crate::law::measure;
use crate::law::red::{self, Red};
use crate::packet::Packet;
use crate::param::{Kind, Length, Param, Refusal, Value, Values};
use crate::qdisc::Qdisc;
use crate::registry::{self, Discipline, Row, Site};
use base::{Rate, maths};

const PAPER: &str = "Ziegler, Brandauer and Fdida 2001";
const STUDY: &str = "Brandauer et al. 2001";
const UNCONFIRMED: &str = "a reading of Ziegler, Brandauer and Fdida 2001 that could not be confirmed";

/// Share of the average that is left after a period of TCP's sawtooth.
const LEFT: f64 = 0.1;

/// What the parameters are computed from.
#[derive(Clone, Copy, Debug)]
pub struct Network {
    /// The link's packets a second.
    pub capacity: f64,
    /// Round-trip time without queueing, in seconds.
    pub rtt_s: f64,
    /// TCP flows that last.
    pub flows: f64,
    /// What UDP offers, as a share of the link.
    pub udp_share: f64,
    /// Packets that one ACK acknowledges (`b` of Padhye et al.).
    pub acked: f64,
    /// Width of the band in packets: per packet of the bandwidth-delay product, per flow, and in any case.
    pub band: (f64, f64, f64),
}

/// The result: RED's parameters, and the equilibrium that they are for.
#[derive(Clone, Copy, Debug)]
pub struct Design {
    /// Thresholds in packets.
    pub min: f64,
    /// Upper threshold in packets.
    pub max: f64,
    /// Buffer in packets.
    pub limit: f64,
    /// Weight of the average.
    pub wq: f64,
    /// Drop probability at the equilibrium.
    pub drop_probability: f64,
    /// Round-trip time there, in seconds.
    pub rtt_s: f64,
    /// A flow's window there, in packets.
    pub window: f64,
    /// What is left for TCP there, in packets a second.
    pub for_tcp: f64,
}

/// How many packets of a TCP flow are in flight that loses a share `p` of them: Padhye et al. 1998, eq. 30, times the
/// round trip, with timeouts of four round trips (RFC 5348 §3.1). It falls strictly with `p`.
pub fn window(p: f64, acked: f64) -> f64 {
    let recovery = (2.0 * acked * p / 3.0).sqrt();
    let timeouts = 4.0 * (3.0 * (3.0 * acked * p / 8.0).sqrt()).min(1.0) * p * (1.0 + 32.0 * p * p);
    1.0 / (recovery + timeouts)
}

/// The parameters for `network`.
pub fn design(network: &Network) -> Design {
    let Network { capacity, rtt_s, flows, udp_share, acked, band: (per_path, per_flow, least) } = *network;
    let at = |p: f64| {
        let for_tcp = capacity * (1.0 - udp_share * (1.0 - p));
        // The path is as long as the queue in the middle of the band makes it, 5/6 of a band: solved for the band.
        let band = (per_path * for_tcp * rtt_s + per_flow * flows + least) / (1.0 - per_path * 5.0 / 6.0);
        let queue = 5.0 / 6.0 * band;
        (for_tcp, band, rtt_s + queue / for_tcp)
    };
    // What the flows would keep in flight falls with p, and what fits on the path rises: they meet once. At p = 1 a
    // flow has less than a packet, and the band alone is more.
    let (mut low, mut high) = (0.0, 1.0);
    // Down to 2^-120, far below one loss in the bandwidth-delay product squared.
    for _ in 0..120 {
        let p = 0.5 * (low + high);
        let (for_tcp, _, rtt_s) = at(p);
        if flows * window(p, acked) > for_tcp * rtt_s { low = p } else { high = p }
    }
    let drop_probability = high;
    let (for_tcp, band, rtt_s) = at(drop_probability);
    let window = for_tcp * rtt_s / flows;
    // From half the window to all of it: a packet more for each `acked` round trips.
    let period_packets = acked * window / 2.0 * rtt_s * capacity;
    Design {
        min: band / 3.0,
        max: band * 4.0 / 3.0,
        limit: band * 2.0,
        wq: 1.0 - maths::pow(LEFT, 1.0 / period_packets.max(1.0)),
        drop_probability,
        rtt_s,
        window,
        for_tcp,
    }
}

const PARAMS: &[Param] = &[
    Param {
        default: "",
        doc: "How much may wait, in packets or bytes; computed: half as much again as max.",
        ..registry::limit("", UNCONFIRMED)
    },
    registry::ECN,
    red::param::DIALECT,
    number(
        "flows",
        "64",
        (1.0, 1e9),
        "TCP flows that share the link; for web users, how many are active on average.",
        STUDY,
    ),
    Param {
        name: "rtt",
        kind: Kind::Time,
        default: "150ms",
        range: (1e-6, 100.0),
        doc: "Round-trip time of these flows without queueing.",
        source: STUDY,
    },
    Param {
        name: "udp_rate",
        kind: Kind::Rate,
        default: "",
        // Up to the link's, which `resolve` checks.
        range: (1.0, 1e13),
        doc: "What UDP offers, all of it together; absent by default: nothing.",
        source: "Brandauer et al. 2001: 1 Mb/s of 10",
    },
    number(
        "boost",
        "1.1",
        (0.01, 100.0),
        "Factor on the maximum probability for traffic more aggressive than modelled.",
        STUDY,
    ),
    number(
        "acked",
        "2",
        (1.0, 1e3),
        "Packets that one ACK acknowledges.",
        "Padhye et al. 1998; RFC 5681: delayed ACKs",
    ),
    number(
        "c1",
        "0.02158",
        (0.0, 1.0),
        "Width of the band for each packet of the bandwidth-delay product.",
        UNCONFIRMED,
    ),
    number("c2", "0.567", (0.01, 1e3), "Width of the band for each flow, in packets.", UNCONFIRMED),
    number("c3", "85", (0.0, 1e6), "Least width of the band, in packets.", UNCONFIRMED),
    computed(red::param::MIN, "Average queue below which nothing is signalled; computed: a third of the band's width."),
    computed(
        red::param::MAX,
        "Average queue at which the probability reaches its maximum; in the unit of min; computed: min and the band's \
         width.",
    ),
    computed(
        red::param::PROBABILITY,
        "Probability at an average of max; computed: twice that of the equilibrium, times boost.",
    ),
    computed(
        red::param::WQ,
        "Weight of each sample in the average queue; computed: nine tenths are new after a sawtooth.",
    ),
    red::param::GENTLE,
    red::param::GENTLE_END,
    red::param::MODE,
    Param { default: "1500b", source: "data packets of the study have 1514 bytes", ..measure::MEAN_PACKET },
    red::param::WAIT,
    red::param::MARK_UNTIL,
    red::param::MARK_P,
    registry::CAPACITY,
];

const fn number(
    name: &'static str,
    default: &'static str,
    range: (f64, f64),
    doc: &'static str,
    source: &'static str,
) -> Param {
    Param { name, kind: Kind::Number, default, range, doc, source }
}

const fn computed(param: Param, doc: &'static str) -> Param {
    Param { default: "", doc, source: PAPER, ..param }
}

/// The network that `values` describe, before a link of `rate`.
pub fn network(values: &Values, rate: Rate) -> Network {
    Network {
        capacity: measure::capacity(values, rate),
        rtt_s: values.time("rtt").secs_f64(),
        flows: values.number("flows"),
        udp_share: values.find_rate("udp_rate").map_or(0.0, |udp| udp.bps_f64() / rate.bps_f64()),
        acked: values.number("acked"),
        band: (values.number("c1"), values.number("c2"), values.number("c3")),
    }
}

/// Computes the parameters of RED that were not given.
pub fn resolve(values: &mut Values, rate: Rate) -> Result<(), Refusal> {
    let network = network(values, rate);
    if network.udp_share >= 1.0 {
        return Err(Refusal::new("udp_rate", "less than the link's rate"));
    }
    let design = design(&network);
    values.fill("min", Value::Length(Length::Packets(design.min)));
    values.fill("max", Value::Length(Length::Packets(design.max)));
    values.fill("limit", Value::Length(Length::Packets(design.limit.ceil())));
    values.fill("wq", Value::Number(design.wq));
    let probability = 2.0 * design.drop_probability * values.number("boost");
    values.fill("probability", Value::Number(probability.min(1.0)));
    red::resolve(values, rate)
}

/// RED with the parameters of the model.
pub struct RedOpt;

impl Discipline for RedOpt {
    const ROW: Row = Row {
        name: "redopt",
        aliases: &[],
        doc: "RED with parameters computed from the link, the round-trip time and the number of flows.",
        source: PAPER,
        year: 2001,
        marks: true,
        params: PARAMS,
        fixed: &["dialect", "mode", "mean_packet", "flows", "rtt", "udp_rate", "boost", "acked", "c1", "c2", "c3"],
        gauges: red::GAUGES,
        causes: &[],
        uses_rate: registry::always,
        resolve,
    };

    fn build<P: Packet + Send + 'static>(values: &Values, site: Site) -> Box<dyn Qdisc<P> + Send> {
        Red::build(values, site)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NETWORK: Network = Network {
        capacity: 12_500.0,
        rtt_s: 0.1,
        flows: 300.0,
        udp_share: 0.1,
        acked: 2.0,
        band: (0.021_58, 0.567, 85.0),
    };

    #[test]
    fn the_equilibrium_is_one() {
        for flows in [1.0, 16.0, 300.0, 5000.0] {
            for udp_share in [0.0, 0.1, 0.9] {
                let design = design(&Network { flows, udp_share, ..NETWORK });
                let Design { min, max, drop_probability: p, .. } = design;
                // Flows fill what UDP leaves; each sends by the formula; the round trip has the middle of the band; the
                // band is the linear form of the path at that round trip. Relative roundings of some 1e-15 each.
                let near = |a: f64, b: f64| assert!((a / b - 1.0).abs() < 1e-9, "{flows} {udp_share}: {a} {b}");
                near(design.for_tcp, 12_500.0 * (1.0 - udp_share * (1.0 - p)));
                near(design.window * flows, design.for_tcp * design.rtt_s);
                near(design.window, window(p, 2.0));
                near(design.rtt_s, 0.1 + (min + max) / 2.0 / design.for_tcp);
                near(max - min, 0.021_58 * design.for_tcp * design.rtt_s + 0.567 * flows + 85.0);
            }
        }
    }

    #[test]
    fn more_flows_lose_more() {
        let designs: Vec<Design> = (0..14).map(|k| design(&Network { flows: f64::from(1 << k), ..NETWORK })).collect();
        for pair in designs.windows(2) {
            assert!(pair[1].drop_probability > pair[0].drop_probability);
            assert!(pair[1].max > pair[0].max);
            assert!(pair[1].drop_probability < 1.0 && pair[1].wq < 1.0 && pair[0].wq > 0.0);
        }
    }

    #[test]
    fn the_window_is_the_root_law_where_losses_are_rare() {
        // sqrt(3 / (2 b p)); the timeouts' term is 4 * 3 sqrt(3 b p / 8) p against sqrt(2 b p / 3), 9 p of it.
        for acked in [1.0, 2.0] {
            let p = 1e-6;
            assert!((window(p, acked) * (2.0 * acked * p / 3.0_f64).sqrt() - 1.0).abs() < 9.1e-6);
        }
    }
}

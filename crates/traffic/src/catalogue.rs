//! What traffic there is, for people.

/// One kind of traffic or one model of a kind.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// `kind` or `kind/model`, as a traffic block names it.
    pub name: &'static str,
    /// What it is, in one sentence.
    pub doc: &'static str,
    /// Where it comes from.
    pub source: &'static str,
    /// Its keys in a traffic block: name, default, meaning.
    pub keys: &'static [Key],
}

/// A key of a traffic block: name, default, meaning.
type Key = (&'static str, &'static str, &'static str);

const USERS: Key = ("users", "required unless load is given", "users in all, half of them each way");
const LOAD: Key = ("load", "", "calibrated: the throughput the users would make on the uncongested link");
const WEB_DIRECTION: Key = ("direction", "both", "which way responses flow: forward, reverse or both");
const DSCP: Key = ("dscp", "CS0", "Differentiated Services codepoint of the packets, both ways: a name or a number");
const HOSTS: Key = ("hosts", "own", "hosts that flows take turns at, at each end, or [clients, servers]");
const PAGES: Key = ("pages", "start-to-start", "what inter_page counts from: start-to-start or end-to-start");
const REQUEST: Key = ("request", "350b", "size of a request");
const FLOWS: Key = ("flows", "1", "how many sources");
const START: Key = ("start", "uniform over the first seconds", "when each begins");
const UDP_DIRECTION: Key = ("direction", "forward", "which way the packets flow");
const FELDMANN: &str = "Feldmann, Gilbert, Huang and Willinger, SIGCOMM 1999, as quoted by pttcp (Cambridge, 2000)";

/// A set of web sessions: what is drawn of pages, objects and sizes.
const fn session(name: &'static str, doc: &'static str, source: &'static str, keys: &'static [Key; 11]) -> Entry {
    Entry { name, doc, source, keys }
}

/// The keys of a set of web sessions, with its own defaults.
const fn session_keys(
    inter_page: &'static str,
    objects: &'static str,
    inter_object: &'static str,
    size: &'static str,
) -> [Key; 11] {
    [
        USERS,
        LOAD,
        WEB_DIRECTION,
        PAGES,
        ("inter_page", inter_page, "time between pages, in the mean at least 1ms"),
        ("objects", objects, "objects of a page, rounded up"),
        ("inter_object", inter_object, "time from the beginning of an object to that of the next"),
        ("size", size, "size of an object; unc2001: the responses of that model"),
        REQUEST,
        DSCP,
        HOSTS,
    ]
}

/// Everything a traffic block may ask for.
pub const fn catalogue() -> &'static [Entry] {
    ENTRIES
}

const ENTRIES: &[Entry] = &[
    Entry {
        name: "web/unc2001",
        doc: "Closed-loop web users: think, fetch a page of five to six objects, think again",
        source: "Smith, Hernandez-Campos, Jeffay and Ott, SIGMETRICS 2001; the anchors of le2003, le2004 and \
                     kuzmanovic2005",
        keys: &[
            USERS,
            LOAD,
            WEB_DIRECTION,
            DSCP,
            HOSTS,
            ("parallel", "2", "connections a page without persistent ones has open at a time"),
            ("persistent_parallel", "1", "persistent connections a page has open"),
            ("persistent", "0.5", "share of pages fetched over persistent connections"),
            ("think_mean", "32700ms", "mean time from the end of a page to the next"),
        ],
    },
    session(
        "web/feldmann-pareto1",
        "Web sessions: a page every 50 s, of four objects, each a connection of its own",
        FELDMANN,
        &const {
            session_keys(
                "pareto, mean 50s, shape 2",
                "pareto, mean 4, shape 1.2",
                "pareto, mean 0.5s, shape 1.5",
                "pareto, mean 12000b, shape 1.2",
            )
        },
    ),
    session(
        "web/feldmann-pareto2",
        "Web sessions: a page every 10 s, of three objects, each a connection of its own",
        FELDMANN,
        &const {
            session_keys(
                "pareto, mean 10s, shape 2",
                "pareto, mean 3, shape 1.5",
                "pareto, mean 0.5s, shape 1.5",
                "pareto, mean 12000b, shape 1.2",
            )
        },
    ),
    session(
        "web/feldmann-exp1",
        "Web sessions: one object every 25 s, of exponential size",
        FELDMANN,
        &const { session_keys("pareto, mean 25s, shape 2", "1", "0s", "exponential, mean 12000b") },
    ),
    session(
        "web/feldmann-exp2",
        "Web sessions: one object every 10 s, all exponential",
        FELDMANN,
        &const { session_keys("exponential, mean 10s", "1", "0s", "exponential, mean 12000b") },
    ),
    session(
        "web/feldmann-constant",
        "Web sessions: a megabyte every 10 s",
        FELDMANN,
        &const { session_keys("10s", "1", "0s", "1000000b") },
    ),
    session(
        "web/kuzmanovic2005",
        "Web sessions of feldmann-pareto1 with the response sizes of unc2001",
        "Kuzmanovic, SIGCOMM 2005: pages of Feldmann et al., sizes of Smith et al.",
        &const {
            session_keys(
                "pareto, mean 50s, shape 2",
                "pareto, mean 4, shape 1.2",
                "pareto, mean 0.5s, shape 1.5",
                "unc2001",
            )
        },
    ),
    Entry {
        name: "web/packmime",
        doc: "Web connections at a stated rate, a few of them persistent, whatever the network does",
        source: "Cao, Cleveland, Gao, Jeffay, Smith and Weigle, INFOCOM 2004, with the values of ns-2.35",
        keys: &[
            ("arrivals", "required", "new connections a second, such as 400hz"),
            ("persistent", "0.09", "share of connections that are persistent"),
            ("server_delay", "true", "whether servers take time to answer"),
            WEB_DIRECTION,
            DSCP,
            HOSTS,
        ],
    },
    Entry {
        name: "bulk",
        doc: "Long-lived or finite transfers",
        source: "brandauer2001",
        keys: &[
            ("flows", "required", "how many"),
            ("start", "uniform over the first seconds", "when each begins"),
            ("size", "endless", "bytes of each, a size or a distribution"),
            ("max_pacing_rate", "", "the most at which each is sent, IP packets: what Linux calls SO_MAX_PACING_RATE"),
            ("direction", "forward", "which way the data flows"),
            DSCP,
            HOSTS,
        ],
    },
    Entry {
        name: "poisson",
        doc: "Exchanges that arrive at random, each on a connection of its own",
        source: "open-loop arrivals, as in PackMime without its correlations",
        keys: &[
            ("arrivals", "required", "arrivals a second, such as 1480hz"),
            ("size", "required", "distribution of response bytes"),
            ("request", "420b", "request bytes"),
            ("direction", "forward", "which way responses flow"),
            DSCP,
            HOSTS,
        ],
    },
    Entry {
        name: "cbr",
        doc: "Unresponsive UDP packets at a constant rate",
        source: "brandauer2001",
        keys: &[
            ("flows", "required", "how many sources"),
            ("rate", "required", "rate of all together, IP packets"),
            ("packet", "573b", "size of each packet, IP"),
            ("start", "uniform over the first seconds", "when each begins"),
            ("direction", "forward", "which way the packets flow"),
            DSCP,
            HOSTS,
        ],
    },
    Entry {
        name: "onoff",
        doc: "Unresponsive UDP packets at a constant rate, at times: on and off periods of any distribution",
        source: "ns-2.35, Application/Traffic/Exponential and Pareto; Willinger, Taqqu, Sherman and Wilson, ToN 5(1), \
                 1997",
        keys: &[
            FLOWS,
            ("rate", "required", "rate of all together while all are on, IP packets"),
            ("packet", "210b", "size of each packet, IP"),
            ("on", "exponential, mean 500ms", "how long a source is on"),
            ("off", "exponential, mean 500ms", "how long it is off"),
            START,
            UDP_DIRECTION,
            DSCP,
            HOSTS,
        ],
    },
    Entry {
        name: "udp-poisson",
        doc: "Unresponsive UDP packets at random instants: the arrivals of M/M/1 and M/D/1",
        source: "Kleinrock, Queueing Systems, vol. I, 1975",
        keys: &[
            FLOWS,
            ("arrivals", "required", "packets a second of all together, such as 1000hz"),
            ("packet", "573b", "size of a packet, IP, a size or a distribution"),
            START,
            UDP_DIRECTION,
            DSCP,
            HOSTS,
        ],
    },
    Entry {
        name: "udp-trace",
        doc: "Unresponsive UDP packets as they are written down in a file",
        source: "ns-2.35, Application/Traffic/Trace",
        keys: &[
            FLOWS,
            ("packets", "required", "file of lines time,bytes"),
            ("start", "0s", "when each begins"),
            UDP_DIRECTION,
            DSCP,
            HOSTS,
        ],
    },
    Entry {
        name: "probe",
        doc: "A small real-time flow whose packets are measured one by one: loss, one-way delay, jitter",
        source: "RFC 3432; the defaults are G.711 speech in RTP, RFC 3551",
        keys: &[
            FLOWS,
            ("interval", "20ms", "from one packet to the next"),
            ("packet", "200b", "size of each packet, IP"),
            START,
            UDP_DIRECTION,
            DSCP,
            HOSTS,
        ],
    },
    Entry {
        name: "tmix",
        doc: "Connections as they were seen on a link, played again by what their applications did",
        source: "Weigle, Adurthi, Hernandez-Campos, Jeffay and Smith, CCR 2006",
        keys: &[
            ("vectors", "required", "file of connection vectors, or a list of files"),
            ("scale", "1", "connections for each that was seen: thinned or duplicated"),
            ("load", "", "instead of scale: the throughput that the connections offer"),
            ("loss", "true", "whether packets are lost before the link as the vectors say"),
            ("rtt", "vectors", "round-trip times: the vectors', or a distribution"),
            ("window", "vectors", "receive windows: the vectors', or a size"),
            ("direction", "forward", "which way the data of those flows who did not open the connection"),
            DSCP,
            HOSTS,
        ],
    },
    Entry {
        name: "replay",
        doc: "Recorded exchanges, asked again at the same instants whatever becomes of earlier answers",
        source: "Kuzmanovic, SIGCOMM 2005",
        keys: &[("demands", "required", "a file that aqmlab record wrote"), DSCP, HOSTS],
    },
];

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
    pub keys: &'static [(&'static str, &'static str, &'static str)],
}

/// Everything a traffic block may ask for.
pub const fn catalogue() -> &'static [Entry] {
    &[
        Entry {
            name: "web/unc2001",
            doc: "Closed-loop web users: think, fetch a page of five to six objects, think again",
            source: "Smith, Hernandez-Campos, Jeffay and Ott, SIGMETRICS 2001; the anchors of le2003, le2004 and \
                     kuzmanovic2005",
            keys: &[
                ("users", "required unless load is given", "users in all, half of them each way"),
                ("load", "", "calibrated: the throughput the users would make on the uncongested link"),
                ("direction", "both", "which way responses flow: forward, reverse or both"),
                ("dscp", "CS0", "Differentiated Services codepoint of the packets, both ways: a name or a number"),
                ("hosts", "own", "hosts that flows take turns at, at each end, or [clients, servers]"),
                ("parallel", "2", "connections a page without persistent ones has open at a time"),
                ("persistent_parallel", "1", "persistent connections a page has open"),
                ("persistent", "0.5", "share of pages fetched over persistent connections"),
                ("think_mean", "32700ms", "mean time from the end of a page to the next"),
            ],
        },
        Entry {
            name: "bulk",
            doc: "Long-lived or finite transfers",
            source: "brandauer2001",
            keys: &[
                ("flows", "required", "how many"),
                ("start", "uniform over the first seconds", "when each begins"),
                ("size", "endless", "bytes of each"),
                ("direction", "forward", "which way the data flows"),
                ("dscp", "CS0", "Differentiated Services codepoint of the packets, both ways: a name or a number"),
                ("hosts", "own", "hosts that flows take turns at, at each end, or [clients, servers]"),
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
                ("dscp", "CS0", "Differentiated Services codepoint of the packets, both ways: a name or a number"),
                ("hosts", "own", "hosts that flows take turns at, at each end, or [clients, servers]"),
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
                ("dscp", "CS0", "Differentiated Services codepoint of the packets, both ways: a name or a number"),
                ("hosts", "own", "hosts that flows take turns at, at each end, or [clients, servers]"),
            ],
        },
    ]
}

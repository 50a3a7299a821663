//! What the field knows by a name that is none of a discipline here, though it may be spelt nearly as one.

const SHAPER: &str = "a shaper of Linux, which is no discipline here: expected link.rate, or bandwidth of cake";
const DROP_TAIL: &str = "expected droptail, as it is called here";

const NAMES: &[(&[&str], &str)] = &[
    (
        &["wred"],
        "the Weighted RED of routers, which Linux has as gred, is not here: nearest is rio, with thresholds for each of \
         two classes; see docs/disciplines/rio.md",
    ),
    (
        &["gred"],
        "Linux's RED with thresholds by class, the WRED of routers, is not here: nearest is rio, with thresholds for \
         each of two classes; see docs/disciplines/rio.md",
    ),
    (&["riod"], "RIO-D is kind = \"rio\" with dialect = \"decoupled\""),
    (&["sqm"], "OpenWrt's scripts, which are no discipline: expected cake or fq_codel, which they set"),
    (&["l4s"], "an architecture (RFC 9330), which is no discipline: expected dualpi2, and prague as cc of the hosts"),
    (&["htb", "tbf"], SHAPER),
    (&["taildrop", "droptail"], DROP_TAIL),
];

/// What is known by this name, however it is spelt, and what comes nearest. `None` of other names.
pub fn known_as(name: &str) -> Option<&'static str> {
    let name = name.to_ascii_lowercase().replace(['-', '_'], "");
    NAMES.iter().find(|(names, _)| names.contains(&&*name)).map(|(_, said)| *said)
}

/// Every such name, without hyphens.
pub fn names() -> impl Iterator<Item = &'static str> {
    NAMES.iter().flat_map(|(names, _)| names.iter().copied())
}

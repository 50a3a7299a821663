//! What is wrong with blocks of traffic.

use super::{BULK, check, read};

const KINDS: &str =
    "web, bulk, poisson, cbr, onoff, udp-poisson, udp-trace, probe, tmix, replay, video, rtp_video, homes";

#[test]
fn traffic() {
    let unknown = read(&format!("[tcp]\nqqqqqqqqqq = 1{BULK}"), &[]).expect_err("the key is unknown");
    let (_, tcp_keys) = unknown.split_once("expected one of ").expect("a list of keys");
    check(
        &[
            ("", "s.toml: traffic: missing, expected at least one [[traffic]] block"),
            ("traffic = []", "s.toml:1: traffic = []: expected at least one [[traffic]] block"),
            ("traffic = 3", "s.toml:1: traffic = 3: expected at least one [[traffic]] block"),
            ("[traffic]", "s.toml:1: traffic = { }: expected at least one [[traffic]] block"),
            ("traffic = [3]", "s.toml:1: traffic.0 = 3: expected a table with a kind"),
            ("[[traffic]]", &format!("s.toml:1: traffic.0.kind: missing, expected one of {KINDS}")),
            (
                "[[traffic]]\nkind = \"ftp\"",
                &format!("s.toml:2: traffic.0.kind = \"ftp\": expected one of {KINDS}; did you mean bulk?"),
            ),
            (
                "[[traffic]]\nkind = \"blk\"",
                &format!("s.toml:2: traffic.0.kind = \"blk\": expected one of {KINDS}; did you mean bulk?"),
            ),
            (
                "[[traffic]]\nkind = \"rtp_video\"\nframe_rate = \"1000hz\"\nmax_rate = \"500kbit\"",
                "s.toml:4: traffic.0.max_rate = \"500kbit\": expected at least 832kbit, which the smallest frames take at 1000hz",
            ),
            (
                "[[traffic]]\nkind = \"web\"",
                "s.toml:1: traffic.0.users: missing, expected users = 18670 or load = \"98mbit\"",
            ),
            (
                "[[traffic]]\nkind = \"web\"\nload = \"98mbit\"",
                "s.toml:3: traffic.0.load = \"98mbit\": needs calibration: the number of users that offers this load \
                 is not known",
            ),
            (
                "[[traffic]]\nkind = \"web\"\nload = 98",
                "s.toml:3: traffic.0.load = 98: expected a rate such as 100mbit",
            ),
            (
                "[[traffic]]\nkind = \"web\"\nload = \"0mbit\"",
                "s.toml:3: traffic.0.load = \"0mbit\": expected a rate above zero",
            ),
            (
                "[[traffic]]\nkind = \"web\"\nusers = 0",
                "s.toml:3: traffic.0.users = 0: expected a whole number from 1 to 100000000",
            ),
            (
                "[[traffic]]\nkind = \"web\"\nusers = 10\nparallel = 33",
                "s.toml:4: traffic.0.parallel = 33: expected a whole number from 1 to 32",
            ),
            (
                "[[traffic]]\nkind = \"web\"\nusers = 10\npersistent = 15",
                "s.toml:4: traffic.0.persistent = 15: expected a number from 0 to 1",
            ),
            (
                "[[traffic]]\nkind = \"web\"\nusers = 10\nthink_mean = \"0s\"",
                "s.toml:4: traffic.0.think_mean = \"0s\": expected a think time above zero",
            ),
            (
                "[[traffic]]\nkind = \"web\"\nusers = 10\ndirection = \"up\"",
                "s.toml:4: traffic.0.direction = \"up\": expected one of forward, reverse, both",
            ),
            (
                "[[traffic]]\nkind = \"bulk\"\n[[traffic]]\nkind = \"bulk\"\nflows = 0",
                "s.toml:5: traffic.1.flows = 0: expected a whole number from 1 to 100000000",
            ),
            (
                "[[traffic]]\nkind = \"bulk\"\nusers = 3",
                &format!(
                    "s.toml:3: traffic.0.users = 3: unknown key, expected one of kind, direction, rtt, dscp, hosts, application, route, reverse_route, rtt_at, rtt_tick, \
                     flows, start, size, max_pacing_rate, {tcp_keys}"
                ),
            ),
            (
                "[[traffic]]\nkind = \"bulk\"\nsize = \"0b\"",
                "s.toml:3: traffic.0.size = \"0b\": expected sizes of at least 1b",
            ),
            (
                "[[traffic]]\nkind = \"bulk\"\nstart = \"300s\"",
                "s.toml:3: traffic.0.start = \"300s\": expected a start before the end of the run at 300s",
            ),
            (
                "[[traffic]]\nkind = \"bulk\"\nstart = { even = [\"0s\", \"1s\"] }",
                "s.toml:3: traffic.0.start.even = [\"0s\", \"1s\"]: unknown key, expected one of uniform, exponential, \
                 pareto, weibull, lognormal, table, step",
            ),
            (
                "[[traffic]]\nkind = \"bulk\"\nwindow = \"1kb\"",
                "s.toml:3: traffic.0.window = \"1kb\": expected a window of at least one segment of 1448 bytes",
            ),
            (
                "[[traffic]]\nkind = \"bulk\"\nrtt = \"2h\"",
                "s.toml:3: traffic.0.rtt = \"2h\": expected a time from 0s to 60s",
            ),
            (
                "[[traffic]]\nkind = \"poisson\"\nsize = \"7000b\"",
                "s.toml:1: traffic.0.arrivals: missing, expected a frequency such as 1480hz",
            ),
            (
                "[[traffic]]\nkind = \"poisson\"\narrivals = 1480\nsize = \"7000b\"",
                "s.toml:3: traffic.0.arrivals = 1480: expected a frequency such as 170hz",
            ),
            (
                "[[traffic]]\nkind = \"poisson\"\narrivals = \"0hz\"\nsize = \"7000b\"",
                "s.toml:3: traffic.0.arrivals = \"0hz\": expected a frequency above zero and at most 10000000hz",
            ),
            (
                "[[traffic]]\nkind = \"poisson\"\narrivals = \"1480hz\"",
                "s.toml:1: traffic.0.size: missing, expected a size or a distribution such as \
                 { pareto = { mean = \"7000b\", shape = 1.2 } }",
            ),
            (
                "[[traffic]]\nkind = \"poisson\"\narrivals = \"1hz\"\nsize = \"0b\"",
                "s.toml:4: traffic.0.size = \"0b\": expected sizes of at least 1b",
            ),
            (
                "[[traffic]]\nkind = \"poisson\"\narrivals = \"1hz\"\nsize = \"1kb\"\none_way = true",
                "s.toml:5: traffic.0.one_way = true: expected no one-way hosts in traffic.0, whose requests are answered: \
                 only bulk, and poisson with request = \"0b\"",
            ),
            (
                "[[traffic]]\nkind = \"bulk\"\nmax_pacing_rate = \"0bit\"",
                "s.toml:3: traffic.0.max_pacing_rate = \"0bit\": expected a rate above zero",
            ),
            (
                "[[traffic]]\nkind = \"bulk\"\nstack = \"ns2\"\nmax_pacing_rate = \"1mbit\"",
                "s.toml:4: traffic.0.max_pacing_rate = \"1mbit\": expected no such key with repair ns2-sack1, which does not pace",
            ),
            ("[[traffic]]\nkind = \"cbr\"", "s.toml:1: traffic.0.rate: missing, expected a rate such as 1mbit"),
            (
                "[[traffic]]\nkind = \"cbr\"\nrate = \"3gbit\"\nflows = 2",
                "s.toml:3: traffic.0.rate = \"3gbit\": expected at most 2gbit, what the access links of 2 carry",
            ),
            (
                "[[traffic]]\nkind = \"cbr\"\nrate = \"999bit\"\nflows = 1000",
                "s.toml:3: traffic.0.rate = \"999bit\": expected at least 1kbit, 1 b/s for each of 1000",
            ),
            (
                "[[traffic]]\nkind = \"cbr\"\nrate = \"0bit\"",
                "s.toml:3: traffic.0.rate = \"0bit\": expected a rate above zero",
            ),
            (
                "[[traffic]]\nkind = \"cbr\"\nrate = \"1mbit\"\npacket = \"20b\"",
                "s.toml:4: traffic.0.packet = \"20b\": expected a size from 28b to 65535b",
            ),
            (
                "[[traffic]]\nkind = \"cbr\"\nrate = \"1mbit\"\necn = \"on\"",
                "s.toml:4: traffic.0.ecn = \"on\": unknown key, did you mean ect?",
            ),
        ],
        str::to_owned,
    );
}

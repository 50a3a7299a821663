//! Hosts of several kinds in one run: each block behaves by its own profile, on an idle link exactly as it does alone,
//! and at a congested one as the queue treats it.

use crate::common::{Ran, run};
use record::DropRow;

/// Transfers that never meet: 200 kB each, one a profile, ten seconds apart.
const PROFILES: [(&str, &str); 4] = [
    ("2s", "stack = \"freebsd4\""),
    ("12s", "stack = \"linux\""),
    ("22s", "stack = \"ns2\"\necn = \"on\""),
    ("32s", "stack = \"embedded\""),
];

/// The blocks of these profiles over an idle link, with a profile of the scenario's own.
fn apart(profiles: &[(&str, &str)]) -> Ran {
    let blocks: String = profiles
        .iter()
        .map(|(start, host)| format!("[[traffic]]\nkind = \"bulk\"\nsize = \"200kb\"\nstart = \"{start}\"\n{host}\n"))
        .collect();
    run(&format!(
        r#"
        duration = "50s"
        warmup = "0s"
        link = {{ rate = "10mbit", qdisc = {{ kind = "pfifo", limit = "1000p" }} }}
        path.rtt = "80ms"
        [stacks.embedded]
        base = "freebsd4"
        cc = "cubic"
        window = "8kb"
        mss = "536b"
        delayed_ack = 4
        {blocks}
        "#
    ))
}

#[test]
fn on_an_idle_link_each_profile_is_as_when_it_is_alone() {
    let together = apart(&PROFILES);
    let times = together.response_times_ns();
    assert_eq!(times.len(), PROFILES.len());
    for (index, profile) in PROFILES.iter().enumerate() {
        let alone = apart(&[*profile]);
        assert_eq!(alone.response_times_ns(), [times[index]], "{}", profile.1);
    }
    // And they are different hosts.
    let distinct: std::collections::BTreeSet<u64> = times.iter().copied().collect();
    assert_eq!(distinct.len(), times.len(), "{times:?}");
}

/// Eight flows with ECN and eight without at one queue that marks or drops at random with the same probability. The
/// sizes of their packets tell them apart.
fn meeting(discipline: &str) -> Ran {
    run(&format!(
        r#"
        duration = "230s"
        warmup = "30s"
        record.drops = true
        link = {{ rate = "20mbit", qdisc = {{ {discipline}, ecn = true }} }}
        path.rtt = "50ms"
        tcp = {{ stack = "ns2", repair = "sack" }}
        [stacks.capable]
        base = "ns2"
        ecn = "on"
        [[traffic]]
        kind = "bulk"
        flows = 8
        stack = "capable"
        ecn = "on"
        [[traffic]]
        kind = "bulk"
        flows = 8
        mss = "1459b"
        "#
    ))
}

#[test]
fn capable_hosts_are_marked_and_the_others_lose() {
    let red = "kind = \"red\", min = \"20p\", max = \"200p\", probability = 0.05, limit = \"1000p\"";
    for discipline in [red, "kind = \"codel\", limit = \"1000p\""] {
        let ran = meeting(discipline);
        // The starts of all together overfill the queue, and an overfull RED loses what it could mark.
        let measured = ran.rows.drops.iter().filter(|row| row.direction == 0 && row.time.secs_f64() > 30.0);
        let (marks, drops): (Vec<&DropRow>, Vec<&DropRow>) = measured.partition(|row| row.is_mark);
        assert!(marks.len() > 1_000 && marks.iter().all(|row| row.size_bytes == 1_500), "{discipline}");
        assert!(drops.len() > 1_000 && drops.iter().all(|row| row.size_bytes == 1_499), "{discipline}");

        // The same probability for both, and the same answer to it: the same share (RFC 3168 §5), but for chance, three
        // times half of the roots of both numbers of reductions, and for timeouts, which marks do not cause: less than
        // a second each, of 200 for eight flows.
        let tcp = &ran.outcome.tcp;
        let shares: Vec<u64> = tcp.bulk_bytes.chunks(8).map(|flows| flows.iter().sum()).collect();
        let ratio = shares[0] as f64 / shares[1] as f64;
        let reductions =
            [tcp.ecn_reductions.expect("the simulator counts them"), tcp.recoveries].map(|count| 1.0 / count as f64);
        let chance = 1.5 * (reductions[0] + reductions[1]).sqrt();
        let waiting = tcp.timeouts as f64 / (8.0 * 200.0);
        assert!((1.0 - chance..1.0 + chance + waiting).contains(&ratio), "{discipline}: {ratio}");
    }
}

//! The test bed of a run: what the hosts are set to, seen from the hosts. Left out, with the reason, where namespaces
//! or TUN devices may not be made.

#![cfg(target_os = "linux")]

mod left_out;

use left_out::left_out;
use live::{Addressing, Bed, Settings};
use scenario::Family;
use std::io;
use std::net::UdpSocket;

/// A bed of `settings`; `None`, and the reason told, where this machine does not let us.
fn bed(name: &str, family: Family, settings: &str) -> Option<io::Result<(Bed, Settings)>> {
    let settings = Settings::read(&serde_json::from_str(settings).expect("JSON")).expect("they make sense");
    match Bed::make(family, &settings) {
        Err(error) if matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::Unsupported) => {
            left_out(name, error);
            None
        }
        made => Some(made.map(|bed| (bed, settings))),
    }
}

#[test]
fn hosts_are_set_to_what_was_asked_for() {
    let asked = r#"{"sysctl": {"net.ipv4.tcp_sack": "0", "net.ipv4.tcp_rmem": "4096 131072 6291456"},
                    "blocks": [{"route": "window 16384 initcwnd 2 rto_min 1s advmss 1448 quickack 1 features ecn"}, {}]}"#;
    let Some(made) = bed("hosts_are_set_to_what_was_asked_for", Family::Ipv4, asked) else { return };
    let (bed, settings) = made.expect("it is made");
    let found = bed.read_back(&settings).expect("it is read");
    for side in ["left", "right"] {
        assert_eq!(found[side]["sysctls"]["net.ipv4.tcp_sack"], "0", "{found:#}");
        assert_eq!(found[side]["sysctls"]["net.ipv4.tcp_rmem"], "4096 131072 6291456");
    }
    let route =
        found["left"]["routes"].as_array().expect("routes").iter().find(|route| route["dst"] == "10.128.0.0/16");
    assert_eq!(route.expect("the first block's")["dev"], "aqm0", "{found:#}");
    assert!(bed.remarks.is_empty(), "{:?}", bed.remarks);
    // Any of a side's addresses is its own; none of the other's is.
    for family in [Family::Ipv4, Family::Ipv6] {
        let addressing = Addressing::new(family);
        for side in 0..2_u8 {
            let binds = |address| bed.sides[usize::from(side)].within(|| UdpSocket::bind((address, 0)).map(drop));
            binds(addressing.own(side)).expect("its own");
            binds(addressing.host(side, 1, 64_000)).expect("a host of its own");
        }
    }
}

#[test]
fn what_does_not_take_is_an_error() {
    for (asked, said) in [
        (
            r#"{"sysctl": {"net.ipv4.tcp_congestion_control": "no-such"}}"#,
            "net.ipv4.tcp_congestion_control = no-such: this kernel does not have that",
        ),
        (r#"{"sysctl": {"net.ipv4.no_such": "1"}}"#, "net.ipv4.no_such = 1: this kernel has no such setting"),
        (r#"{"blocks": [{"route": "no_such 3"}]}"#, "no_such"),
    ] {
        let Some(made) = bed("what_does_not_take_is_an_error", Family::Ipv4, asked) else { return };
        let error = made.expect_err("it does not take").to_string();
        assert!(error.contains(said) && !error.contains('\n'), "{error}");
    }
}

#[test]
fn what_the_router_does_not_read_in_time_is_counted() {
    let Some(made) = bed("what_the_router_does_not_read_in_time_is_counted", Family::Ipv4, "{}") else { return };
    let (bed, _) = made.expect("it is made");
    let addressing = Addressing::new(Family::Ipv4);
    let before = bed.interfaces().expect("counters")[0];
    let sender = bed.sides[0].within(|| UdpSocket::bind((addressing.own(0), 0))).expect("its own");
    // The interface holds 10,000 packets for the router, and there is none.
    for _ in 0..10_200 {
        let _ = sender.send_to(&[0; 100], (addressing.own(1), 9));
    }
    let after = bed.interfaces().expect("counters")[0];
    assert!(after.send_dropped - before.send_dropped >= 200, "{after:?}");
    assert_eq!(after.sent, before.sent, "none was read");
}

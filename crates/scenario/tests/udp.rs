//! Blocks of UDP and replays: what they resolve to, and what is wrong with their files.

use base::{Distribution, Ecn, Span, Time};
use scenario::{Resolved, Workload};

const PACKETS: &str = "# a comment\ntime_s,bytes\n0.25,1500\n\n250ms,28\n1e0,65535\n";
const DEMANDS: &str = "connection,at_s,direction,rtt_s,request_bytes,response_bytes,server_delay_s,last\n\
                       7,0.5,forward,0.08,350,12000,0,0\n\
                       3,0.75,reverse,0.031,412,820,0.02,1\n\
                       7,1.25,,,298,4100,,0\n\
                       7,2.5,,,,,,\n";

fn resolve(text: &str, file: &str) -> Result<Resolved, String> {
    let files = |name: &str| if name == "f.csv" { Ok(file.to_owned()) } else { Err("no such file".to_owned()) };
    scenario::resolve(text, "s.toml", &[], &files).map_err(|error| error.to_string())
}

fn udp(block: &str, file: &str) -> Workload {
    let resolved = resolve(&format!("[[traffic]]\n{block}"), file).expect("a scenario");
    let again = resolve(resolved.text(), file).expect("a resolved scenario");
    assert_eq!(resolved.text(), again.text(), "it resolves to itself");
    again.scenario().expect("complete").traffic[0].workload.clone()
}

#[test]
fn sources_are_what_is_written() {
    let on_off = udp("kind = 'onoff'\nrate = '1mbit'\non = { pareto = { mean = '1s', shape = 2 } }\noff = '0s'", "");
    let Workload::OnOff(on_off) = on_off else { panic!("{on_off:?}") };
    assert_eq!((on_off.rate.bps(), on_off.packet, on_off.off), (1_000_000, 210, Distribution::Constant(0.0)));
    assert_eq!(on_off.on, Distribution::Pareto { scale: 0.5, shape: 2.0 });

    let poisson =
        udp("kind = 'udp-poisson'\nflows = 3\narrivals = '1khz'\npacket = { uniform = ['40b', '1500b'] }", "");
    let Workload::UdpPoisson(poisson) = poisson else { panic!("{poisson:?}") };
    assert_eq!((poisson.flows, poisson.packets_per_s, poisson.size), (3, 1000.0, Distribution::Uniform(40.0, 1500.0)));

    let probe = udp("kind = 'probe'\ninterval = '30ms'", "");
    let Workload::Probes(probe) = probe else { panic!("{probe:?}") };
    assert_eq!((probe.interval, probe.packet), (Span::from_ms(30), 200));

    let trace = udp("kind = 'udp-trace'\npackets = 'f.csv'", PACKETS);
    let Workload::UdpTrace(trace) = trace else { panic!("{trace:?}") };
    assert_eq!(trace.start, Distribution::Constant(0.0));
    let found: Vec<_> = trace.packets.iter().map(|packet| (packet.gap, packet.bytes)).collect();
    assert_eq!(found, [(Span::from_ms(250), 1500), (Span::ZERO, 28), (Span::from_ms(750), 65_535)]);
}

/// The field is written, the usual one too. A datagram is not sent marked.
#[test]
fn datagrams_may_be_ecn_capable() {
    for (written, ect, text) in [
        ("", Ecn::NotEct, "ect = \"not-ect\""),
        ("ect = 'not-ect'", Ecn::NotEct, "ect = \"not-ect\""),
        ("ect = 'ect0'", Ecn::Ect0, "ect = \"ect0\""),
        ("ect = 'ect1'", Ecn::Ect1, "ect = \"ect1\""),
    ] {
        for kind in ["cbr'\nrate = '1mbit", "onoff'\nrate = '1mbit", "udp-poisson'\narrivals = '9hz", "probe"] {
            let resolved = resolve(&format!("[[traffic]]\nkind = '{kind}'\n{written}\n"), "").expect("a scenario");
            let (_, block) = resolved.text().split_once("[[traffic]]").expect("a block");
            assert_eq!(block.lines().find(|line| line.starts_with("ect = ")), Some(text), "{kind}");
            assert_eq!(resolved.scenario().expect("complete").traffic[0].ect, ect, "{kind}");
            assert_eq!(resolve(resolved.text(), "").expect("a resolved scenario").text(), resolved.text());
        }
    }
    for (value, said) in [("'ce'", "\"ce\""), ("1", "1")] {
        let error = resolve(&format!("[[traffic]]\nkind = 'probe'\nect = {value}\n"), "").expect_err(said);
        assert_eq!(error, format!("s.toml:3: traffic.0.ect = {said}: expected one of not-ect, ect0, ect1"));
    }
}

/// What a run may record is taken: round-trip times from an unbounded tail, the largest request.
#[test]
fn a_replay_takes_what_a_run_asks() {
    let file = "0,0.5,forward,1000000,1073741824,1,0,1\n";
    resolve("[[traffic]]\nkind = 'replay'\ndemands = 'f.csv'\n", file).expect("a scenario");
    let poisson = "[[traffic]]\nkind = 'poisson'\narrivals = '1hz'\nsize = '1kb'\nrequest = '1gb'\n\
                   rtt = { pareto = { scale = '1ms', shape = 0.1 } }\n";
    let resolved = resolve(poisson, "").expect("a scenario");
    let traffic = &resolved.scenario().expect("complete").traffic[0];
    assert_eq!(traffic.rtt.at(1.0 - 1e-9), Span::from_secs(1_000_000));
}

#[test]
fn a_replay_is_what_is_written() {
    let resolved = resolve("[[traffic]]\nkind = 'replay'\ndemands = 'f.csv'\n", DEMANDS).expect("a scenario");
    assert_eq!(resolve(resolved.text(), DEMANDS).expect("a resolved scenario").text(), resolved.text());
    assert_eq!(resolved.files().iter().map(|kept| kept.file.as_str()).collect::<Vec<_>>(), ["f.csv"]);
    let Workload::Replay(demands) = &resolved.scenario().expect("complete").traffic[0].workload else {
        panic!("a replay")
    };
    assert_eq!((demands.connections(), demands.exchanges()), (2, 3));
    assert_eq!(demands.end(), Time::ZERO + Span::from_ms(2500));
    let [first, second] = [demands.of(0), demands.of(1)];
    assert_eq!((first.direction, first.rtt), (0, Span::from_ms(80)));
    assert_eq!((second.direction, second.rtt), (1, Span::from_ms(31)));
}

/// Of each: the block, the file, and what is said.
#[test]
fn bad_input_is_one_line() {
    let on_off = "kind = 'onoff'\nrate = '1mbit'\n";
    let trace = "kind = 'udp-trace'\npackets = 'f.csv'\n";
    let replay = "kind = 'replay'\ndemands = 'f.csv'\n";
    let cases = [
        ("kind = 'onoff'\n", "", "s.toml:1: traffic.0.rate: missing, expected a rate such as 1mbit"),
        (
            "kind = 'onoff'\nflows = 2\nrate = '3gbit'\n",
            "",
            "s.toml:4: traffic.0.rate = \"3gbit\": expected at most 2gbit, what the access links of 2 carry",
        ),
        (
            &format!("{on_off}on = '0s'"),
            "",
            "s.toml:4: traffic.0.on = \"0s\": expected times of at least 1us in the mean",
        ),
        (
            &format!("{on_off}off = {{ pareto = {{ scale = '1s', shape = 1.0 }} }}"),
            "",
            "s.toml:4: traffic.0.off = { pareto = { scale = \"1s\", shape = 1.0 } }: expected times of a finite mean: \
             with shape above 1, and shorter than any run",
        ),
        (
            "kind = 'onoff'\nrate = '10kbit'\npacket = '1500b'\non = '100us'",
            "",
            "s.toml:5: traffic.0.on = \"100us\": expected times of at least 120us in the mean, a 10000th of what a \
             packet takes",
        ),
        (
            "kind = 'onoff'\nrate = '10bit'\npacket = '65535b'",
            "",
            "s.toml:3: traffic.0.rate = \"10bit\": expected a rate at which a packet takes at most 10000 times on of \
             500ms in the mean",
        ),
        (
            "kind = 'udp-poisson'\narrivals = '10hz'\npacket = '20b'",
            "",
            "s.toml:4: traffic.0.packet = \"20b\": expected sizes from 28b to 65535b",
        ),
        (
            "kind = 'probe'\ninterval = '1us'",
            "",
            "s.toml:3: traffic.0.interval = \"1us\": expected a time from 100us to 3600s",
        ),
        (
            "kind = 'probe'\nstack = 'linux'",
            "",
            "s.toml:3: traffic.0.stack = \"linux\": unknown key, expected one of kind, direction, rtt, dscp, hosts, application, route, reverse_route, rtt_at, \
             flows, interval, packet, start, ect",
        ),
        (
            "kind = 'probe'\nrtt_at = 'clients'\nrtt_tick = '1ms'",
            "",
            "s.toml:4: traffic.0.rtt_tick = \"1ms\": expected no such key with kind probe: it is of connections over TCP",
        ),
        (
            "kind = 'udp-trace'\npackets = 'g.csv'",
            "",
            "s.toml:3: traffic.0.packets = \"g.csv\": cannot be read: no such file",
        ),
        (trace, "\n# nothing\n", "f.csv:1: traffic.0.packets: expected lines of time,bytes, such as 0.25,573"),
        (trace, "nan,100\n", "f.csv:1: traffic.0.packets = nan,100: expected time,bytes, such as 0.25,573"),
        (trace, "x,100\n", "f.csv:1: traffic.0.packets = x,100: expected time,bytes, such as 0.25,573"),
        (trace, "1.0;5\n", "f.csv:1: traffic.0.packets = 1.0;5: expected time,bytes, such as 0.25,573"),
        (
            trace,
            "time_ms,bytes\n1,500\n",
            "f.csv:1: traffic.0.packets = time_ms,bytes: expected seconds and bytes, as time_s,bytes",
        ),
        (
            trace,
            "ms,bytes\n1,500\n",
            "f.csv:1: traffic.0.packets = ms,bytes: expected seconds and bytes, as time_s,bytes",
        ),
        (
            trace,
            "Time (ms),bytes\n1,500\n",
            "f.csv:1: traffic.0.packets = Time (ms),bytes: expected seconds and bytes, as time_s,bytes",
        ),
        (trace, "t,b\n-1,500\n", "f.csv:2: traffic.0.packets = -1,500: expected time,bytes, such as 0.25,573"),
        (
            trace,
            "1,500\n0.9,500\n",
            "f.csv:2: traffic.0.packets = 0.9,500: expected times that do not fall from one line to the next",
        ),
        (trace, "1,27\n", "f.csv:1: traffic.0.packets = 1,27: expected whole bytes from 28 to 65535, headers included"),
        (
            trace,
            "1,99.5\n",
            "f.csv:1: traffic.0.packets = 1,99.5: expected whole bytes from 28 to 65535, headers included",
        ),
        (
            &format!("{replay}rtt = '80ms'"),
            DEMANDS,
            "s.toml:4: traffic.0.rtt = \"80ms\": does not go with kind = \"replay\": each connection has the one it \
             was recorded with",
        ),
        (
            &format!("{replay}direction = 'reverse'"),
            DEMANDS,
            "s.toml:4: traffic.0.direction = \"reverse\": expected both: each connection has the direction it was \
             recorded with",
        ),
        (
            replay,
            "",
            "f.csv:1: traffic.0.demands: expected connection,at_s,direction,rtt_s,request_bytes,response_bytes,\
             server_delay_s,last",
        ),
        (
            replay,
            "0,0.5,forward,0.08,350,12000,0\n",
            "f.csv:1: traffic.0.demands = 0,0.5,forward,0.08,350,12000,0: expected connection,at_s,direction,rtt_s,\
             request_bytes,response_bytes,server_delay_s,last",
        ),
    ];
    for (block, file, said) in cases {
        let error = resolve(&format!("[[traffic]]\n{block}"), file).expect_err(said);
        assert_eq!(error, said);
    }
    let lines = [
        ("a,0.5,forward,0.08,1,1,0,0", "expected a whole number as connection"),
        ("0,-1,forward,0.08,1,1,0,0", "expected an instant from 0 to 1000000 s as at_s"),
        ("0,0.5,up,0.08,1,1,0,0", "expected forward or reverse as direction"),
        ("0,0.5,forward,1000001,1,1,0,0", "expected a time from 0 to 1000000 s as rtt_s"),
        ("0,0.5,forward,0.08,0,1,0,0", "expected bytes as request_bytes"),
        ("0,0.5,forward,0.08,1073741825,1,0,0", "expected bytes as request_bytes"),
        ("0,0.5,forward,0.08,1,-5,0,0", "expected at least one byte as response_bytes"),
        ("0,0.5,forward,0.08,1,1,x,0", "expected a time as server_delay_s"),
        ("0,0.5,forward,0.08,1,1,0,2", "expected 0 or 1 as last"),
        ("0,0.5,,,,,,", "connection 0 is closed before it is opened"),
        ("9,0.4,,,1,1,0,0", "connection 9 is closed already"),
        ("8,0.3,,,1,1,0,0", "expected instants that do not fall from one line to the next"),
        ("8,0.4,forward,0.08,1,1,0,0", "connection 8 is open already: expected no direction and no rtt_s"),
    ];
    for (line, said) in lines {
        let file = format!("8,0.4,forward,0.08,1,1,0,0\n9,0.4,forward,0.08,1,1,0,1\n{line}\n");
        let error = resolve(&format!("[[traffic]]\n{replay}"), &file).expect_err(said);
        assert_eq!(error, format!("f.csv:3: traffic.0.demands = {line}: {said}"));
    }
}

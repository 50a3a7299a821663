//! Hosts on real sockets, over an idle link: who asks for what, how many bytes that takes, what is measured. Left out,
//! with the reason, where namespaces or TUN devices may not be made.

#![cfg(target_os = "linux")]

#[path = "../left_out/mod.rs"]
mod left_out;
mod run;

use base::{Span, Time};
use record::{DemandRow, Demanded, DropRow, ExchangeRow, QueueRow, Sink};
use run::{Ran, headers, run, scenario};
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

const LINK: &str = "warmup = '0s'\nlink.rate = '100mbit'\nlink.qdisc = { kind = 'pfifo', limit = '10000p' }\n\
                    path = { rtt = '10ms', access_rate = '1gbit' }\n";

fn ran(name: &str, text: &str, files: &[(&str, &str)]) -> Option<Ran> {
    run(name, scenario(&format!("{text}\n"), files), [true; 2], |_, _| Ok(()))
}

/// Request and response of each exchange, in order.
fn sizes(rows: &[ExchangeRow]) -> Vec<(u8, u32, u64)> {
    let mut sizes: Vec<_> = rows.iter().map(|row| (row.direction, row.request_bytes, row.response_bytes)).collect();
    sizes.sort_unstable();
    sizes
}

/// Every path through an exchange: single ones and several on a connection, both ways, servers that take time, requests
/// and responses from the shortest to some that need several packets, or more than a send buffer.
#[test]
fn bytes_on_the_wire_are_those_that_were_asked_for() {
    let recording = "connection,at_s,direction,rtt_s,request_bytes,response_bytes,server_delay_s,last\n\
        1,0.1,forward,0.02,300,5000,0,1\n\
        2,0.2,reverse,0.01,400,1,0,1\n\
        3,0.3,forward,0.04,19000,2000000,0,0\n\
        4,0.4,forward,0.01,350,30,0.1,1\n\
        5,0.5,reverse,0.03,333,70000,0.05,0\n\
        5,0.9,,,8001,40,0,0\n\
        5,1.1,,,301,41,0,0\n\
        3,1.2,,,500,100000,0,1\n\
        5,1.3,,,,,,\n";
    for family in ["ipv4", "ipv6"] {
        let text =
            format!("duration = '2s'\n{LINK}live.family = '{family}'\n[[traffic]]\nkind = 'replay'\ndemands = 'd.csv'");
        let Some(ran) = ran("bytes_on_the_wire", &text, &[("d.csv", recording)]) else { return };
        let mut expected = vec![
            (0, 300, 5_000),
            (1, 400, 1),
            (0, 19_000, 2_000_000),
            (0, 350, 30),
            (1, 333, 70_000),
            (1, 8_001, 40),
            (1, 301, 41),
            (0, 500, 100_000),
        ];
        expected.sort_unstable();
        assert_eq!(sizes(&ran.exchanges), expected);
        // Requests against the direction of the responses.
        let sum = |direction: u8| -> u64 {
            let bytes = |&(way, request, response): &(u8, u32, u64)| {
                if way == direction { response } else { u64::from(request) }
            };
            expected.iter().map(bytes).sum()
        };
        assert_eq!(ran.sums.received_bytes, [sum(0), sum(1)]);
        let sums = &ran.sums;
        assert_eq!((sums.connections_opened, sums.connections_completed, sums.connections_failed), (5, 5, 0));
        assert_eq!((sums.raised_requests, ran.report.flows_drawn), (0, 0), "every connection was announced");
        let of = |request: u32| ran.exchanges.iter().find(|row| row.request_bytes == request).expect("it is there");
        // A handshake, and then a round trip and what the server takes: both delays are rounded to packets only.
        for (request, rtt_s, server_s) in [(300, 0.02, 0.0), (350, 0.01, 0.1), (333, 0.03, 0.05)] {
            let [setup_s, response_time_s] = [of(request).setup, of(request).response_time].map(Span::secs_f64);
            assert!(setup_s >= rtt_s && response_time_s >= 2.0 * rtt_s + server_s, "{:?}", of(request));
        }
        // The connection was open: there was no handshake, which would have been a round trip.
        assert!(of(301).setup < Span::from_ms(30), "{:?}", of(301));
        // Samples are of ends that send.
        assert!(
            ran.samples.iter().all(|row| row.cwnd_segments > 0 && row.rto >= Span::from_ms(200)),
            "{:?}",
            ran.samples
        );
        assert!(ran.samples.iter().any(|row| row.srtt.is_some_and(|srtt| srtt >= Span::from_ms(30))));
    }
}

#[derive(Default)]
struct Demands(Vec<DemandRow>);

impl Sink for Demands {
    fn exchange(&mut self, _row: &ExchangeRow) {}
    fn queue(&mut self, _row: &QueueRow) {}
    fn drop(&mut self, _row: &DropRow) {}
    fn demand(&mut self, row: &DemandRow) {
        self.0.push(*row);
    }
}

/// What each block asks for, in order: each has one user.
fn by_user(rows: &[DemandRow]) -> BTreeMap<u16, Vec<Demanded>> {
    let mut users = BTreeMap::<u16, Vec<Demanded>>::new();
    for row in rows {
        // When somebody closes depends on when answers come.
        if row.demanded != Demanded::Close {
            users.entry(row.traffic).or_default().push(row.demanded);
        }
    }
    users
}

#[test]
fn live_users_ask_for_what_simulated_users_ask_for() {
    let mut text = format!("duration = '6s'\n{LINK}record = {{ demands = true }}\n");
    for user in 0..12 {
        let direction = ["forward", "reverse", "both"][user % 3];
        text += &format!("[[traffic]]\nkind = 'web'\nusers = 1\ndirection = '{direction}'\nthink_mean = '300ms'\n");
    }
    let Some(ran) = ran("live_users_ask", &text, &[]) else { return };
    let mut simulated = Demands::default();
    sim::run(&ran.scenario, &mut simulated, &mut |_| true).expect("nobody breaks it off");
    let (live, simulated) = (by_user(&ran.demands()), by_user(&simulated.0));
    let mut compared = 0;
    for (user, asked) in &live {
        let others = &simulated[user];
        // The closed loop lets one of them come a little further by the end.
        let common = asked.len().min(others.len());
        assert_eq!(asked[..common], others[..common], "user {user}");
        compared += common;
    }
    assert!(live.len() >= 10 && compared > 100, "{compared} demands of {} users", live.len());
    // Whatever is complete came whole; what is under way at the end, in part.
    let [mut least, mut most] = [[0_u64; 2]; 2];
    for row in &ran.exchanges {
        least[usize::from(row.direction)] += row.response_bytes;
        least[1 - usize::from(row.direction)] += u64::from(row.request_bytes);
    }
    let mut direction_of = BTreeMap::new();
    for row in ran.demands() {
        let Demanded::Exchange { opened, request_bytes, response_bytes, .. } = row.demanded else { continue };
        if let Some((direction, _)) = opened {
            direction_of.insert(row.connection, usize::from(direction));
        }
        let direction = direction_of[&row.connection];
        most[direction] += response_bytes;
        most[1 - direction] += u64::from(request_bytes);
    }
    for direction in 0..2 {
        let received = ran.sums.received_bytes[direction];
        assert!((least[direction]..=most[direction]).contains(&received), "{least:?} {received} {most:?}");
    }
    assert!(ran.exchanges.len() > 100 && ran.sums.connections_failed == 0);
}

#[test]
fn transfers_are_measured_where_they_end() {
    let text = format!(
        "duration = '4s'\n{LINK}link.reverse_rate = '10mbit'\n\
         link.reverse_qdisc = {{ kind = 'pfifo', limit = '30p' }}\n\
         [[traffic]]\nkind = 'bulk'\nflows = 2\ndirection = 'reverse'\n\
         [[traffic]]\nkind = 'bulk'\nflows = 5\nsize = '100000b'\ndirection = 'both'\nrtt = '20ms'\n\
         [[traffic]]\nkind = 'poisson'\narrivals = '20hz'\nsize = '20000b'\n"
    );
    let Some(ran) = ran("transfers_are_measured", &text, &[]) else { return };
    let finite: Vec<_> = ran.exchanges.iter().filter(|row| row.traffic == 1).collect();
    assert_eq!(finite.iter().map(|row| row.response_bytes).collect::<Vec<_>>(), [100_000; 5]);
    let directions: u8 = finite.iter().map(|row| row.direction).sum();
    assert_eq!(directions, 2, "of five, the odd ones go in reverse");
    assert!(finite.iter().all(|row| row.setup >= Span::from_ms(20) && row.response_time > row.setup), "{finite:?}");
    let arrivals = ran.exchanges.iter().filter(|row| row.traffic == 2);
    // 80 are expected, with a standard deviation of 9.
    assert!(arrivals.clone().count() > 40, "{} arrivals", arrivals.count());
    assert!(arrivals.clone().all(|row| row.response_bytes == 20_000));
    // 10 Mb/s for 4 s, of which headers take 52 in 1500: nearly all is there after slow start, and never more.
    let payload = 10e6 / 8.0 * 4.0 * 1448.0 / 1500.0;
    let bulk: u64 = ran.sums.bulk_bytes.iter().sum();
    assert!(ran.sums.bulk_bytes.iter().all(|&bytes| bytes > 0), "{:?}", ran.sums.bulk_bytes);
    assert!((0.7 * payload..payload).contains(&(bulk as f64)), "{bulk} of {payload}");
}

#[test]
fn probes_and_streams_have_their_packets_sizes() {
    for family in ["ipv4", "ipv6"] {
        let text = format!(
            "duration = '2s'\n{LINK}live.family = '{family}'\n\
             [[traffic]]\nkind = 'probe'\nflows = 3\nstart = '0s'\n\
             interval = '20ms'\ndirection = 'both'\nrtt = '30ms'\n\
             [[traffic]]\nkind = 'cbr'\nflows = 2\nstart = '0s'\nrate = '1mbit'\npacket = '1250b'\nrtt = '10ms'\n"
        );
        let Some(ran) = ran("probes_and_streams", &text, &[]) else { return };
        let [sent, received] = &ran.probes;
        // A phase, then every 20 ms.
        assert!((297..=300).contains(&sent.len()), "{} probes", sent.len());
        let sent: BTreeMap<_, _> = sent.iter().map(|&(flow, packet, at)| ((flow, packet), at)).collect();
        for &(flow, packet, at) in received {
            let delay_s = at.since(sent[&(flow, packet)]).secs_f64();
            assert!(delay_s >= 0.015, "{delay_s}");
        }
        // However late the report is asked for.
        assert_eq!(ran.report.ended, Time::ZERO + ran.scenario.duration);
        // But those under way at the end.
        assert!(received.len() + 6 >= sent.len(), "{} of {} arrived", received.len(), sent.len());
        let [forward, _] = &ran.report.directions;
        assert_eq!(ran.report.flows_drawn, 0, "every flow was announced");
        // Two probe flows and two streams of 50 packets a second of 1250 bytes each: as large on the wire as asked for.
        let streams = 200;
        let probes = sent.keys().filter(|(flow, _)| flow % 2 == 0).count() as u64;
        assert!(forward.egress.offered.abs_diff(streams + probes) <= 4, "{} packets", forward.egress.offered);
        let bytes = forward.meter.window().delivered_bytes;
        let expected = streams * 1250 + probes * 200;
        assert!(
            bytes.abs_diff(expected) <= 4 * 1250,
            "{bytes}, expected {expected}, {} of headers",
            headers(ran.scenario.live.family)
        );
    }
}

#[test]
fn vectors_are_played_by_both_ends() {
    let vectors = "SEQ 100000 2 0 0\nw 65535 65535\nr 20000\nl 0 0\n> 300\nt 7000\n< 20000\nt 50000\n\
                   > 1000\nt 3000\n< 100\nt 1000\n\
                   CONC 300000 2 1 0 0\nw 65535 65535\nr 20000\nl 0 0\nc> 10\nt> 200000\n\
                   c> 20\nt> 1000\nc< 30\nt< 300000\n\
                   SEQ 400000 2 0 0\nw 4000 4000\nr 10000\nl 0 0\n< 80\nt 10000\n> 5\nt 20000\n< 60000\nt 0\n";
    for direction in ["forward", "both"] {
        let text = format!(
            "duration = '3s'\n{LINK}[[traffic]]\nkind = 'tmix'\nvectors = 'v.cvec'\n\
             direction = '{direction}'\nloss = false\n"
        );
        let Some(ran) = ran("vectors_are_played", &text, &[("v.cvec", vectors)]) else { return };
        let found: Vec<_> =
            sizes(&ran.exchanges).into_iter().map(|(_, request, response)| (request, response)).collect();
        let mut expected = vec![(300, 20_000), (1_000, 100), (30, 30), (5, 60_000)];
        let mut sorted = found;
        sorted.sort_unstable();
        expected.sort_unstable();
        assert_eq!(sorted, expected, "{direction}");
        let sums = &ran.sums;
        assert_eq!((sums.connections_opened, sums.connections_completed, sums.connections_failed), (3, 3, 0));
        assert_eq!(sums.received_bytes.iter().sum::<u64>(), 300 + 20_000 + 1_000 + 100 + 30 + 30 + 80 + 5 + 60_000);
        let first = ran.exchanges.iter().find(|row| row.request_bytes == 300).expect("it is there");
        assert!((first.start.secs_f64() - 0.1).abs() < 0.05 && first.response_time >= Span::from_ms(47), "{first:?}");
    }
}

/// The second of two small writes in a row does not wait for the acknowledgement of the first, as it would by Nagle's
/// algorithm (RFC 9293 §3.7.4).
#[test]
fn small_writes_in_a_row_leave_at_once() {
    let vectors = "SEQ 100000 2 0 0\nw 65535 65535\nr 100000\nl 0 0\n> 10\nt 5000\n> 20\nt 0\n< 30\nt 0\n";
    let text = format!("duration = '2s'\n{LINK}[[traffic]]\nkind = 'tmix'\nvectors = 'v.cvec'\nloss = false\n");
    let Some(ran) = ran("small_writes_in_a_row", &text, &[("v.cvec", vectors)]) else { return };
    let [exchange] = &ran.exchanges[..] else { panic!("one exchange, not {:?}", ran.exchanges) };
    assert_eq!((exchange.request_bytes, exchange.response_bytes), (20, 30));
    // From the second write on: a round trip. Nearly another would go by before the acknowledgement.
    let took = exchange.response_time;
    assert!((Span::from_ms(100)..Span::from_ms(150)).contains(&took), "{took:?}");
}

#[test]
fn connections_that_are_refused_fail() {
    let text = format!(
        "duration = '2s'\n{LINK}[[traffic]]\nkind = 'web'\nusers = 30\ndirection = 'reverse'\nthink_mean = '100ms'\n"
    );
    // The clients are on the left, and nobody listens on the right.
    let Some(ran) = run("connections_that_are_refused", scenario(&text, &[]), [true, false], |_, _| Ok(())) else {
        return;
    };
    assert_eq!((ran.exchanges.len(), ran.sums.connections_completed), (0, 0));
    let failed = ran.sums.connections_failed;
    assert!(failed > 30 && failed + 30 >= ran.sums.connections_opened, "{:?}", ran.sums);
}

/// More datagrams than a thread can send, 2.5 million a second, beside requests: the run is over in time, who does not
/// keep up says so, and sockets are heard all the same.
#[test]
fn hosts_that_cannot_keep_up_end_and_say_so() {
    let text = format!(
        "duration = '1s'\n{LINK}[[traffic]]\nkind = 'cbr'\nflows = 4\nrate = '2gbit'\npacket = '100b'\n\
         [[traffic]]\nkind = 'web'\nusers = 5\n"
    );
    // That it returns is half of it: there is always more that is due.
    let Some(ran) = ran("hosts_that_cannot_keep_up", &text, &[]) else { return };
    let late = ran.hosts.iter().flatten().find_map(|hosts| hosts.breaks(&live::Budget::default()));
    assert!(late.is_some_and(|late| late.contains("of what hosts did was within 1000 us")));
}

#[test]
fn foreign_clients_are_answered() {
    let text = format!("duration = '2s'\n{LINK}[[traffic]]\nkind = 'web'\nusers = 1\n");
    let ran = run("foreign_clients", scenario(&text, &[]), [true; 2], |bed, epoch| {
        bed.sides[0].within(|| {
            while epoch.now() == Time::ZERO {
                std::thread::yield_now();
            }
            let ask = |request: &str| -> std::io::Result<Vec<u8>> {
                let mut stream = TcpStream::connect(("10.255.0.1", 80))?;
                stream.set_read_timeout(Some(Duration::from_secs(5)))?;
                stream.write_all(request.as_bytes())?;
                let mut answer = Vec::new();
                stream.read_to_end(&mut answer)?;
                Ok(answer)
            };
            let answer = ask("GET /100000 HTTP/1.1\r\nHost: right\r\nConnection: close\r\n\r\n")?;
            assert_eq!(answer.len(), 100_000);
            assert!(answer.starts_with(b"HTTP/1.0 200 OK\r\nContent-Length: 99"));
            // Several at once, and closed by nobody until the last.
            let many = "GET /100 HTTP/1.1\r\n\r\n".repeat(3_000) + "GET /200 HTTP/1.0\r\n\r\n";
            assert_eq!(ask(&many)?.len(), 300_200);
            let refusal = ask("GET /etc/passwd HTTP/1.1\r\n\r\n")?;
            assert!(refusal.starts_with(b"HTTP/1.1 400 Bad Request\r\n") && refusal.ends_with(b"HTTP/1.x\n"));
            Ok(())
        })
    });
    let Some(ran) = ran else { return };
    let [_, Some(right)] = &ran.hosts else { panic!("both ran") };
    assert_eq!(right.refused_requests, 1);
}

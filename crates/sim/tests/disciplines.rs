//! What disciplines promise of TCP, in whole runs: fair shares, flows that do not respond held down, short flows left
//! alone, references kept, the coupling of DualPI2. Each bound stands with its source. What needs no TCP is tested with
//! the laws themselves; larger grids are in `benches/coupling.py`. The stack is the one whose constants theory has:
//! SACK, an acknowledgement a segment, no handshake.

use crate::common::{Ran, run};

/// Runs `scenario` on a link of so many megabits a second whose other direction is never full.
fn at(rate_mbit: u32, qdisc: &str, scenario: &str) -> Ran {
    run(&format!(
        r#"
        link.rate = "{rate_mbit}mbit"
        link.reverse_rate = "1gbit"
        link.qdisc = {{ {qdisc} }}
        link.reverse_qdisc = {{ kind = "pfifo", limit = "10000p" }}
        {scenario}
        "#
    ))
}

/// Bits a second of each endless flow.
fn rates(ran: &Ran) -> Vec<f64> {
    let seconds = ran.outcome.measured.secs_f64();
    ran.outcome.tcp.bulk_bytes.iter().map(|bytes| *bytes as f64 * 8.0 / seconds).collect()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

// ---- fair shares ----

#[test]
fn fair_queueing_shares_equally() {
    // With equal round trips turns by bytes leave nothing to tell flows apart: Jain's index is 1 but for what a flow
    // loses while its window recovers. Drop-tail, whose losses fall as they fall, shows that the load can be shared
    // unequally.
    let jain = |qdisc: &str| {
        let ran = at(
            20,
            qdisc,
            r#"
            duration = "60s"
            warmup = "20s"
            path.rtt = "40ms"
            tcp = { stack = "linux", window = "1mb" }
            [[traffic]]
            kind = "bulk"
            flows = 8
            start = { uniform = ["0s", "1s"] }
            "#,
        );
        assert!(ran.number("forward.utilisation") > 0.99, "{qdisc}");
        ran.number("tcp.jain_index")
    };
    for kind in ["fq_codel", "drr", "sfq", "fq", "fq_pie"] {
        let jain = jain(&format!("kind = '{kind}'"));
        eprintln!("{kind}: {jain}");
        assert!(jain >= 0.999, "{kind}: {jain}");
    }
    let jain = jain("kind = 'pfifo'");
    assert!(jain < 0.99, "drop-tail: {jain}");
}

/// Nineteen TCP flows and one that sends `load` times the link's 20 Mb/s whatever happens: the fair share is 1 Mb/s.
/// What the one gets, in fair shares: over two minutes, since half a minute's is known to some 2 % only.
fn unresponsive(qdisc: &str, load: f64) -> f64 {
    let ran = at(
        20,
        qdisc,
        &format!(
            r#"
            duration = "150s"
            warmup = "30s"
            path.rtt = "40ms"
            tcp = {{ stack = "linux", window = "1mb" }}
            [[traffic]]
            kind = "bulk"
            flows = 19
            start = {{ uniform = ["0s", "1s"] }}
            [[traffic]]
            kind = "cbr"
            rate = "{}kbit"
            packet = "1500b"
            start = "5s"
            "#,
            20_000.0 * load
        ),
    );
    let got = 20.0 * load * (1.0 - ran.number("udp.loss_ratio"));
    eprintln!("{qdisc} {load}: {got}, TCP {} Mb/s each", mean(&rates(&ran)) * 1e-6);
    got
}

#[test]
fn a_flow_that_does_not_respond_is_held_to_about_its_share() {
    const RED: &str = "mean_packet = '1500b', min = '20p', max = '60p', probability = 0.1";
    // What there is to hold down: nearly all of the link.
    let red = unresponsive(&format!("kind = 'red', gentle = true, {RED}"), 1.0);
    assert!(red > 15.0, "RED leaves it {red}");
    let held = [
        // One queue for each flow: its share, as long as it waits at all.
        ("kind = 'drr'".to_owned(), 1.0),
        // Le et al. 2004: every known flow is brought to the same count; TCP keeps somewhat below it.
        ("kind = 'dcn', mean_packet = '1500b'".to_owned(), 1.2),
        // Pan et al. 2003: the share is what a flow may have, and TCP, whose window swings between a half and all of
        // its largest, has three quarters of that in the mean: 4/3, and a quarter more for counts of some hundred.
        ("kind = 'afd', mean_packet = '1500b', sample = 1, buffer = 2000".to_owned(), 5.0 / 3.0),
        // Mahajan, Floyd and Wetherall 2001: what TCP has at the same drop rate over `rtt`. Over 40 ms that is 1.4
        // times what it has over the 56 ms that propagation and queue make here; and a filter is only raised when RED
        // has signalled the flow in three intervals of five, each of which lasts 3/5 of TCP's time between signals.
        (format!("kind = 'red_pd', gentle = true, {RED}"), 1.4 * 5.0 / 3.0),
        // Feng et al. 2001: probabilities of its bins rest between too full and empty, at a load of 0.9 (blue.rs),
        // where an M/D/1 queue holds 5 packets: of 70 that wait, and twice that since TCP shares bins with it.
        ("kind = 'sfb', limit = '100p'".to_owned(), 2.0 * 20.0 * 5.0 / 70.0),
        // Lin and Morris 1997: the mean of the flows that have packets in the queue, 20 ms of 60, at the least a third
        // of all at a time.
        (format!("kind = 'fred', {RED}"), 3.0),
    ];
    for (qdisc, bound) in held {
        for load in [0.5, 1.0, 2.0] {
            let got = unresponsive(&qdisc, load);
            assert!(got <= bound * 1.02, "{qdisc} at {load}: {got} fair shares, promised {bound}");
            assert!(got >= 0.9, "{qdisc} at {load}: {got}: no less than its share either");
        }
    }
}

/// The share of the link of a flow that sends `x` times its rate under CHOKe beside very many TCP flows, of whose
/// packets RED loses `r`.
///
/// After Tang, Wang and Low 2004, with r kept. In units of the link's rate, x h packets of the flow are matched on
/// arrival, as many are lost from the queue, and x (1 - h) (1 - r) enter. What leaks slows the queue from the tail,
/// where it moves at 1 + x h, to the head: with s the share at the head, x (1 - h) (1 - r) = s + x h and
/// x h + (1 - s) ln(1 + x h / s) = x. At r = 0 that is (1 - s) ln((x + s) / 2 s) = (x + s) / 2, never more than
/// 1 / (e + 1) = 0.269.
fn choke_share(x: f64, r: f64) -> f64 {
    let (mut low, mut high) = (1e-9, x.min(1.0) * (1.0 - r));
    for _ in 0..100 {
        let s = (low + high) / 2.0;
        let matched = (x * (1.0 - r) - s) / (2.0 - r);
        if matched + (1.0 - s) * base::maths::ln(1.0 + matched / s) > x { low = s } else { high = s }
    }
    low
}

#[test]
fn choke_gives_an_unresponsive_flow_what_its_model_says() {
    // At the peak: x = (2 e - 1) / (e + 1).
    assert!((choke_share(1.1932, 0.0) - 0.26894).abs() < 1e-4);
    for x in [0.5, 1.0, 2.0, 4.0] {
        let ran = at(
            50,
            "kind = 'choke', limit = '1000p', mean_packet = '1500b'",
            &format!(
                r#"
                duration = "50s"
                warmup = "20s"
                path.rtt = "50ms"
                tcp.stack = "ns2"
                [[traffic]]
                kind = "bulk"
                flows = 100
                start = {{ uniform = ["0s", "1s"] }}
                [[traffic]]
                kind = "cbr"
                rate = "{}mbit"
                packet = "1500b"
                start = "5s"
                "#,
                50.0 * x
            ),
        );
        let share = x * (1.0 - ran.number("udp.loss_ratio"));
        let of_tcp = |key: &str, udp: &str| ran.number(&format!("forward.{key}")) - ran.number(&format!("udp.{udp}"));
        let r = of_tcp("dropped_packets", "lost_packets") / of_tcp("offered_packets", "offered_packets");
        let model = choke_share(x, r);
        eprintln!("{x}: {share} against {model}, {} without RED", choke_share(x, 0.0));
        // Of TCP's losses two in a hundred packets are their own matches, which moves the model by 0.003; 125,000
        // packets delivered stray by half of that (four standard deviations of a binomial are 0.005 at most, and
        // matches even it out).
        assert!((share - model).abs() < 0.005, "at {x}: {share} against {model}");
    }
}

// ---- short flows ----

/// Losses of short flows, six packets of 1040 bytes, and of the endless ones beside them.
fn losses_beside_bulk(qdisc: &str) -> (usize, usize) {
    let ran = at(
        20,
        qdisc,
        r#"
        duration = "80s"
        warmup = "20s"
        path.rtt = "40ms"
        record.drops = true
        tcp.stack = "ns2"
        [[traffic]]
        kind = "bulk"
        flows = 16
        start = { uniform = ["0s", "1s"] }
        [[traffic]]
        kind = "poisson"
        arrivals = "20hz"
        size = "6000b"
        mss = "1000b"
        "#,
    );
    let exchanges = ran.rows.exchanges.len();
    assert!((1000..1400).contains(&exchanges), "{qdisc}: {exchanges} exchanges");
    let lost = |is_short: bool| {
        let size = if is_short { 1040 } else { 1500 };
        ran.rows
            .drops
            .iter()
            .filter(|row| row.direction == 0 && row.time.secs_f64() > 20.0 && row.size_bytes == size)
            .count()
    };
    let (short, long) = (lost(true), lost(false));
    eprintln!("{qdisc}: {short} of {} short, {long} long", 6 * exchanges);
    (short, long)
}

#[test]
fn short_flows_are_left_alone() {
    // RED signals all alike: of some 7200 short packets as many as of others.
    let (short, long) = losses_beside_bulk("kind = 'red', mean_packet = '1500b', gentle = true");
    assert!(short > 50 && long > 500, "RED: {short} {long}");
    // DCN (Le et al. 2004): what has no count above the share, that of the endless flows, is never signalled. AFD (Pan
    // et al. 2003): six packets of thousands remembered are far below the share. RIO-PS (Guo and Matta 2001): the
    // first eight packets of a flow lose nothing while the average of their kind is below min.
    for kind in ["dcn", "afd", "rio_ps"] {
        let (short, long) = losses_beside_bulk(&format!("kind = '{kind}', mean_packet = '1500b'"));
        assert_eq!(short, 0, "{kind}");
        assert!(long > 500, "{kind}: {long}");
    }
}

// ---- references and equilibria ----

/// Twenty flows that answer to marks, over 100 ms and 20 Mb/s, 200 s of them measured.
fn marked(qdisc: &str) -> Ran {
    at(
        20,
        qdisc,
        r#"
        duration = "240s"
        warmup = "40s"
        path.rtt = "100ms"
        tcp = { stack = "ns2", ecn = "on" }
        [[traffic]]
        kind = "bulk"
        flows = 20
        start = { uniform = ["0s", "1s"] }
        "#,
    )
}

/// Mean of a gauge over the rows of the measured window, forward.
fn gauge(ran: &Ran, of: impl Fn(&record::QueueRow) -> Option<f64>) -> f64 {
    let rows = ran.rows.queue.iter().filter(|row| row.direction == 0 && row.time.secs_f64() > 40.0);
    mean(&rows.map(|row| of(row).expect("it has this gauge")).collect::<Vec<_>>())
}

#[test]
fn pi_keeps_its_reference() {
    // Summed up over T, p(k) - p(k-1) = a (q(k) - qref) - b (q(k-1) - qref) leaves a mean distance of the queue from
    // its reference of (change of p, less b times that of the queue) / ((a - b) w T).
    let ran = marked("kind = 'pi', qref = '50p', mean_packet = '1500b', ecn = true");
    let rows: Vec<_> = ran.rows.queue.iter().filter(|row| row.direction == 0 && row.time.secs_f64() >= 40.0).collect();
    let (first, last) = (rows[0], rows[rows.len() - 1]);
    let p = |row: &record::QueueRow| row.gauges.probability.expect("PI has a probability");
    let (a, b, w, t) = (1.822e-5, 1.816e-5, 170.0, 200.0);
    let queue = f64::from(last.queue_packets) - f64::from(first.queue_packets);
    let distance = (p(last) - p(first) - b * queue) / ((a - b) * w * t);
    let found = ran.number("forward.queue_mean_packets");
    eprintln!("PI: {found}, by its sum {}", 50.0 + distance);
    // Its samples are the ticks', the mean is over time: 34,000 ticks, of a queue that strays by some 25 and forgets
    // within a few round trips, 0.3 s: 25 / sqrt(200 / 0.3) = 1 at most.
    assert!((found - 50.0 - distance).abs() < 1.0, "{found}, by its sum {}", 50.0 + distance);
    assert!((found - 50.0).abs() < 5.0, "{found} against 50");
    assert_eq!(ran.outcome.meters[0].window().dropped_total(), 0);
}

#[test]
fn rem_prices_what_tcp_asks_for() {
    // Athuraliya et al. 2001: the price rests where rate and capacity match and the queue is at its target, and marks
    // 1 - phi^-price.
    let ran = marked("kind = 'rem', target = '50p', mean_packet = '1500b', ecn = true");
    let queue = ran.number("forward.queue_mean_packets");
    // As PI's: within the drift of the price, of some tens, over gamma alpha 1e5 updates, 10 packets each.
    assert!((queue - 50.0).abs() < 2.5, "{queue} against 50");
    let price = gauge(&ran, |row| row.gauges.control);
    let by_price = 1.0 - base::maths::pow(1.001, -price);
    let found = ran.number("forward.mark_ratio");
    // Marks are binomial draws, some 4000; the price swings by a third, whose curvature is below a hundredth of that.
    let slack = 4.0 / (found * ran.number("forward.offered_packets")).sqrt() + 0.01;
    eprintln!("REM: queue {queue}, price {price}: {by_price} against {found} +- {slack}");
    assert!((found / by_price - 1.0).abs() < slack, "price {price}: {by_price} against {found} +- {slack}");
    // What TCP asks for: a window of C R / N that goes with sqrt(3 / 2p) to 1.31 / sqrt(p), less what whole segments
    // take from small windows, a fifth at p = 0.01 (crates/tcp/tests/theory.rs).
    let window = ran.number("forward.throughput_bps") / 12_000.0 * (0.1 + queue * 12_000.0 / 20e6) / 20.0;
    let constant = window * found.sqrt();
    eprintln!("window {window}: {constant}");
    assert!((0.98..=1.31).contains(&constant), "a window of {window}: {constant}");
}

#[test]
fn blue_with_ecn_loses_nothing_and_fills_the_link() {
    // Feng et al. 1999, §3: BLUE finds a probability at which the queue neither overflows nor runs empty, where RED
    // with the same buffer cannot.
    let ran = marked("kind = 'blue', limit = '200p', ecn = true");
    let lost = ran.outcome.meters[0].window().dropped_total();
    eprintln!("BLUE: {lost} lost, {}", ran.number("forward.utilisation"));
    assert_eq!(lost, 0);
    assert!(ran.number("forward.utilisation") > 0.999);
}

#[test]
fn sred_counts_tcp_flows() {
    // 1/P for flows alike; it strays by sqrt(a N / 2) (equilibria.rs), 5 % for 20, over 200 s by a tenth of that. Two
    // things make packets meet their like more often than flows' shares over all the time say. Windows between 2/3 and
    // 4/3 of their mean have a mean square 1/27 larger. And a window W of packets that come together has put r W / 2 of
    // them into the list of M, on average, before one looks there for its M / N: r W N / 2M = 2.7 % for 10.8.
    let ran = marked("kind = 'sred', limit = '200p', ecn = true");
    let rates = rates(&ran);
    let total: f64 = rates.iter().sum();
    let alike = 1.0 / rates.iter().map(|rate| (rate / total) * (rate / total)).sum::<f64>();
    let counted = 1.0 / gauge(&ran, |row| row.gauges.control);
    eprintln!("SRED: {counted} of {alike}");
    assert!((0.92..=1.02).contains(&(counted / alike)), "{counted} of {alike}");
}

#[test]
fn gsp_fills_the_link_with_less_of_a_queue() {
    // Lautenschlaeger and Francini 2015: one flow at a time halves its window instead of many at once, so a queue of a
    // few packets does for the link what drop-tail needs several times as many for. With one of N flows halved, the
    // window falls short by 1/2N: 1/8 of the 167 + 20 packets here, 23, little more than the threshold of 20.
    let of = |qdisc: &str| {
        let ran = at(
            20,
            qdisc,
            r#"
            duration = "120s"
            warmup = "40s"
            path.rtt = "100ms"
            tcp.stack = "ns2"
            [[traffic]]
            kind = "bulk"
            flows = 4
            start = { uniform = ["0s", "1s"] }
            "#,
        );
        (ran.number("forward.utilisation"), ran.number("forward.loss_ratio"))
    };
    let (gsp, lost) = of("kind = 'gsp', threshold = '20p'");
    let (tail, lost_at_tail) = of("kind = 'pfifo', limit = '20p'");
    let (double, _) = of("kind = 'pfifo', limit = '40p'");
    eprintln!("GSP {gsp} {lost}, drop-tail {tail} {lost_at_tail}, twice the queue {double}");
    assert!(gsp > 0.98 && gsp > double && double > tail, "GSP {gsp}, drop-tail {tail}, twice the queue {double}");
    assert!(lost < lost_at_tail, "{lost} against {lost_at_tail}");
}

// ---- Scalable flows ----

#[test]
fn a_step_and_dctcp_keep_the_queue_at_the_step() {
    // Alizadeh et al. 2010, §3.3: N flows in step swing between K + N and A less, A = sqrt(2 N (C R + K)) / 2, evenly
    // up and down. Windows of whole segments make a packet or two of the top; a queue that does not rise and fall
    // evenly moves the mean by a part of A.
    let (rate, rtt) = (100e6 / 12_000.0, 0.010);
    for (flows, k) in [(1, 20.0), (2, 20.0), (2, 40.0), (4, 40.0)] {
        let ran = at(
            100,
            &format!("kind = 'step', threshold = '{k}p', ecn = true"),
            &format!(
                r#"
                duration = "30s"
                warmup = "10s"
                path.rtt = "10ms"
                tcp = {{ stack = "ns2", cc = "dctcp" }}
                [[traffic]]
                kind = "bulk"
                flows = {flows}
                start = {{ uniform = ["0s", "1s"] }}
                "#
            ),
        );
        let n = f64::from(flows);
        let swing = (2.0 * n * (rate * rtt + k)).sqrt() / 2.0;
        let top = ran.number("forward.queue_delay_p99_s") * rate;
        let middle = ran.number("forward.queue_mean_packets");
        eprintln!("{flows} {k}: top {top}, mean {middle}, of {} to {}", k + n - swing, k + n);
        assert!((top - (k + n)).abs() < 2.0, "{flows} {k}: {top} at most, {} by the paper", k + n);
        let expected = k + n - swing / 2.0;
        assert!((middle - expected).abs() < swing / 4.0, "{flows} {k}: {middle} in the mean, {expected} by the paper");
        assert_eq!(ran.outcome.meters[0].window().dropped_total(), 0);
        assert!(ran.number("forward.utilisation") > 0.999);
    }
}

/// As many Reno as DCTCP flows over a bottleneck that couples them.
struct Coupled {
    /// Rate of a DCTCP flow over that of a Reno flow.
    ratio: f64,
    /// Marks of the one over k = 2 times the root of the losses of the other.
    coupling: f64,
}

fn coupled(qdisc: &str, rate_mbit: u32, rtt_ms: u32, flows: usize) -> Coupled {
    let ran = at(
        rate_mbit,
        qdisc,
        &format!(
            r#"
            duration = "80s"
            warmup = "20s"
            path = {{ rtt = "{rtt_ms}ms", access_rate = "10gbit" }}
            tcp.stack = "ns2"
            [[traffic]]
            kind = "bulk"
            flows = {flows}
            start = {{ uniform = ["0s", "1s"] }}
            [[traffic]]
            kind = "bulk"
            flows = {flows}
            cc = "dctcp"
            ect = "ect1"
            start = {{ uniform = ["0s", "1s"] }}
            "#
        ),
    );
    let rates = rates(&ran);
    let (classic, scalable) = (mean(&rates[..flows]), mean(&rates[flows..]));
    // Losses are all of Reno, marks all of DCTCP, whose segments carry 1460 bytes.
    let segments = |rate: f64| rate * flows as f64 * ran.outcome.measured.secs_f64() / (8.0 * 1460.0);
    let counts = ran.outcome.meters[0].window();
    let lost = counts.dropped_total() as f64;
    let marked = ran.number("forward.marked_packets");
    let lost_share = lost / (segments(classic) + lost);
    let coupling = marked / segments(scalable) / (2.0 * lost_share.sqrt());
    eprintln!("{qdisc} {rate_mbit} Mb/s {rtt_ms} ms: {}, coupling {coupling}, {lost} lost", scalable / classic);
    Coupled { ratio: scalable / classic, coupling }
}

#[test]
fn pi2_gives_reno_and_dctcp_equal_rates() {
    // De Schepper et al. 2016, §4: in one queue, with the same round trip, Reno has a window of 1.22 to 1.31 / p' and
    // DCTCP one of 2 to 2.73 / 2p', for marks evenly spaced and at random: 0.8 to 1.1 of it. With windows of twenty
    // segments and more, and enough flows for p' to be steady, that is 1 within 10 %.
    for (rate, rtt) in [(120, 5), (120, 10)] {
        let found = coupled("kind = 'pi2', ecn = true", rate, rtt, 5);
        assert!((found.ratio - 1.0).abs() < 0.1, "{rate} Mb/s {rtt} ms: {}", found.ratio);
        // p' that swings has a larger mean square: losses are more, never fewer. Half of three standard errors of the
        // losses, of which there are some hundreds.
        assert!((0.9..=1.06).contains(&found.coupling), "{rate} Mb/s {rtt} ms: {}", found.coupling);
    }
}

#[test]
fn dualpi2_couples_marks_and_losses_and_gives_equal_windows() {
    // RFC 9332 §2.1: p_C = (p_CL / k)^2, and with it windows alike (tc-dualpi2(8)). Rates are not: a Classic flow's
    // packets wait the target, 15 ms, a Scalable one's next to nothing, here less than 1 ms: the rates are apart by the
    // round trips, 4 to 1.4 for 5 to 20 ms.
    for (rate, rtt) in [(120, 5), (120, 20)] {
        let found = coupled("kind = 'dualpi2'", rate, rtt, 5);
        assert!((0.92..=1.06).contains(&found.coupling), "{rate} Mb/s {rtt} ms: {}", found.coupling);
        let r = f64::from(rtt);
        let (low, high) = (found.ratio * r / (r + 15.0), found.ratio * (r + 1.0) / (r + 15.0));
        // As for PI2, and losses up to a tenth more than the coupling says.
        assert!(low < 1.1 && high > 0.8, "{rate} Mb/s {rtt} ms: windows of {low} to {high}");
    }
}

#[test]
fn curvy_red_lets_the_queue_grow_with_the_number_of_flows() {
    // RFC 9332 B.1: with x = (Q - minTh) / range, p = x^2. Reno's window is 1.31 / sqrt(p) = 1.31 / x segments, and N
    // of them fill rate times R + Q: 1.31 N / x = C (R + Q). The root of that quadratic is the Classic waiting time.
    let (rate, rtt, range, min_th) = (120e6 / 12_000.0, 0.020, 0.5, 0.0005);
    for flows in [5, 20, 40] {
        let ran = at(
            120,
            "kind = 'curvy_red'",
            &format!(
                r#"
                duration = "60s"
                warmup = "20s"
                path = {{ rtt = "20ms", access_rate = "10gbit" }}
                tcp = {{ stack = "ns2", ecn = "on" }}
                [[traffic]]
                kind = "bulk"
                flows = {flows}
                start = {{ uniform = ["0s", "1s"] }}
                "#
            ),
        );
        let b = rate * (rtt + min_th);
        let x = (-b + (b * b + 4.0 * rate * range * 1.31 * f64::from(flows)).sqrt()) / (2.0 * rate * range);
        let expected = min_th + range * x;
        let average = gauge(&ran, |row| row.gauges.control);
        eprintln!("{flows}: {average} for {expected}, {}", ran.number("forward.utilisation"));
        assert!((average / expected - 1.0).abs() < 0.1, "{flows}: {average} for {expected}");
        assert_eq!(ran.outcome.meters[0].window().dropped_total(), 0, "all are marked");
    }
}

#[test]
fn curvy_red_couples_marks_and_losses() {
    // As for dualpi2, whose queue is steadier: marks follow the average of the waiting time, losses that of its square.
    // Without the L-queue's own step, whose marks are no part of the coupling.
    for (rate, rtt, flows) in [(120, 5, 5), (120, 20, 10)] {
        let found = coupled("kind = 'curvy_red', step_thresh = '10s'", rate, rtt, flows);
        assert!((0.9..=1.06).contains(&found.coupling), "{rate} Mb/s {rtt} ms: {}", found.coupling);
    }
}

#[test]
fn a_shallow_threshold_for_ect1_under_fair_queueing_leaves_the_others_their_codel() {
    // RFC 9330 §4.2, per-flow queues: ECT(1) is marked above a threshold of about a millisecond, all else has CoDel.
    // A half of 40 Mb/s is 33 packets in flight, 19.3 Mb/s of payload. CUBIC comes down to 0.7 of these and CoDel's
    // 5 ms of queue, 0.875 of what its half needs, and grows back. Marked at a millisecond it does not keep its half: a
    // burst of a few packets waits as long for the other flow's turns, round trip after round trip.
    let shared = |selector: &str| {
        let ran = at(
            40,
            &format!("kind = 'fq_codel', dialect = 'linux', ce_threshold = '1ms' {selector}"),
            r#"
            duration = "40s"
            warmup = "20s"
            path.rtt = "20ms"
            tcp = { stack = "linux", window = "1mb" }
            record.flows = "10ms"
            [[traffic]]
            kind = "bulk"
            cc = "prague"
            [[traffic]]
            kind = "bulk"
            cc = "cubic"
            ecn = "on"
            "#,
        );
        let waits = [0, 1].map(|traffic| {
            let rows = ran.rows.tcp.iter().filter(|row| row.traffic == traffic && row.time.secs_f64() > 20.0);
            mean(&rows.map(|row| row.srtt.expect("it has sent").secs_f64() - 0.020).collect::<Vec<_>>())
        });
        (rates(&ran), waits, ran)
    };
    let (rates, [scalable, classic], ran) = shared(", ce_threshold_selector = '0x01/0x03'");
    eprintln!("{rates:?} {scalable} {classic}");
    assert!(ran.number("forward.utilisation") > 0.99);
    assert!(rates.iter().all(|rate| *rate > 0.875 * 19.3e6), "{rates:?}");
    // What is beyond a millisecond: the packet in transmission, and a turn of the other flow's.
    assert!(scalable < 0.002 && classic > 0.003, "{scalable} and {classic}");
    let (all, _, _) = shared("");
    eprintln!("{all:?}");
    assert!(all[1] < 0.5 * rates[1], "{all:?}");
}

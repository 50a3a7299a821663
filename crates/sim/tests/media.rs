//! Real-time video over a link: what SCReAM makes of it, by theory and by what the draft promises.

use crate::common::{self, Ran, run};
use base::{Rate, Span, Time};

const RTT_MS: u64 = 20;

/// A run of 60 s, of which the last 40 count, over a link of `link` with these blocks of traffic.
fn text(link: &str, traffic: &str) -> String {
    format!(
        "duration = '60s'\nwarmup = '20s'\nlink = {{ reverse_rate = '1gbit', {link} }}\n\
         path = {{ access_rate = '1gbit', rtt = '{RTT_MS}ms' }}\n{traffic}"
    )
}

fn video(more: &str) -> String {
    format!("[[traffic]]\nkind = 'rtp_video'\nmax_rate = '50mbit'\nstart = '0s'\n{more}\n")
}

const DUALPI2: &str = "rate = '10mbit', qdisc = 'dualpi2'";
const L4S: &str = "ect = 'ect1'";

fn mbps(ran: &Ran) -> f64 {
    ran.number("frames.bitrate_bps") / 1e6
}

/// A source whose least rate is its greatest, 480 kb/s in frames of 3,000 bytes: two full packets and one of 600 bytes,
/// paced at six times the rate (§4.3.2: one and a half times, and four times that at the greatest rate).
#[test]
fn on_an_idle_network_a_frame_takes_what_its_packets_take_one_after_the_other() {
    let block = "[[traffic]]\nkind = 'rtp_video'\nframe_rate = '20hz'\nmin_rate = '480kbit'\nmax_rate = '480kbit'\n\
                 variation = 0.0\nstart = '0s'\n";
    let ran = run(&text("rate = '10mbit', qdisc = { kind = 'pfifo' }", block));
    let rate = Rate::from_bps(10_000_000);
    let pace = Rate::from_bps(6 * 480_000);
    // The last packet leaves two full packets' pace after the first, and then crosses the network alone.
    let last = 2 * pace.time_for(1200).ns();
    let expected = common::across(last, &[600], rate, RTT_MS / 2 * 1_000_000)[0];
    assert_eq!(ran.rows.frames.len(), 40 * 20);
    for frame in &ran.rows.frames {
        let delay = frame.delay.expect("nothing is lost").ns();
        assert!(delay.abs_diff(expected) <= 3, "{delay} and {expected}");
        assert_eq!((frame.bytes, frame.rate_bps), (3000 - 3 * 40, 480_000));
    }
    let bytes = f64::from(3000 - 3 * 40);
    assert!((mbps(&ran) - 20.0 * bytes * 8.0 / 1e6).abs() < 1e-9);
}

/// A source that has one rate alone gets a window like others: all frames come, on a link twenty times as fast, and 99
/// of 100 within three frames' time. With the window that it begins with, most were lost.
#[test]
fn a_source_of_one_rate_gets_the_window_that_its_frames_need() {
    let block =
        "[[traffic]]\nkind = 'rtp_video'\nframe_rate = '60hz'\nmin_rate = '5mbit'\nmax_rate = '5mbit'\nstart = '0s'\n";
    let ran = run(&text("rate = '100mbit'", block));
    assert_eq!(ran.number("frames.loss_ratio"), 0.0);
    assert!(ran.number("frames.delay_s.p99") < 0.05, "{}", ran.number("frames.delay_s.p99"));
}

/// A frame goes out at one and a half times the rate, in two thirds of a frame's time. A queue that marks above a time
/// therefore marks frames from the rate on at which what a frame has beyond the link in that time waits longer: two
/// thirds of the link above a millisecond, four fifths above 5. (Above 15 ms, a quarter of its target, it answers all
/// of alpha, and swings more.)
#[test]
fn alone_the_rate_is_what_pacing_leaves_of_a_link_that_marks_early() {
    let shallow = run(&text(DUALPI2, &video(L4S)));
    assert!(shallow.number("forward.queue_delay_mean_s") < 0.001);
    assert_eq!(shallow.number("frames.loss_ratio"), 0.0);
    // A frame's time at one and a half times its rate is 22 ms, and half a round trip is 10.
    let delays = [shallow.number("frames.delay_s.p50"), shallow.number("frames.delay_s.p99")];
    assert!(delays[0] < 0.036 && delays[1] < 0.055, "{delays:?}");

    let frame_s = 1.0 / 30.0 / 1.5;
    for threshold_ms in [1.0, 2.0, 5.0] {
        let qdisc = format!("{{ kind = 'dualpi2', native = 'step', step_thresh = '{threshold_ms}ms' }}");
        let ran = run(&text(&format!("rate = '10mbit', qdisc = {qdisc}"), &video(L4S)));
        let used = ran.number("forward.utilisation");
        let theory = (1.0 + threshold_ms / 1e3 / frame_s) / 1.5;
        // Frames vary, and the rate swings about where marks begin.
        assert!((0.85 * theory..1.05 * theory).contains(&used), "{threshold_ms} ms: {used} and {theory}");
    }
}

#[test]
fn alone_it_uses_other_queues_without_filling_them() {
    // Without marks it holds the queue below its target of 60 ms, of which half is where it begins to answer.
    let fifo = run(&text("rate = '10mbit', qdisc = { kind = 'bfifo', limit = '1mb' }", &video("")));
    assert!(fifo.number("forward.utilisation") > 0.85);
    assert!(fifo.number("forward.queue_delay_p99_s") < 0.08);
    assert_eq!(fifo.number("frames.loss_ratio"), 0.0);
    // With Classic marks.
    let classic = run(&text("rate = '10mbit', qdisc = { kind = 'codel', ecn = true }", &video("ect = 'ect0'")));
    assert!(classic.number("forward.utilisation") > 0.7);
    assert_eq!(classic.number("frames.loss_ratio"), 0.0);
    assert!(classic.number("forward.mark_ratio") > 0.0);
}

/// Beside Prague it yields, as the draft says it may (§6), but keeps more than its least rate; Prague takes the rest.
#[test]
fn beside_prague_it_yields_but_is_not_starved() {
    let both = format!("{}[[traffic]]\nkind = 'bulk'\ncc = 'prague'\n", video(L4S));
    let ran = run(&text("rate = '20mbit', qdisc = 'dualpi2'", &both));
    let (own, other) = (mbps(&ran), ran.number("tcp.goodput_bps") / 1e6);
    assert!((1.0..10.0).contains(&own) && other > own, "{own} and {other}");
    assert!(ran.number("forward.utilisation") > 0.9);
    assert_eq!(ran.number("frames.loss_ratio"), 0.0);
    assert!(ran.number("frames.delay_s.p99") < 0.06);
}

/// The link falls to a half at 40 s: within a second the encoder is asked for less than that, and frames take what they
/// took before.
#[test]
fn a_halved_link_is_answered_within_a_second() {
    let halved = |qdisc: &str, block: &str| {
        let link = format!("qdisc = {qdisc}, rate = '10mbit', schedule = [{{ at = '40s', rate = '5mbit' }}]");
        run(&text(&link, &video(block)))
    };
    for (qdisc, block) in [("{ kind = 'dualpi2' }", L4S), ("{ kind = 'bfifo', limit = '1mb' }", "")] {
        let ran = halved(qdisc, block);
        let at = |s: f64| Time::from_secs_f64(s);
        let between =
            |from: f64, to: f64| ran.rows.frames.iter().filter(move |row| (at(from)..at(to)).contains(&row.encoded));
        let rate = |from: f64, to: f64| {
            let rates: Vec<f64> = between(from, to).map(|row| row.rate_bps as f64).collect();
            rates.iter().sum::<f64>() / rates.len() as f64
        };
        let (before, after) = (rate(35.0, 40.0), rate(41.0, 42.0));
        assert!(before > 5e6 && after < 5e6, "{qdisc}: {before} and {after}");
        let mean = |from: f64, to: f64| {
            let delays: Vec<f64> = between(from, to).filter_map(|row| row.delay.map(Span::secs_f64)).collect();
            delays.iter().sum::<f64>() / delays.len() as f64
        };
        let settled = mean(50.0, 60.0);
        assert!((mean(41.0, 42.0) - settled).abs() < 0.6 * settled, "{qdisc}: {} {settled}", mean(41.0, 42.0));
    }
}

/// One packet of a hundred is lost on the path before the link: a frame comes whole if none of its packets is.
#[test]
fn losses_of_packets_are_losses_of_frames() {
    let block = "[[traffic]]\nkind = 'rtp_video'\nframe_rate = '50hz'\nmin_rate = '1440kbit'\nmax_rate = '1440kbit'\n\
                 variation = 0.0\nstart = '0s'\n";
    let ran = run(&format!("{}path.loss = 0.01\n", text("rate = '10mbit', qdisc = { kind = 'pfifo' }", "")).replace(
        &format!("path = {{ access_rate = '1gbit', rtt = '{RTT_MS}ms' }}\npath.loss = 0.01\n"),
        &format!("path = {{ access_rate = '1gbit', rtt = '{RTT_MS}ms', loss = 0.01 }}\n{block}"),
    ));
    // 1440 kb/s in 50 frames are 3,600 bytes each, three packets. Four standard errors of 2,000 frames.
    let lost = 1.0 - 0.99_f64.powi(3);
    let error = 4.0 * (lost * (1.0 - lost) / 2000.0).sqrt();
    let found = ran.number("frames.loss_ratio");
    assert!((found - lost).abs() < error, "{found} and {lost}");
    assert_eq!(ran.number("frames.encoded_frames"), 2000.0);
}

/// A link without room for the least rate: frames that waited for a second are thrown away, and the run goes on.
#[test]
fn what_never_fits_is_thrown_away() {
    let block = video("min_rate = '2mbit'");
    let ran = run(&text("rate = '500kbit', qdisc = { kind = 'bfifo', limit = '30kb' }", &block));
    assert!(ran.number("frames.loss_ratio") > 0.5);
    assert!(ran.number("forward.utilisation") > 0.5);
    assert_eq!(ran.number("frames.encoded_frames"), f64::from(ran.rows.frames.len() as u32));
}

#[test]
fn flows_of_one_kind_share_and_both_directions_run() {
    let ran = run(&text("rate = '20mbit', qdisc = 'dualpi2'", &video("ect = 'ect1'\nflows = 2")));
    let rate = |source: u32| {
        let of = ran.rows.frames.iter().filter(|row| row.source == source && row.delay.is_some());
        of.map(|row| f64::from(row.bytes)).sum::<f64>()
    };
    let ratio = rate(0) / rate(1);
    assert!((0.5..2.0).contains(&ratio), "{ratio}");

    let both = "link = { rate = '5mbit', qdisc = 'dualpi2' }\nduration = '20s'\nwarmup = '5s'\npath.rtt = '40ms'\n";
    let ran = run(&format!("{both}{}", video("ect = 'ect1'\nflows = 2\ndirection = 'both'")));
    for way in [0, 1] {
        let came = ran.rows.frames.iter().filter(|row| row.direction == way && row.delay.is_some()).count();
        assert!(came > 400, "{way}: {came}");
    }
    assert!(ran.number("reverse.utilisation") > 0.5);
}

//! Viewers of video in whole runs, against what follows from their rule.

use crate::common::run;

const LADDER: &str = "ladder = ['1mbit', '2mbit', '4mbit', '8mbit']";

/// Between two bitrates the buffer finds the place where the player asks for the higher one as often as the link
/// allows. It is never full, so that the player never waits: but for a round trip a segment the link is always busy.
#[test]
fn a_buffer_finds_the_rate_of_the_link() {
    let ran = run(&format!(
        "duration = '2000s'\nwarmup = '0s'\nlink.rate = '3200kbit'\nlink.qdisc = {{ kind = 'pfifo', limit = '100p' }}\n\
         path = {{ rtt = '20ms', access_rate = '1gbit' }}\n[tcp]\nstack = 'linux'\n\
         [[traffic]]\nkind = 'video'\nfilm = '20000s'\nstart = '0s'\n{LADDER}"
    ));
    let rows = &ran.rows.exchanges;
    let bytes = |from: f64, to: f64| -> u64 {
        let within = |row: &&record::ExchangeRow| (from..to).contains(&row.start.secs_f64());
        rows.iter().filter(within).map(|row| row.response_bytes).sum()
    };
    // From the lowest on: at 3.2 Mb/s 1 Mb/s fills the reservoir of 90 s in a minute.
    assert!(rows[..5].iter().all(|row| row.response_bytes == 500_000));
    assert!(rows[0].setup.ns() > 0 && rows[1..].iter().all(|row| row.setup.ns() == 0), "one connection");
    // Then both neighbours of the rate, and nothing else.
    let later = rows.iter().filter(|row| row.start.secs_f64() > 500.0);
    assert!(later.clone().all(|row| [1_000_000, 2_000_000].contains(&row.response_bytes)));
    assert!(later.clone().any(|row| row.response_bytes == 1_000_000));
    assert!(later.clone().any(|row| row.response_bytes == 2_000_000));
    // Of 3.2 Mb/s a segment of 1500 bytes leaves 1448; a round trip of some 2.5 to 5 s that a segment takes is lost.
    let goodput = bytes(500.0, 1900.0) as f64 * 8.0 / 1400.0;
    let most = 3.2e6 * 1448.0 / 1500.0;
    assert!((0.97 * most..most).contains(&goodput), "{goodput} of {most}");
    // As much as is played is fetched, so that it never stalls.
    assert_eq!(stalls(rows, 2000.0), 0);
}

/// On a link that carries the highest bitrate the buffer is full, and a segment is asked for whenever one was played.
#[test]
fn a_full_buffer_is_asked_for_a_segment_at_a_time() {
    let ran = run(&format!(
        "duration = '600s'\nwarmup = '0s'\nlink.rate = '20mbit'\npath.rtt = '20ms'\n[tcp]\nstack = 'linux'\n\
         [[traffic]]\nkind = 'video'\nfilm = '20000s'\nstart = '0s'\n{LADDER}"
    ));
    let rows = &ran.rows.exchanges;
    let late: Vec<_> = rows.iter().filter(|row| row.start.secs_f64() > 300.0).collect();
    assert!(late.iter().all(|row| row.response_bytes == 4_000_000));
    let gaps = late.windows(2).map(|pair| pair[1].start.since(pair[0].start).ns());
    assert!(gaps.clone().all(|gap| gap == 4_000_000_000), "{:?}", gaps.collect::<Vec<_>>());
}

/// A link below the lowest bitrate stalls as often as segments come: each is played in 4 s and takes longer.
#[test]
fn a_link_below_the_lowest_bitrate_stalls_with_every_segment() {
    let ran = run(&format!(
        "duration = '400s'\nwarmup = '0s'\nlink.rate = '500kbit'\npath.rtt = '20ms'\n[tcp]\nstack = 'linux'\n\
         [[traffic]]\nkind = 'video'\nfilm = '20000s'\nstart = '0s'\n{LADDER}"
    ));
    let rows = &ran.rows.exchanges;
    assert!(rows.len() > 40 && rows.iter().all(|row| row.response_bytes == 500_000));
    // All but the first come too late; whether the last has been played when the run ends is another matter.
    assert_eq!(stalls(rows, 0.0), rows.len() - 1);
}

/// The connection of a film that was played closes during an outage, and is given up: the next film keeps its own.
#[test]
fn a_closing_connection_that_is_given_up_is_not_the_present_films() {
    let ran = run(
        "duration = '60s'\nwarmup = '0s'\nlink = { rate = '20mbit', schedule = [{ at = '2.54s', outage = '18s' }] }\n\
         path.rtt = '20ms'\ntcp.rto_max = '1s'\n[[traffic]]\nkind = 'video'\nfilm = '8s'\nsegment = '2s'\nstartup = '2s'\n\
         buffer = '30s'\nstart = '2s'\nladder = ['1mbit']",
    );
    let rows = &ran.rows.exchanges;
    assert_eq!(ran.number("tcp.flows_failed"), 1.0);
    // Four segments a film, of which the first alone has a connection to open.
    assert!(rows.len() >= 16, "{}", rows.len());
    let opens: Vec<bool> = rows.iter().map(|row| row.setup.ns() > 0).collect();
    assert!(opens.iter().enumerate().all(|(k, &opened)| opened == (k % 4 == 0)), "{opens:?}");
}

/// Films follow each other on connections of their own, each when the one before was played.
#[test]
fn a_film_follows_when_the_one_before_was_played() {
    let ran = run(&format!(
        "duration = '100s'\nwarmup = '0s'\nlink.rate = '20mbit'\npath.rtt = '20ms'\n[tcp]\nstack = 'linux'\n\
         [[traffic]]\nkind = 'video'\nviewers = 2\nfilm = '10s'\nstart = '0s'\n{LADDER}"
    ));
    for source in 0..2 {
        let rows: Vec<_> = ran.rows.exchanges.iter().filter(|row| row.source == source).collect();
        // Three segments a film. Twelve seconds of it are played from when the first is there.
        for film in rows.chunks_exact(3).collect::<Vec<_>>().windows(2) {
            assert!(film[0][0].setup.ns() > 0 && film[0][1].setup.ns() == 0);
            let first = film[0][0].start + film[0][0].response_time;
            assert_eq!(film[1][0].start.since(first).ns(), 12_000_000_000);
        }
        assert!(rows.len() >= 21, "{} segments", rows.len());
    }
}

/// How often a player stands still before `end`: it begins with the first segment of 4 s, and goes on with the next.
fn stalls(rows: &[record::ExchangeRow], end: f64) -> usize {
    let mut out_at: Option<f64> = None;
    let mut count = 0;
    for row in rows {
        let here = (row.start + row.response_time).secs_f64();
        out_at = Some(match out_at {
            Some(out) if out >= here => out + 4.0,
            Some(_) => {
                count += 1;
                here + 4.0
            }
            None => here + 4.0,
        });
    }
    count + usize::from(out_at.is_some_and(|out| out < end))
}

/// Three viewers, films of any length, and a transfer that takes most of the link for a while: in kb/s what each
/// segment of each film has, with when it was asked for and when it was there.
fn films(rule: &str) -> Vec<Vec<(f64, f64, u64)>> {
    let ran = run(&format!(
        "duration = '900s'\nwarmup = '0s'\nlink.rate = '8mbit'\nlink.qdisc = {{ kind = 'pfifo', limit = '60p' }}\n\
         path.rtt = '30ms'\n[tcp]\nstack = 'linux'\n\
         [[traffic]]\nkind = 'bulk'\nflows = 4\nsize = '10mb'\nstart = {{ uniform = ['200s', '500s'] }}\n\
         [[traffic]]\nkind = 'video'\nviewers = 3\nbuffer = '40s'\nfilm = {{ uniform = ['60s', '300s'] }}\n{rule}"
    ));
    let mut films = Vec::new();
    for viewer in 0..3 {
        for row in ran.rows.exchanges.iter().filter(|row| row.traffic == 1 && row.source == viewer) {
            if row.setup.ns() > 0 {
                films.push(Vec::new());
            }
            let (asked, took) = (row.start.secs_f64(), row.response_time.secs_f64());
            films.last_mut().expect("a film opens a connection").push((asked, asked + took, row.response_bytes));
        }
    }
    assert!(films.len() > 9, "{} films", films.len());
    films
}

const KBIT: [f64; 10] = [235.0, 375.0, 560.0, 750.0, 1050.0, 1750.0, 2350.0, 3000.0, 4300.0, 5800.0];

/// The bitrate of a segment of 4 s.
fn kbit(bytes: u64) -> f64 {
    *KBIT.iter().find(|rate| (**rate * 500.0 - bytes as f64).abs() < 1.0).expect("a bitrate of the ladder")
}

/// The paper's algorithm in the paper's words, beside every segment of whole runs.
#[test]
fn every_bitrate_is_the_one_that_the_paper_chooses() {
    // A buffer of 40 s: three eighths are the reservoir, and the line ends at nine tenths.
    let (reservoir, cushion) = (15.0, 21.0);
    let mut chosen: Vec<f64> = Vec::new();
    for film in films("") {
        // What is buffered, as of when, and whether it plays.
        let (mut buffer, mut clock, mut plays) = (0.0_f64, 0.0_f64, false);
        let mut before = KBIT[0];
        for (asked, there, bytes) in film {
            let pass = |buffer: &mut f64, clock: &mut f64, plays: &mut bool, now: f64| {
                if *plays {
                    *buffer -= now - *clock;
                    if *buffer < -1e-9 {
                        (*buffer, *plays) = (0.0, false);
                    }
                }
                *clock = now;
            };
            pass(&mut buffer, &mut clock, &mut plays, asked);
            let now = (buffer * 1e6).round() / 1e6;
            assert!(now <= 36.0, "a segment has room");
            let f = KBIT[0] + (KBIT[9] - KBIT[0]) * (now - reservoir) / cushion;
            let plus = KBIT.iter().copied().find(|rate| *rate > before).unwrap_or(KBIT[9]);
            let minus = KBIT.iter().copied().rev().find(|rate| *rate < before).unwrap_or(KBIT[0]);
            let expected = if now <= reservoir {
                KBIT[0]
            } else if now >= reservoir + cushion {
                KBIT[9]
            } else if f >= plus {
                KBIT.iter().copied().filter(|rate| *rate < f).fold(0.0, f64::max)
            } else if f <= minus {
                KBIT.iter().copied().filter(|rate| *rate > f).fold(f64::INFINITY, f64::min)
            } else {
                before
            };
            assert_eq!(kbit(bytes), expected, "asked at {asked} with {now} s, after {before}");
            before = expected;
            if !chosen.contains(&expected) {
                chosen.push(expected);
            }
            pass(&mut buffer, &mut clock, &mut plays, there);
            buffer += 4.0;
            plays = true;
        }
    }
    assert!(chosen.len() >= 6, "only {chosen:?} were in use");
}

/// The reference player's choices beside every segment: averages as sums over all samples instead of step by step.
#[test]
fn every_bitrate_is_the_one_that_the_reference_player_chooses() {
    let mut chosen: Vec<f64> = Vec::new();
    for film in films("rule = 'throughput'") {
        let mut samples: Vec<(f64, f64)> = Vec::new();
        let (mut total, mut last, mut was_known, mut rate) = (0, f64::NEG_INFINITY, false, 0.0);
        for (asked, there, bytes) in film {
            let estimate = (total >= 128_000).then(|| average(&samples, 2.0).min(average(&samples, 5.0)));
            if last.is_infinite() || (estimate.is_some() && !was_known) || (was_known && asked - last >= 8.0 - 1e-9) {
                let carried = 0.95 * estimate.unwrap_or(1000.0);
                rate = KBIT.iter().copied().filter(|rate| *rate <= carried).fold(KBIT[0], f64::max);
                (last, was_known) = (asked, estimate.is_some());
            }
            assert_eq!(kbit(bytes), rate, "asked at {asked}, {estimate:?}");
            if !chosen.contains(&rate) {
                chosen.push(rate);
            }
            samples.push((there - asked, bytes as f64 * 8.0 / 1000.0 / (there - asked)));
            total += bytes;
        }
    }
    assert!(chosen.len() >= 4, "only {chosen:?} were in use");
}

/// Each sample weighs what of its time is left after all later ones, as a share of all weights; kb/s.
fn average(samples: &[(f64, f64)], half_life: f64) -> f64 {
    let left = |later: f64| base::maths::pow(0.5, later / half_life);
    let (mut later, mut weights, mut sum) = (0.0, 0.0, 0.0);
    for (took, value) in samples.iter().rev() {
        let weight = left(later) - left(later + took);
        later += took;
        weights += weight;
        sum += weight * value;
    }
    sum / weights
}

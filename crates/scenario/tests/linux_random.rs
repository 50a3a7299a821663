//! The disciplines that draw at random against those of a Linux kernel.
//!
//! The same packets at the same times, below the same HTB; from there on each decides for itself. What is compared is
//! what came of a whole record: how many packets were lost and marked in each part of the load, how long those that
//! left had waited, in how many runs they were lost. Ours runs with [`SEEDS`] seeds, which gives the mean and the
//! standard deviation of each figure; the kernel drew once. If the two are the same, the kernel's figure is one more
//! draw, and its distance from our mean in units of that deviation, `z`, is about normal. It must be within [`BOUND`].
//! What was recorded, and how, is in `benches/peers/linux` and docs/validation.md.

#![expect(clippy::print_stdout, reason = "the table is for people to read")]

use crate::kernel::htb::Outcome;
use crate::kernel::{self, Fate, Record};
use base::Ecn;
use std::fmt::Write;

/// Seeds of ours. The deviation that they give is within a tenth of the true one (one sigma: 1/sqrt(2 * 59)).
const SEEDS: u64 = 60;

/// Standard deviations: beyond it lies one normal draw in 16,000, and of the about 100 figures here none in 99 % of
/// all times that such records are made.
const BOUND: f64 = 4.0;

/// A step of the kernel's clock.
const STEP_NS: u64 = 256;

/// A deviation below which counts are not looked at more closely: that of a figure which cannot be but the same.
const FLOOR: f64 = 0.5;

#[test]
fn the_link_below_which_it_all_happens_is_the_kernels() {
    // Drop-tail decides nothing at random: whatever is not the same here is the link's.
    // Its rates are fractions with 32 bits in the kernel, and a packet that arrives as another leaves may find it gone
    // or not: now and then a departure is a step or two of the clock off, and then a packet the one before it.
    // At a gigabit the steps are as long as small packets, which says nothing about the 10 Mb/s of the cases here.
    let records = kernel::records("pfifo-").into_iter().chain(kernel::records("bfifo-"));
    for record in records.filter(|record| record.text["rate_bps"].as_u64() <= Some(100_000_000)) {
        let outcome = record.run(1);
        let fates = record.fates();
        let other = fates.iter().zip(&outcome.fates).filter(|(theirs, ours)| theirs != ours).count();
        let late = record.exits.iter().filter(|exit| {
            outcome.left[exit.number].is_some_and(|ours| ours.ns().abs_diff(exit.at.ns()) > 2 * STEP_NS)
        });
        println!("{:12} | {} packets, {other} with another fate", record.case, fates.len());
        assert!(500 * other <= fates.len(), "{}: {other} of {} packets", record.case, fates.len());
        assert!(500 * late.count() <= fates.len(), "{}: departures at other times", record.case);
    }
}

#[test]
fn red() {
    agree("red-");
}

#[test]
fn ared() {
    agree("ared-");
}

#[test]
fn choke() {
    agree("choke-");
}

#[test]
fn pie() {
    agree("pie-");
}

#[test]
fn fq_pie() {
    agree("fq_pie-");
}

#[test]
fn sfb() {
    agree("sfb-");
}

#[test]
fn dualpi2() {
    agree("dualpi2-drawn-");
}

/// Prints the table of all records of a discipline, and wants every figure within the bound.
fn agree(beginning: &str) {
    let records = kernel::records(beginning);
    assert!(!records.is_empty(), "testdata/linux has no {beginning}*");
    let (mut beyond, mut summary) = (String::new(), String::new());
    println!("{:16} | {:30} | {:>9} | {:>9} | {:>7} | {:>6}", "case", "figure", "kernel", "ours", "+-", "z");
    for record in &records {
        let theirs = figures(record, &kernels(record));
        let ours: Vec<Vec<f64>> = (1..=SEEDS)
            .map(|seed| figures(record, &record.run(seed)).into_iter().map(|figure| figure.1).collect())
            .collect();
        let (mut farthest, mut means) = ((0.0_f64, ""), Vec::new());
        for (at, (name, value)) in theirs.iter().enumerate() {
            let draws: Vec<f64> = ours.iter().map(|figures| figures[at]).collect();
            let (mean, deviation) = estimate(&draws);
            let z = (value - mean) / deviation.max(FLOOR);
            println!("{:16} | {name:30} | {value:9.1} | {mean:9.1} | {deviation:7.2} | {z:6.2}", record.case);
            if z.abs() > farthest.0.abs() {
                farthest = (z, name);
            }
            means.push(mean);
            if z.abs() > BOUND {
                writeln!(beyond, "{}: {name}: the kernel's {value}, ours {mean} +- {deviation}", record.case)
                    .expect("a text can be written");
            }
        }
        let kernels = || theirs.iter().map(|(name, value)| (name.as_str(), *value));
        let of_ours = || theirs.iter().zip(&means).map(|((name, _), mean)| (name.as_str(), *mean));
        write!(summary, "| {} | {} ", record.case, record.arrivals.len()).expect("a text can be written");
        for beginning in ["lost, load", "marked", "mean wait, load 1"] {
            let (one, other) = (sum(kernels(), beginning), sum(of_ours(), beginning));
            write!(summary, "| {one:.0} | {other:.1} ").expect("a text can be written");
        }
        writeln!(summary, "| {:+.1} | {} |", farthest.0, farthest.1).expect("a text can be written");
    }
    println!("{summary}");
    assert!(beyond.is_empty(), "{beyond}");
}

/// Sums of figures whose names begin so.
fn sum<'a>(figures: impl Iterator<Item = (&'a str, f64)>, beginning: &str) -> f64 {
    figures.filter(|(name, _)| name.starts_with(beginning)).map(|(_, value)| value).sum()
}

fn kernels(record: &Record) -> Outcome {
    let mut left = vec![None; record.arrivals.len()];
    for exit in &record.exits {
        left[exit.number] = Some(exit.at);
    }
    Outcome { fates: record.fates(), left }
}

/// What is compared, each with its name.
fn figures(record: &Record, outcome: &Outcome) -> Vec<(String, f64)> {
    let parts = parts(record);
    let last = parts.iter().max().map_or(0, |part| part + 1);
    let count = |is_counted: &dyn Fn(usize) -> bool| (0..outcome.fates.len()).filter(|&i| is_counted(i)).count() as f64;
    let is_lost = |i: usize| outcome.fates[i] == Fate::Lost;
    let is_marked = |i: usize| outcome.fates[i] == Fate::Marked;
    let mut figures = Vec::new();
    for part in 0..last {
        figures.push((format!("lost, load {part}"), count(&|i| is_lost(i) && parts[i] == part)));
        figures.push((format!("marked, load {part}"), count(&|i| is_marked(i) && parts[i] == part)));
        let waits: Vec<f64> = (0..outcome.fates.len())
            .filter(|&i| parts[i] == part)
            .filter_map(|i| Some(outcome.left[i]?.since(record.arrivals[i].at).ns() as f64 / 1e3))
            .collect();
        figures.push((format!("mean wait, load {part}, us"), waits.iter().sum::<f64>() / waits.len() as f64));
    }
    figures.push(("lost of flow 0".into(), count(&|i| is_lost(i) && record.arrivals[i].flow == 0)));
    figures.push(("runs of losses".into(), count(&|i| is_lost(i) && (i == 0 || !is_lost(i - 1)))));
    figures.push(("small packets lost".into(), count(&|i| is_lost(i) && record.arrivals[i].size <= 40)));
    if record.case.starts_with("dualpi2-") {
        figures.extend(of_each_queue(record, outcome));
    }
    figures
}

/// The same of each queue of DualPI2: losses, marks, the mean wait; and its packets must leave in order.
fn of_each_queue(record: &Record, outcome: &Outcome) -> Vec<(String, f64)> {
    let mut figures = Vec::new();
    for (queue, fields) in [("L", [Ecn::Ect1, Ecn::Ce]), ("C", [Ecn::NotEct, Ecn::Ect0])] {
        let of_queue: Vec<usize> =
            (0..outcome.fates.len()).filter(|&i| fields.contains(&record.arrivals[i].ecn)).collect();
        if of_queue.is_empty() {
            continue;
        }
        let count = |fate| of_queue.iter().filter(|&&i| outcome.fates[i] == fate).count() as f64;
        let left: Vec<(u64, u64)> =
            of_queue.iter().filter_map(|&i| Some((record.arrivals[i].at.ns(), outcome.left[i]?.ns()))).collect();
        let waited: u64 = left.iter().map(|(came, left)| left.saturating_sub(*came)).sum();
        assert!(left.is_sorted_by_key(|(_, left)| *left), "{}: the {queue}-queue is out of order", record.case);
        figures.push((format!("lost in {queue}"), count(Fate::Lost)));
        figures.push((format!("set to CE in {queue}"), count(Fate::Marked)));
        figures.push((format!("mean wait in {queue}, us"), waited as f64 / 1e3 / left.len() as f64));
    }
    figures
}

/// For each packet which of the loads between two gaps it belongs to, from 0: the arrivals between gaps of more than a
/// second, in three parts of equal length.
fn parts(record: &Record) -> Vec<usize> {
    const LOADS: u64 = 3;
    const GAP_NS: u64 = 1_000_000_000;
    let at: Vec<u64> = record.arrivals.iter().map(|arrival| arrival.at.ns()).collect();
    let mut parts = Vec::with_capacity(at.len());
    for block in at.chunk_by(|one, next| next - one < GAP_NS) {
        let (start, length) = (block[0], block[block.len() - 1] - block[0] + 1);
        parts.extend(block.iter().map(|at| ((at - start) * LOADS / length) as usize));
    }
    parts
}

/// Mean and standard deviation.
fn estimate(draws: &[f64]) -> (f64, f64) {
    let n = draws.len() as f64;
    let mean = draws.iter().sum::<f64>() / n;
    (mean, (draws.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / (n - 1.0)).sqrt())
}

//! Parameters of a discipline that contradict each other, and words of other tools: one clear line, which names the
//! key, its value, what was expected, and the discipline.

use scenario::{Resolved, resolve};

/// The rest of a scenario.
const BULK: &str = "\n[[traffic]]\nkind = \"bulk\"\n";

fn read(text: &str) -> Result<Resolved, String> {
    let files = |name: &str| Err(format!("there is no {name}"));
    let resolved = resolve(text, "s.toml", &[], &files).map_err(|error| error.to_string())?;
    resolved.scenario().map_err(|error| error.to_string())?;
    Ok(resolved)
}

/// Checks every pair of lines and error, and reports all that differ at once.
fn check(table: &[(&str, &str)]) {
    let wrong: Vec<String> = table
        .iter()
        .filter_map(|(text, expected)| {
            let got = read(&format!("[link.qdisc]\n{text}{BULK}")).err().unwrap_or_else(|| "no error".into());
            (got != *expected).then(|| format!("{text}\n  expected {expected}\n  got      {got}"))
        })
        .collect();
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

/// Each value is in its range; together they make no sense.
#[test]
fn parameters_that_contradict_each_other() {
    check(&[
        (
            "kind = \"docsis_pie\"\nlatency_low = \"300ms\"",
            "s.toml:3: link.qdisc.latency_low = \"300ms\": expected at most latency_high, 200ms (docsis_pie)",
        ),
        (
            "kind = \"docsis_pie\"\nlatency_high = \"1ms\"",
            "s.toml:1: link.qdisc.latency_low = 5ms (the default): expected at most latency_high, 1ms \
                 (docsis_pie)",
        ),
        (
            "kind = \"sfb\"\ndecrement = 0.001",
            "s.toml:3: link.qdisc.decrement = 0.001: expected at most increment, 0.0005 (sfb)",
        ),
        (
            "kind = \"sfb\"\nmax = 19",
            "s.toml:3: link.qdisc.max = 19: expected at least 21, from where on a bin rises with target = 20 \
                 (sfb)",
        ),
        (
            "kind = \"sfb\"\ndialect = \"linux\"\nmax = 19",
            "s.toml:4: link.qdisc.max = 19: expected at least 20, from where on a bin rises with target = 20 \
                 (sfb)",
        ),
        (
            "kind = \"rio\"\nmin_out = \"45p\"\nmax_out = \"70p\"\nprobability_out = 0.02",
            "s.toml:3: link.qdisc.min_out = \"45p\": expected at most min_in, 40p, or a higher probability_out: OUT \
             is to be lost before IN (rio)",
        ),
        (
            "kind = \"rio\"\nmin_in = \"5p\"\nmax_in = \"20p\"\nprobability_in = 0.2",
            "s.toml:1: link.qdisc.min_out = 10p (the default): expected at most min_in, 5p, or a higher \
             probability_out: OUT is to be lost before IN (rio)",
        ),
        (
            "kind = \"rio\"\nmin_out = \"40p\"\nmax_out = \"70p\"\nprobability_out = 0.01",
            "s.toml:5: link.qdisc.probability_out = 0.01: expected at least probability_in, 0.02: OUT is to be lost \
             before IN (rio)",
        ),
        (
            "kind = \"rio_ps\"\nprobability_out = 0.05",
            "s.toml:1: link.qdisc.max_out = 500p (computed): expected at most max_in, 350p, or a higher \
             probability_out: OUT is to be lost before IN (rio_ps)",
        ),
        (
            "kind = \"rio\"\nmin_in = \"80p\"\nmax_in = \"10p\"",
            "s.toml:4: link.qdisc.max_in = \"10p\": expected a length of at least min_in, 80p, and in its unit \
                 (rio)",
        ),
        (
            "kind = \"ared\"\nprobability = 0.9",
            "s.toml:3: link.qdisc.probability = 0.9: expected at most top, 0.5 (ared)",
        ),
        (
            "kind = \"ared\"\nbottom = 0.2",
            "s.toml:3: link.qdisc.bottom = 0.2: expected at most probability, 0.1 (ared)",
        ),
        (
            "kind = \"ared\"\ndialect = \"ns2\"\nbottom = 0.6",
            "s.toml:4: link.qdisc.bottom = 0.6: expected at most top, 0.5 (ared)",
        ),
        (
            "kind = \"feng_red\"\nprobability = 0.9\ntop = 0.5",
            "s.toml:3: link.qdisc.probability = 0.9: expected at most top, 0.5 (feng_red)",
        ),
        (
            "kind = \"feng_red\"\ndialect = \"ns2\"\nbottom = 0.2",
            "s.toml:4: link.qdisc.bottom = 0.2: expected at most probability, 0.1 (feng_red)",
        ),
        (
            "kind = \"codel\"\ntarget = \"200ms\"",
            "s.toml:3: link.qdisc.target = \"200ms\": expected at most interval, 100ms (codel)",
        ),
        (
            "kind = \"codel\"\ninterval = \"1ms\"",
            "s.toml:1: link.qdisc.target = 5ms (the default): expected at most interval, 1ms (codel)",
        ),
        (
            "kind = \"fq_codel\"\ntarget = \"101ms\"",
            "s.toml:3: link.qdisc.target = \"101ms\": expected at most interval, 100ms (fq_codel)",
        ),
        (
            "kind = \"cobalt\"\ntarget = \"200ms\"",
            "s.toml:3: link.qdisc.target = \"200ms\": expected at most interval, 100ms (cobalt)",
        ),
        (
            "kind = \"cake\"\ntarget = \"200ms\"",
            "s.toml:3: link.qdisc.target = \"200ms\": expected at most rtt, 100ms (cake)",
        ),
        (
            "kind = \"cake\"\nrtt_keyword = \"lan\"\ntarget = \"5ms\"",
            "s.toml:4: link.qdisc.target = \"5ms\": expected at most rtt, 1ms (cake)",
        ),
        (
            "kind = \"step\"\nthreshold = \"20p\"\nmin_qlen_step = 1",
            "s.toml:4: link.qdisc.min_qlen_step = 1: expected 0: it goes with a threshold that is a time (step)",
        ),
        (
            "kind = \"step\"\necn = false\nnot_ect = \"forward\"",
            "s.toml:4: link.qdisc.not_ect = \"forward\": expected drop: with ecn = false a step that forwards \
                 never signals (step)",
        ),
        (
            "kind = \"fq_step\"\necn = false\nnot_ect = \"forward\"",
            "s.toml:4: link.qdisc.not_ect = \"forward\": expected drop: with ecn = false a step that forwards \
                 never signals (fq_step)",
        ),
        (
            "kind = \"sfq\"\ndivisor = 1000",
            "s.toml:3: link.qdisc.divisor = 1000: expected a power of two from 1 to 65536 in the linux dialect \
                 (sfq)",
        ),
        (
            "kind = \"sfq\"\ndialect = \"ns2\"\nheaddrop = true",
            "s.toml:4: link.qdisc.headdrop = true: expected false in the ns2 dialect, which loses no packet that \
                 it accepted (sfq)",
        ),
        (
            "kind = \"red\"\nmark_until = \"end\"",
            "s.toml:3: link.qdisc.mark_until = \"end\": expected max or full: without gentle there is no slope \
                 to mark through (red)",
        ),
        (
            "kind = \"ared\"\ngentle = false\nmark_until = \"end\"",
            "s.toml:4: link.qdisc.mark_until = \"end\": expected max or full: without gentle there is no slope \
                 to mark through (ared)",
        ),
        (
            "kind = \"rio\"\nmark_until = \"end\"",
            "s.toml:3: link.qdisc.mark_until = \"end\": expected max or full: without gentle there is no slope \
                 to mark through (rio)",
        ),
        (
            "kind = \"rio\"\ndialect = \"ns2\"\ngentle = true",
            "s.toml:4: link.qdisc.gentle = true: expected false in the ns2 dialects (rio)",
        ),
        (
            "kind = \"dualpi2\"\ndialect = \"linux\"\nnative = \"ramp\"",
            "s.toml:4: link.qdisc.native = \"ramp\": expected step in the linux dialect, which has no ramp \
                 (dualpi2)",
        ),
        (
            "kind = \"dualpi2\"\nstep_thresh = \"3000b\"",
            "s.toml:3: link.qdisc.step_thresh = \"3000b\": expected packets such as 24p or a time such as 5ms \
                 (dualpi2)",
        ),
        (
            "kind = \"dualpi2\"\nmax_rtt = \"10ms\"\ntupdate = \"16ms\"",
            "s.toml:4: link.qdisc.tupdate = \"16ms\": expected at most max_rtt, 10ms (dualpi2)",
        ),
        (
            "kind = \"pie\"\nalpha = 2\nbeta = 20",
            "s.toml:4: link.qdisc.beta = 20: expected hertz as in RFC 8033: tc writes sixteenths, its 2 and 20 \
                 are 0.125 and 1.25 (pie)",
        ),
        (
            "kind = \"fq_pie\"\nalpha = 2.0\nbeta = 20.0",
            "s.toml:4: link.qdisc.beta = 20.0: expected hertz as in RFC 8033: tc writes sixteenths, its 2 and 20 \
                 are 0.125 and 1.25 (fq_pie)",
        ),
        (
            "kind = \"redopt\"\nmin = \"500p\"",
            "s.toml:1: link.qdisc.max = 201.30411907469326p (computed): expected a length of at least min, 500p, \
                 and in its unit (redopt)",
        ),
        (
            "kind = \"choke\"\nmin = \"400p\"",
            "s.toml:1: link.qdisc.max = 250p (computed): expected a length of at least min, 400p, and in its \
                 unit (choke)",
        ),
    ]);
}

#[test]
fn words_of_tc_and_of_papers_say_what_to_write_here() {
    check(&[
        (
            "kind = \"cake\"\nmemlimit = \"4mb\"",
            "s.toml:3: link.qdisc.memlimit = \"4mb\": unknown key: tc's memlimit is limit here, such as limit = \
                 \"4mb\" (cake)",
        ),
        (
            "kind = \"fq_codel\"\nmemory_limit = \"32mb\"",
            "s.toml:3: link.qdisc.memory_limit = \"32mb\": unknown key: there is no limit on memory; limit may \
                 be in bytes of packets (fq_codel)",
        ),
        (
            "kind = \"red\"\navpkt = 1000",
            "s.toml:3: link.qdisc.avpkt = 1000: unknown key: tc's avpkt is mean_packet here (red)",
        ),
        (
            "kind = \"red\"\nburst = 55",
            "s.toml:3: link.qdisc.burst = 55: unknown key: tc's burst stands for wq, which aqmlab tc --read \
                 computes from it (red)",
        ),
        (
            "kind = \"red\"\nbandwidth = \"10mbit\"",
            "s.toml:3: link.qdisc.bandwidth = \"10mbit\": unknown key: tc's bandwidth is capacity here; absent, \
                 it is the rate of the link (red)",
        ),
        (
            "kind = \"red\"\nharddrop = true",
            "s.toml:3: link.qdisc.harddrop = true: unknown key: tc's harddrop is mark_until = \"max\" here (red)",
        ),
        (
            "kind = \"ared\"\nadaptative = true",
            "s.toml:3: link.qdisc.adaptative = true: unknown key: tc's adaptative is kind = \"ared\" here (ared)",
        ),
        (
            "kind = \"red\"\nadaptative = true",
            "s.toml:3: link.qdisc.adaptative = true: unknown key: tc's adaptative is kind = \"ared\" here (red)",
        ),
        (
            "kind = \"dualpi2\"\ntypical_rtt = \"15ms\"",
            "s.toml:3: link.qdisc.typical_rtt = \"15ms\": unknown key: tc computes alpha and beta from \
                 typical_rtt and max_rtt; max_rtt alone is here (dualpi2)",
        ),
        (
            "kind = \"dualpi2\"\nmin_qlen_step = 1",
            "s.toml:3: link.qdisc.min_qlen_step = 1: expected 0 with the ramp, which has th_len (dualpi2)",
        ),
        (
            "kind = \"dualpi2\"\ndrop_early = true",
            "s.toml:3: link.qdisc.drop_early = true: expected false in the rfc dialect, which decides when packets \
                 leave (dualpi2)",
        ),
        (
            "kind = \"dualpi2\"\nmemlimit = \"1mb\"",
            "s.toml:3: link.qdisc.memlimit = \"1mb\": unknown key: there is no limit on memory; limit may be in bytes \
                 of packets (dualpi2)",
        ),
        (
            "kind = \"step\"\nth_len = 1",
            "s.toml:3: link.qdisc.th_len = 1: unknown key: th_len is min_qlen_step here, as in tc (step)",
        ),
        (
            "kind = \"rio_d\"",
            "s.toml:2: link.qdisc.kind = \"rio_d\": unknown discipline: RIO-D is kind = \"rio\" with dialect = \
                 \"decoupled\"",
        ),
        (
            "kind = \"fq_pfifo\"",
            "s.toml:2: link.qdisc.kind = \"fq_pfifo\": expected one of pfifo, bfifo, red, ared, pi, rem, codel, \
                 fq_codel, pie, docsis_pie, fq_pie, pi2, dualpi2, curvy_red, cobalt, cake, blue, step, gsp, sfb, dcn, afd, \
                 sfq, drr, fq, rio, rio_ps, feng_red, red_pd, redopt, fred, sred, choke, or a law under fair \
                 queueing such as fq_red",
        ),
        (
            "kind = \"redd\"",
            "s.toml:2: link.qdisc.kind = \"redd\": expected one of pfifo, bfifo, red, ared, pi, rem, codel, \
                 fq_codel, pie, docsis_pie, fq_pie, pi2, dualpi2, curvy_red, cobalt, cake, blue, step, gsp, sfb, dcn, afd, \
                 sfq, drr, fq, rio, rio_ps, feng_red, red_pd, redopt, fred, sred, choke, or a law under fair \
                 queueing such as fq_red; did you mean red?",
        ),
        (
            "kind = \"rio_c\"\nrate = 1",
            "s.toml:3: link.qdisc.rate = 1: unknown key, expected one of kind, law, limit, ecn, dialect, profile, \
                 window, min_in, max_in, probability_in, min_out, max_out, probability_out, wq, gentle, mode, \
                 mean_packet, wait, mark_until, mark_p, capacity (rio)",
        ),
    ]);
}

/// Neighbours of what is refused: in use, or harmless.
#[test]
fn parameters_that_only_look_contradictory() {
    for text in [
        "kind = \"docsis_pie\"\nlatency_low = \"200ms\"",
        "kind = \"sfb\"\ndecrement = 0.0005",
        // Thresholds are of different queues: one alone inverts nothing.
        "kind = \"rio\"\nmin_in = \"5p\"",
        "kind = \"rio\"\nmin_in = \"10p\"\nmax_in = \"30p\"\nprobability_in = 0.2",
        // Guo and Matta 2001 themselves have a higher upper threshold for OUT.
        "kind = \"rio\"\nmax_out = \"90p\"",
        // ns-2 and Linux take any start.
        "kind = \"ared\"\ndialect = \"ns2\"\nprobability = 0.9",
        "kind = \"ared\"\ndialect = \"linux\"\nprobability = 0.9",
        "kind = \"codel\"\ntarget = \"100ms\"",
        "kind = \"cake\"\nrtt = \"1us\"",
        "kind = \"step\"\necn = false",
        "kind = \"step\"\nthreshold = \"5ms\"\nmin_qlen_step = 2",
        "kind = \"sfq\"\ndialect = \"ns2\"\ndivisor = 1000",
        "kind = \"red\"\nmark_until = \"end\"\ngentle = true",
        "kind = \"dualpi2\"\nnative = \"step\"\nstep_thresh = \"5p\"",
        // Without max_rtt the gains of linux are fixed numbers, for any pace.
        "kind = \"dualpi2\"\ndialect = \"linux\"\ntupdate = \"1s\"",
        "kind = \"pie\"\nalpha = 2\nbeta = 10",
        // tc takes packets for pfifo and bytes for bfifo; here the unit says which.
        "kind = \"pfifo\"\nlimit = \"30000b\"",
        "kind = \"bfifo\"\nlimit = \"10p\"",
    ] {
        let resolved = read(&format!("[link.qdisc]\n{text}{BULK}")).expect("these go together");
        let again = read(resolved.text()).expect("what was resolved is good");
        assert_eq!(again.text(), resolved.text(), "{text}");
    }
}

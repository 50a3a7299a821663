//! This file makes the summary of a live run from the counters of router, hosts and kernel. It has all that the summary
//! of a simulated run has, and what only a live run can say.

use crate::bed;
use crate::counters::Interface;
use crate::edges::Edge;
use crate::link_check::LinkCheck;
use crate::parts::cpu_s;
use crate::plan::Plan;
use crate::report::{Direction, Report};
use crate::roles::{Ended, Routed};
use crate::traffic_check;
use base::Time;
use record::{Engine, Frames, Probes, Responses, Summary, TcpTotals};
use rustix::time::ClockId;
use scenario::Maker;
use serde_json::{Value, json};

/// What a run came to.
pub struct Ran {
    /// Its threads.
    pub ended: Ended,
    /// Response times.
    pub responses: Responses,
    /// What probes saw.
    pub probes: Probes,
    /// What was measured of the link before it.
    pub link_check: LinkCheck,
    /// What the interfaces of both sides had counted before it and after.
    pub interfaces: [[Interface; 2]; 2],
    /// What of the settings is not as asked for.
    pub remarks: Vec<String>,
}

/// All of it.
pub fn summary(plan: &Plan, ran: &Ran, readback: &Value) -> Value {
    let scenario = &plan.scenario;
    let report = &ran.ended.routed.report;
    let [forward, reverse] = &report.directions;
    let engine = Engine {
        kind: "live",
        events: None,
        bottleneck_packets: forward.egress.delivered + reverse.egress.delivered,
        simulated: report.ended.since(Time::ZERO),
        wall_s: report.ended.secs_f64(),
        cpu_s: cpu_s(ClockId::ProcessCPUTime),
    };
    let summary = Summary {
        scenario,
        measured: report.measured,
        meters: &report.meters,
        crossings: &report.crossings,
        responses: &ran.responses,
        probes: &ran.probes,
        // Whose frames would be counted was refused before the run.
        frames: &Frames::new(Time::ZERO, Time::ZERO),
        tcp: &tcp(plan, ran),
        engine: &engine,
    };
    let mut summary = summary.to_json();
    summary["live"] = live(plan, ran, readback);
    summary
}

fn tcp(plan: &Plan, ran: &Ran) -> TcpTotals {
    let (start, stop) = ran.ended.edges.both();
    let counted = |names: &[&str]| counted(&start, &stop, names).unwrap_or(0);
    let since = |of: fn(&crate::news::TallySums) -> u64| of(&stop.sums) - of(&start.sums);
    let meters = ran.ended.routed.report.meters.iter();
    let lost_before_link = meters.map(|meter| meter.window().lost_before_link[0]);
    let bulk = stop.sums.bulk_bytes.iter().zip(&start.sums.bulk_bytes);
    TcpTotals {
        is_used: plan.has_traffic
            && plan.scenario.traffic.iter().any(|traffic| traffic.workload.carries().speaks_tcp()),
        delivered_bytes: [since(|sums| sums.received_bytes[0]), since(|sums| sums.received_bytes[1])],
        retransmitted_segments: counted(&["Tcp:RetransSegs"]),
        timeouts: counted(&["TcpExt:TCPTimeouts"]),
        recoveries: counted(&["TcpExt:TCPSackRecovery", "TcpExt:TCPRenoRecovery"]),
        // Linux counts the marks that senders are told of, and not what they do about them.
        ecn_reductions: None,
        flows_completed: since(|sums| sums.connections_completed),
        flows_failed: since(|sums| sums.connections_failed),
        lost_before_link: plan.scenario.path.is_lossy().then(|| lost_before_link.sum()),
        bulk_bytes: bulk.map(|(stop, start)| stop - start).collect(),
        held_back: Vec::new(),
    }
}

/// The sum of counters of both sides within the window; `None` if the kernel has none of them.
fn counted(start: &Edge, stop: &Edge, names: &[&str]) -> Option<u64> {
    let sides = start.counted.iter().zip(&stop.counted);
    let counts = sides.flat_map(|(start, stop)| names.iter().filter_map(|name| stop.since(start, name)));
    counts.reduce(|sum, count| sum + count)
}

/// Why a run is void whose packets were lost on the way to a kernel's discipline or from it.
fn missing(kernel_qdisc: &Value) -> Option<String> {
    if let Some(links) = kernel_qdisc["links"].as_object() {
        return links.iter().find_map(|(name, link)| Some(format!("links.{name}: {}", missing(link)?)));
    }
    let any = |key: &str| kernel_qdisc[key].as_array()?.iter().filter_map(Value::as_i64).find(|count| *count > 0);
    let lost = any("missing").map(|missing| format!("{missing} packets were lost outside of the kernel's qdisc"));
    lost.or_else(|| Some(format!("{} packets came out of the kernel's qdisc that never went in", any("unknown")?)))
}

/// What only a run between real hosts has to say: what the router says, and what is known besides.
fn live(plan: &Plan, ran: &Ran, readback: &Value) -> Value {
    let Ended { routed, edges, hosts, command_status, cpu_s, late } = &ran.ended;
    let Routed { report, capture, kernel_qdisc, .. } = routed;
    let (start, stop) = edges.both();
    let conserved = [0, 1].map(|side| Conserved::of(ran, report, side));
    let names = ["forward", "in reverse"];
    let lost = names.iter().zip(&conserved).find_map(|(name, way)| Some(format!("{name}: {}", way.breaks()?)));
    let unready = (*late > 0).then(|| "hosts were not ready when the run began".to_owned());
    let blurred = edges.breaks(report.ended, plan.scenario.live.rate_error);
    let void = (ran.link_check.breaks(&plan.scenario).or(lost).or(missing(kernel_qdisc)).or(unready))
        .or_else(|| report.void())
        .or(blurred)
        .or_else(|| traffic_check::breaks(plan, hosts, [&start, &stop], conserved.iter().map(|way| way.written).sum()));
    let mut live = report.to_json();
    let left = &readback["left"];
    let changes = start.counted.iter().zip(&stop.counted).map(|(start, stop)| stop.changes(start));
    let more = json!({
        "void": void,
        "link_check": { "before": ran.link_check.to_json(), "after": conserved.map(Conserved::to_json) },
        "qdisc": if plan.scenario.live.qdisc == Maker::Kernel { "kernel" } else { "aqmlab" },
        "kernel_qdisc": kernel_qdisc,
        "unread": conserved.each_ref().map(|way| way.unread),
        "malformed": report.directions.each_ref().map(|way| way.ingress.malformed),
        "no_room": report.directions.each_ref().map(|way| way.ingress.no_room),
        "untaken": report.directions.each_ref().map(|way| way.untaken),
        "edges_read_at_s": [start.at.secs_f64(), stop.at.secs_f64()],
        "raised_requests": stop.sums.raised_requests,
        "failed_connects": stop.sums.connections_failed,
        "late_actions": stop.sums.late_actions,
        "kernel": bed::kernel_release(),
        "cc_available": left["sysctls"]["net.ipv4.tcp_available_congestion_control"],
        "sysctls": left["sysctls"],
        "routes": left["routes"],
        "offloads": left["offloads"],
        "qdiscs": left["qdiscs"],
        "remarks": ran.remarks,
        "counters": changes.collect::<Vec<_>>(),
        "delivered_ce_segments": counted(&start, &stop, &["TcpExt:TCPDeliveredCE"]),
        "capture": capture,
        "hosts": hosts.each_ref().map(|report| report.as_ref().map(crate::hosts::HostReport::to_json)),
        "cpu_s": { "router": cpu_s[0], "left": cpu_s[1], "right": cpu_s[2] },
        "command": (!plan.command.is_empty()).then_some(&plan.command),
        "command_status": command_status,
        "traffic": plan.has_traffic,
    });
    let (Value::Object(live_keys), Value::Object(more)) = (&mut live, more) else {
        unreachable!("both are objects");
    };
    live_keys.extend(more);
    live
}

/// Where the packets of a direction went: what the kernel counted at both interfaces beside what the router did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Conserved {
    /// The kernel's: what hosts sent, and what they were handed; what found no room on its way to the router.
    sent: u64,
    received: u64,
    unread: u64,
    /// The router's.
    read: u64,
    malformed: u64,
    no_room: u64,
    /// On the path, as the scenario has it.
    lost: u64,
    dropped: u64,
    held: u64,
    written: u64,
    untaken: u64,
}

impl Conserved {
    fn of(ran: &Ran, report: &Report, side: usize) -> Self {
        let Direction { ingress, egress, held, written, untaken, .. } = report.directions[side];
        let since = |side: usize, of: fn(Interface) -> u64| {
            let [before, after] = ran.interfaces.map(|sides| of(sides[side]));
            after.saturating_sub(before)
        };
        Self {
            sent: since(side, |interface| interface.sent),
            received: since(1 - side, |interface| interface.received),
            unread: since(side, |interface| interface.send_dropped),
            read: ingress.read,
            malformed: ingress.malformed,
            no_room: ingress.no_room,
            lost: ingress.lost,
            dropped: egress.dropped_total(),
            held: held.before + held.within + held.after,
            written,
            untaken,
        }
    }

    /// What does not add up, or was lost where nothing may be; `None` if all is well.
    fn breaks(&self) -> Option<String> {
        let Self { sent, received, unread, read, malformed, no_room, lost, dropped, held, written, untaken } = *self;
        let accounted = malformed + no_room + lost + dropped + held + written + untaken;
        if sent != read {
            return Some(format!("hosts sent {sent} packets and the router read {read}"));
        }
        if read != accounted {
            return Some(format!("{read} packets were read and {accounted} are accounted for"));
        }
        if received != written {
            return Some(format!("{written} packets were handed over and hosts received {received}"));
        }
        // All of them are accounted for, but no path or link of the scenario has lost these.
        let by_the_bed = [
            (unread, "before the router could read them"),
            (no_room, "for want of buffers"),
            (untaken, "when they were handed over"),
        ];
        let (count, how) = by_the_bed.into_iter().find(|(count, _)| *count > 0)?;
        Some(format!("{count} packets were lost by the test bed itself, {how}"))
    }

    fn to_json(self) -> Value {
        json!({
            "sent_packets": self.sent + self.unread,
            "delivered_packets": self.received,
            "dropped_packets": self.dropped + self.lost + self.malformed + self.no_room + self.untaken + self.unread,
            "held_packets": self.held,
            "unread_packets": self.unread,
            "is_conserved": self.breaks().is_none(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL_WELL: Conserved = Conserved {
        sent: 100,
        received: 80,
        unread: 0,
        read: 100,
        malformed: 1,
        no_room: 0,
        lost: 2,
        dropped: 10,
        held: 7,
        written: 80,
        untaken: 0,
    };

    #[test]
    fn packets_that_the_bed_loses_void_a_run() {
        assert_eq!(ALL_WELL.breaks(), None);
        let unread = Conserved { unread: 3, ..ALL_WELL };
        let said = unread.breaks().expect("void");
        assert_eq!(said, "3 packets were lost by the test bed itself, before the router could read them");
        assert_eq!(
            (unread.to_json()["sent_packets"].clone(), ALL_WELL.to_json()["is_conserved"].clone()),
            (json!(103), json!(true))
        );
        let said = Conserved { no_room: 4, dropped: 6, ..ALL_WELL }.breaks().expect("void");
        assert!(said.ends_with("for want of buffers"), "{said}");
        let said = Conserved { untaken: 1, written: 79, received: 79, ..ALL_WELL }.breaks().expect("void");
        assert!(said.ends_with("when they were handed over"), "{said}");
    }

    #[test]
    fn packets_that_are_not_accounted_for_void_a_run() {
        let said = Conserved { sent: 101, ..ALL_WELL }.breaks();
        assert_eq!(said.as_deref(), Some("hosts sent 101 packets and the router read 100"));
        let said = Conserved { received: 79, ..ALL_WELL }.breaks();
        assert_eq!(said.as_deref(), Some("80 packets were handed over and hosts received 79"));
    }

    #[test]
    fn what_a_kernel_makes_up_or_loses_voids_a_run() {
        assert_eq!(missing(&Value::Null), None);
        assert_eq!(missing(&json!({ "missing": [0, -1], "unknown": [0, 0] })), None);
        assert!(
            missing(&json!({ "missing": [0, 2], "unknown": [0, 0] })).is_some_and(|said| said.starts_with("2 packets"))
        );
        assert!(
            missing(&json!({ "missing": [0, 0], "unknown": [5, 0] }))
                .is_some_and(|said| said.contains("never went in"))
        );
    }
}

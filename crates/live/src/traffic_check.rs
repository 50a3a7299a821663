//! This file checks the scenario's own traffic in a live run: its hosts were in time, their kernels lost nothing, and
//! there was traffic at all.

use crate::edges::Edge;
use crate::hosts::HostReport;
use crate::lateness::Budget;
use crate::plan::Plan;

/// What hosts' kernels lose of TCP for want of room within the host, which is neither the link's doing nor that of any
/// TCP: handshakes and segments of which a slow reader is the reason (linux/snmp.h).
const LOST_INSIDE: [&str; 3] = ["TcpExt:ListenDrops", "TcpExt:TCPBacklogDrop", "TcpExt:TCPRcvQDrop"];

/// Why the run is void; `None` if its traffic is what was asked for. `carried` packets passed the link.
pub fn breaks(plan: &Plan, hosts: &[Option<HostReport>; 2], edges: [&Edge; 2], carried: u64) -> Option<String> {
    if !plan.has_traffic || plan.scenario.traffic.is_empty() {
        return None;
    }
    let budget = Budget::of(&plan.scenario.live);
    let sides = ["left", "right"].iter().zip(hosts);
    let late = sides.filter_map(|(side, hosts)| Some(format!("{side}: {}", hosts.as_ref()?.breaks(&budget)?)));
    // A foreign program is its own master: its listener may have no room.
    let inside = || if plan.command.is_empty() { lost_inside(edges) } else { None };
    let [_, stop] = edges;
    let nothing = || happened(carried, stop.sums.connections_opened, stop.sums.connections_failed);
    late.into_iter().next().or_else(inside).or_else(nothing)
}

fn lost_inside([start, stop]: [&Edge; 2]) -> Option<String> {
    LOST_INSIDE.iter().find_map(|name| {
        let sides = start.counted.iter().zip(&stop.counted);
        let count: u64 = sides.filter_map(|(start, stop)| stop.since(start, name)).sum();
        (count > 0).then(|| format!("the kernels of the hosts lost {count} packets of their own ({name})"))
    })
}

/// Why traffic that was asked for is none; `None` if it is some.
fn happened(carried: u64, opened: u64, failed: u64) -> Option<String> {
    if carried == 0 {
        return Some("no packet passed the link, and traffic was asked for".to_owned());
    }
    (failed > opened / 2).then(|| format!("{failed} of {opened} connections failed"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_in_which_nothing_happened_is_void() {
        assert_eq!(happened(1, 0, 0), None);
        assert_eq!(happened(0, 0, 0).as_deref(), Some("no packet passed the link, and traffic was asked for"));
        assert_eq!(happened(1, 10, 5), None);
        assert_eq!(happened(1, 10, 6).as_deref(), Some("6 of 10 connections failed"));
    }
}

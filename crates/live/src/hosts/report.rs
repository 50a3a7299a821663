//! A report says what the hosts of a side did, and whether they kept the budget of a live run.
//!
//! A late host is not a late link. Between the network and an application stands the kernel, which acknowledges, sends
//! again and keeps windows open in time whatever the application does; what a host does late makes one response longer,
//! or one datagram or request late, by as much. So hosts have the same share to be within, and [`AS_MUCH`] times the
//! time that packets have: with the usual budget all but one in a hundred of a host's acts are within 1 ms, a per cent
//! of a response that takes two round trips of 50 ms, and none is later than 25 ms, which is seen in single
//! responses and in no quantile of many. In virtual time nothing is late.

use crate::lateness::{Budget, Lateness};
use base::Span;
use record::DemandRow;
use serde_json::{Value, json};

/// How many times as late as packets hosts may be.
const AS_MUCH: u64 = 5;

/// What came of the hosts of a side.
pub struct HostReport {
    /// How late they did what was due.
    pub lateness: Lateness,
    /// How late they heard what happened at sockets, at most: since they had last looked.
    pub hearing: Lateness,
    /// What was asked for, where the scenario wants it recorded, in the order of time.
    pub demands: Vec<DemandRow>,
    /// Datagrams that the kernel did not take.
    pub untaken_datagrams: u64,
    /// Probes that came and found no room, for they were not read in time.
    pub unread_probes: u64,
    /// Requests that were none.
    pub refused_requests: u64,
    /// Connections for which there was no port.
    pub without_port: u64,
    /// Connections that were open at the end.
    pub open_connections: u64,
}

impl HostReport {
    /// All of it but the demands, as JSON.
    pub fn to_json(&self) -> Value {
        json!({
            "lateness_s": quantiles(&self.lateness),
            "actions": self.lateness.packets(),
            "hearing_s": quantiles(&self.hearing),
            "heard": self.hearing.packets(),
            "untaken_datagrams": self.untaken_datagrams,
            "unread_probes": self.unread_probes,
            "refused_requests": self.refused_requests,
            "without_port": self.without_port,
            "open_connections": self.open_connections,
        })
    }

    /// Why a run with such hosts is void under `budget`; `None` if it is within.
    pub fn breaks(&self, budget: &Budget) -> Option<String> {
        let lost = [
            (self.without_port, "connections found no port of their host free"),
            (self.unread_probes, "probes came and were not read in time"),
            (self.untaken_datagrams, "datagrams were not taken by the kernel of their host"),
        ];
        let lost = lost.into_iter().find(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}"));
        let late = |lateness, what| breaks(lateness, what, budget);
        lost.or_else(|| late(&self.lateness, "did")).or_else(|| late(&self.hearing, "heard"))
    }
}

fn breaks(lateness: &Lateness, what: &str, budget: &Budget) -> Option<String> {
    let [usual, most] = [budget.usual, budget.most].map(|span| span * AS_MUCH);
    let [within, share] = [lateness.within(usual), budget.fraction].map(|share| share * 100.0);
    if within < share {
        let usual = usual.ns() / 1000;
        return Some(format!("{within:.2} % of what hosts {what} was within {usual} us, expected {share} %"));
    }
    let ms = |span: Span| span.ns() as f64 * 1e-6;
    (lateness.most() > most).then(|| {
        let [late, most] = [lateness.most(), most].map(ms);
        format!("what hosts {what} was up to {late:.2} ms late, expected {most} ms at most")
    })
}

fn quantiles(lateness: &Lateness) -> Value {
    let quantile = |q: f64| lateness.quantile(q).secs_f64();
    json!({
        "p50": quantile(0.5), "p90": quantile(0.9), "p99": quantile(0.99), "p999": quantile(0.999),
        "max": lateness.most().secs_f64(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(acts: &[(usize, u64)], heard: &[(usize, u64)]) -> HostReport {
        let of = |late: &[(usize, u64)]| {
            let mut lateness = Lateness::new();
            for &(count, us) in late {
                (0..count).for_each(|_| lateness.packet(Span::from_us(us)));
            }
            lateness
        };
        HostReport {
            lateness: of(acts),
            hearing: of(heard),
            demands: Vec::new(),
            untaken_datagrams: 0,
            unread_probes: 0,
            refused_requests: 0,
            without_port: 0,
            open_connections: 0,
        }
    }

    #[test]
    fn late_hosts_break_the_budget() {
        let why = |acts: &[(usize, u64)], heard: &[(usize, u64)]| report(acts, heard).breaks(&Budget::default());
        // A hundredth may be later than a millisecond, and nothing later than 25.
        assert_eq!(why(&[], &[]), None);
        assert_eq!(why(&[(990, 900), (10, 24_000)], &[(990, 900), (10, 24_000)]), None);
        let share = "98.90 % of what hosts did was within 1000 us, expected 99 %";
        assert_eq!(why(&[(989, 900), (11, 2_000)], &[]).as_deref(), Some(share));
        let most = "what hosts heard was up to 26.00 ms late, expected 25 ms at most";
        assert_eq!(why(&[], &[(999, 20), (1, 26_000)]).as_deref(), Some(most));
    }

    #[test]
    fn what_hosts_lose_breaks_it_too() {
        let lossy = HostReport { unread_probes: 2, ..report(&[], &[]) };
        let expected = "2 probes came and were not read in time";
        assert_eq!(lossy.breaks(&Budget::default()).as_deref(), Some(expected));
        let full = HostReport { untaken_datagrams: 3, ..report(&[], &[]) };
        let expected = "3 datagrams were not taken by the kernel of their host";
        assert_eq!(full.breaks(&Budget::default()).as_deref(), Some(expected));
        let crowded = HostReport { without_port: 1, ..report(&[], &[]) };
        let expected = "1 connections found no port of their host free";
        assert_eq!(crowded.breaks(&Budget::default()).as_deref(), Some(expected));
    }
}

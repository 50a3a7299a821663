//! Hosts on both sides of a router, and all that came of them.

use crate::left_out::left_out;
use base::{Span, Time};
use live::hosts::{Handover, HostReport, Hosts, Wiring};
use live::news::{News, Tallies, TallySums};
use live::paths::announcers;
use live::{Addressing, Bed, Epoch, Real, Report, Router, Settings};
use record::{DemandRow, ExchangeRow, TcpRow};
use scenario::{Family, Scenario};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};

/// A run that is over.
pub struct Ran {
    pub scenario: Scenario,
    pub exchanges: Vec<ExchangeRow>,
    pub samples: Vec<TcpRow>,
    /// Flow number, packet, when: sent, received.
    pub probes: [Vec<(u32, u32, Time)>; 2],
    pub sums: TallySums,
    pub hosts: [Option<HostReport>; 2],
    pub report: Report,
}

impl Ran {
    /// What both sides asked for, in the order of time.
    pub fn demands(&self) -> Vec<DemandRow> {
        let mut rows: Vec<_> = self.hosts.iter().flatten().flat_map(|hosts| &hosts.demands).copied().collect();
        rows.sort_by_key(|row| row.at);
        rows
    }
}

/// The scenario in `text`, and the files it names.
pub fn scenario(text: &str, files: &[(&str, &str)]) -> Scenario {
    let read = |name: &str| {
        let found = files.iter().find(|(known, _)| *known == name);
        found.map(|(_, text)| (*text).to_owned()).ok_or_else(|| format!("{name}: there is no such file here"))
    };
    let resolved = scenario::resolve(text, "hosts.toml", &[], &read).expect("it makes sense");
    resolved.scenario().expect("no load to calibrate").clone()
}

/// Threads of a run come before others in real time: two runs at once would hinder each other.
static ALONE: Mutex<()> = Mutex::new(());

/// Runs it with hosts on `sides`; `None`, and the reason told, where this machine does not let us. Meanwhile `during`
/// happens.
pub fn run(
    name: &str,
    scenario: Scenario,
    sides: [bool; 2],
    during: impl FnOnce(&Bed, Epoch) -> io::Result<()> + Send,
) -> Option<Ran> {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    assert_eq!(live::hosts::unsupported(&scenario), None);
    let congestion = r#"{"sysctl": {"net.ipv4.tcp_congestion_control": "reno", "net.ipv4.tcp_no_metrics_save": "1"}}"#;
    let settings = Settings::read(&serde_json::from_str(congestion).expect("JSON")).expect("they make sense");
    let bed = match Bed::make(scenario.live.family, &settings) {
        Err(error) if matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::Unsupported) => {
            left_out(name, error);
            return None;
        }
        made => made.expect("it is made"),
    };
    let everlasting: Vec<u32> = scenario.traffic.iter().map(|traffic| traffic.workload.endless()).collect();
    let handover = Arc::new(Handover::default());
    let tallies = Arc::new(Tallies::new(&everlasting));
    let ([left, right], announced) = announcers();
    let (router_news, _of_router) = mpsc::channel();
    let (host_news, of_hosts) = mpsc::channel();
    let (stop, end) = (AtomicBool::new(false), Time::ZERO + scenario.duration);
    let epoch = Epoch::after(Span::from_ms(300));
    let (report, hosts) = std::thread::scope(|scope| {
        let (bed, scenario, stop) = (&bed, &scenario, &stop);
        let router = scope.spawn(move || -> io::Result<Report> {
            let ports = bed.ports.each_ref().map(|port| port.duplicate().expect("a file more"));
            let mut router = Router::new(scenario, ports, Real::since(epoch)?, announced, Some(router_news));
            router.run(end, stop)?;
            Ok(router.report())
        });
        let hosts = [(0, left), (1, right)].map(|(side, announcer)| {
            let wiring = Wiring {
                announcer,
                handover: handover.clone(),
                news: host_news.clone(),
                tallies: tallies.clone(),
                addressing: Addressing::new(scenario.live.family),
                blocks: Vec::new(),
                is_virtual: false,
            };
            scope.spawn(move || -> io::Result<Option<HostReport>> {
                if !sides[usize::from(side)] {
                    return Ok(None);
                }
                bed.sides[usize::from(side)].enter()?;
                Hosts::open(scenario, side, epoch, wiring)?.run(end, stop).map(Some)
            })
        });
        let happened = during(bed, epoch);
        if happened.is_err() {
            stop.store(true, Ordering::Relaxed);
        }
        let hosts = hosts.map(|thread| thread.join().expect("no panic").expect("they run"));
        let report = router.join().expect("no panic").expect("it runs");
        happened.expect("it happens");
        (report, hosts)
    });
    drop(host_news);
    let (mut exchanges, mut samples, mut probes) = (Vec::new(), Vec::new(), [Vec::new(), Vec::new()]);
    for news in of_hosts {
        match news {
            News::Exchange(row) => exchanges.push(row),
            News::Tcp(row) => samples.push(row),
            News::ProbeSent { flow, packet, at } => probes[0].push((flow.number, packet, at)),
            News::ProbeReceived { flow, packet, at } => probes[1].push((flow.number, packet, at)),
            _ => {}
        }
    }
    Some(Ran { scenario, exchanges, samples, probes, sums: tallies.sums(), hosts, report })
}

/// Bytes of an IP and a UDP header.
pub fn headers(family: Family) -> u64 {
    if family == Family::Ipv4 { 28 } else { 48 }
}

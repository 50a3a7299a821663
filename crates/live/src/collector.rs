//! The collector receives everything that the threads of a run report, and makes tables, response times and fates of
//! probes of it.

use crate::news::{News, ProbeFlow};
use base::{Span, Time};
use record::rows::Sink;
use record::table::Tables;
use record::{DemandRow, Meter, Probes, Responses};
use scenario::Scenario;
use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::mpsc::Receiver;

/// The tables of a run that are being written.
pub struct Collector {
    tables: Tables,
    /// Response times of the measured window.
    pub responses: Responses,
    /// The results of probes.
    pub probes: Probes,
    flows: BTreeMap<ProbeFlow, Flow>,
}

/// A flow of probes.
struct Flow {
    /// Its number among the flows of [`Probes`].
    number: u32,
    /// Probes whose fate is not known yet, and when they were sent.
    under_way: BTreeMap<u32, Time>,
    /// The last that arrived, and the longest delay of any.
    last: Option<u32>,
    longest: Span,
}

/// After so many later probes have arrived, a missing one is given up. No reordering holds a probe up for so long.
const GIVEN_UP: u32 = 1000;

impl Collector {
    /// Creates the tables of `scenario` in `folder`.
    ///
    /// # Errors
    /// Whatever the file system says.
    pub fn create(folder: &Path, scenario: &Scenario) -> io::Result<Self> {
        let has_tcp = scenario.traffic.iter().any(|traffic| traffic.workload.carries().speaks_tcp());
        let tables = Tables::of(scenario, folder, has_tcp).map_err(|error| unwritable(folder, &error))?;
        let [from, to, _] = scenario.edges();
        Ok(Self { tables, responses: Responses::new(), probes: Probes::new(from, to), flows: BTreeMap::new() })
    }

    /// Takes the rows that came since the last time. Returns how many losses and marks were among them.
    pub fn take(&mut self, news: &Receiver<News>) -> u64 {
        let mut drops = 0;
        news.try_iter().for_each(|news| {
            drops += u64::from(matches!(news, News::Drop(_)));
            self.add(&news);
        });
        drops
    }

    fn add(&mut self, news: &News) {
        match news {
            News::Exchange(row) => {
                self.responses.record(row.response_time);
                self.tables.exchange(row);
            }
            News::Queue(row) => self.tables.queue(row),
            News::Drop(row) => self.tables.drop(row),
            News::Tcp(row) => self.tables.tcp(row),
            News::ProbeSent { flow, packet, at } => self.probe_sent(*flow, *packet, *at),
            News::ProbeReceived { flow, packet, at } => self.probe_received(*flow, *packet, *at),
        }
    }

    fn probe_sent(&mut self, of: ProbeFlow, packet: u32, at: Time) {
        let probes = &mut self.probes;
        let flow = self.flows.entry(of).or_insert_with(|| Flow {
            number: probes.add_flow(of.block, of.number, of.direction),
            under_way: BTreeMap::new(),
            last: None,
            longest: Span::ZERO,
        });
        let number = probes.sent(flow.number, at);
        assert!(number == packet, "probes are told in order: {packet} of {of:?} is the {number}th");
        flow.under_way.insert(packet, at);
    }

    fn probe_received(&mut self, of: ProbeFlow, packet: u32, at: Time) {
        let Some(flow) = self.flows.get_mut(&of) else { return };
        // A probe that is not found was given up, or belongs to another run.
        let Some(sent_at) = flow.under_way.remove(&packet) else { return };
        flow.longest = flow.longest.max(at.since(sent_at));
        flow.last = flow.last.max(Some(packet));
        self.probes.received(flow.number, packet, at, &mut self.tables);
        while let Some((&oldest, _)) = flow.under_way.first_key_value()
            && oldest + GIVEN_UP < packet
        {
            flow.under_way.remove(&oldest);
            self.probes.lost(flow.number, oldest, &mut self.tables);
        }
    }

    /// Takes the recorded demands of both sides, each in the order of time.
    pub fn demands(&mut self, rows: impl Iterator<Item = DemandRow>) {
        let mut rows: Vec<DemandRow> = rows.collect();
        rows.sort_by_key(|row| row.at);
        rows.iter().for_each(|row| self.tables.demand(row));
    }

    /// Decides the fate of probes after all rows of a run that `ended` then. A probe that has not arrived is lost if a
    /// later one has, or if it was sent longer ago than twice the longest delay of its flow and a second. Otherwise it
    /// may still be on its way.
    pub fn end(&mut self, ended: Time) {
        for flow in self.flows.values_mut() {
            for (packet, sent_at) in std::mem::take(&mut flow.under_way) {
                let is_passed = flow.last.is_some_and(|last| packet < last);
                if is_passed || sent_at + flow.longest * 2 + Span::from_secs(1) < ended {
                    self.probes.lost(flow.number, packet, &mut self.tables);
                }
            }
        }
        self.probes.finish(&mut self.tables);
    }

    /// Writes what is left and closes the tables. `meters` have counted how long packets waited at each port, where the
    /// run has come to its end.
    ///
    /// # Errors
    /// The first failure of any write.
    pub fn finish(self, folder: &Path, meters: Option<&[Meter]>) -> io::Result<()> {
        if let Some(meters) = meters {
            self.tables.write_delays(folder, meters).map_err(|error| unwritable(folder, &error))?;
        }
        self.tables.finish().map_err(|error| unwritable(folder, &error))
    }
}

fn unwritable(folder: &Path, error: &io::Error) -> io::Error {
    io::Error::other(format!("{}: the tables cannot be written: {error}", folder.display()))
}

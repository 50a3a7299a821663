//! This file lets somebody look into a run and steer it while it goes on, such as a schedule of parameters or an agent
//! that learns.

use crate::simulation::Simulation;
use base::{Rate, Time};
use net::Port;
use record::QueueRow;
use scenario::Error;

/// What can be seen of a run at an instant.
#[derive(Clone, Debug, PartialEq)]
pub struct Observation {
    /// What happened at each port since the last observation, and what waits there now. Ports stand by link, forward
    /// before reverse.
    pub ports: Vec<QueueRow>,
    /// The rate of the link at each port now.
    pub rates: Vec<Rate>,
    /// Connections of each block of traffic that are not over.
    pub connections: Vec<u32>,
    /// Exchanges and transfers under way on them.
    pub under_way: Vec<u32>,
}

impl Simulation<'_> {
    /// Observes the run since the last observation. This changes nothing in it.
    pub fn observe(&mut self) -> Observation {
        let now = self.now();
        let ports = self.network.net.ports_mut().enumerate().map(|(index, (egress, at))| {
            at.meter.take_interval(now, Port::at(index), egress.backlog(), egress.gauges())
        });
        let ports = ports.collect();
        let rates = self.network.net.ports().map(|(egress, _)| egress.rate()).collect();
        let mut connections = vec![0; self.scenario.traffic.len()];
        let mut under_way = connections.clone();
        self.connections.show_live(|connection| {
            connections[usize::from(connection.block)] += 1;
            under_way[usize::from(connection.block)] += u32::from(connection.is_under_way());
        });
        Observation { ports, rates, connections, under_way }
    }

    /// Sets a parameter of a discipline from this instant on, as [`Simulation::set_all`] does.
    ///
    /// # Errors
    /// As of that.
    pub fn set(&mut self, link: &str, way: u8, name: &str, text: &str) -> Result<(), Error> {
        self.set_all(link, way, &[(name, text)], self.now())
    }

    /// Sets parameters of a discipline from an instant on, all at once: this one, or a later one before which nothing
    /// more happens. The discipline is that of a link one `way`: 0 forward, 1 in reverse. Values are written as in a
    /// scenario. The discipline keeps its state and its packets.
    ///
    /// # Errors
    /// In one line: there is no such link, the discipline has no such parameter or does not take the values, or a
    /// parameter cannot change while a run goes on. Nothing is then set.
    pub fn set_all(&mut self, link: &str, way: u8, changes: &[(&str, &str)], from: Time) -> Result<(), Error> {
        debug_assert!(from >= self.now(), "what has happened cannot be changed");
        let names = || self.scenario.links.iter().map(|link| link.name.as_str()).collect::<Vec<_>>().join(", ");
        let at = self.scenario.links.iter().position(|known| known.name == link);
        let Some((at, way)) = at.zip((way < 2).then_some(way)) else {
            let problem = format!("expected one of {}, and 0 for forward or 1 for reverse", names());
            return Err(Error { place: "set".to_owned(), key: format!("{link}.{way}"), value: None, problem });
        };
        let port = Port::new(at as u16, way);
        let rate = self.network.net.egress(port).rate();
        let told = self.scenario.links[at].told(usize::from(way), rate);
        let spec = &mut self.qdiscs[port.index()];
        spec.set(changes, told)?;
        self.network.net.retune(port, &spec.values, told.unwrap_or(rate), from);
        Ok(())
    }
}

//! This file has real-time media: the endpoints of each source, and what their packets and reports on their way carry.
//!
//! The endpoints say what they do ([`media::Sender`], [`media::Receiver`]); here their packets are sent, and what they
//! are to hear is told. Of each frame it is known how many of its packets are still to come.

use crate::datagrams::Kept;
use crate::network::Network;
use crate::packets::{Parcel, What};
use crate::simulation::Simulation;
use aqm::Packet;
use base::{Ecn, FlowKey, Span, Time};
use media::{Act, Receiver, Report, Sender};
use net::{Path, Rank};
use record::{Encoded, Frames, Sink};
use scenario::{Scenario, Source};
use std::collections::VecDeque;

/// The ends of a flow, as wake-ups have them.
const SENDER: usize = 0;
const RECEIVER: usize = 1;

/// The media of a run.
pub struct Media {
    /// What became of frames.
    pub frames: Frames,
    flows: Vec<Flow>,
    /// What each packet on its way carries, and of which flow.
    slots: Vec<(u32, Carried)>,
    free: Vec<u32>,
}

/// What a packet carries.
#[expect(clippy::large_enum_variant, reason = "few are on their way, and a box would be made for each report")]
#[derive(Clone, Copy)]
enum Carried {
    Video(media::Packet),
    Report(Report),
}

/// A flow of media.
struct Flow {
    source: u32,
    block: u16,
    number: u32,
    /// The side that sends video.
    side: u8,
    flow: FlowKey,
    path: Path,
    sender: Option<Sender>,
    receiver: Receiver,
    /// When each end is woken next, as far as it is known.
    wake_at: [Time; 2],
    /// Frames that are not whole, in their order.
    partial: VecDeque<Partial>,
}

/// A frame that is not whole.
struct Partial {
    number: u32,
    /// Packets that are still to come.
    left: u32,
    /// It is known that it never comes whole.
    is_lost: bool,
}

impl Media {
    /// No media. Frames count that are encoded from `from` on and before `to`.
    pub fn new(from: Time, to: Time) -> Self {
        Self { frames: Frames::new(from, to), flows: Vec::new(), slots: Vec::new(), free: Vec::new() }
    }

    /// Adds the flow of the source with index `index`. Returns the flow.
    pub fn add_flow(&mut self, index: u32, source: &Source<'_>, flow: FlowKey, path: Path) -> u32 {
        self.flows.push(Flow {
            source: index,
            block: source.block,
            number: source.number,
            side: source.client,
            flow,
            path,
            sender: None,
            receiver: Receiver::default(),
            wake_at: [Time::NEVER; 2],
            partial: VecDeque::new(),
        });
        self.frames.add_flow(source.block, source.number, source.client)
    }

    /// The source of the packet at `place`.
    pub fn source(&self, place: u32) -> u32 {
        self.flows[self.slots[place as usize].0 as usize].source
    }

    /// When a packet from `side` that left the last link at `left_at` has crossed the receiver's access link.
    pub fn crosses(&mut self, place: u32, side: usize, left_at: Time, takes: Span) -> Time {
        self.flows[self.slots[place as usize].0 as usize].path.receive(1 - side, takes, left_at)
    }

    fn keep(&mut self, flow: u32, carried: Carried) -> u32 {
        if let Some(place) = self.free.pop() {
            self.slots[place as usize] = (flow, carried);
            return place;
        }
        self.slots.push((flow, carried));
        // Reserved now, so that giving places back never allocates.
        self.free.reserve(self.slots.len());
        self.slots.len() as u32 - 1
    }

    fn take(&mut self, place: u32) -> (u32, Carried) {
        self.free.push(place);
        self.slots[place as usize]
    }

    /// What the packet at `place` carried is lost.
    pub fn lost(&mut self, place: u32, sink: &mut dyn Sink) {
        if let (flow, Carried::Video(packet)) = self.take(place) {
            self.lose(flow, packet.frame, sink);
        }
    }

    /// A frame never comes whole.
    fn lose(&mut self, flow: u32, frame: u32, sink: &mut dyn Sink) {
        let partial = &mut self.flows[flow as usize].partial;
        let Some(found) = partial.iter_mut().find(|found| found.number == frame && !found.is_lost) else { return };
        found.is_lost = true;
        while partial.front().is_some_and(|first| first.is_lost) {
            partial.pop_front();
        }
        self.frames.lost(flow, frame, sink);
    }

    /// A packet of a frame came.
    fn came(&mut self, flow: u32, frame: u32, now: Time, sink: &mut dyn Sink) {
        let partial = &mut self.flows[flow as usize].partial;
        let Some(place) = partial.iter().position(|found| found.number == frame) else { return };
        partial[place].left -= 1;
        if partial[place].left == 0 && !partial[place].is_lost {
            partial.remove(place);
            self.frames.received(flow, frame, now, sink);
        }
    }
}

impl Simulation<'_> {
    /// The media of a source begin.
    pub(crate) fn begin_media(&mut self, source: u32, sink: &mut dyn Sink) {
        let Kept::Media(flow) = self.kept[source as usize] else { return };
        let now = self.now;
        let Flow { block, number, sender, .. } = &mut self.network.around.media.flows[flow as usize];
        let traffic = &self.scenario.traffic[usize::from(*block)];
        let video = traffic.workload.media().expect("whose media begin has some");
        let path = format!("traffic/{block}/frames/{number}");
        let stream = base::Stream::named(self.scenario.seed, &path);
        *sender = Some(Sender::new(video.config(traffic.ect), now, stream));
        self.let_sender_act(flow, sink);
    }

    /// An end of a flow asked to be woken, or did so earlier: a spurious call is harmless.
    pub(crate) fn wake_media(&mut self, flow: u32, end: usize, sink: &mut dyn Sink) {
        let now = self.now;
        let own = &mut self.network.around.media.flows[flow as usize];
        if own.wake_at[end] == now {
            own.wake_at[end] = Time::NEVER;
        }
        if end == SENDER {
            return self.let_sender_act(flow, sink);
        }
        if let Some(report) = own.receiver.on_wake(now) {
            self.send_report(flow, report);
        }
        self.arm_media(flow, RECEIVER);
    }

    /// A packet of media reached its host.
    pub(crate) fn deliver_media(&mut self, packet: Parcel, sink: &mut dyn Sink) {
        let now = self.now;
        let media = &mut self.network.around.media;
        match media.take(packet.place()) {
            (flow, Carried::Video(video)) => {
                media.came(flow, video.frame, now, sink);
                let receiver = &mut media.flows[flow as usize].receiver;
                if let Some(report) = receiver.on_packet(video.sequence, video.is_last, packet.ecn(), now) {
                    self.send_report(flow, report);
                }
                self.arm_media(flow, RECEIVER);
            }
            (flow, Carried::Report(report)) => {
                if let Some(sender) = &mut media.flows[flow as usize].sender {
                    sender.on_report(&report, now);
                }
                self.let_sender_act(flow, sink);
            }
        }
    }

    /// Carries out what a sender does now, and makes sure that it is woken in time.
    fn let_sender_act(&mut self, flow: u32, sink: &mut dyn Sink) {
        let now = self.now;
        loop {
            let media = &mut self.network.around.media;
            let own = &mut media.flows[flow as usize];
            let Some(act) = own.sender.as_mut().and_then(|sender| sender.act(now)) else { break };
            match act {
                Act::Encoded(frame) => {
                    let encoded = Encoded { bytes: frame.bytes, rate_bps: frame.rate_bps };
                    let number = media.frames.encoded(flow, encoded, now);
                    assert!(number == frame.number, "frames are told in their order");
                    own.partial.push_back(Partial { number, left: frame.packets, is_lost: false });
                }
                Act::Send(packet) => {
                    let ect = self.scenario.traffic[usize::from(own.block)].ect;
                    let place = media.keep(flow, Carried::Video(packet));
                    self.send_media(flow, place, SENDER, (packet.size, ect), sink);
                }
                Act::Discard(from, to) => (from..to).for_each(|frame| media.lose(flow, frame, sink)),
            }
        }
        self.arm_media(flow, SENDER);
    }

    fn send_report(&mut self, flow: u32, report: Report) {
        let place = self.network.around.media.keep(flow, Carried::Report(report));
        self.send_media(flow, place, RECEIVER, (report.size(), Ecn::NotEct), &mut record::Discard);
    }

    /// Sends what is kept at `place` from an end of a flow, in a packet of so many bytes with this ECN field.
    fn send_media(&mut self, flow: u32, place: u32, end: usize, (size, ecn): (u32, Ecn), sink: &mut dyn Sink) {
        let now = self.now;
        let around = &mut self.network.around;
        let own = &mut around.media.flows[flow as usize];
        let side = usize::from(own.side) ^ end;
        let step = around.steps[usize::from(own.block)][side];
        let takes = around.access.time_for(size);
        let impairments = &mut around.impairments;
        let fate = || impairments.as_mut().map_or(Some(Span::ZERO), |paths| paths.fate(side));
        if let Some(arrives) = own.path.send(side, takes, now, fate) {
            let dscp = self.scenario.traffic[usize::from(own.block)].dscp;
            let packet = Parcel::media(own.flow, step, place, size as u16, ecn, dscp, side as u8);
            let source = own.source;
            self.network.depart(arrives, source, packet);
        } else {
            self.network.lost_before_link(step, true);
            self.network.around.media.lost(place, sink);
        }
    }

    /// Makes sure that an end is woken in time. A pending wake-up that comes earlier serves as well.
    fn arm_media(&mut self, flow: u32, end: usize) {
        let Network { around, .. } = &mut self.network;
        let own = &mut around.media.flows[flow as usize];
        let due = match (end, &own.sender) {
            (SENDER, Some(sender)) => sender.next_wake(),
            (SENDER, None) => Time::NEVER,
            _ => own.receiver.next_wake(),
        };
        if due < own.wake_at[end] {
            own.wake_at[end] = due;
            around.queue.push(due, Rank::Wake, flow, What::end_of_media(end));
        }
    }
}

/// The media of `scenario`, with a flow for each of its sources that has some.
pub fn flow_of(media: &mut Media, scenario: &Scenario, index: u32, source: &Source<'_>, kept: Kept) -> Kept {
    let has_media = scenario.traffic[usize::from(source.block)].workload.media().is_some();
    match kept {
        Kept::Udp { flow, path, .. } if has_media => Kept::Media(media.add_flow(index, source, flow, path)),
        kept => kept,
    }
}

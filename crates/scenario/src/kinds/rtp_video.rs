//! Real-time video over RTP and UDP, whose sources follow what the path lets through: conferences, games from the
//! cloud, vehicles that are driven from afar. The endpoints are those of [`media`], and so is SCReAM, which sets their
//! rate.

use super::keys::{FLOWS, START, start};
use super::{Asked, Key, Kind, Model, Row, Takes};
use crate::blocks::{Asking, Surroundings};
use crate::demand::{Carries, Demand, Expected, Site, Source};
use crate::distribution::{self, Quantity};
use crate::error::Error;
use crate::scenario::Direction;
use crate::section::Section;
use crate::units;
use crate::voice::{Asks, Turn, Voice};
use crate::written::Written;
use base::{Distribution, Ecn, Rate, Span, Time};
use media::Mode;

/// Sources of real-time video.
#[derive(Clone, Debug)]
pub struct RtpVideo {
    /// How many sources.
    pub flows: u32,
    /// When each starts, seconds into the run.
    pub start: Distribution,
    /// From one frame to the next.
    pub frame_period: Span,
    /// The least and the greatest rate of a source's IP packets.
    pub rates: [Rate; 2],
    /// Size of a full packet, bytes (IP).
    pub packet: u32,
    /// From one key frame to the next, and its size in mean frames.
    pub key_frames: Option<(Span, f64)>,
    /// Scale of the deviation of frame sizes, of their mean.
    pub variation: f64,
}

impl RtpVideo {
    /// What a source is, whose packets have the ECN field `ect`.
    pub fn config(&self, ect: Ecn) -> media::Config {
        media::Config {
            frame_period: self.frame_period,
            rates: self.rates,
            packet: self.packet,
            key_frames: self.key_frames,
            variation: self.variation,
            mode: if ect == Ecn::Ect1 { Mode::L4s } else { Mode::Classic },
        }
    }
}

const CC: Key = Key {
    name: "cc",
    takes: Takes::Word(&["scream"]),
    default: "scream",
    doc: "what sets the rate: SCReAM v2, with L4S where `ect` is ect1, with Classic ECN where it is ect0",
};
const LEAST_FRAME_RATE: f64 = 1.0;
const MOST_FRAME_RATE: f64 = 1000.0;
const FRAME_RATE: Key = Key {
    name: "frame_rate",
    takes: Takes::Frequency(0.0, MOST_FRAME_RATE),
    default: "30hz",
    doc: "frames a second, 1 at least",
};
const MIN_RATE: Key = Key {
    name: "min_rate",
    takes: Takes::Rate,
    default: "150kbit",
    doc: "least rate of a source, IP packets; it begins with it",
};
const MAX_RATE: Key = Key {
    name: "max_rate",
    takes: Takes::Rate,
    default: super::keys::REQUIRED,
    doc: "greatest rate of a source, IP packets, such as 10mbit",
};
const PACKET: Key = Key {
    name: "packet",
    takes: Takes::Size(200, 65_535),
    default: "1200b",
    doc: "size of a full packet, IP: 40 bytes of headers, and video",
};
const KEY_FRAMES: Key = Key {
    name: "key_frames",
    takes: Takes::Time(0, 3_600_000_000_000),
    default: "0s",
    doc: "from one key frame to the next; 0s for none, as encoders that refresh gradually have none",
};
const KEY_SIZE: Key = Key {
    name: "key_size",
    takes: Takes::Number(1.0, 100.0),
    default: "4.0",
    doc: "size of a key frame, of a mean frame's; other frames are so much smaller",
};
const VARIATION: Key = Key {
    name: "variation",
    takes: Takes::Number(0.0, 0.5),
    default: "0.15",
    doc: "scale of the Laplacian deviation of frame sizes, of their mean",
};

impl Kind for RtpVideo {
    const ROW: Row = Row {
        name: "rtp_video",
        called: &["rtp", "webrtc", "conference", "videoconference", "video_call"],
        speaks_tcp: false,
        is_recorded: false,
        direction: (Direction::Forward, "which way the video flows; reports flow back"),
        own: None,
        applications: &[],
        models: &[Model {
            name: "",
            doc: "Real-time video over RTP, whose rate follows reports of what came and was marked",
            source: "draft-ietf-ccwg-rfc8298bis-screamv2; RFC 8888; frames after RFC 8593",
            keys: &[FLOWS, CC, FRAME_RATE, MIN_RATE, MAX_RATE, PACKET, KEY_FRAMES, KEY_SIZE, VARIATION, START],
            words: &[(
                "",
                "{flows|source} of real-time video ({cc}, {frame_rate} frames a second, {min_rate} to {max_rate}{flows: each})",
            )],
        }],
    };

    fn read(asking: &mut Asking<'_, '_>) -> Result<Asked<Self>, Error> {
        let (block, around) = (asking.block, asking.around);
        let flows = FLOWS.count(block)?;
        block.read(CC.name, (), |entry| entry.word(&[("scream", ())]))?;
        let frame_rate = frame_rate(block)?;
        let frame_period = Span::from_secs_f64(1.0 / frame_rate);
        let rates = rates(block, frame_rate, around)?;
        let packet = PACKET.size(block)?;
        let every = KEY_FRAMES.time(block)?;
        let key_size = KEY_SIZE.number(block)?;
        let key_frames = key_frames(block, every, key_size, frame_period)?;
        let variation = VARIATION.number(block)?;
        let start = start(block, around.duration)?;
        let written = vec![
            (FLOWS.name, Written::Integer(u64::from(flows))),
            (CC.name, Written::Text("scream".to_owned())),
            (FRAME_RATE.name, Written::Text(units::write_frequency(frame_rate))),
            (MIN_RATE.name, Written::Text(units::write_rate(rates[0]))),
            (MAX_RATE.name, Written::Text(units::write_rate(rates[1]))),
            (PACKET.name, Written::Text(units::write_bytes(f64::from(packet)))),
            (KEY_FRAMES.name, Written::Text(units::write_span(every))),
            (KEY_SIZE.name, Written::Number(key_size)),
            (VARIATION.name, Written::Number(variation)),
            (START.name, distribution::write(&start, Quantity::Time)),
        ];
        Ok(Asked::known(Self { flows, start, frame_period, rates, packet, key_frames, variation }, written))
    }
}

fn frame_rate(block: &Section<'_>) -> Result<f64, Error> {
    let default = units::frequency(FRAME_RATE.default).expect("a default is a frequency");
    block.read(FRAME_RATE.name, default, |entry| {
        let hertz = entry.quantity(units::frequency)?;
        if (LEAST_FRAME_RATE..=MOST_FRAME_RATE).contains(&hertz) {
            return Ok(hertz);
        }
        let [least, most] = [LEAST_FRAME_RATE, MOST_FRAME_RATE].map(units::write_frequency);
        Err(entry.expected(format!("a frequency from {least} to {most}")))
    })
}

/// The least and the greatest rate, of so many frames a second.
fn rates(block: &Section<'_>, frame_rate: f64, around: &Surroundings<'_, '_>) -> Result<[Rate; 2], Error> {
    let least = units::rate(MIN_RATE.default).expect("a default is a rate");
    let least = block.read(MIN_RATE.name, least, |entry| entry.rate())?;
    let greatest = block.require(MAX_RATE.name, "a rate such as 10mbit", |entry| {
        let rate = entry.rate()?;
        if rate < least {
            return Err(entry.expected(format!("at least {} of {}", MIN_RATE.name, units::write_rate(least))));
        }
        let needed = f64::from(media::LEAST_FRAME_BYTES) * 8.0 * frame_rate;
        if rate.bps_f64() < needed {
            let least = units::write_rate(Rate::from_bps(needed.ceil() as u64));
            let frames = units::write_frequency(frame_rate);
            return Err(entry.expected(format!("at least {least}, which the smallest frames take at {frames}")));
        }
        if rate > around.access_rate {
            let most = units::write_rate(around.access_rate);
            return Err(entry.expected(format!("at most {most}, what the source's access link carries")));
        }
        Ok(rate)
    })?;
    Ok([least, greatest])
}

/// The distance and the size of key frames, which leave something for the frames between them.
fn key_frames(block: &Section<'_>, every: Span, size: f64, period: Span) -> Result<Option<(Span, f64)>, Error> {
    if every == Span::ZERO {
        return Ok(None);
    }
    let frames = media::frames_in(every, period);
    if frames as f64 > size && frames >= 2 {
        return Ok(Some((every, size)));
    }
    let least = Span::from_ns(period.ns() * ((size as u64).max(1) + 1));
    let expected =
        format!("0s, or at least {}, in which more frames lie than a key frame is large", units::write_span(least));
    Err(block.get(KEY_FRAMES.name).map_or_else(
        || block.unfit(KEY_FRAMES.name, &units::write_span(every), &expected),
        |entry| entry.expected(&expected),
    ))
}

impl Demand for RtpVideo {
    fn carries(&self) -> Carries {
        Carries::Media
    }

    fn sources<'s>(&'s self, site: &Site<'s>, out: &mut Vec<Source<'s>>) {
        for number in 0..self.flows {
            let mut stream = site.stream("source", number);
            let start = Time::from_secs_f64(self.start.draw(&mut stream));
            let delay = site.rtt_of(number, self.flows, &mut stream) / 2;
            out.push(Source { delay: Some(delay), ..site.sending(number, start, Begins) });
        }
    }

    fn expected(&self) -> Expected {
        // They follow the link: no more waits than a window.
        Expected::Datagrams { flows: self.flows, bps: 0.0, bytes: self.packet.into() }
    }

    fn count(&self) -> u32 {
        self.flows
    }

    fn media(&self) -> Option<&RtpVideo> {
        Some(self)
    }
}

/// A source says when its media begin; its endpoints do all else.
struct Begins;

impl Asks for Begins {
    fn turn(&mut self, _turn: Turn, voice: &mut Voice<'_>) {
        voice.media();
    }
}

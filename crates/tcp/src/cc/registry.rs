//! The registry lists all controllers with their words and types, and defines one type that is any of them.

use super::{Acked, Congestion, Controller, Delivery, Lost, Sample, Steer, Told, Window};
use super::{bbr, bbr3, cubic, dctcp, ledbat, prague, prague_linux, reno};
use crate::stack::Config;
use base::{Span, Time};

/// All controllers: what they do, their name, their type, and the word for them in scenarios.
macro_rules! controllers {
    ($($(#[doc = $doc:literal])+ $name:ident($state:ty): $word:literal;)+) => {
        /// How the window grows and shrinks.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum Control {
            $($(#[doc = $doc])+ $name,)+
        }

        impl Control {
            /// Every one with its word in scenarios.
            pub const WORDS: &[(&str, Self)] = &[$(($word, Self::$name)),+];

            /// What each is, in a line, in the order of [`WORDS`](Self::WORDS).
            pub const DOCS: &[&str] = &[$(concat!($($doc),+)),+];

            /// Whether it sets window and rate by itself ([`Controller::MODELS_PATH`]).
            pub const fn models_path(self) -> bool {
                match self {
                    $(Self::$name => <$state as Controller>::MODELS_PATH,)+
                }
            }

            /// Whether its receiver echoes each mark ([`Controller::ECHOES_EACH_MARK`]).
            pub const fn echoes_each_mark(self) -> bool {
                match self {
                    $(Self::$name => <$state as Controller>::ECHOES_EACH_MARK,)+
                }
            }
        }

        impl Control {
            /// Whether it wants the rate of delivery ([`Controller::SAMPLES_RATE`]).
            pub const fn samples_rate(self) -> bool {
                match self {
                    $(Self::$name => <$state as Controller>::SAMPLES_RATE,)+
                }
            }

            /// Whether how it starts is its own ([`Controller::STARTS_ITSELF`]).
            pub const fn starts_itself(self) -> bool {
                match self {
                    $(Self::$name => <$state as Controller>::STARTS_ITSELF,)+
                }
            }

            /// Whether it needs counts of marks ([`Controller::NEEDS_COUNTS`]).
            pub const fn needs_counts(self) -> bool {
                match self {
                    $(Self::$name => <$state as Controller>::NEEDS_COUNTS,)+
                }
            }
        }

        /// The controller a connection runs.
        #[derive(Clone, PartialEq, Debug)]
        pub enum Algorithm {
            $($(#[doc = $doc])+ $name($state),)+
        }

        base::packed!(Algorithm: $($name(state))|+);

        impl Controller for Algorithm {
            fn new(config: &Config) -> Self {
                match config.control {
                    $(Control::$name => Self::$name(<$state as Controller>::new(config)),)+
                }
            }

            fn renew(&mut self, config: &Config) {
                match (&mut *self, config.control) {
                    $((Self::$name(state), Control::$name) => state.renew(config),)+
                    _ => *self = Self::new(config),
                }
            }

            #[inline]
            fn watches(&self) -> bool {
                match self {
                    $(Self::$name(state) => state.watches(),)+
                }
            }

            #[inline]
            fn heeds_silence(&self) -> bool {
                match self {
                    $(Self::$name(state) => state.heeds_silence(),)+
                }
            }

            fn delivered(&mut self, window: &mut Window, delivery: &Delivery) {
                match self {
                    $(Self::$name(state) => state.delivered(window, delivery),)+
                }
            }

            #[inline]
            fn grow(&mut self, window: &mut Window, acked: &Acked) {
                match self {
                    $(Self::$name(state) => state.grow(window, acked),)+
                }
            }

            fn passes_over_marks(&self, now: Time) -> bool {
                match self {
                    $(Self::$name(state) => state.passes_over_marks(now),)+
                }
            }

            fn reduced(&mut self, window: &Window, congestion: &Congestion) -> f64 {
                match self {
                    $(Self::$name(state) => state.reduced(window, congestion),)+
                }
            }

            fn timed_out(&mut self) {
                match self {
                    $(Self::$name(state) => state.timed_out(),)+
                }
            }

            fn undone(&mut self, window: &mut Window) {
                match self {
                    $(Self::$name(state) => state.undone(window),)+
                }
            }

            fn opened(&mut self, window: &Window, mss: f64, rtt: Span, now: Time) {
                match self {
                    $(Self::$name(state) => state.opened(window, mss, rtt, now),)+
                }
            }

            fn lost(&mut self, window: &Window, lost: &Lost) {
                match self {
                    $(Self::$name(state) => state.lost(window, lost),)+
                }
            }

            fn sampled(&mut self, window: &mut Window, sample: &Sample) {
                match self {
                    $(Self::$name(state) => state.sampled(window, sample),)+
                }
            }

            #[inline(always)]
            fn told(&mut self, window: &mut Window, told: &Told) {
                match self {
                    $(Self::$name(state) => state.told(window, told),)+
                }
            }

            #[inline]
            fn resumed(&mut self, pause: Span, now: Time) {
                match self {
                    $(Self::$name(state) => state.resumed(pause, now),)+
                }
            }

            fn restarted(&mut self, window: &mut Window, mss: f64, now: Time) {
                match self {
                    $(Self::$name(state) => state.restarted(window, mss, now),)+
                }
            }

            fn steer(&self) -> Option<Steer> {
                match self {
                    $(Self::$name(state) => state.steer(),)+
                }
            }
        }
    };
}

controllers! {
    /// Additive increase, multiplicative decrease by half (RFC 5681).
    Reno(reno::Reno): "reno";
    /// CUBIC (RFC 9438).
    Cubic(cubic::Cubic): "cubic";
    /// Decrease in proportion to the share of marks, each of which is echoed (RFC 8257).
    Dctcp(Box<dctcp::Dctcp>): "dctcp";
    /// Decrease in proportion to the share of marks, which are counted, whatever the round trip: L4S (RFC 9330).
    Prague(Box<prague::Prague>): "prague";
    /// Prague as the L4S team's Linux has it: its rate is controlled, not its window, where that is small.
    PragueLinux(Box<prague_linux::PragueLinux>): "prague-linux";
    /// BBR v1: rate and window from a model of the path.
    Bbr(Box<bbr::Bbr>): "bbr";
    /// BBR v3 (draft-ietf-ccwg-bbr): its model has bounds that losses and marks set.
    Bbr3(Box<bbr3::Bbr3>): "bbr3";
    /// LEDBAT (RFC 6817): less than best effort, by a target for the queueing delay.
    Ledbat(Box<ledbat::Ledbat>): "ledbat";
}

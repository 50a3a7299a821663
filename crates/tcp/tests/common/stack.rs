//! Configurations of endpoints: built-in ones, and one without anybody's habits.

use base::Span;
use tcp::{
    Config, Control, CubicDialect, DelayedAck, EcnMode, Hystart, LedbatSettings, Reduction, Repair, RtoFloor,
    RttSampling,
};

/// The built-in profile of this name.
pub fn stack(name: &str) -> Config {
    (tcp::profile(name).expect("a built-in profile").config)()
}

/// The RFCs without anybody's habits: 1000-byte segments, every segment acknowledged at once, Reno's window, NewReno
/// recovery, no ECN, established from the start, a clock without ticks, RFC 6298's timeouts.
pub fn plain() -> Config {
    Config {
        mss: 1000,
        header: 40,
        syn_header: 40,
        window: 1 << 30,
        receive_buffer: 0,
        initial_window: 2,
        handshake: false,
        syn_losses_forgiven: 0,
        repair: Repair::NewReno,
        control: Control::Reno,
        cubic: CubicDialect::Rfc,
        ledbat: LedbatSettings::DEFAULT,
        hystart: Hystart::Off,
        ecn: EcnMode::Off,
        ecn_fallback: false,
        ect_on_all: false,
        limited_transmit: false,
        byte_counting: false,
        cwnd_validation: false,
        reduction: Reduction::AtOnce,
        timestamps: false,
        dsack: false,
        frto: false,
        undo: false,
        whole_segments: false,
        ecn_floor: 1,
        idle_restart: true,
        idle_halves: false,
        rtt_sampling: RttSampling::EveryAck,
        granularity: Span::from_ns(1),
        timer_wheel: false,
        synack_rtt: true,
        threshold_of_window: false,
        fin_takes_room: false,
        rto_initial: Span::from_secs(1),
        rto_min: Span::from_secs(1),
        rto_max: Span::from_secs(60),
        rto_floor: RtoFloor::Whole,
        delayed_ack: DelayedAck {
            every: 1,
            timeout: Span::from_ms(100),
            quick: 0,
            window_updates: false,
            counts_small: true,
            hurries_for_ecn: false,
            adapts: false,
        },
        ..stack("linux")
    }
}

/// [`plain`] with an acknowledgement for every second segment.
pub fn delayed() -> Config {
    let plain = plain();
    Config { delayed_ack: DelayedAck { every: 2, ..plain.delayed_ack }, ..plain }
}

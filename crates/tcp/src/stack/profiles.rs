//! A stack profile is a TCP implementation as a configuration. Each value has its source.

use super::{
    Backoff, Config, Control, CubicDialect, DelayedAck, EcnMode, EcnOption, Hystart, LedbatSettings, Reduction, Repair,
    RtoFloor, RttSampling, SynTimer,
};
use base::{Ecn, Span};

/// One value of a profile, for people to read.
#[derive(Clone, Copy, Debug)]
pub struct Sourced {
    /// What it is, as in `[tcp]`.
    pub name: &'static str,
    /// The value in words.
    pub value: &'static str,
    /// Where it comes from.
    pub source: &'static str,
}

/// A profile: its configuration and where the values come from.
#[derive(Clone, Copy, Debug)]
pub struct Profile {
    /// Name in scenarios.
    pub name: &'static str,
    /// What it stands for, in one sentence.
    pub doc: &'static str,
    /// The values people ask about.
    pub values: &'static [Sourced],
    /// The configuration.
    pub config: fn() -> Config,
}

/// Every profile.
pub fn profiles() -> &'static [Profile] {
    &PROFILES
}

/// The profile called `name`.
pub fn profile(name: &str) -> Option<&'static Profile> {
    PROFILES.iter().find(|profile| profile.name == name)
}

const fn sourced(name: &'static str, value: &'static str, source: &'static str) -> Sourced {
    Sourced { name, value, source }
}

static PROFILES: [Profile; 3] = [
    Profile {
        name: "freebsd4",
        doc: "FreeBSD 4.5, the hosts of the web studies (2002)",
        config: freebsd4,
        values: &[
            sourced("window", "16kb", "le2004: 16 kB on the end systems"),
            sourced("mss", "1460b", "Ethernet, no timestamps"),
            sourced("cc", "reno", "RFC 2581's window"),
            sourced("repair", "newreno", "FreeBSD 4.5 default (net.inet.tcp.newreno=1); no SACK in this release"),
            sourced("hystart", "off", "not in this release"),
            sourced("initial_window", "2", "slowstart_flightsize 1, and the handshake's ACK opens one more segment"),
            sourced("rto_min", "1s", "RFC 2988; le2003: responses with a timeout mostly need 1 s or more"),
            sourced("rto_initial", "3s", "tcp_timer.h, TCPTV_SRTTDFLT"),
            sourced("granularity", "10ms", "hz = 100"),
            sourced(
                "syn_timer",
                "3s, retries at 3 s distance five times, then doubling",
                "tcp_timer.c, tcp_syn_backoff",
            ),
            sourced("synack_timer", "3s 6s 12s", "syncache, three retransmissions"),
            sourced("delayed_ack", "every 2nd segment, 100ms", "tcp_timer.h, TCPTV_DELACK"),
            sourced(
                "window_updates",
                "on",
                "tcp_output.c sends one when it opens the window by two segments; le2007's mean frame, a little over \
                 500 bytes, is not reached without",
            ),
            sourced("ecn_floor", "2", "BSD halves to no less than two segments, for losses and for marks"),
            sourced("limited_transmit", "off", "not in this release"),
        ],
    },
    Profile {
        name: "ns2",
        doc: "ns-2.35's one-way Agent/TCP/Sack1 and TCPSink/Sack1; with cc = newreno, Agent/TCP/Newreno and TCPSink",
        config: ns2,
        values: &[
            sourced("handshake", "off", "both ends start open; with one_way, the 40-byte packet that syn_ sends first"),
            sourced("cc", "reno", "tcp.cc: opencwnd(), slowdown()"),
            sourced("repair", "ns2-sack1", "Agent/TCP/Sack1: tcp-sack1.cc"),
            sourced("initial_window", "2", "windowInit_"),
            sourced("rto_min", "200ms", "minrto_"),
            sourced("rto_initial", "3s", "rtxcur_init_"),
            sourced("granularity", "10ms", "tcpTick_"),
            sourced("ecn_floor", "0", "slowdown() halves without a floor, and timeout() begins anew with one segment"),
            sourced("ect_on_retransmit", "on", "output() sets ECT on every packet but the first"),
            sourced("delayed_ack", "each segment at once", "TCPSink/Sack1"),
            sourced("limited_transmit", "on", "singledup_"),
        ],
    },
    Profile {
        name: "linux",
        doc: "Linux 6.x with its defaults",
        config: linux,
        values: &[
            sourced(
                "window",
                "3840kb",
                "tcp_win_from_space of tcp_rmem[2], 6 MB: 160/256 of it, as a full segment takes 2304 bytes",
            ),
            sourced("receive_buffer", "128kb, half of it offered; grows", "tcp_rmem[1], tcp_rcv_space_adjust"),
            sourced("mss", "1448b", "Ethernet, timestamps (12 bytes)"),
            sourced("cc", "cubic", "default congestion control; tcp_cubic.c"),
            sourced(
                "whole_segments",
                "on",
                "tcp_cong_avoid_ai, tcp_packets_in_flight: the window is counted in packets",
            ),
            sourced("reduction", "over a round trip", "tcp_cwnd_reduction (RFC 6937), for losses and for marks"),
            sourced("repair", "rack", "tcp_sack=1; tcp_recovery.c, tcp_send_loss_probe (RFC 8985)"),
            sourced("hystart", "linux", "tcp_cubic.c, hystart=1; with cc reno, dctcp and bbr off"),
            sourced("pacing", "off", "with cc bbr on: SK_PACING_NEEDED; with others only where sch_fq is the qdisc"),
            sourced("abe", "off", "Linux has none; a mark reduces as a loss does"),
            sourced("initial_window", "10", "RFC 6928"),
            sourced(
                "rto_min",
                "200ms on the variance term, held",
                "TCP_RTO_MIN; tcp_rtt_estimator keeps a window's largest",
            ),
            sourced("rto_initial", "1s", "TCP_TIMEOUT_INIT"),
            sourced("granularity", "1ms", "HZ = 1000"),
            sourced("timer_wheel", "on", "kernel/time/timer.c, calc_wheel_index"),
            sourced("fin_takes_room", "on", "tcp_cwnd_test, tcp_packets_in_flight"),
            sourced(
                "syn_timer",
                "1s, retries at 1 s distance four times, then six doubling",
                "tcp_syn_linear_timeouts (Linux 6.5), tcp_syn_retries",
            ),
            sourced("syn_losses_forgiven", "1", "tcp_init_transfer: total_retrans > 1"),
            sourced("synack_timer", "1s doubling, five retries", "tcp_synack_retries"),
            sourced("ecn_floor", "2", "tcp_reno_ssthresh"),
            sourced(
                "delayed_ack",
                "every 2nd full segment; adaptive, 40ms to 200ms, 16 at once at first; sooner when what was written ends",
                "tcp_event_data_recv, tcp_send_delayed_ack, __tcp_cleanup_rbuf",
            ),
            sourced("timestamps", "on", "tcp_timestamps"),
            sourced("dsack", "on", "tcp_dsack (RFC 2883)"),
            sourced("frto", "on", "tcp_frto (RFC 5682)"),
            sourced("undo", "on", "tcp_try_undo_recovery and others (RFC 3522, RFC 3708)"),
            sourced("ecn_fallback", "on", "tcp_ecn_fallback (RFC 3168 §6.1.1.1)"),
            sourced("ect_on_all", "on", "tcp_ecn_send: with ecn accurate, whatever is sent in an open connection"),
            sourced("idle_restart", "by half for each RTO", "tcp_slow_start_after_idle, tcp_cwnd_restart (RFC 2861)"),
            sourced("limited_transmit", "on", "RFC 3042"),
        ],
    },
];

/// Linux's default.
const GSO_MAX_SEGS: u32 = 65_535;
/// BSD repeats a SYN five times at the same distance, then backs off.
const BSD_SYN_BACKOFF: Backoff = Backoff::new(&[1, 1, 1, 1, 1, 2, 4, 8, 16, 32, 64, 64, 64]);
const DOUBLING: Backoff = Backoff::new(&[1, 2, 4, 8, 16, 32, 64]);
/// Linux repeats a SYN four times at the same distance, then backs off.
const LINUX_SYN_BACKOFF: Backoff = Backoff::new(&[1, 1, 1, 1, 1, 2, 4, 8, 16, 32, 64]);
/// tcp_synack_retries is 5, one less than tcp_syn_retries.
const DOUBLING_FIVE: Backoff = Backoff::new(&[1, 2, 4, 8, 16, 32]);
const SYNCACHE: Backoff = Backoff::new(&[1, 2, 4, 8]);

/// When FreeBSD acknowledges.
const BSD_DELAYED_ACK: DelayedAck = DelayedAck {
    every: 2,
    timeout: Span::from_ms(100),
    quick: 0,
    window_updates: true,
    counts_small: true,
    hurries_for_ecn: false,
    adapts: false,
};

fn freebsd4() -> Config {
    Config {
        stack: "freebsd4",
        mss: 1460,
        header: 40,
        syn_header: 44,
        window: 16_384,
        receive_buffer: 0,
        initial_window: 2,
        syn_loss_resets_window: true,
        syn_losses_forgiven: 0,
        handshake: true,
        one_way: false,
        repair: Repair::NewReno,
        control: Control::Reno,
        cubic: CubicDialect::Rfc,
        ledbat: LedbatSettings::DEFAULT,
        hystart: Hystart::Off,
        pacing: false,
        pacing_burst: GSO_MAX_SEGS,
        max_pacing_rate: None,
        ecn: EcnMode::Off,
        ecn_option: EcnOption::Off,
        ecn_fallback: false,
        abe: false,
        limited_transmit: false,
        byte_counting: false,
        cwnd_validation: false,
        ecn_floor: 2,
        ect: Ecn::Ect0,
        ect_on_retransmit: false,
        ect_on_control: false,
        ect_on_all: false,
        reduction: Reduction::AtOnce,
        timestamps: false,
        dsack: false,
        frto: false,
        undo: false,
        whole_segments: false,
        synack_rtt: true,
        threshold_of_window: false,
        fin_takes_room: false,
        idle_restart: true,
        idle_halves: false,
        rtt_sampling: RttSampling::OnePerWindow,
        granularity: Span::from_ms(10),
        timer_wheel: false,
        rto_initial: Span::from_secs(3),
        rto_min: Span::from_secs(1),
        rto_max: Span::from_secs(64),
        rtt_forgotten_after: 3,
        rto_floor: RtoFloor::Whole,
        syn_timer: SynTimer { base: Span::from_secs(3), factors: BSD_SYN_BACKOFF },
        synack_timer: SynTimer { base: Span::from_secs(3), factors: SYNCACHE },
        delayed_ack: BSD_DELAYED_ACK,
    }
}

/// When ns-2's TCPSink does.
const NS2_DELAYED_ACK: DelayedAck = DelayedAck {
    every: 1,
    timeout: Span::from_ms(100),
    quick: 0,
    window_updates: false,
    counts_small: true,
    hurries_for_ecn: false,
    adapts: false,
};

fn ns2() -> Config {
    Config {
        stack: "ns2",
        mss: 1460,
        header: 40,
        syn_header: 40,
        window: 1 << 40,
        receive_buffer: 0,
        initial_window: 2,
        syn_loss_resets_window: false,
        syn_losses_forgiven: 0,
        handshake: false,
        one_way: false,
        repair: Repair::Ns2Sack1,
        control: Control::Reno,
        cubic: CubicDialect::Rfc,
        ledbat: LedbatSettings::DEFAULT,
        hystart: Hystart::Off,
        pacing: false,
        pacing_burst: GSO_MAX_SEGS,
        max_pacing_rate: None,
        ecn: EcnMode::Off,
        ecn_option: EcnOption::Off,
        ecn_fallback: false,
        abe: false,
        limited_transmit: true,
        byte_counting: false,
        cwnd_validation: false,
        ecn_floor: 0,
        ect: Ecn::Ect0,
        ect_on_retransmit: true,
        ect_on_control: false,
        ect_on_all: false,
        reduction: Reduction::AtOnce,
        timestamps: false,
        dsack: false,
        frto: false,
        undo: false,
        whole_segments: false,
        synack_rtt: true,
        threshold_of_window: false,
        fin_takes_room: false,
        idle_restart: false,
        idle_halves: false,
        rtt_sampling: RttSampling::OnePerWindow,
        granularity: Span::from_ms(10),
        timer_wheel: false,
        rto_initial: Span::from_secs(3),
        rto_min: Span::from_ms(200),
        rto_max: Span::from_secs(60),
        rtt_forgotten_after: 3,
        rto_floor: RtoFloor::Whole,
        syn_timer: SynTimer { base: Span::from_secs(3), factors: DOUBLING },
        synack_timer: SynTimer { base: Span::from_secs(3), factors: DOUBLING },
        delayed_ack: NS2_DELAYED_ACK,
    }
}

/// When Linux does.
const LINUX_DELAYED_ACK: DelayedAck = DelayedAck {
    every: 2,
    timeout: Span::from_ms(40),
    quick: 16,
    window_updates: false,
    counts_small: false,
    hurries_for_ecn: true,
    adapts: true,
};

fn linux() -> Config {
    Config {
        stack: "linux",
        mss: 1448,
        header: 52,
        syn_header: 60,
        window: 3_840 << 10,
        receive_buffer: 131_072,
        initial_window: 10,
        syn_loss_resets_window: true,
        syn_losses_forgiven: 1,
        handshake: true,
        one_way: false,
        repair: Repair::Rack,
        control: Control::Cubic,
        cubic: CubicDialect::Linux,
        ledbat: LedbatSettings::DEFAULT,
        hystart: Hystart::Linux,
        pacing: false,
        pacing_burst: GSO_MAX_SEGS,
        max_pacing_rate: None,
        ecn: EcnMode::Off,
        ecn_option: EcnOption::Off,
        ecn_fallback: true,
        abe: false,
        limited_transmit: true,
        byte_counting: true,
        cwnd_validation: true,
        ecn_floor: 2,
        ect: Ecn::Ect0,
        ect_on_retransmit: false,
        ect_on_control: false,
        ect_on_all: true,
        reduction: Reduction::Proportional,
        timestamps: true,
        dsack: true,
        frto: true,
        undo: true,
        whole_segments: true,
        synack_rtt: true,
        threshold_of_window: false,
        fin_takes_room: true,
        idle_restart: true,
        idle_halves: true,
        rtt_sampling: RttSampling::EveryAck,
        granularity: Span::from_ms(1),
        timer_wheel: true,
        rto_initial: Span::from_secs(1),
        rto_min: Span::from_ms(200),
        rto_max: Span::from_secs(120),
        rtt_forgotten_after: u32::MAX,
        rto_floor: RtoFloor::Variance,
        syn_timer: SynTimer { base: Span::from_secs(1), factors: LINUX_SYN_BACKOFF },
        synack_timer: SynTimer { base: Span::from_secs(1), factors: DOUBLING_FIVE },
        delayed_ack: LINUX_DELAYED_ACK,
    }
}

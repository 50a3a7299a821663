//! What is wrong with hosts.

use super::{BULK, check};

#[test]
fn hosts() {
    check(
        &[
            ("stack = \"windows\"", "s.toml:2: tcp.stack = \"windows\": expected one of freebsd4, ns2, linux"),
            (
                "stack = \"freebsd\"",
                "s.toml:2: tcp.stack = \"freebsd\": expected one of freebsd4, ns2, linux; did you mean freebsd4?",
            ),
            (
                "cc = \"vegas\"",
                "s.toml:2: tcp.cc = \"vegas\": expected one of reno, newreno, sack, cubic, dctcp, prague, prague-linux, \
             bbr, bbr3, ledbat, cubic-rfc, cubic-linux",
            ),
            (
                "cc = \"prague\"\necn = \"on\"",
                "s.toml:3: tcp.ecn = \"on\": expected ecn accurate, without which there is no prague",
            ),
            (
                "cc = \"bbr\"\npacing = false",
                "s.toml:3: tcp.pacing = false: expected pacing true, without which there is no bbr",
            ),
            (
                "cc = \"bbr\"\nrepair = \"ns2-sack1\"",
                "s.toml:3: tcp.repair = \"ns2-sack1\": expected repair sack or rack, without which there is no bbr",
            ),
            (
                "cc = \"bbr\"\nhystart = \"plus\"",
                "s.toml:3: tcp.hystart = \"plus\": expected hystart off with bbr, which has a start of its own",
            ),
            (
                "stack = \"ns2\"\npacing = true",
                "s.toml:3: tcp.pacing = true: expected pacing false with repair ns2-sack1, which does not pace",
            ),
            ("hystart = true", "s.toml:2: tcp.hystart = true: expected one of off, linux, plus"),
            (
                "cc = \"dctcp\"\necn = \"off\"",
                "s.toml:3: tcp.ecn = \"off\": expected ecn on or accurate, without which there is no dctcp",
            ),
            (
                "stack = \"freebsd4\"\nreceive_buffer = \"64kb\"",
                "s.toml:3: tcp.receive_buffer = \"64kb\": expected receive_buffer 0b without delayed_ack_adapts, \
                 which alone lets it grow",
            ),
            (
                "stack = \"linux\"\ndelayed_ack_adapts = false",
                "s.toml:3: tcp.delayed_ack_adapts = false: expected receive_buffer 0b without delayed_ack_adapts, \
                 which alone lets it grow",
            ),
            ("ect = 1", "s.toml:2: tcp.ect = 1: expected one of ect0, ect1"),
            ("ecn = true", "s.toml:2: tcp.ecn = true: expected one of off, on, plus, plus-tryonce, accurate"),
            (
                "ecn_option = true",
                "s.toml:2: tcp.ecn_option = true: expected ecn_option false without ecn accurate, whose option it is",
            ),
            (
                "ecn = \"accurate\"\nrepair = \"newreno\"",
                "s.toml:3: tcp.repair = \"newreno\": expected repair sack or rack with ecn accurate",
            ),
            (
                "window = \"1000b\"",
                "s.toml:2: tcp.window = \"1000b\": expected a window of at least one segment of 1448 bytes",
            ),
            ("mss = \"1b\"", "s.toml:2: tcp.mss = \"1b\": expected a size from 64b to 65000b"),
            ("mss = \"1460p\"", "s.toml:2: tcp.mss = \"1460p\": expected a size such as 1500b or 16kb"),
            ("initial_window = 0", "s.toml:2: tcp.initial_window = 0: expected a whole number from 1 to 10000"),
            ("handshake = \"off\"", "s.toml:2: tcp.handshake = \"off\": expected true or false"),
            ("rto_min = \"0s\"", "s.toml:2: tcp.rto_min = \"0s\": expected a time from 1us to 3600s"),
            ("rto_min = 1", "s.toml:2: tcp.rto_min = 1: expected a time such as 15ms"),
            (
                "rto_min = \"200s\"",
                "s.toml:2: tcp.rto_min = \"200s\": expected rto_min not above rto_max, which is 120s",
            ),
            (
                "granularity = \"10min\"",
                "s.toml:2: tcp.granularity = \"10min\": expected granularity not above rto_max, which is 120s",
            ),
            (
                "rto_max = \"500ms\"",
                "s.toml:2: tcp.rto_max = \"500ms\": expected rto_initial not above rto_max, which is 500ms",
            ),
            (
                "delayed_ack = \"on\"",
                "s.toml:2: tcp.delayed_ack = \"on\": expected off or a number of segments from 1 to 64",
            ),
            ("delayed_ack = 0", "s.toml:2: tcp.delayed_ack = 0: expected off or a number of segments from 1 to 64"),
        ],
        |text| format!("[tcp]\n{text}{BULK}"),
    );
}

//! What files of vectors say, and what is refused.

use super::*;
use base::{Span, Stream};

/// What a vector says: its units as (end, wait in microseconds, bytes).
fn units(text: &str) -> Vec<(usize, u64, u64)> {
    let set = read(text).unwrap_or_else(|error| panic!("{error:?} in {text}"));
    set.get(0).units().iter().map(|unit| (unit.end(), unit.wait().ns() / 1000, unit.bytes())).collect()
}

const HEAD: &str = "w 65535 8192\nr 40000\nl 0.01 0\n";

#[test]
fn both_formats_say_the_same() {
    let original = format!(
        "# two connections\nSEQ 100 3 17 4711\n{HEAD}m 1460 1380\n> 300\nt 20\n< 5000 # a page\nt 700\n< 60\n\nt 9\n\
         > 70\nt 8000\nCONC 250 2 1 18 4712\n{HEAD}c> 10\nt> 1\nc< 30\nc> 20\nt< 5\nt> 4\n"
    );
    let alternate = format!(
        "S 100 3 17 4711\n{HEAD}I 0 0 300\nA 0 20 5000\nA 700 0 60\nI 0 9 70\nI 8000 0 0\n\
         C 250 2 1 18 4712\n{HEAD}I 0 0 10\nA 0 0 30\nI 1 0 20\nI 4 0 0\nA 5 0 0\n"
    );
    let [one, other] = [original, alternate].map(|text| read(&text).expect("sound"));
    assert_eq!(one, other);
    let (first, second) = (one.get(0), one.get(1));
    assert_eq!((first.start().ns(), second.start().ns()), (100_000, 250_000));
    assert_eq!((first.rtt(), first.windows()), (Span::from_ms(40), [65_535, 8_192]));
    // 0.01 as a float of four bytes.
    assert!((first.loss()[0] - 0.01).abs() < 1e-9 && first.loss()[1] == 0.0);
    assert_eq!((first.is_concurrent(), second.is_concurrent()), (false, true));
    assert_eq!((first.bytes(), second.bytes()), ([370, 5_060], [30, 30]));
}

#[test]
fn the_order_of_units_says_what_a_time_counts_from() {
    let text = format!("SEQ 0 2 1 1\n{HEAD}> 1\nt 2\n> 3\nt 4\n< 5\nt 6\n");
    assert_eq!(units(&text), [(0, 0, 1), (0, 2, 3), (1, 4, 5), (1, 6, 0)]);
    // The acceptor speaks first, and its answer to nobody is an epoch.
    let text = format!("SEQ 0 2 1 1\n{HEAD}< 1\nt 2\n> 3\nt 4\n< 5\n");
    assert_eq!(units(&text), [(1, 0, 1), (0, 2, 3), (1, 4, 5), (1, 1_000_000, 0)]);
}

#[test]
fn concurrent_vectors_are_kept_an_end_after_the_other() {
    let text = format!("CONC 0 2 1 1 1\n{HEAD}t< 9\nc> 1\nc< 2\nt> 3\nc> 4\n");
    assert_eq!(units(&text), [(0, 0, 1), (0, 3, 4), (0, 1_000_000, 0), (1, 9, 2), (1, 1_000_000, 0)]);
    // One end says when it closes, the other then follows it.
    let text = format!("CONC 0 1 1 1 1\n{HEAD}c> 1\nc< 2\nt< 3\n");
    assert_eq!(units(&text), [(0, 0, 1), (1, 0, 2), (1, 3, 0)]);
}

#[test]
fn malformed_vectors_are_refused_with_line_and_expectation() {
    let seq = |body: &str| format!("SEQ 5 1 1 1\n{HEAD}{body}");
    let conc = |body: &str| format!("CONC 5 1 1 1 1\n{HEAD}{body}");
    let alternate = |body: &str| format!("S 5 1 1 1\n{HEAD}{body}");
    for (text, line, problem) in [
        (String::new(), 1, "expected connection vectors"),
        ("# nothing\n".into(), 1, "expected connection vectors"),
        ("w 1 1\n".into(), 1, "expected a vector to begin"),
        ("time,bytes\n1,2\n".into(), 1, "found time,bytes, expected a vector to begin"),
        ("SEQ\n".into(), 1, "the line ends early, expected a time"),
        ("SEQ -5 1 1 1\n".into(), 1, "found -5, expected a time in microseconds"),
        ("SEQ 5 one\n".into(), 1, "found one, expected how many epochs"),
        ("SEQ 5 1 1 1 1\n".into(), 1, "found 1, expected the end of the line"),
        (seq("> -20\n"), 5, "found -20, expected a size in bytes, a whole number from 1"),
        (seq("> 0\n"), 5, "found 0, expected a size in bytes, a whole number from 1"),
        (seq("> 1.5\n"), 5, "found 1.5, expected a size"),
        (seq(">\n"), 5, "the line ends early, expected a size"),
        (seq("> 7 8\n"), 5, "found 8, expected the end of the line"),
        (seq("> 1\nt -1\n"), 6, "found -1, expected a time"),
        (seq("> 1\n< 2\n"), 6, "expected a time (t) between them"),
        (seq("t 1\n> 1\n"), 6, "found data after a time, expected data first"),
        (seq("> 1\nt 1\nt 2\n"), 7, "expected data between two times"),
        (seq("c> 1\n"), 5, "found c>, expected >, < or t"),
        (seq("I 0 0 7\n"), 5, "found I, expected >, < or t"),
        (seq("x\n"), 5, "found x, expected >, < or t"),
        (seq(""), 4, "the vector of line 1 ends here without data"),
        (seq("t 4\n"), 5, "the vector of line 1 ends here without data"),
        (seq("> 1\nt 1\n> 2\n"), 7, "the vector of line 1 ends here with 2 epochs, expected 1 epochs"),
        (format!("SEQ 5 2 1 1\n{HEAD}> 1\nt 1\n< 2\nt 1\n"), 8, "ends here with 1 epochs, expected 2 epochs"),
        (format!("{}SEQ 4 1 1 1\n", seq("> 1\n")), 6, "found a start at 4, expected vectors in the order"),
        ("SEQ 5 1 1 1\nr 1\nl 0 0\n> 1\n".into(), 4, "expected receive windows (w) of the vector of line 1"),
        ("SEQ 5 1 1 1\nw 1 1\nl 0 0\n> 1\n".into(), 4, "expected the round-trip time (r)"),
        ("SEQ 5 1 1 1\nw 1 1\nr 1\n> 1\n".into(), 4, "expected the shares of packets lost (l)"),
        ("SEQ 5 1 1 1\nw 0 1\n".into(), 2, "found 0, expected a receive window in bytes"),
        ("SEQ 5 1 1 1\nw 1\n".into(), 2, "the line ends early, expected a receive window"),
        ("SEQ 5 1 1 1\nw 1 1\nw 1 1\n".into(), 3, "found receive windows (w), expected them once"),
        ("SEQ 5 1 1 1\nr 600000001\n".into(), 2, "found 600000001, expected a round-trip time"),
        ("SEQ 5 1 1 1\nl 0 1\n".into(), 2, "found 1, expected the share of packets lost"),
        ("SEQ 5 1 1 1\nl 0 nan\n".into(), 2, "found nan, expected the share of packets lost"),
        ("SEQ 5 1 1 1\nm 0 1\n".into(), 2, "found 0, expected a segment size"),
        (seq("> 1\nw 1 1\n"), 6, "expected them once and before the data"),
        (conc("c> 1\nc> 2\n"), 6, "found data after data of the same end"),
        (conc("c> 1\nt> 2\nt> 2\n"), 7, "expected data between two times"),
        (conc("c> 1\n"), 5, "ends here with 1 and 0 units, expected 1 and 1 units"),
        (conc("> 1\n"), 5, "found >, expected c>, t>, c< or t<"),
        (alternate("I 0 0\n"), 5, "the line ends early, expected a size"),
        (alternate("I 3 0 7\n"), 5, "expected 0 0 and a size above zero for the first unit"),
        (alternate("I 0 0 7\nA 3 0 7\n"), 6, "the unit before is the other end's"),
        (alternate("I 0 0 7\nI 0 3 7\n"), 6, "the unit before is the same end's"),
        (alternate("I 0 0 7\nI 3 0 0\nA 0 3 7\n"), 7, "found more data after the end that closes"),
        (alternate("> 7\n"), 5, "found >, expected I or A"),
        (format!("C 5 1 1\n{HEAD}I 0 3 7\n"), 5, "expected 0 as the wait from receiving"),
        (format!("C 5 1 1\n{HEAD}I 0 0 0\nI 0 0 7\n"), 6, "found more data of an end that closed"),
    ] {
        let error = read(&text).expect_err(&text);
        assert_eq!(error.line, line, "{text}{}", error.problem);
        assert!(error.problem.contains(problem) && !error.problem.contains('\n'), "{text}{}", error.problem);
    }
}
/// Whatever is cut out of a set or put into it, it is read or refused.
/// Whatever file is named by mistake, the line about it is one that can be read.
#[test]
fn a_word_without_end_is_cut_and_a_mark_of_the_encoding_skipped() {
    let endless = "[1,2],".repeat(200_000);
    for text in [endless.clone(), format!("SEQ 5 1 {endless}\n"), format!("SEQ 5 1 1 1\n{HEAD}{endless}\n")] {
        let problem = read(&text).expect_err("no vectors").problem;
        assert!(problem.len() < 200 && problem.contains("[1,2],[1,2]"), "{problem}");
    }
    let marked = format!("\u{feff}SEQ 0 1 1 1\n{HEAD}> 1\nt 2\n");
    assert_eq!(units(&marked), [(0, 0, 1), (0, 2, 0)]);
}

#[test]
fn damaged_sets_are_refused_or_read() {
    let sound = format!(
        "SEQ 100 3 17 4711\n{HEAD}m 1460 1380\n> 300\nt 20\n< 5000\nt 700\n< 60\nt 9\n> 70\nt 8000\n\
         CONC 250 2 1 18 4712\n{HEAD}c> 10\nt> 1\nc< 30\nc> 20\nt< 5\nt> 4\n\
         S 300 1 1 1\n{HEAD}I 0 0 300\nA 0 20 5000\nA 700 0 0\nC 400 1 1 1 1\n{HEAD}I 0 0 10\nA 5 0 30\n"
    );
    let pieces =
        ["", "\n", " ", "-", "#", "t", "c>", "> 5\n", "t 5\n", "I 0 0 0\n", "99999999999999999999", "SEQ 1 1\n", "\0é"];
    let mut stream = Stream::named(1, "damage");
    let (mut read_well, lines) = (0, sound.lines().count());
    for _ in 0..20_000 {
        let mut text = sound.clone();
        for _ in 0..1 + stream.below(3) {
            let [a, b] = [stream.below(text.len() as u64), stream.below(12)].map(|n| n as usize);
            let from = (a..).find(|&at| text.is_char_boundary(at)).expect("the end is one");
            let to = (from + b.min(text.len() - from)..).find(|&at| text.is_char_boundary(at)).expect("so it is");
            text.replace_range(from..to, pieces[stream.below(pieces.len() as u64) as usize]);
        }
        match read(&text) {
            Ok(set) => read_well += usize::from(set.iter().all(|vector| vector.bytes() != [0; 2])),
            Err(error) => {
                assert!((1..=lines + 9).contains(&error.line) && error.problem.contains("expected"), "{error:?}");
            }
        }
    }
    assert!(read_well > 100, "some damage is harmless, as in a size: {read_well}");
}

//! Blocks of video: what they resolve to, and what is refused.

use base::{Distribution, Span};
use scenario::{Resolved, Workload};
use traffic::Rule;

fn resolve(block: &str) -> Result<Resolved, String> {
    let files = |_: &str| Err("no such file".to_owned());
    let text = format!("duration = '300s'\nwarmup = '60s'\n[[traffic]]\nkind = 'video'\n{block}");
    scenario::resolve(&text, "s.toml", &[], &files).map_err(|error| error.to_string())
}

fn video(block: &str) -> scenario::Video {
    let resolved = resolve(block).expect("a scenario");
    let files = |_: &str| Err("no such file".to_owned());
    let again = scenario::resolve(resolved.text(), "s.toml", &[], &files).expect("a resolved scenario");
    assert_eq!(resolved.text(), again.text(), "it resolves to itself");
    let Workload::Video(video) = again.scenario().expect("complete").traffic[0].workload.clone() else {
        panic!("it is video")
    };
    video
}

#[test]
fn defaults_are_those_of_the_paper() {
    let video = video("");
    // A reservoir of 90 s, and the highest bitrate from 216 s of 240 on.
    let (reservoir, cushion) = (Span::from_secs(90), Span::from_secs(126));
    assert_eq!(video.model.rule, Rule::Bba0 { reservoir, cushion });
    let ladder = &video.model.ladder;
    assert_eq!((ladder.len(), ladder[0].bps(), ladder[9].bps()), (10, 235_000, 5_800_000));
    // A twentieth of 300 s would be 15 s; ten are enough. It begins with what is measured.
    assert_eq!(video.start, Distribution::Uniform(60.0, 70.0));
    assert_eq!((video.viewers, &video.model.film), (1, &Distribution::Constant(600.0)));
}

#[test]
fn parts_of_the_buffer_follow_from_it() {
    // 3/8 and 9/10 of 20 s; but 9/10 leave no room for a segment, so that the cushion ends at 16 s.
    let model = video("buffer = '20s'\nviewers = 3").model;
    let (reservoir, cushion) = (Span::from_ms(7_500), Span::from_ms(8_500));
    assert_eq!(model.rule, Rule::Bba0 { reservoir, cushion });
    let model = video("rule = 'throughput'\nladder = ['1mbit', '3mbit']\nfilm = { exponential = '5s' }").model;
    assert_eq!((model.rule, model.ladder.len()), (Rule::Throughput, 2));
}

#[test]
fn what_makes_no_film_is_refused() {
    for (block, said) in [
        ("viewers = 0", "s.toml:5: traffic.0.viewers = 0: expected a whole number from 1 to 100000000"),
        (
            "ladder = ['2mbit', '1mbit']",
            "s.toml:5: traffic.0.ladder = [\"2mbit\", \"1mbit\"]: expected a list of ascending rates such as \
             [\"375kbit\", \"1050kbit\", \"3mbit\"], up to 64",
        ),
        (
            "ladder = []",
            "s.toml:5: traffic.0.ladder = []: expected a list of ascending rates such as \
             [\"375kbit\", \"1050kbit\", \"3mbit\"], up to 64",
        ),
        ("buffer = '7s'", "s.toml:5: traffic.0.buffer = \"7s\": expected two segments of 4s at least"),
        (
            "buffer = '20s'\nstartup = '17s'",
            "s.toml:6: traffic.0.startup = \"17s\": expected a segment less than the buffer at most, 16s",
        ),
        (
            "segment = '1s'\nbuffer = '4s'",
            "s.toml:3: traffic.0.startup = 4s: expected a segment less than the buffer at most, 3s",
        ),
        (
            "reservoir = '237s'",
            "s.toml:5: traffic.0.reservoir = \"237s\": expected with the cushion a segment less than the buffer at \
             most, 236s",
        ),
        (
            "reservoir = '100s'\ncushion = '200s'",
            "s.toml:6: traffic.0.cushion = \"200s\": expected with the reservoir a segment less than the buffer at \
             most, 136s",
        ),
        (
            "rule = 'throughput'\ncushion = '9s'",
            "s.toml:6: traffic.0.cushion = \"9s\": does not go with rule = \"throughput\"",
        ),
        ("film = '0s'", "s.toml:5: traffic.0.film = \"0s\": expected a time above zero"),
    ] {
        assert_eq!(resolve(block).err().as_deref(), Some(said));
    }
}

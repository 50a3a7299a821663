//! A block of homes stands for the blocks of its applications.

use scenario::{Direction, Web, Workload, resolve};

const LINK: &str = "duration = '60s'\n[link]\nrate = '50mbit'\nreverse_rate = '10mbit'\n";

fn text(block: &str) -> String {
    format!("{LINK}[[traffic]]\nkind = 'homes'\n{block}")
}

fn resolved(text: &str) -> Result<scenario::Resolved, String> {
    resolve(text, "home.toml", &[], &|name| Err(name.to_owned())).map_err(|error| error.to_string())
}

#[test]
fn forty_homes_are_readers_viewers_calls_games_downloads_and_backups() {
    let found = resolved(&text("homes = 40")).expect("it is a scenario");
    let traffic = &found.scenario().expect("no load").traffic;
    let is: Vec<String> = traffic
        .iter()
        .map(|block| match &block.workload {
            Workload::Web(Web::Readers(readers)) => format!("{} readers", readers.users),
            Workload::Video(video) => format!("{} viewers", video.viewers),
            Workload::Probes(probes) => format!("{} probes of {}", probes.flows, probes.packet),
            Workload::Bulk(bulk) => format!("{} {}", bulk.flows, block.direction.name()),
            other => panic!("{other:?}"),
        })
        .collect();
    // 0.3, 0.4, 0.1, 0.1, 0.05 and 0.05 of 40; calls and games have a flow each way.
    let wanted =
        ["12 readers", "16 viewers", "8 probes of 200", "8 probes of 100", "2 forward", "2 reverse"].map(str::to_owned);
    assert_eq!(is, wanted);
    assert!(traffic[2..4].iter().all(|block| block.direction == Direction::Both));
    // What it stands for says everything, and resolves to itself.
    let again = resolved(found.text()).expect("it is a scenario");
    assert_eq!((again.text(), again.digest()), (found.text(), found.digest()));
    assert!(!found.text().contains("homes"));
    for label in ["pages", "video", "calls", "games", "downloads", "backups"] {
        assert!(found.text().contains(&format!("application = \"{label}\"")), "{label}");
    }
}

#[test]
fn one_home_has_one_of_each_and_none_of_what_it_does_not_do() {
    let found = resolved(&text(
        "homes = 1\nvideo = 2\ngames = 0\nbackups = 0.0\nrtt = '30ms'\ncc = 'bbr'\nprotocol = 'h1'\nbuffer = '30s'",
    ))
    .expect("it is one");
    let traffic = &found.scenario().expect("no load").traffic;
    assert_eq!(traffic.iter().map(|block| block.workload.count()).collect::<Vec<_>>(), [1, 2, 2, 1]);
    assert!(traffic.iter().all(|block| block.rtt.shortest().ns() >= 29_000_000));
    // What one application has of its own goes there.
    assert_eq!(
        [found.text().matches("protocol = \"h1\"").count(), found.text().matches("buffer = \"30s\"").count()],
        [1, 1]
    );
    // Conditions of TCP are those of all who speak it.
    assert_eq!(found.text().matches("cc = \"bbr\"").count(), 3);
}

#[test]
fn blocks_around_it_keep_their_order_and_overrides_are_of_what_was_written() {
    let text = format!(
        "{LINK}[[traffic]]\nkind = 'cbr'\nrate = '1mbit'\n[[traffic]]\nkind = 'homes'\nhomes = 10\n[[traffic]]\nkind = 'bulk'\n"
    );
    let set = [("traffic.1.video".to_owned(), "0".to_owned()), ("traffic.2.flows".to_owned(), "7".to_owned())];
    let found = resolve(&text, "home.toml", &set, &|name| Err(name.to_owned())).expect("it is a scenario");
    let traffic = &found.scenario().expect("no load").traffic;
    assert_eq!(traffic.len(), 7);
    assert!(matches!(traffic[0].workload, Workload::Cbr(_)));
    assert_eq!(traffic[6].workload.count(), 7);
}

/// A clock is of connections over TCP: calls and games have none.
#[test]
fn a_clock_is_that_of_all_who_speak_tcp() {
    let found = resolved(&text("homes = 10\nrtt_at = 'clients'\nrtt_tick = '1ms'")).expect("it is a scenario");
    assert_eq!(["rtt_at", "rtt_tick"].map(|key| found.text().matches(key).count()), [6, 4]);
}

#[test]
fn what_makes_no_sense_is_one_line() {
    let refused = |block: &str| resolved(&text(block)).expect_err(block);
    for (block, said) in [
        ("", "home.toml:5: traffic.0.homes: missing, expected how many homes there are"),
        ("homes = 0", "home.toml:7: traffic.0.homes = 0: expected a whole number from 1 to 100000"),
        ("homes = 2\nvideo = -1", "home.toml:8: traffic.0.video = -1: expected a number from 0 to 100"),
        ("homes = 2\nvido = 1", "home.toml:8: traffic.0.vido = 1: unknown key, did you mean video?"),
        ("homes = 2\nrtt = '2h'", "traffic.0.rtt = \"2h\""),
        // Films are the second of its blocks, and what is behind a block of homes is the second of the file.
        ("homes = 2\nrule = 'x'", "home.toml:8: traffic.0.rule = \"x\""),
        ("homes = 2\n[[traffic]]\nkind = 'bulk'\nflows = -1", "home.toml:10: traffic.1.flows = -1"),
        (
            "homes = 2\nbrowsing = 0\nvideo = 0\ncalls = 0\ngames = 0\ndownloads = 0\nbackups = 0",
            "traffic.0.browsing = 0: expected at least one share above 0: nobody does anything",
        ),
    ] {
        let found = refused(block);
        assert!(found.contains(said), "{block}: {found}");
    }
    let label = |kind: &str, word: &str| {
        resolved(&format!("{LINK}[[traffic]]\nkind = '{kind}'\napplication = '{word}'\n")).expect_err(word)
    };
    assert!(
        label("bulk", "calls")
            .contains("traffic.0.application = \"calls\": expected a block of kind probe for calls, not bulk")
    );
    assert!(label("bulk", "chess").contains("expected one of pages, downloads, backups, calls, games, video"));
}

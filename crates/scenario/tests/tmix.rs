//! Blocks of connection vectors: the files they name, and how many connections they make of them.

use scenario::{Resolved, Workload};

const HEAD: &str = "w 8760 65535\nr 30000\nl 0 0.02\n";

fn campus() -> String {
    let vector = |i: u32| format!("SEQ {} 1 0 {i}\n{HEAD}> 300\nt 0\n< 20000\nt 100\n", i * 10_000);
    (0..1000).map(vector).collect()
}

fn files(name: &str) -> Result<String, String> {
    match name {
        "campus.cvec" | "copies/1234-campus.cvec" => Ok(campus()),
        "other.cvec" => Ok(format!("CONC 5 1 1 0 0\n{HEAD}c> 7\nc< 8\n")),
        "cut.cvec" => Ok(format!("SEQ 5 2 0 0\n{HEAD}> 7\nt 3\n< 8\n")),
        "negative.cvec" => Ok(format!("SEQ 5 1 0 0\n{HEAD}> -7\n")),
        "empty.cvec" => Ok(String::new()),
        _ => Err("no such file".into()),
    }
}

fn resolve(block: &str) -> Result<Resolved, String> {
    let text = format!("duration = '10s'\nwarmup = '1s'\n[[traffic]]\nkind = 'tmix'\n{block}\n");
    scenario::resolve(&text, "block.toml", &[], &files).map_err(|error| error.to_string())
}

fn tmix(resolved: &Resolved) -> &scenario::Tmix {
    match &resolved.scenario().expect("nothing is left to find").traffic[0].workload {
        Workload::Tmix(tmix) => tmix,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_resolved_block_resolves_to_itself() {
    for block in [
        "vectors = 'campus.cvec'",
        "vectors = ['campus.cvec', 'other.cvec']\nscale = 0.25\nloss = false",
        "vectors = 'campus.cvec'\nload = '5mbit'\ndirection = 'both'",
        "vectors = 'other.cvec'\nrtt = { uniform = ['10ms', '150ms'] }\nwindow = '16kb'",
        "vectors = 'other.cvec'\nrtt = 'vectors'\nwindow = 'vectors'\nstack = 'linux'",
    ] {
        let once = resolve(block).unwrap_or_else(|error| panic!("{block}: {error}"));
        let again = scenario::resolve(once.text(), "again.toml", &[], &files).expect("its own text");
        let text = |resolved: &Resolved| resolved.text().replace("\"again\"", "\"block\"");
        assert_eq!(text(&once), text(&again));
        assert_eq!((once.digest(), once.files()), (again.digest(), again.files()));
        assert_eq!(tmix(&once).scale, tmix(&again).scale);
        assert_eq!(tmix(&once).vectors, tmix(&again).vectors);
    }
}

#[test]
fn conditions_are_the_vectors_or_the_blocks() {
    let of_vectors = resolve("vectors = 'campus.cvec'").expect("sound");
    assert!(tmix(&of_vectors).rtt && tmix(&of_vectors).window && tmix(&of_vectors).loss);
    let traffic = &of_vectors.scenario().expect("complete").traffic[0];
    assert_eq!(traffic.tcp.window, 65_535, "the largest there is");
    // What is the same as elsewhere in the scenario is still not the vectors'.
    let own = resolve("vectors = 'campus.cvec'\nrtt = { uniform = ['10ms', '150ms'] }\nwindow = '16kb'\nloss = false")
        .expect("sound");
    let found = tmix(&own);
    assert!(!found.rtt && !found.window && !found.loss);
    assert_eq!(own.scenario().expect("complete").traffic[0].tcp.window, 16_384);
}

/// A file is known by what is in it, wherever it lies.
#[test]
fn a_digest_is_of_content() {
    let digest = |block: &str| resolve(block).expect("sound").digest().to_owned();
    let campus = digest("vectors = 'campus.cvec'");
    assert_eq!(campus, digest("vectors = 'copies/1234-campus.cvec'"));
    assert_ne!(campus, digest("vectors = 'other.cvec'"));

    let resolved = resolve("vectors = ['other.cvec', 'campus.cvec', 'other.cvec']").expect("sound");
    let names: Vec<&str> = resolved.files().iter().map(|kept| kept.file.as_str()).collect();
    assert_eq!(names, ["other.cvec", "campus.cvec"], "each once");
    let changed = |_: &str| Ok(format!("CONC 5 1 1 0 0\n{HEAD}c> 7\nc< 9\n"));
    let error = scenario::resolve(resolved.text(), "r.toml", &[], &changed).expect_err("other content").to_string();
    assert!(error.contains("traffic.0.vectors.0.sha256") && error.contains("other.cvec has other content"), "{error}");
}

/// 1,000 connections in ten seconds, 100 a second, of 20,000 bytes in 14 packets, and 3 small ones beside.
#[test]
fn a_load_becomes_a_scale() {
    let one = 100.0 * (20_000.0 + 14.0 * 40.0 + 3.0 * 40.0) * 8.0;
    for (load, direction, share) in [
        ("8mbit", "forward", 8e6 / one),
        ("8mbit", "reverse", 8e6 / one),
        // Half of the connections either way, so that each way has half of their data; and acknowledgements.
        ("8mbit", "both", 2.0 * 8e6 / (one + 100.0 * (300.0 + 40.0 + 7.0 * 40.0 + 3.0 * 40.0) * 8.0)),
        ("40mbit", "forward", 40e6 / one),
    ] {
        let resolved = resolve(&format!("vectors = 'campus.cvec'\nload = '{load}'\ndirection = '{direction}'"));
        let scale = tmix(&resolved.expect("sound")).scale;
        // The window's edges cut a few of 900; thinning is by equal draws of which 900 of 1,000 count: 3 standard
        // deviations of sqrt(900 / 4) / 900 = 1.7 %.
        assert!((scale / share - 1.0).abs() < 0.05, "{scale} for {share}");
    }
}

/// What was found is told, and an answer that takes long because of the block's window or round-trip time counts as far
/// as it comes.
#[test]
fn what_was_reached_is_told() {
    let offered = |keys: &str| {
        let resolved = resolve(&format!("vectors = 'campus.cvec'\nload = '8mbit'\n{keys}")).expect("sound");
        let [(0, reached)] = resolved.reached() else { panic!("{:?}", resolved.reached()) };
        assert_eq!((reached.load.bps(), reached.scale), (8_000_000, tmix(&resolved).scale));
        // To within a hundredth, or half of a connection.
        assert!((reached.offered_bps / 8e6 - 1.0).abs() <= 0.01, "{reached:?}");
        assert_eq!(reached.left_out, tmix(&resolved).without.len());
        reached.scale
    };
    let (own, slow) = (offered(""), offered("rtt = '1s'\nwindow = '3kb'"));
    // An answer of 20,000 bytes in windows of 3,000 takes six round trips of a second: of the connections that begin
    // in the window's nine seconds, those of the last eight are cut, in the mean by half.
    assert!(slow / own > 1.15, "{slow} and {own}");
    assert!(resolve("vectors = 'campus.cvec'").expect("sound").reached().is_empty());
}

#[test]
fn what_cannot_be_played_is_refused_in_one_line() {
    for (block, place, says) in [
        ("", "block.toml:3", "traffic.0.vectors: missing, expected the name of a file of connection vectors"),
        ("vectors = 3", "block.toml:5", "expected the name of a file of connection vectors"),
        ("vectors = []", "block.toml:5", "or a list of them"),
        ("vectors = 'none.cvec'", "block.toml:5", "cannot be read: no such file"),
        ("vectors = { file = 'campus.cvec', sha = 'x' }", "block.toml:5", "unknown key"),
        ("vectors = { sha256 = 'x' }", "block.toml:5", "file: missing"),
        ("vectors = 'empty.cvec'", "empty.cvec:1", "expected connection vectors"),
        ("vectors = 'cut.cvec'", "cut.cvec:7", "ends here with 1 epochs, expected 2 epochs"),
        ("vectors = ['other.cvec', 'negative.cvec']", "negative.cvec:5", "> -7: found -7, expected a size in bytes"),
        ("vectors = 'campus.cvec'\nscale = 0", "block.toml:6", "expected a number from 0.000001 to 1000"),
        ("vectors = 'campus.cvec'\nscale = 1\nload = '1mbit'", "block.toml:6", "expected either scale or load"),
        ("vectors = 'campus.cvec'\nload = '90gbit'", "block.toml:6", "of the 1000 connections offer"),
        ("vectors = 'campus.cvec'\nload = '7kbit'", "block.toml:6", "offer to within 5 %: the nearest is none"),
        (
            "vectors = 'other.cvec'\nload = '1mbit'",
            "block.toml:6",
            "the 1 connections offer nothing from warmup to cooldown",
        ),
        ("vectors = 'campus.cvec'\nusers = 3", "block.toml:6", "unknown key"),
        ("vectors = 'campus.cvec'\nrtt = 'vector'", "block.toml:6", "expected"),
        ("vectors = 'campus.cvec'\nwindow = 'vector'", "block.toml:6", "expected"),
    ] {
        let error = resolve(block).expect_err(block);
        assert!(error.starts_with(place) && error.contains(says) && !error.contains('\n'), "{block}: {error}");
    }
    let bulk = "[[traffic]]\nkind = 'bulk'\nwindow = 'vectors'\n";
    assert!(scenario::resolve(bulk, "bulk.toml", &[], &files).is_err(), "only vectors have windows");
}

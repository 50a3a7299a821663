//! Pages of today, against the figures that the HTTP Archive publishes.

use base::Stream;
use scenario::{Web, Workload, resolve};
use traffic::web::Command;
use traffic::{PageModel, Reader};

/// The model of a block of readers.
fn model(keys: &str) -> PageModel {
    let text = format!("[[traffic]]\nkind = 'web'\nmodel = 'archive2024'\nusers = 1\n{keys}");
    let found = resolve(&text, "test.toml", &[], &|name| Err(name.to_owned())).expect("a scenario");
    match &found.scenario().expect("no load").traffic[0].workload {
        Workload::Web(Web::Readers(readers)) => readers.model.clone(),
        other => panic!("{other:?}"),
    }
}

/// A page as it was asked for.
#[derive(Default)]
struct Page {
    objects: u32,
    servers: std::collections::BTreeSet<u32>,
    bytes: u64,
    think_s: f64,
}

fn pages(model: &PageModel, count: u32) -> Vec<Page> {
    let mut reader = Reader::new(Stream::named(5, "traffic/0/user/0"));
    let (mut out, mut under_way, mut found) = (Vec::new(), Vec::new(), Vec::new());
    while found.len() < count as usize {
        let mut page = Page::default();
        reader.think_over(model, &mut out);
        loop {
            for command in out.drain(..) {
                match command {
                    Command::Open { lane, ask, .. } | Command::Ask { lane, ask } => {
                        page.objects += 1;
                        page.servers.insert(lane / model.protocol.parallel());
                        page.bytes += ask.response_bytes;
                        under_way.push(lane);
                    }
                    Command::Close { .. } => {}
                    Command::Think { span } => page.think_s = span.secs_f64(),
                }
            }
            let Some(lane) = under_way.pop() else { break };
            reader.completed(lane, model, &mut out);
        }
        found.push(page);
    }
    found
}

/// The value below which so many of a hundred lie.
fn percentile(mut values: Vec<f64>, percent: usize) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() * percent / 100]
}

#[test]
fn pages_are_those_of_the_archive() {
    // One at a time and without greetings, so that exchanges are objects.
    let found = pages(&model("protocol = 'h1'\ntls = false"), 20_000);
    let objects = |percent| percentile(found.iter().map(|page| f64::from(page.objects)).collect(), percent);
    let servers = |percent| percentile(found.iter().map(|page| page.servers.len() as f64).collect(), percent);
    // Requests of desktop pages, Web Almanac 2024, Page Weight; connections over HTTP/2, Web Almanac 2022, HTTP. A
    // page may happen to have no object at some of its servers.
    let archive = [(10, 24.0, 4.0), (25, 42.0, 7.0), (50, 71.0, 12.0), (75, 115.0, 20.0), (90, 176.0, 32.0)];
    for (percent, of_objects, of_servers) in archive {
        let (found_objects, found_servers) = (objects(percent), servers(percent));
        assert!((found_objects - of_objects).abs() <= 3.0, "{percent} %: {found_objects} objects of {of_objects}");
        let bound = 0.85 * of_servers - 0.5..of_servers + 0.5;
        assert!(bound.contains(&found_servers), "{percent} %: {found_servers} servers of {of_servers}");
    }
    // 2,652 kB in the median.
    let bytes = percentile(found.iter().map(|page| page.bytes as f64).collect(), 50);
    assert!((bytes / 2.652e6 - 1.0).abs() < 0.1, "{bytes} bytes");
    // Reading: just under a minute in the mean, 13 s in the median.
    let think = |percent| percentile(found.iter().map(|page| page.think_s).collect(), percent);
    let mean = found.iter().map(|page| page.think_s).sum::<f64>() / found.len() as f64;
    assert!((mean - 54.0).abs() < 3.0 && (think(50) - 13.0).abs() < 1.0, "{mean} {}", think(50));
}

#[test]
fn what_makes_no_sense_is_one_line() {
    let refused = |keys: &str| {
        let text = format!("[[traffic]]\nkind = 'web'\nmodel = 'archive2024'\nusers = 1\n{keys}");
        resolve(&text, "s.toml", &[], &|name| Err(name.to_owned())).expect_err(keys).to_string()
    };
    for (keys, said) in [
        ("parallel = 4", "s.toml:5: traffic.0.parallel = 4: goes with protocol = \"h1\" alone"),
        ("protocol = 'h3'", "traffic.0.protocol = \"h3\": expected one of h2, h1"),
        ("objects = 0", "traffic.0.objects = 0: expected a number from 1 to 10000, or a distribution"),
        ("servers = 100", "traffic.0.servers = 100: expected a number from 1 to 64, or a distribution"),
        ("waves = 0", "traffic.0.waves = 0: expected a whole number from 1 to 16"),
        ("think = '0s'", "traffic.0.think = \"0s\": expected at least 1ms in the mean"),
        ("size = '0b'", "traffic.0.size = \"0b\": expected sizes of at least 1b"),
        ("think_mean = '5s'", "traffic.0.think_mean = \"5s\": does not go with model = \"archive2024\""),
    ] {
        let found = refused(keys);
        assert!(found.contains(said), "{keys}: {found}");
    }
}

//! Blocks of web sessions and of PackMime's connections: what they read as, that their resolved text says everything,
//! and what is refused.

use base::Distribution;
use scenario::{Resolved, Sessions, Web, Workload, resolve};
use traffic::{PackMimeModel, Pages, SessionModel, Sizes};

fn block(keys: &str) -> Result<Resolved, String> {
    let files = |name: &str| match name {
        "objects.csv" => Ok("objects,probability\n1,0.5\n9,1\n".to_owned()),
        _ => Err(format!("no {name}")),
    };
    let text = format!("[[traffic]]\nkind = \"web\"\n{keys}");
    resolve(&text, "s.toml", &[], &files).map_err(|error| error.to_string())
}

fn sessions(resolved: &Resolved) -> &Sessions {
    match &resolved.scenario().expect("users are given").traffic[0].workload {
        Workload::Web(Web::Sessions(sessions)) => sessions,
        other => panic!("{other:?}"),
    }
}

/// Every key in a form that is no set's own.
const EVERY_KEY: &str = r#"
model = "kuzmanovic2005"
users = 7
pages = "end-to-start"
inter_page = { lognormal = { median = "12s", sigma = 1.5 } }
objects = { uniform = [1, 9], step = 1 }
inter_object = { table = [["10ms", 0.25], ["20.5ms", 1.0]] }
size = { pareto = { mean = "12kb", shape = 1.2 } }
request = "1kb"
"#;

#[test]
fn every_key_reads_as_it_says() {
    let resolved = block(EVERY_KEY).expect("sound");
    let Sessions { model, users } = sessions(&resolved);
    let expected = SessionModel {
        pages: Pages::EndToStart,
        inter_page: Distribution::LogNormal { median: 12.0, sigma: 1.5 },
        objects: Distribution::Steps { low: 1.0, high: 9.0, step: 1.0 },
        inter_object: Distribution::Table(vec![(0.01, 0.25), (0.0205, 1.0)]),
        size: Sizes::Stated(Distribution::Pareto { scale: 12_288.0 * (1.2 - 1.0) / 1.2, shape: 1.2 }),
        request_bytes: 1024,
    };
    assert_eq!((model, *users), (&expected, 7));
    for (objects, read) in [
        ("objects = 3", Distribution::Constant(3.0)),
        ("objects = { exponential = 2.5 }", Distribution::Exponential { mean: 2.5 }),
        ("objects = { table = \"objects.csv\" }", Distribution::Table(vec![(1.0, 0.5), (9.0, 1.0)])),
        ("objects = { table = [[1, 0.5], [9, 1]] }", Distribution::Table(vec![(1.0, 0.5), (9.0, 1.0)])),
    ] {
        let resolved = block(&format!("model = \"feldmann-exp1\"\nusers = 1\n{objects}")).expect(objects);
        assert_eq!(sessions(&resolved).model.objects, read);
    }
}

#[test]
fn resolved_text_resolves_to_itself() {
    let defaults = SessionModel::NAMES.iter().map(|name| format!("model = \"{name}\"\nusers = 1000"));
    for keys in defaults.chain([EVERY_KEY.to_owned()]) {
        let once = block(&keys).expect("sound");
        let nothing = |name: &str| Err(format!("asked for {name}"));
        let twice = resolve(once.text(), "other.toml", &[], &nothing).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!((once.text(), once.digest()), (twice.text(), twice.digest()));
        assert_eq!(sessions(&once).model, sessions(&twice).model, "the values to the last bit");
    }
    for name in SessionModel::NAMES {
        let resolved = block(&format!("model = \"{name}\"\nusers = 1000")).expect("sound");
        assert_eq!(Some(&sessions(&resolved).model), SessionModel::named(name).as_ref());
    }
}

#[test]
fn packmime_reads_as_it_says() {
    let model = |keys: &str| {
        let once = block(&format!("model = \"packmime\"\n{keys}")).expect("sound");
        let twice = resolve(once.text(), "s.toml", &[], &|_| Err("no files".to_owned())).expect("resolved");
        assert_eq!(once.text(), twice.text());
        match &twice.scenario().expect("complete").traffic[0].workload {
            Workload::Web(Web::PackMime(model)) => model.clone(),
            other => panic!("{other:?}"),
        }
    };
    let defaults = PackMimeModel { connections_per_s: 400.0, persistent: 0.09, server_delay: true };
    assert_eq!(model("arrivals = \"400hz\""), defaults);
    let other = PackMimeModel { connections_per_s: 5.5, persistent: 0.0, server_delay: false };
    assert_eq!(model("arrivals = \"5.5hz\"\npersistent = 0\nserver_delay = false"), other);
}

#[test]
fn a_load_is_asked_for() {
    let resolved = block("model = \"feldmann-pareto1\"\nload = \"9mbit\"").expect("sound");
    assert_eq!(resolved.loads().len(), 1);
    assert!(resolved.scenario().is_err());
}

#[test]
fn what_makes_no_sense_is_refused() {
    for (keys, expected) in [
        ("model = \"feldmann\"", "s.toml:3: traffic.0.model = \"feldmann\": expected one of unc2001, feldmann-pareto1"),
        (
            "model = \"feldmann-exp1\"",
            "s.toml:1: traffic.0.users: missing, expected users = 18670 or load = \"98mbit\"",
        ),
        (
            "model = \"feldmann-exp1\"\nusers = 1\nthink_mean = \"3s\"",
            "s.toml:5: traffic.0.think_mean = \"3s\": does not go with model = \"feldmann-exp1\"",
        ),
        (
            "users = 1\npages = \"end-to-start\"",
            "s.toml:4: traffic.0.pages = \"end-to-start\": does not go with model = \"unc2001\"",
        ),
        ("model = \"packmime\"", "s.toml:1: traffic.0.arrivals: missing, expected a frequency such as 1480hz"),
        (
            "model = \"packmime\"\narrivals = \"0.5hz\"",
            "s.toml:4: traffic.0.arrivals = \"0.5hz\": expected at least 2hz: below one a second in a direction",
        ),
        (
            "model = \"packmime\"\narrivals = \"9hz\"\nload = \"9mbit\"",
            "s.toml:5: traffic.0.load = \"9mbit\": does not go with model = \"packmime\"",
        ),
        (
            "model = \"feldmann-exp1\"\nusers = 1\npersistent = 0.5",
            "s.toml:5: traffic.0.persistent = 0.5: does not go with model = \"feldmann-exp1\"",
        ),
        (
            "model = \"feldmann-exp1\"\nusers = 1\npages = \"open\"",
            "s.toml:5: traffic.0.pages = \"open\": expected one of start-to-start, end-to-start",
        ),
        (
            "model = \"feldmann-exp1\"\nusers = 1\ninter_page = \"0s\"",
            "s.toml:5: traffic.0.inter_page = \"0s\": expected times between pages of at least 1ms in the mean",
        ),
        (
            "model = \"feldmann-exp1\"\nusers = 1\nobjects = \"4b\"",
            "s.toml:5: traffic.0.objects = \"4b\": expected a number from 0 to 1000000",
        ),
        (
            "model = \"feldmann-exp1\"\nusers = 1\nobjects = -1",
            "s.toml:5: traffic.0.objects = -1: expected a number from 0 to 1000000",
        ),
        (
            "model = \"feldmann-exp1\"\nusers = 1\nsize = 12000",
            "s.toml:5: traffic.0.size = 12000: expected a size such as 1500b or 16kb",
        ),
        (
            "model = \"feldmann-exp1\"\nusers = 1\nrequest = \"0b\"",
            "s.toml:5: traffic.0.request = \"0b\": expected a size from 1b to 1gb",
        ),
    ] {
        let error = block(keys).expect_err(keys);
        assert!(error.starts_with(expected), "{error}\nrather than\n{expected}");
    }
}

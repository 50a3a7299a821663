//! The keys that say what routers may read of a block's packets: `dscp` and `hosts`.

use scenario::{Hosts, Resolved};

fn resolve(block: &str) -> Result<Resolved, String> {
    let text = format!("[[traffic]]\nkind = 'bulk'\n{block}\n");
    let no_files = |name: &str| Err(format!("no {name}"));
    scenario::resolve(&text, "block.toml", &[], &no_files).map_err(|error| error.to_string())
}

/// The codepoint and the hosts of a block, and how they are written.
fn read(block: &str) -> (u8, Hosts, String) {
    let resolved = resolve(block).unwrap_or_else(|error| panic!("{block}: {error}"));
    let traffic = &resolved.scenario().expect("nothing is left to find").traffic[0];
    let is_ours = |line: &&str| line.starts_with("dscp") || line.starts_with("hosts");
    (traffic.dscp, traffic.hosts, resolved.text().lines().filter(is_ours).collect::<Vec<_>>().join("; "))
}

#[test]
fn codepoints_have_names_and_numbers() {
    for (written, dscp, text) in [
        ("", 0, "\"CS0\""),
        ("dscp = 'EF'", 46, "\"EF\""),
        ("dscp = 'ef'", 46, "\"EF\""),
        ("dscp = 46", 46, "\"EF\""),
        ("dscp = 'CS1'", 8, "\"CS1\""),
        ("dscp = 'LE'", 1, "\"LE\""),
        ("dscp = 'AF41'", 34, "\"AF41\""),
        ("dscp = 63", 63, "63"),
    ] {
        let (found, _, as_written) = read(written);
        assert_eq!((found, as_written), (dscp, format!("dscp = {text}; hosts = \"own\"")), "{written}");
    }
}

#[test]
fn hosts_are_counted_at_each_end() {
    for (written, clients, servers, text) in [
        ("", None, None, "\"own\""),
        ("hosts = 'own'", None, None, "\"own\""),
        ("hosts = 4", Some(4), Some(4), "4"),
        ("hosts = [4, 4]", Some(4), Some(4), "4"),
        ("hosts = [1, 'own']", Some(1), None, "[1, \"own\"]"),
        ("hosts = ['own', 2]", None, Some(2), "[\"own\", 2]"),
    ] {
        let (_, hosts, as_written) = read(written);
        assert_eq!((hosts, as_written), (Hosts { clients, servers }, format!("dscp = \"CS0\"; hosts = {text}")));
    }
}

#[test]
fn bad_values_are_refused_in_one_line() {
    for (written, key, value) in [
        ("dscp = 64", "dscp", "64"),
        ("dscp = -1", "dscp", "-1"),
        ("dscp = 'AF44'", "dscp", "AF44"),
        ("dscp = 1.5", "dscp", "1.5"),
        ("dscp = true", "dscp", "true"),
        ("hosts = 0", "hosts", "0"),
        ("hosts = -3", "hosts", "-3"),
        ("hosts = 'two'", "hosts", "two"),
        ("hosts = [1]", "hosts", "[1]"),
        ("hosts = [1, 2, 3]", "hosts", "[1, 2, 3]"),
        ("hosts = [1, 0]", "hosts", "[1, 0]"),
        ("hosts = 5000000000", "hosts", "5000000000"),
    ] {
        let error = resolve(written).expect_err(written);
        assert!(!error.contains('\n') && error.contains("block.toml") && error.contains("expected"), "{error}");
        assert!(error.contains(&format!("traffic.0.{key}")) && error.contains(value), "{error}");
    }
}

//! Networks of several links and links that change: what a scenario says comes out of its own text, and what makes no
//! sense is refused in one line.

use aqm::changes::{Moment, Pattern};
use base::{Rate, Span};
use net::DelayAt;
use scenario::{Resolved, ToldRate, resolve};

fn resolved(text: &str) -> Result<Resolved, String> {
    let files = |name: &str| if name == "f.trace" { Ok("1\n4\n".to_owned()) } else { Err("no such file".to_owned()) };
    resolve(text, "s.toml", &[], &files).map_err(|error| error.to_string())
}

const HOME: &str = "\
[links.home]
rate = '50mbit'
reverse_rate = '10mbit'
delay = '2ms'
qdisc = { kind = 'fq_codel' }
[links.core]
rate = '100mbit'
delay = '5ms'
reverse_delay = '6ms'
[[traffic]]
kind = 'bulk'
route = ['home', 'core']
[[traffic]]
kind = 'bulk'
route = ['core']
rtt_at = 'left'
[[traffic]]
kind = 'cbr'
rate = '1mbit'
route = ['core', 'home']
reverse_route = ['home']
";

#[test]
fn a_network_is_what_its_text_says() {
    let once = resolved(HOME).expect("it is a network");
    let scenario = once.scenario().expect("no load");
    // In the order of the file, which is not that of the alphabet.
    let names: Vec<&str> = scenario.links.iter().map(|link| link.name.as_str()).collect();
    assert_eq!(names, ["home", "core"]);
    assert_eq!(scenario.link().rates.map(Rate::bps), [50_000_000, 10_000_000]);
    let ms = Span::from_ms;
    assert_eq!(scenario.links[0].delays, [ms(2), ms(2)]);
    assert_eq!(scenario.links[1].delays, [ms(5), ms(6)]);
    assert_eq!(scenario.links[0].qdiscs.each_ref().map(|qdisc| qdisc.kind()), ["fq_codel", "fq_codel"]);
    let routes: Vec<_> = scenario.traffic.iter().map(|block| block.route.links.clone()).collect();
    assert_eq!(routes, [[vec![0, 1], vec![1, 0]], [vec![1], vec![1]], [vec![1, 0], vec![0]]]);
    let at: Vec<_> = scenario.traffic.iter().map(|block| block.route.delay_at).collect();
    assert_eq!(at, [DelayAt::Senders, DelayAt::Left, DelayAt::Senders]);
    let twice = resolved(once.text()).expect("its own text is a network");
    assert_eq!(once.text(), twice.text());
    assert_eq!(once.digest(), twice.digest());
}

#[test]
fn one_link_needs_no_route_and_has_the_name_that_it_is_given() {
    let text = |table: &str| format!("[{table}]\nrate = '10mbit'\n[[traffic]]\nkind = 'bulk'");
    let of = |table: &str| resolved(&text(table)).expect("it is a link");
    for (table, name) in [("link", "link"), ("links.radio", "radio")] {
        let found = of(table);
        let scenario = found.scenario().expect("no load");
        assert_eq!((scenario.links.len(), scenario.link().name.as_str()), (1, name));
        assert!(!found.text().contains("route"), "there is no choice");
        assert!(found.text().contains(&format!("\n[{table}]\n")), "{}", found.text());
    }
}

#[test]
fn links_stand_in_the_order_in_which_they_are_first_mentioned() {
    let traffic = "[[traffic]]\nkind = 'bulk'\nroute = ['zed', 'abe']\n";
    for links in [
        "links = { zed = { rate = '10mbit' }, abe = { rate = '8mbit', qdisc = 'codel' } }\n",
        "[links.zed.qdisc]\nkind = 'pie'\n[links.abe]\n[links.zed]\nrate = '10mbit'\n",
    ] {
        let found = resolved(&format!("{links}{traffic}")).expect("a network");
        let names: Vec<_> = found.scenario().expect("no load").links.iter().map(|link| link.name.clone()).collect();
        assert_eq!(names, ["zed", "abe"], "{links}");
    }
}

const CHANGING: &str = "\
[link]
rate = '50mbit'
delay = '20ms'
device_queue = '8p'
period = '30s'
schedule = [{ at = '10s', rate = '5mbit' }, { at = '20s', delay = '30ms', outage = '80ms' }]
[[traffic]]
kind = 'bulk'
";

#[test]
fn a_schedule_says_what_changes_and_the_rest_stays() {
    let once = resolved(CHANGING).expect("it is a link that changes");
    let scenario = once.scenario().expect("no load");
    let Some(Pattern::Schedule { start, moments, period }) = scenario.link().changes.as_deref() else {
        panic!("it has a schedule")
    };
    assert_eq!((start[1].rate.bps(), *period), (50_000_000, Some(Span::from_secs(30))));
    let like = |moment: &Moment| {
        let conditions = moment.conditions.map(|it| (it.rate.bps() / 1_000_000, it.delay.ns() / 1_000_000));
        (moment.after.ns() / 1_000_000_000, conditions, moment.outage.ns() / 1_000_000)
    };
    let found: Vec<_> = moments.iter().map(like).collect();
    assert_eq!(found, [(10, [(5, 20); 2], 0), (20, [(5, 30); 2], 80)], "in reverse as forward");
    assert_eq!(resolved(once.text()).expect("it is its own text").text(), once.text());

    let asymmetric = CHANGING.replace("delay = '20ms'\n", "reverse_rate = '1mbit'\n");
    let found = resolved(&asymmetric).expect("it is a link that changes");
    let Some(Pattern::Schedule { moments, .. }) = found.scenario().expect("no load").link().changes.as_deref() else {
        panic!("it has a schedule")
    };
    assert!(moments.iter().all(|moment| moment.conditions[1].rate.bps() == 1_000_000), "it has a rate of its own");
}

#[test]
fn a_chain_begins_in_its_first_state() {
    let text = "[link]\nrate = '9mbit'\ntold_rate = 'present'\nstates = [\n\
        { rate = '50mbit', stay = { exponential = '4s' }, to = [0, 1] },\n{ stay = '1s', to = [1, 0] }]\n\
        [[traffic]]\nkind = 'bulk'";
    let once = resolved(text).expect("it is a chain");
    let link = once.scenario().expect("no load").link().clone();
    assert_eq!((link.rates.map(Rate::bps), link.told_rate), ([50_000_000; 2], ToldRate::Present));
    let Some(Pattern::Chain(states)) = link.changes.as_deref() else { panic!("it has states") };
    assert_eq!(states[1].conditions[0].rate.bps(), 9_000_000, "what a state does not say is the link's");
    let twice = resolved(once.text()).expect("it is its own text");
    assert_eq!((twice.text(), twice.scenario().expect("no load").link().changes.clone()), (once.text(), link.changes));
}

#[test]
fn a_link_that_does_not_change_writes_nothing_of_it() {
    let text = resolved("[link]\nrate = '1mbit'\n[[traffic]]\nkind = 'bulk'").expect("a link").text().to_owned();
    for word in ["delay =", "schedule", "states", "told_rate", "route", "rtt_at", "rtt_tick", "access ="] {
        assert!(!text.contains(&format!("\n{word}")), "{word}: scenarios without keep their text and its digest");
    }
}

const ARRIVALS: &str = "kind = 'poisson'\narrivals = '1hz'\nsize = '1kb'\n";

/// Where connections have one delay, a host's links get packets in their order wherever the delay lies.
#[test]
fn hosts_share_links_where_packets_come_in_their_order() {
    for text in [
        "path.access = 'host'\n[[traffic]]\nkind = 'bulk'\nrtt_at = 'left'\nrtt = '20ms'".to_owned(),
        "path.access = 'host'\n[[traffic]]\nkind = 'bulk'\nrtt_at = 'right'\nrtt = { even = ['1s', '1s'] }".to_owned(),
        "path.access = 'host'\n[[traffic]]\nkind = 'bulk'\nrtt_at = 'clients'".to_owned(),
        "path.access = 'host'\n[[traffic]]\nkind = 'probe'\nrtt_at = 'right'".to_owned(),
        "[[traffic]]\nkind = 'bulk'\nrtt_at = 'right'".to_owned(),
        format!("path.access = 'host'\n[[traffic]]\n{ARRIVALS}hosts = 4"),
    ] {
        assert_eq!(resolved(&text).err(), None, "{text}");
    }
}

#[test]
fn one_line_says_what_is_wrong() {
    let two = |traffic: &str| format!("[links.a]\n[links.b]\n[[traffic]]\nkind = 'bulk'\n{traffic}");
    let link = |keys: &str| format!("[link]\n{keys}\n[[traffic]]\nkind = 'bulk'");
    let cases = [
        (two(""), "s.toml:3: traffic.0.route: missing, expected the links that its packets cross, of a, b"),
        (two("route = ['a', 'core']"), "s.toml:5: traffic.0.route.1 = \"core\": expected one of a, b"),
        (two("route = []"), "s.toml:5: traffic.0.route = []: expected at least one of a, b"),
        (
            two("route = ['a', 'b', 'a']"),
            "s.toml:5: traffic.0.route.2 = \"a\": expected each link once: a would be crossed twice",
        ),
        (two("route = ['a']"), "s.toml:2: links.b: expected a route of some block of traffic over this link"),
        (
            two("route = ['a', 'b']\nrtt_at = 'middle'"),
            "s.toml:6: traffic.0.rtt_at = \"middle\": expected one of senders, left, right, clients",
        ),
        (
            "[[traffic]]\nkind = 'bulk'\nrtt_tick = '1ms'".to_owned(),
            "s.toml:3: traffic.0.rtt_tick: expected rtt_at = \"clients\": it is the clock of the delay emulator at the \
             clients",
        ),
        (
            "[[traffic]]\nkind = 'bulk'\nrtt_at = 'clients'\nrtt_tick = '1s'".to_owned(),
            "s.toml:4: traffic.0.rtt_tick = \"1s\": expected a time from 1us to 100ms",
        ),
        (
            "path.access = 'machine'\n[[traffic]]\nkind = 'bulk'".to_owned(),
            "s.toml:1: path.access = \"machine\": expected one of connection, host",
        ),
        (
            "path.access = 'host'\n[[traffic]]\nkind = 'poisson'\narrivals = '1hz'\nsize = '1kb'".to_owned(),
            "s.toml:2: traffic.0.hosts: missing, expected how many hosts its flows take turns at, at each end: with \
             path.access = \"host\" these share links",
        ),
        (
            format!("path.access = 'host'\n[[traffic]]\n{ARRIVALS}hosts = [4, 'own']"),
            "s.toml:6: traffic.0.hosts = [4, \"own\"]: expected how many hosts its flows take turns at, at each end: \
             with path.access = \"host\" these share links",
        ),
        (
            "path.access = 'host'\n[[traffic]]\nkind = 'bulk'\nflows = 2\nhosts = 1\nrtt_at = 'right'".to_owned(),
            "s.toml:6: traffic.0.rtt_at = \"right\": expected senders or clients, or one rtt for the whole block: with \
             path.access = \"host\" connections share access links, on which near packets would wait for far ones",
        ),
        (
            "[link]\n[links.a]\n[[traffic]]\nkind = 'bulk'".to_owned(),
            "s.toml:1: link = { }: expected no [link] beside [links]: it would be one more of these",
        ),
        (
            "[links]\n[[traffic]]\nkind = 'bulk'".to_owned(),
            "s.toml:1: links = { }: expected at least one link, such as [links.home]",
        ),
        (
            "[links.link]\n[[traffic]]\nkind = 'bulk'".to_owned(),
            "s.toml:1: links.link: expected another name: link is what [link] is called",
        ),
        (
            link("schedule = [{ at = '10s', rate = '1mbit' }, { at = '5s', rate = '2mbit' }]"),
            "s.toml:2: link.schedule.1.at = \"5s\": expected a time later than 10s, that of the change before",
        ),
        (
            link("period = '9s'\nschedule = [{ at = '10s', rate = '1mbit' }]"),
            "s.toml:3: link.schedule.0.at = \"10s\": expected a time before the end of the period, 9s",
        ),
        (
            link("trace = 'f.trace'\nschedule = [{ at = '10s', rate = '1mbit' }]"),
            "s.toml:3: link.schedule = [{ at = \"10s\", rate = \"1mbit\" }]: expected none on a link with a trace, whose \
             rate is the trace's",
        ),
        (
            link("schedule = [{ at = '1s', rate = '1mbit' }]\nstates = []"),
            "s.toml:3: link.states = []: expected no states beside a schedule: the link changes by either",
        ),
        (
            link("schedule = [{ at = '1s', rate = '0bit' }]"),
            "s.toml:2: link.schedule.0.rate = \"0bit\": expected a rate above zero; a time without any is \
             outage = \"80ms\"",
        ),
        (
            link("period = '10s'\nschedule = [{ at = '1s', outage = '10s' }]"),
            "s.toml:3: link.schedule.0.outage = \"10s\": expected less than the period, 10s",
        ),
        (
            link("states = [{ stay = '1s', to = [0, 1] }, { stay = '1s', to = [0, 0] }]"),
            "s.toml:2: link.states.1.to = [0, 0]: expected a weight for each of the 2 states, at least one above zero",
        ),
        (
            link(
                "rate = '9mbit'\nstates = [{ rate = '1mbit', stay = '1s', to = [0, 1] }, { rate = '2mbit', stay = '1s', \
                 to = [1, 0] }]",
            ),
            "s.toml:2: link.rate = \"9mbit\": expected no such key beside states that all have it, or what the first \
             of them has",
        ),
        (
            link("period = '10s'"),
            "s.toml:2: link.period = \"10s\": expected no such key on a link without a schedule or states",
        ),
        (
            link("told_rate = 'present'"),
            "s.toml:2: link.told_rate = \"present\": expected \"nothing\", or no such key, on a link without a schedule \
             or states",
        ),
        (
            link("told_rate = 'nothing'\nqdisc = 'pi'\nreverse_qdisc = { kind = 'pi', qref = '5ms' }"),
            "s.toml:4: link.reverse_qdisc.capacity: missing, expected the rate to compute from, such as 10mbit: the link \
             tells of none (told_rate = \"nothing\") (pi)",
        ),
        (link("delay = '20s'"), "s.toml:2: link.delay = \"20s\": expected a time from 0s to 10s"),
    ];
    let mut wrong = String::new();
    for (text, expected) in cases {
        let found = resolved(&text).err().unwrap_or_default();
        if found != expected {
            wrong += &format!("{text}\n  expected {expected}\n  got      {found}\n");
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

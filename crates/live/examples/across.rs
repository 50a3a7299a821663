//! What foreign tools see of the emulated link: `ping`'s round trip and iperf3's rate beside what was set.
//!
//! `across [--virtual] [SECONDS [key=value ...]]`: at 20 and 100 Mb/s, a round trip of 40 ms, one TCP connection of the
//! kernel's own. The settings go into `[link.qdisc]`, such as `kind="codel"`; `--virtual` within a kernel whose time is
//! virtual. As root, or in a user namespace (`unshare -Ur across`), with ip and iperf3.

#[cfg(target_os = "linux")]
#[path = "../tests/across/bed.rs"]
mod bed;

#[cfg(target_os = "linux")]
fn main() -> std::io::Result<()> {
    let mut arguments = std::env::args().skip(1).peekable();
    let is_virtual = arguments.next_if_eq("--virtual").is_some();
    let seconds = arguments.next().unwrap_or_else(|| "10".to_owned());
    let settings: Vec<String> = arguments.collect();
    let settings = if settings.is_empty() { "kind=\"codel\"".to_owned() } else { settings.join("\n") };
    for rate in [20, 100] {
        measure(rate, &seconds, &settings, is_virtual)?;
    }
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn main() {}

/// Runs it over a link of `rate` Mb/s.
#[cfg(target_os = "linux")]
#[expect(clippy::print_stdout, clippy::disallowed_methods, reason = "a program that prints what was measured")]
fn measure(rate: u32, seconds: &str, settings: &str, is_virtual: bool) -> std::io::Result<()> {
    let text = format!(
        "[link]\nrate = \"{rate}mbit\"\n[link.qdisc]\n{settings}\n[path]\naccess_rate = \"1gbit\"\nrtt = \"40ms\""
    );
    let bed = bed::Bed::start(&bed::scenario(&text), is_virtual)?;
    let mut times = bed.sides[0].within(|| bed::ping(50, 84))?;
    times.sort_unstable();
    let ms = |at: usize| times[at].as_secs_f64() * 1e3;
    println!(
        "{rate} Mb/s, idle: ping of 84 bytes in {:.3} ms at least, {:.3} median, {:.3} at most",
        ms(0),
        ms(25),
        ms(49)
    );

    let mut server = bed.sides[1].within(|| {
        let mut iperf3 = std::process::Command::new("iperf3");
        iperf3.args(["--server", "--one-off", "--bind", bed::V4[1]]).stdout(std::process::Stdio::null()).spawn()
    })?;
    std::thread::sleep(std::time::Duration::from_secs(1));
    let client = bed.runs(
        0,
        "iperf3",
        &["--client", bed::V4[1], "--congestion", "cubic", "--time", seconds, "--omit", "3", "--json"],
    );
    if client.is_err() {
        server.kill()?;
    }
    server.wait()?;
    let iperf3: serde_json::Value = serde_json::from_str(&client?)?;
    let received = iperf3["end"]["sum_received"]["bits_per_second"].as_f64().unwrap_or(f64::NAN) * 1e-6;
    // TCP's timestamps take 12 bytes of each 1500.
    let payload = f64::from(rate) * 1448.0 / 1500.0;
    let cc = iperf3["end"]["sender_tcp_congestion"].as_str().unwrap_or("unknown").to_owned();
    println!(
        "{rate} Mb/s, {cc}: iperf3 receives {received:.3} Mb/s, {:+.2} % of the payload's {payload:.3}",
        (received / payload - 1.0) * 100.0
    );
    let (ended, report) = bed.end();
    ended?;
    let summary = report.to_json();
    println!("{:#}\n{:#}\nvoid: {}", summary["directions"][0], summary["lateness_s"], summary["void"]);
    Ok(())
}

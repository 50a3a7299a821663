//! `aqmlab-router SCENARIO.toml --left IFACE --right IFACE [--virtual] [--seconds N] [key=value ...]`
//!
//! Carries packets between two TUN devices over the link of a scenario, and prints what happened as JSON when it ends:
//! after the scenario's duration, measured in its window; with `--seconds` after these, all of which are measured.
//! An interface is a name in the network namespace of this process, or `PATH:NAME` with the path of another one's
//! namespace, such as `/run/netns/left:tun0`.

#[cfg(target_os = "linux")]
fn main() -> std::process::ExitCode {
    linux::main()
}

#[cfg(not(target_os = "linux"))]
fn main() -> std::process::ExitCode {
    eprintln!("aqmlab-router: TUN devices are Linux's");
    std::process::ExitCode::from(3)
}

#[cfg(target_os = "linux")]
mod linux {
    use base::{Span, Time};
    use live::paths::Announced;
    use live::{Clock, Epoch, Namespace, Real, Report, Router, Sleeping, Tun};
    use scenario::Scenario;
    use std::io::{self, Write};
    use std::path::Path;
    use std::process::ExitCode;
    use std::sync::atomic::AtomicBool;

    /// Something the user wrote.
    const MISTAKEN: u8 = 2;
    /// Something the machine cannot do.
    const UNABLE: u8 = 3;

    struct Arguments {
        scenario: String,
        left: String,
        right: String,
        is_virtual: bool,
        seconds: Option<f64>,
        overrides: Vec<(String, String)>,
    }

    pub fn main() -> ExitCode {
        let (arguments, resolved) = match arguments().and_then(|arguments| Ok((resolve(&arguments)?, arguments))) {
            Ok((resolved, arguments)) => (arguments, resolved),
            Err(message) => return fail(&message, MISTAKEN),
        };
        let mut scenario = match resolved.scenario() {
            Ok(scenario) => scenario.clone(),
            Err(error) => return fail(&error.to_string(), MISTAKEN),
        };
        if let Some(seconds) = arguments.seconds {
            scenario.duration = Span::from_secs_f64(seconds);
            (scenario.warmup, scenario.cooldown) = (Span::ZERO, Span::ZERO);
        }
        let ran = ports(&arguments).and_then(|ports| {
            let epoch = Epoch::after(Span::ZERO);
            if arguments.is_virtual {
                carry(&scenario, ports, Sleeping::since(epoch)?)
            } else {
                carry(&scenario, ports, Real::since(epoch)?)
            }
        });
        match ran {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => fail(&error.to_string(), UNABLE),
        }
    }

    fn fail(message: &str, code: u8) -> ExitCode {
        eprintln!("aqmlab-router: {message}");
        ExitCode::from(code)
    }

    fn carry<C: Clock>(scenario: &Scenario, ports: [Tun; 2], clock: C) -> io::Result<()> {
        let mut router = Router::new(scenario, ports, clock, Announced::nothing(), None);
        let ended = router.run(Time::ZERO + scenario.duration, &AtomicBool::new(false));
        // What was counted is told also when the run broke off.
        let printed = print(scenario, &router.report());
        ended.and(printed)
    }

    fn print(scenario: &Scenario, report: &Report) -> io::Result<()> {
        let mut summary = report.to_json();
        summary["scenario"] = scenario.name.as_str().into();
        summary["seed"] = scenario.seed.into();
        if let Some(reason) = report.void() {
            eprintln!("aqmlab-router: this run is void: {reason}");
        }
        writeln!(io::stdout(), "{summary:#}")
    }

    fn ports(arguments: &Arguments) -> io::Result<[Tun; 2]> {
        let open = |port: &str| match port.rsplit_once(':') {
            Some((namespace, name)) => Namespace::of(Path::new(namespace))?.tun(name),
            None => Tun::open(port),
        };
        Ok([open(&arguments.left)?, open(&arguments.right)?])
    }

    fn resolve(arguments: &Arguments) -> Result<scenario::Resolved, String> {
        let file = &arguments.scenario;
        let text = std::fs::read_to_string(file).map_err(|error| format!("{file}: {error}"))?;
        let folder = Path::new(file).parent().map(Path::to_path_buf).unwrap_or_default();
        let read = |name: &str| std::fs::read_to_string(folder.join(name)).map_err(|error| error.to_string());
        scenario::resolve(&text, file, &arguments.overrides, &read).map_err(|error| error.to_string())
    }

    fn arguments() -> Result<Arguments, String> {
        let (mut scenario, mut left, mut right, mut seconds) = (None, None, None, None);
        let mut is_virtual = false;
        let mut overrides = Vec::new();
        let mut words = std::env::args().skip(1);
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or_else(|| format!("{word}: expected a value"));
            match word.as_str() {
                "--left" => left = Some(value()?),
                "--right" => right = Some(value()?),
                "--virtual" => is_virtual = true,
                "--seconds" => {
                    let text = value()?;
                    let is_fit = |seconds: &f64| seconds.is_finite() && *seconds > 0.0;
                    let number = text.parse().ok().filter(is_fit);
                    seconds = Some(number.ok_or_else(|| format!("--seconds {text}: expected a positive number"))?);
                }
                option if option.starts_with('-') => return Err(format!("{option}: no such option")),
                _ if scenario.is_none() => scenario = Some(word),
                setting => {
                    let (key, value) =
                        setting.split_once('=').ok_or_else(|| format!("{setting}: expected key=value"))?;
                    overrides.push((key.to_owned(), value.to_owned()));
                }
            }
        }
        Ok(Arguments {
            scenario: scenario.ok_or("expected a scenario file")?,
            left: left.ok_or("expected --left and the name of an interface")?,
            right: right.ok_or("expected --right and the name of an interface")?,
            is_virtual,
            seconds,
            overrides,
        })
    }
}

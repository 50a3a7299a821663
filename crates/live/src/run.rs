//! This file makes a whole live run. It makes the test bed, checks the link, runs router and hosts as threads of this
//! process, writes down what they report, and makes the summary at the end.

use crate::bed::Bed;
use crate::collector::Collector;
use crate::hosts;
use crate::kernel_qdisc::{KernelLink, KernelSpec};
use crate::link_check::{self, LinkCheck};
use crate::machine;
use crate::news::News;
use crate::outcome::{self, Ran};
use crate::plan::{Failure, Outcome, Plan, write_whole};
use crate::program::sleep_until;
use crate::progress::{Progress, ProgressFile};
use crate::roles::{Roles, Shared};
use crate::tun::Tun;
use aqm::registry::Registry;
use base::{Span, Time};
use scenario::Maker;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex};

/// How often the collector looks what there is, and how often it says how far the run is: in real and in virtual time,
/// where a second may take minutes and a line each is plenty.
const LOOKS: [Span; 2] = [Span::from_ms(50), Span::from_ms(500)];
const SAYS: [Span; 2] = [Span::from_ms(200), Span::from_secs(1)];

/// Does what `directory` says, with the disciplines of `registry`, and leaves everything there: see [`Plan::read`]. The
/// answer is an exit code.
pub fn child(registry: &Registry, directory: &Path) -> u8 {
    let done = Plan::read(registry, directory).and_then(|plan| {
        let create = || ProgressFile::create(directory, plan.is_virtual);
        let mut file = plan.tells_progress.then(create).transpose()?;
        let mut failed = Ok(());
        let outcome = run(&plan, &mut |progress| {
            if let Some(file) = &mut file {
                failed = file.write(progress);
            }
            failed.is_ok()
        });
        failed.map_err(|error| Failure::unable(format!("progress.jsonl cannot be written: {error}")))?;
        Ok(outcome?.write(directory)?)
    });
    match done {
        Ok(()) => 0,
        Err(failure) => {
            failure.write(directory);
            eprintln!("{failure}");
            failure.exit_code
        }
    }
}

/// Makes the run that `plan` describes. `progress` is told how far it is; when it says `false` the run is broken off.
/// The process must have one thread, unless it is root.
///
/// # Errors
/// What went wrong, in a line.
pub fn run(plan: &Plan, progress: &mut dyn FnMut(&Progress) -> bool) -> Result<Outcome, Failure> {
    if plan.has_traffic
        && let Some(why) = hosts::unsupported(&plan.scenario)
    {
        return Err(Failure::mistaken(why));
    }
    if !machine::is_privileged() {
        machine::become_root()?;
    }
    machine::die_with_parent(plan.parent)?;
    let bed = Bed::make(plan.scenario.live.family, &plan.settings)?;
    let readback = bed.read_back(&plan.settings)?;
    let checked = link_check::measure(&bed, &plan.scenario, plan.is_virtual, &mut || {
        // Whoever says `false` says it again when the run is under way.
        progress(&Progress::checking(plan.scenario.duration));
    })?;
    write_whole(&plan.directory.join("bed.json"), &bed.to_json().to_string())?;
    let ran = carry_out(plan, bed, checked, progress)?;
    Ok(Outcome { summary: outcome::summary(plan, &ran, &readback), readback })
}

fn carry_out(
    plan: &Plan,
    bed: Bed,
    link_check: LinkCheck,
    progress: &mut dyn FnMut(&Progress) -> bool,
) -> Result<Ran, Failure> {
    let mut collector = Collector::create(&plan.directory, &plan.scenario)?;
    let interfaces_before = bed.interfaces()?;
    let kernel = kernel_qdisc(plan)?;
    let mut of_kernel: Vec<String> = kernel.iter().flat_map(|(link, _)| link.remarks()).cloned().collect();
    of_kernel.dedup();
    let mut shared = Shared::new(plan, bed);
    shared.kernel = Mutex::new(kernel);
    let shared = Arc::new(shared);
    let (roles, news) = Roles::start(&shared)?;
    let followed = follow(&shared, &mut collector, &news, progress);
    if followed.is_err() {
        shared.stop.store(true, Ordering::Relaxed);
    }
    let mut ended = roles.end(&shared);
    let _: u64 = news.iter().map(|news| collector.take(news)).sum();
    if let Ok(ended) = &mut ended {
        collector.demands(ended.hosts.iter_mut().flatten().flat_map(|report| std::mem::take(&mut report.demands)));
    }
    // When the router ended: threads and captures may have taken their time since.
    collector.end(ended.as_ref().map_or_else(|_| shared.epoch.now(), |ended| ended.routed.report.ended));
    let (responses, probes) = (collector.responses.clone(), collector.probes.clone());
    // Closed also where something failed: what was measured until then is the best account of why.
    let meters = ended.as_ref().ok().map(|ended| &*ended.routed.report.meters);
    let written = collector.finish(&plan.directory, meters);
    let ended = ended?;
    followed?;
    written?;
    let held_windows = if plan.has_traffic { hosts::remarks(&plan.scenario) } else { Vec::new() };
    Ok(Ran {
        interfaces: [interfaces_before, ended.routed.interfaces],
        ended,
        responses,
        probes,
        link_check,
        remarks: [shared.bed.remarks.clone(), of_kernel, held_windows, link_check::remarks(&plan.scenario)].concat(),
    })
}

/// The kernel's disciplines, link by link, where they are to be in place of ours; none where they are not.
fn kernel_qdisc(plan: &Plan) -> Result<Vec<(KernelLink, [Tun; 2])>, Failure> {
    if plan.scenario.live.qdisc != Maker::Kernel {
        return Ok(Vec::new());
    }
    let specs = KernelSpec::from_json(&plan.settings.kernel_qdisc).map_err(Failure::mistaken)?;
    let links = plan.scenario.links.len();
    if specs.len() != links {
        let said = format!("settings.kernel_qdisc: lines of {} links: expected those of {links}", specs.len());
        return Err(Failure::mistaken(said));
    }
    let family = plan.scenario.live.family;
    specs.into_iter().map(|spec| Ok(KernelLink::open(spec, family)?)).collect()
}

/// Looks after the run until it is over: writes down what is told, says how far it is.
fn follow(
    shared: &Shared,
    collector: &mut Collector,
    news: &[Receiver<News>; 2],
    progress: &mut dyn FnMut(&Progress) -> bool,
) -> Result<(), Failure> {
    let clock = usize::from(shared.plan.is_virtual);
    let mut says_at = Time::ZERO;
    let mut before = Progress::default();
    // Nothing is measured before time zero, nor is there anything to say.
    sleep_until(shared.epoch, Time::ZERO);
    loop {
        let (now, is_over) = (shared.epoch.now(), shared.is_over());
        if is_over {
            return Ok(());
        }
        let drops = news.iter().map(|news| collector.take(news)).sum();
        shared.monitor.get().inspect(|monitor| monitor.took(drops));
        if now >= says_at {
            let seen = shared.monitor.get().map(|monitor| monitor.look()).unwrap_or_default();
            let duration = shared.plan.scenario.duration;
            let after = Progress::new(now, duration, &seen, &shared.tallies.sums(), &collector.responses);
            if !progress(&after.since(&before)) {
                shared.cut_short();
            }
            before = after;
            says_at = now + SAYS[clock];
        }
        sleep_until(shared.epoch, (now + LOOKS[clock]).min(shared.end()));
    }
}

//! The registry has a row for every discipline there is. Nothing else names them.

use crate::law::{self, Boxed, Law};
use crate::packet::Packet;
pub use crate::param::CAPACITY;
use crate::param::{Kind, Param, Refusal, Text, Values};
use crate::qdisc::brought::{Brought, Scheduler};
use crate::qdisc::fifo::Fifo;
use crate::qdisc::{self, Qdisc, fq_law};
use crate::redopt;
pub use crate::row::{Row, Storage};
use base::{Rate, Stream};
use std::fmt;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, LazyLock};

/// Writes the table and the constructors from one list. A `law` makes two disciplines: in a first-in-first-out queue,
/// and under fair queueing. A law `alone` makes the first of them only. A `queue` is a discipline of its own file.
macro_rules! disciplines {
    ($($kind:ident $discipline:path),* $(,)?) => {
        static ROWS: &[Row] = &[$(<$discipline as Discipline>::ROW),*];
        static ARE_LAWS: &[bool] = &[$(disciplines!(@is $kind)),*];
        static STATES: &[StateBytes] = &[$(<$discipline as Discipline>::state_bytes),*];
        /// The state of each form under fair queueing; `None` where there is none.
        static FAIR_STATES: &[Option<StateBytes>] = &[$(disciplines!(@fair_state $kind $discipline)),*];

        fn build_own<P: Packet + Send + 'static>(index: usize) -> Build<P> {
            [$(<$discipline as Discipline>::build::<P>),*][index]
        }

        fn law_of(index: usize) -> Lone {
            [$(<$discipline as Discipline>::lone_law),*][index]
        }

        fn build_fair<P: Packet + Send + 'static>(index: usize) -> Option<Build<P>> {
            [$(disciplines!(@fair $kind $discipline, P)),*][index]
        }
    };
    (@fair law $law:path, $packet:ident) => { Some(fq_law::build::<$packet, $law> as Build<$packet>) };
    (@fair $other:ident $queue:path, $packet:ident) => { None };
    (@fair_state law $law:path) => { Some(fq_law::state_bytes::<$law>) };
    (@fair_state $other:ident $queue:path) => { None };
    (@is queue) => { false };
    (@is $law:ident) => { true };
}

type Built<P> = Box<dyn Qdisc<P> + Send>;
type Build<P> = fn(&Values, Site) -> Built<P>;
type Lone = fn(&Values, Site) -> Option<Box<dyn Law + Send>>;
type StateBytes = fn(&Values) -> usize;
/// How many bytes a discipline that was brought from outside holds with given values.
type OwnBytes = Arc<dyn Fn(&Values) -> usize + Send + Sync>;

disciplines! {
    queue law::pass::Pfifo,
    queue law::pass::Bfifo,
    law law::red::Red,
    law law::ared::Ared,
    law law::pi::Pi,
    law law::rem::Rem,
    law law::codel::Codel,
    queue qdisc::fq_codel::FqCodel,
    law law::pie::Pie,
    law law::docsis_pie::DocsisPie,
    queue qdisc::fq_pie::FqPie,
    law law::pi2::Pi2,
    queue qdisc::dualpi2::Dual,
    queue qdisc::curvy_red::DualCurvyRed,
    law law::cobalt::CobaltLaw,
    queue qdisc::cake::CakeRow,
    law law::blue::Blue,
    law law::step::Step,
    law law::gsp::Gsp,
    law law::sfb::Sfb,
    law law::dcn::Dcn,
    law law::afd::Afd,
    queue qdisc::sfq::StochasticFairness,
    queue qdisc::drr::DeficitRoundRobin,
    queue qdisc::fq::FairQueueing,
    law law::rio::Rio,
    law law::rio_ps::RioPs,
    law law::feng_red::FengRed,
    law law::red_pd::RedPd,
    alone redopt::RedOpt,
    law law::fred::Fred,
    law law::sred::Sred,
    queue qdisc::choke::ChooseAndKeep,
}

static BUILTIN: LazyLock<Registry> = LazyLock::new(|| {
    let own = ROWS.iter().enumerate().map(|(at, row)| Entry::new(*row, Form::Own(at)));
    let mut registry = Registry { own: own.collect(), fair: Vec::new(), of_files: Vec::new() };
    for at in (0..ROWS.len()).filter(|at| FAIR_STATES[*at].is_some()) {
        let row = fq_law::row(registry.own[at].row());
        // Some have a row of their own.
        if registry.find(&row.name).is_none() {
            registry.fair.push(Entry::new(row, Form::Fair(at)));
        }
    }
    registry
});

/// The disciplines that a scenario may name. A registry is a value: [`Registry::with`] adds to those that are built in.
#[derive(Clone, Debug)]
pub struct Registry {
    own: Vec<Entry>,
    fair: Vec<Entry>,
    of_files: Vec<OfFile>,
}

/// A law that scenarios name by the file that it comes from.
#[derive(Clone, Debug)]
struct OfFile {
    path: PathBuf,
    sha256: String,
    law: Entry,
    fair: Option<Entry>,
}

impl Registry {
    /// The disciplines of this crate.
    pub fn builtin() -> Self {
        BUILTIN.clone()
    }

    /// Adds a discipline to this registry, and a law under fair queueing too.
    ///
    /// # Errors
    /// One of its names is another discipline's, in one line.
    pub fn with(mut self, entry: Entry) -> Result<Self, String> {
        let fair = entry.under_fair_queueing();
        for name in [Some(&entry), fair.as_ref()].into_iter().flatten().flat_map(|entry| entry.row.names()) {
            if let Some(other) = self.find(name) {
                return Err(format!("{name}: expected a name that is not taken: it is {}", other.row.name));
            }
        }
        self.own.push(entry);
        self.fair.extend(fair);
        Ok(self)
    }

    /// Takes over the law or discipline of the file at `path`, whose content has this digest. Scenarios name it by the
    /// file, so that its name stays free and the file may have another content each time.
    ///
    /// # Errors
    /// Its name is another discipline's, in one line.
    pub fn bring(&mut self, path: &Path, sha256: &str, law: Entry) -> Result<(), String> {
        let fair = law.under_fair_queueing();
        for entry in [Some(&law), fair.as_ref()].into_iter().flatten() {
            let name = &entry.row.name;
            if self.find(name).is_some() {
                let what = if law.is_law() { "law" } else { "discipline" };
                return Err(format!("the {what} is called {name}, as one that is built in: expected another name"));
            }
        }
        let path = plain(path);
        self.of_files.retain(|other| other.path != path || other.sha256 != sha256);
        self.of_files.push(OfFile { path, sha256: sha256.to_owned(), law, fair });
        Ok(())
    }

    /// The digest of the file at `path` as it was brought last, with its law in one queue and under fair queueing.
    pub fn of_file(&self, path: &Path) -> Option<(&str, [Option<&Entry>; 2])> {
        let path = plain(path);
        self.of_files.iter().rfind(|file| file.path == path).map(OfFile::forms)
    }

    /// The digest and the laws of a file with this content, as [`Registry::of_file`] gives them.
    pub fn of_content(&self, sha256: &str) -> Option<(&str, [Option<&Entry>; 2])> {
        self.of_files.iter().rfind(|file| file.sha256 == sha256).map(OfFile::forms)
    }

    /// Every discipline with a row of its own, in the order in which they are shown.
    pub fn own(&self) -> impl Iterator<Item = &Entry> {
        self.own.iter()
    }

    /// Every law under fair queueing, with `fq_` before its name. Laws whose form has a row of its own are left out.
    pub fn fair(&self) -> impl Iterator<Item = &Entry> {
        self.fair.iter()
    }

    /// The discipline of this name or alias.
    pub fn find(&self, name: &str) -> Option<&Entry> {
        self.own.iter().chain(&self.fair).find(|entry| entry.row.names().any(|own| own == name))
    }
}

impl OfFile {
    fn forms(&self) -> (&str, [Option<&Entry>; 2]) {
        (&self.sha256, [Some(&self.law), self.fair.as_ref()])
    }
}

/// A path without its `.` components.
fn plain(path: &Path) -> PathBuf {
    path.components().filter(|part| *part != Component::CurDir).collect()
}

/// Makes a law that was brought from outside.
type MakeLaw = dyn Fn(&Values, Site) -> Box<dyn Law + Send> + Send + Sync;

/// Makes a discipline that was brought from outside.
type MakeScheduler = dyn Fn(&Values, Site) -> Box<dyn Scheduler + Send> + Send + Sync;

/// A discipline of a registry: its row, and the way to build it.
#[derive(Clone)]
pub struct Entry {
    row: Arc<Row<Text>>,
    form: Form,
}

#[derive(Clone)]
enum Form {
    /// The discipline in this place of the list.
    Own(usize),
    /// The law in this place of the list, on each of several queues.
    Fair(usize),
    /// A law from outside, in one queue, and the bytes that it holds.
    Brought(Arc<MakeLaw>, OwnBytes),
    /// A law from outside, on each of several queues.
    BroughtFair(Arc<MakeLaw>, OwnBytes),
    /// A discipline from outside, and the bytes that it holds.
    BroughtQueue(Arc<MakeScheduler>, OwnBytes),
}

impl Entry {
    /// A law from outside this crate. `make` makes it from resolved values, and it holds `own_bytes` before the first
    /// packet.
    pub fn law(
        row: impl Into<Row<Text>>,
        own_bytes: impl Fn(&Values) -> usize + Send + Sync + 'static,
        make: impl Fn(&Values, Site) -> Box<dyn Law + Send> + Send + Sync + 'static,
    ) -> Self {
        Self::new(row, Form::Brought(Arc::new(make), Arc::new(own_bytes)))
    }

    /// A queue discipline from outside this crate. `make` makes it from resolved values, and it holds `own_bytes`
    /// before the first packet. It orders handles, and so serves every driver, while the packets are held for it. If it
    /// loses one or sends one twice, the run ends with its name.
    pub fn qdisc(
        row: impl Into<Row<Text>>,
        own_bytes: impl Fn(&Values) -> usize + Send + Sync + 'static,
        make: impl Fn(&Values, Site) -> Box<dyn Scheduler + Send> + Send + Sync + 'static,
    ) -> Self {
        Self::new(row, Form::BroughtQueue(Arc::new(make), Arc::new(own_bytes)))
    }

    fn new(row: impl Into<Row<Text>>, form: Form) -> Self {
        Self { row: Arc::new(row.into()), form }
    }

    /// Its row.
    pub fn row(&self) -> &Row<Text> {
        &self.row
    }

    /// Whether it is a law in a first-in-first-out queue.
    pub fn is_law(&self) -> bool {
        match self.form {
            Form::Own(at) => ARE_LAWS[at],
            Form::Brought(..) => true,
            Form::Fair(_) | Form::BroughtFair(..) | Form::BroughtQueue(..) => false,
        }
    }

    /// Builds the discipline before the link that `site` describes.
    ///
    /// Each [`Param`] has admitted its value, and [`Row::resolve`] has resolved them: a scenario refuses all others.
    pub fn build<P: Packet + Send + 'static>(&self, values: &Values, mut site: Site) -> Box<dyn Qdisc<P> + Send> {
        site.rate = values.rate_at(site.rate);
        match &self.form {
            Form::Own(at) => build_own(*at)(values, site),
            Form::Fair(at) => build_fair(*at).expect("it is a law")(values, site),
            Form::Brought(make, _) => Box::new(Fifo::around(Boxed::from(make(values, site)), values)),
            Form::BroughtFair(make, _) => fq_law::around(values, site, |site| Boxed::from(make(values, site))),
            Form::BroughtQueue(make, _) => Box::new(Brought::around(self.row.name.clone(), make(values, site))),
        }
    }

    /// Makes the law without its queue, for another law that holds it, if the discipline is a law in a
    /// first-in-first-out queue; for drop-tail the law that lets everything pass. Values are as for [`Entry::build`].
    pub fn lone_law(&self, values: &Values, mut site: Site) -> Option<Box<dyn Law + Send>> {
        site.rate = values.rate_at(site.rate);
        match &self.form {
            Form::Own(at) => law_of(*at)(values, site),
            Form::Brought(make, _) => Some(make(values, site)),
            Form::Fair(_) | Form::BroughtFair(..) | Form::BroughtQueue(..) => None,
        }
    }

    /// How many bytes the discipline holds before the first packet: its state, times its queues if each has one. Values
    /// are as for [`Entry::build`].
    pub fn state_bytes(&self, values: &Values) -> usize {
        match &self.form {
            Form::Own(at) => STATES[*at](values),
            Form::Fair(at) => FAIR_STATES[*at].expect("it is a law")(values),
            Form::Brought(_, bytes) | Form::BroughtQueue(_, bytes) => SMALL_STATE + bytes(values),
            Form::BroughtFair(_, bytes) => fq_law::state_bytes_around::<Boxed>(values, bytes(values)),
        }
    }

    /// The form under fair queueing of a law from outside.
    fn under_fair_queueing(&self) -> Option<Self> {
        let Form::Brought(make, bytes) = &self.form else { return None };
        Some(Self::new(fq_law::row(&self.row), Form::BroughtFair(Arc::clone(make), Arc::clone(bytes))))
    }
}

impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Entry").field(&self.row.name).finish()
    }
}

/// Every discipline of this crate, in the order they are shown.
pub fn rows() -> impl ExactSizeIterator<Item = &'static Row<Text>> {
    BUILTIN.own.iter().map(Entry::row)
}

/// Every law of this crate under fair queueing, with `fq_` before its name, unless it is among [`rows`].
pub fn fair_rows() -> impl ExactSizeIterator<Item = &'static Row<Text>> {
    BUILTIN.fair.iter().map(Entry::row)
}

/// The discipline of this crate of this name or alias, be it one of [`rows`] or of [`fair_rows`].
pub fn row(name: &str) -> Option<&'static Row<Text>> {
    BUILTIN.find(name).map(Entry::row)
}

/// Builds the discipline of this crate called `name`, as [`Entry::build`] does. A name without a row is a broken
/// invariant and panics.
pub fn build<P: Packet + Send + 'static>(name: &str, values: &Values, site: Site) -> Box<dyn Qdisc<P> + Send> {
    BUILTIN.find(name).unwrap_or_else(|| panic!("a discipline is called {name}")).build(values, site)
}

/// What a discipline is built with beside its parameters.
#[derive(Clone, Debug)]
pub struct Site {
    /// Rate of the link that it stands before.
    pub rate: Rate,
    /// Its random stream.
    pub stream: Stream,
}

/// What the file of a discipline provides: its row, and the way to build it.
pub trait Discipline {
    /// Its row.
    const ROW: Row;

    /// Builds it from resolved values.
    fn build<P: Packet + Send + 'static>(values: &Values, site: Site) -> Box<dyn Qdisc<P> + Send>;

    /// How many bytes it then holds before the first packet.
    fn state_bytes(_values: &Values) -> usize {
        SMALL_STATE
    }

    /// Makes its law without the queue, if it is a law in a first-in-first-out queue.
    fn lone_law(_values: &Values, _site: Site) -> Option<Box<dyn Law + Send>> {
        None
    }
}

/// How many bytes a discipline holds at most if no parameter makes its state larger.
pub const SMALL_STATE: usize = 16 << 10;

/// What the file of a law provides: its row, and the way to make one.
pub trait LawRow: Law + Send + Sized + 'static {
    /// Its row.
    const ROW: Row;

    /// Makes one from resolved values.
    fn made(values: &Values, site: Site) -> Self;

    /// How many bytes it then holds beside itself before the first packet.
    fn own_bytes(_values: &Values) -> usize {
        0
    }
}

/// A law in a first-in-first-out queue is a discipline.
impl<L: LawRow> Discipline for L {
    const ROW: Row = L::ROW;

    fn build<P: Packet + Send + 'static>(values: &Values, site: Site) -> Box<dyn Qdisc<P> + Send> {
        Box::new(Fifo::around(L::made(values, site), values))
    }

    fn state_bytes(values: &Values) -> usize {
        SMALL_STATE + size_of::<L>() + L::own_bytes(values)
    }

    fn lone_law(values: &Values, site: Site) -> Option<Box<dyn Law + Send>> {
        Some(Box::new(L::made(values, site)))
    }
}

/// The `limit` that every discipline has.
pub const fn limit(default: &'static str, source: &'static str) -> Param {
    Param {
        name: "limit",
        kind: Kind::Length,
        default,
        // What counters of packets and exact floats of bytes hold.
        range: (0.0, 4e9),
        doc: "How much may wait, in packets or bytes; what arrives beyond is lost. The packet in transmission is \
              not counted.",
        source,
    }
}

/// The `limit` of a discipline whose flows have queues of their own.
pub const fn limit_of_flows(default: &'static str, source: &'static str) -> Param {
    Param {
        doc: "How much may wait, in packets or bytes. Beyond it not what arrives is lost but packets of the longest queue, \
              unless a dialect says otherwise. The packet in transmission is not counted.",
        ..limit(default, source)
    }
}

/// The `ecn` that every discipline has.
pub const ECN: Param = Param {
    name: "ecn",
    kind: Kind::Flag,
    default: "false",
    range: Param::ANY,
    doc: "Mark ECN-capable packets where others are dropped. Refused on a discipline that never marks.",
    source: "tc-red(8), tc-pie(8): off unless asked for",
};

/// The `dialect` of a discipline that has one form in all its sources. The form is named after the source.
pub const fn only(form: &'static [&'static str; 1], source: &'static str) -> Param {
    Param {
        name: "dialect",
        kind: Kind::Word(form),
        default: form[0],
        range: Param::ANY,
        doc: "Whose form: there is one.",
        source,
    }
}

/// The `uses_rate` of a row that always computes from the link's rate.
pub fn always(_values: &Values) -> bool {
    true
}

/// The `uses_rate` of a row that never does.
pub fn never(_values: &Values) -> bool {
    false
}

/// The `resolve` of a row that computes nothing and refuses nothing.
pub fn as_given(_values: &mut Values, _rate: Rate) -> Result<(), Refusal> {
    Ok(())
}

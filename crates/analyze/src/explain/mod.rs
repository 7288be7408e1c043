//! The hotspot report: what is slow, why, the possible gain, and whether to continue.
//!
//! The report covers what a filter keeps, and shares refer to that. Shares have confidence intervals, and a difference within the
//! interval is neither called a cause nor put above the threshold. Gains are upper bounds.
//!
//! Elsewhere: its wording.

mod code;
mod gain;
mod hot;
mod lines;
mod modules;
mod pace;
mod paths;
mod quality;
mod verdict;

use plumb_profile::{Event, EventId, Id, Profile};

use crate::advice::{Advice, CallAdvice, CodeAdvice, Prediction, ScriptSources, advise, advise_code};
use crate::cost::Cost;
use crate::coverage::{is_clock, is_untold};
use crate::filter::Filter;
use crate::kernel::KernelTime;
use crate::loops::CacheSizes;
use crate::own_code::{KernelCallers, OwnCode};
use crate::procs::Procs;
use crate::share::{Sampling, Share};
use crate::view::View;
use crate::waits::WaitSums;

pub use code::{HotCode, HotInstruction, ReadCode, worth_reading};
pub use gain::PredictedGain;
pub use hot::{HotFunction, SampledLine};
pub use lines::CallingLine;
pub use modules::{Module, ModuleKind};
pub use pace::{BoundBy, Gain, RunSummary};
pub use paths::CallPath;
pub use quality::Quality;
pub use verdict::{Bottleneck, Obstacle, Outlook};

/// Largest number of functions and lines listed.
const MOST: usize = 10;
/// Least share, in percent, for a function or line to be listed.
const LEAST_PERCENT: f64 = 0.5;
/// Number of functions whose callers are searched.
const MOST_CALLED: usize = 5;
/// Largest cost that is removed with the calls of a line, as a multiple of the line's cost: the calls and a little of the work around them.
const MOST_OF_LINES: f64 = 1.15;
/// Share of CPU time, in percent, from which all work of lines may be removed with their calls.
const GOOD_PART: f64 = 30.0;
/// Largest share of the elapsed time, in percent, that waits could save through less CPU time.
const MOST_OF_WAITING: f64 = 50.0;

/// The waits of threads.
pub struct Waits<'p> {
    /// The event: `off-cpu` or `run-queue`.
    pub event: &'p str,
    /// Samples of the event, without idle waits.
    pub view: View<'p>,
    /// For blocked time, the waits by kind, and idle waits.
    pub sums: Option<WaitSums<'p>>,
    /// Time by cause; costs are off-CPU nanoseconds of all threads together.
    pub time: KernelTime,
    /// The user's own code that waited, for each row of `time`.
    pub callers: Vec<KernelCallers>,
}

impl Waits<'_> {
    /// Whether any wait was recorded.
    fn has_samples(&self) -> bool {
        let idle = self.sums.as_ref().map_or(0, |sums| sums.idle.part().samples);
        self.view.part().samples + idle > 0
    }
}

/// The report.
pub struct Explanation<'p> {
    /// View that everything except [`waits`](Self::waits) is based on.
    pub view: View<'p>,
    /// Name of the counted event, if it is unknown whether that is CPU time: it is used in place of CPU time then.
    pub untold: Option<&'p str>,
    /// Sampling precision of shares of the view.
    pub sampling: Sampling,
    /// Cost that `--ignore` and other filters excluded from the event.
    pub left_out: Cost,
    /// Elapsed time and CPU time, including what was ignored.
    pub pace: RunSummary,
    /// CPU time by cause.
    pub time: KernelTime,
    /// The user's own code that caused the kernel time, for each row of `time`.
    pub kernel_callers: Vec<KernelCallers>,
    /// User code by kind of module.
    pub modules: Vec<Module<'p>>,
    /// Functions with the highest own cost.
    pub functions: Vec<HotFunction>,
    /// Lines with the highest own cost.
    pub lines: Vec<SampledLine>,
    /// Instructions of the functions whose code was read, in their order.
    pub code: Vec<HotCode>,
    /// Call paths into the first functions.
    pub paths: Vec<Vec<CallPath>>,
    /// Waits of threads, if recorded.
    pub waits: Vec<Waits<'p>>,
    /// Causes in user code.
    pub causes: Vec<CodeAdvice>,
    /// The programs that ran.
    pub procs: Procs<'p>,
    /// Causes in system calls and page faults, if these were traced; largest gain first.
    pub calls: Vec<CallAdvice>,
    /// Causes in the way programs are started and end.
    pub processes: Vec<Advice>,
    /// Quality of the recording.
    pub quality: Quality<'p>,
    /// The next step.
    pub outlook: Outlook,
}

/// Inputs of a report.
pub struct ExplainOptions<'a, 'p> {
    /// Share of CPU time, in percent, above which optimizing is worthwhile.
    pub threshold: f64,
    /// Names of system calls by number.
    pub call_name: &'a dyn Fn(u32) -> Option<&'static str>,
    /// Findings of rules on system calls and page faults, if these were traced.
    pub calls: Vec<CallAdvice>,
    /// Sources of interpreted programs.
    pub sources: &'a ScriptSources,
    /// Cache sizes of the machine.
    pub caches: CacheSizes,
    /// Recording of off-CPU time, if it is separate.
    pub waits: Option<&'p Profile>,
}

impl<'p> Explanation<'p> {
    /// Returns the view for a report: what `filter` keeps. Its event must be explainable ([`explained_event`]).
    pub fn view(profile: &'p Profile, filter: &Filter) -> View<'p> {
        let mut view = View::new(profile, filter);
        view.refer_to_part();
        view
    }

    /// Creates the report of such a view. `code`: the functions [`worth_reading`] whose code was read.
    pub fn new(
        view: View<'p>,
        filter: &Filter,
        code: &[ReadCode<'_>],
        options: &ExplainOptions<'_, 'p>,
    ) -> Self {
        let profile = view.profile();
        let sampling = Sampling::of(&view);
        let time = KernelTime::new(&view, filter, options.call_name);
        let pace = pace(&view, filter, &time, options);
        let functions = hot::functions(&view, filter, code, &sampling, (MOST, LEAST_PERCENT));
        let paths = paths::paths(&view, &functions[..functions.len().min(MOST_CALLED)]);
        let procs = Procs::new(&view, filter);
        let mut processes = advise(&procs);
        let own = OwnCode::of(&view);
        let causes = advise_code((&view, &own), (code, options.sources), &sampling, options.caches);
        // The cost of thread exits is reported with the threads.
        processes.retain(|advice| !advice.is_of_exits() || !causes.iter().any(CodeAdvice::is_of_threads));
        let calls: Vec<CallAdvice> = options
            .calls
            .iter()
            .filter(|advice| !(advice.tells_of_locks() && has_goroutines(&view)))
            .cloned()
            .collect();
        let quality = Quality::new(&view, filter, &sampling);
        let kernel_callers = KernelCallers::of_rows(&view, &own, &time.rows);
        let outlook = verdict::outlook(
            &view,
            (options.threshold, quality.nameless_share),
            &sampling,
            (&functions, &time),
            (&causes, &processes, &calls),
            (CallingLine::of(&view, &own), &kernel_callers),
        );
        Explanation {
            untold: untold(profile, filter),
            left_out: left_out(&view),
            kernel_callers,
            calls,
            modules: modules::modules(&view),
            lines: hot::lines(&view, code, &sampling, (MOST, LEAST_PERCENT)),
            code: code.iter().map(|code| code::hot_code(code, &sampling)).collect(),
            waits: waits(options.waits.unwrap_or(profile), filter, options),
            quality,
            sampling,
            pace,
            time,
            functions,
            paths,
            causes,
            procs,
            processes,
            outlook,
            view,
        }
    }

    /// Whether it is a Go program, whose goroutines wait instead of its threads.
    pub fn has_goroutines(&self) -> bool {
        has_goroutines(&self.view)
    }

    /// Returns the bottleneck to report first, of those above the threshold.
    pub fn first(&self) -> Option<(Bottleneck, Share)> {
        let first = self.outlook.first_of(&self.causes, &self.calls)?;
        let &largest = self.outlook.above.first()?;
        // Page faults that no line of the user's causes are less important than a larger part without names.
        let says_less = self.is_nameless(largest.0) && self.is_runtimes_faults(first.0);
        Some(if says_less { largest } else { first })
    }

    fn is_nameless(&self, what: Bottleneck) -> bool {
        matches!(what, Bottleneck::Function(frame) if !self.view.frame(frame).named)
    }

    fn is_runtimes_faults(&self, what: Bottleneck) -> bool {
        let Bottleneck::Calls(index) = what else { return false };
        let advice = &self.calls[index];
        advice.faults && self.callers_of(advice).places.is_empty()
    }

    /// Returns the user's own code that makes the calls of a rule, with the cost of these calls.
    pub fn callers_of(&self, advice: &CallAdvice) -> KernelCallers {
        let rows = self.time.rows.iter().zip(&self.kernel_callers);
        let mut of_rule = rows.filter(|(row, _)| verdict::is_about(advice, row));
        of_rule.next().map_or_else(KernelCallers::default, |(_, callers)| callers.clone())
    }

    /// Predicts the CPU time gained by following a rule on system calls and page faults: the cost of the calls
    /// of these lines, and some or all of that of the functions around them.
    pub fn prediction_of(&self, advice: &CallAdvice) -> Prediction {
        let rows = self.time.rows.iter().zip(&self.kernel_callers);
        let of_rule: Vec<_> = rows.filter(|(row, _)| verdict::is_about(advice, row)).collect();
        let percent = |cost: Cost| cost.percent_of(self.time.whole);
        let of_rows: f64 = of_rule.iter().map(|(row, _)| percent(row.cost)).sum();
        // Rules may concern only some of the calls.
        let part = if of_rows > 0.0 { (advice.cpu_percent / of_rows).clamp(0.0, 1.0) } else { 1.0 };
        let lines: f64 = of_rule.iter().map(|(_, callers)| percent(callers.lines) * part).sum();
        let lines = lines.max(advice.cpu_percent).min(100.0);
        let around = of_rule.iter().map(|(_, callers)| percent(callers.around)).fold(0.0, f64::max);
        let high = (lines * MOST_OF_LINES + around * part).min(100.0);
        // The work that the calls serve may be removed with them, except for that of other lines.
        let others = of_rule.iter().map(|(_, callers)| percent(callers.others)).fold(100.0, f64::min);
        let most = if lines >= GOOD_PART { 100.0 - others } else { 0.0 };
        Prediction { low: lines * 0.9, high: high.max(most), is_cpu_only: false }
    }

    /// Returns the largest share of the elapsed time, in percent, that less CPU time could save, if it is below the threshold because the target
    /// waits: then CPU time is not what makes it slow.
    pub fn saved_at_most(&self) -> Option<f64> {
        let waits = self.pace.class() == Some(BoundBy::Waiting);
        let (_, most) = self.pace.wanted().filter(|_| waits && !self.pace.is_machine)?;
        let threshold = self.outlook.threshold;
        // If other processes had the CPUs, the part of the wait due to them is unknown.
        let runs_little = || self.pace.cores().is_some_and(|cores| cores * 100.0 < threshold);
        let is_small = |percent: f64| {
            percent < threshold
                || percent < MOST_OF_WAITING && (self.outlook.above.is_empty() || runs_little())
        };
        Some(most * 100.0).filter(|&percent| is_small(percent))
    }
}

/// Returns the event to explain: the first with samples that measures CPU time, otherwise one that possibly does.
pub fn explained_event(profile: &Profile) -> Option<EventId> {
    let mut sampled = vec![false; profile.events.len()];
    profile.samples.iter().for_each(|sample| sampled[sample.event.index()] = true);
    let first = |is_it: fn(&str) -> bool| {
        let mut events = profile.events.iter().filter(|(id, _)| sampled[id.index()]);
        events.find(|(_, event)| is_it(profile.strings.get(event.name))).map(|(id, _)| id)
    };
    first(is_clock).or_else(|| first(is_untold))
}

/// Returns whether this is a Go program: its threads wait in futex when no goroutine can run; goroutines do not wait this way.
fn has_goroutines(view: &View<'_>) -> bool {
    view.frames()
        .any(|(_, frame)| frame.name.starts_with("runtime.mcall") || frame.name.starts_with("runtime.goexit"))
}

/// Returns the name of the counted event if its quantity is unknown.
fn untold<'p>(profile: &'p Profile, filter: &Filter) -> Option<&'p str> {
    let event = filter.event.map(|event| &profile.events[event]).or(profile.events.rows().first())?;
    Some(profile.strings.get(event.name)).filter(|name| is_untold(name))
}

/// Returns the performance summary of the whole target: ignored or not, it took its time.
fn pace(view: &View<'_>, filter: &Filter, time: &KernelTime, options: &ExplainOptions<'_, '_>) -> RunSummary {
    if filter.ignore.is_empty() {
        return RunSummary::new(view, time);
    }
    let all = Filter { ignore: Vec::new(), ..filter.clone() };
    let view = View::new(view.profile(), &all);
    let whole = KernelTime::new(&view, &all, options.call_name);
    let reported = time.whole.percent_of(whole.whole) / 100.0;
    RunSummary { reported, ..RunSummary::new(&view, &whole) }
}

fn left_out(view: &View<'_>) -> Cost {
    let (all, part) = (view.recorded(), view.part());
    Cost { weight: all.weight.saturating_sub(part.weight), samples: all.samples.saturating_sub(part.samples) }
}

fn waits<'p>(profile: &'p Profile, filter: &Filter, options: &ExplainOptions<'_, 'p>) -> Vec<Waits<'p>> {
    let named = |name: &str| {
        let mut events = profile.events.iter();
        events.find(|(_, event)| profile.strings.get(event.name) == name).map(|(id, _)| id)
    };
    let of = |event: EventId| {
        // Observing a waiting thread does not disturb it.
        let filter = Filter { event: Some(event), except: Vec::new(), ..filter.clone() };
        let mut view = View::new(profile, &filter);
        view.refer_to_part();
        let sums = WaitSums::set_idle_aside(&mut view, &filter, options.call_name);
        let time = KernelTime::new(&view, &filter, options.call_name);
        let callers = KernelCallers::of_rows(&view, &OwnCode::of(&view), &time.rows);
        Waits { event: profile.strings.get(profile.events[event].name), view, sums, time, callers }
    };
    Event::WAITS.into_iter().filter_map(named).map(of).filter(Waits::has_samples).collect()
}

//! The hotspot report: what is slow, why, what could be gained at most, and whether to go on.
//!
//! Everything here is of what a filter keeps, and shares are of that. Shares have intervals, and what these can't tell from chance is
//! neither called a cause nor put above the threshold. Gains are upper bounds.
//!
//! Not here: how any of it is said.

mod code;
mod gain;
mod hot;
mod lines;
mod modules;
mod pace;
mod paths;
mod quality;
mod verdict;

use plumb_profile::{EventId, Id, Profile};

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

/// Functions and lines that are listed at most.
const MOST: usize = 10;
/// Those below this share are not listed, in percent.
const LEAST_PERCENT: f64 = 0.5;
/// Functions whose callers are looked for.
const MOST_CALLED: usize = 5;
/// With the calls of a line goes a little of what is done around it: at most this much of the line.
const MOST_OF_LINES: f64 = 1.15;
/// From this part of processor time on, in percent, all that lines do may go with their calls.
const GOOD_PART: f64 = 30.0;
/// What waits could save by less processor time this share of the elapsed time at most, in percent.
const MOST_OF_WAITING: f64 = 50.0;
/// Events of time off the processor: waiting for something, and waiting for a processor.
const WAITS: [&str; 2] = ["off-cpu", "run-queue"];

/// What threads waited for.
pub struct Waits<'p> {
    /// The event: `off-cpu` or `run-queue`.
    pub event: &'p str,
    /// The samples of it, without idle waits.
    pub view: View<'p>,
    /// Of time that threads were blocked, what they waited for by kind, and idle waits.
    pub sums: Option<WaitSums<'p>>,
    /// By cause; costs are nanoseconds off the processor, all threads together.
    pub time: KernelTime,
    /// Of its rows, in their order, the user's own code that waited.
    pub callers: Vec<KernelCallers>,
}

impl Waits<'_> {
    /// Whether anything was recorded of it.
    fn is_some(&self) -> bool {
        let idle = self.sums.as_ref().map_or(0, |sums| sums.idle.part().samples);
        self.view.part().samples + idle > 0
    }
}

/// The report.
pub struct Explanation<'p> {
    /// What all but [`waits`](Self::waits) is of.
    pub view: View<'p>,
    /// What is counted, if it isn't told whether that is processor time: it stands in for that then.
    pub untold: Option<&'p str>,
    /// How sure shares of it are.
    pub sampling: Sampling,
    /// What `--ignore` and other filters left out of the event.
    pub left_out: Cost,
    /// Time on the clock and on processors, with what was ignored.
    pub pace: RunSummary,
    /// Where processor time went.
    pub time: KernelTime,
    /// Of its rows, in their order, the user's own code that they were for.
    pub kernel_callers: Vec<KernelCallers>,
    /// What user code is made of.
    pub modules: Vec<Module<'p>>,
    /// Functions with the most time in themselves.
    pub functions: Vec<HotFunction>,
    /// Lines with the most time.
    pub lines: Vec<SampledLine>,
    /// Of the functions whose code was read, in their order, the instructions.
    pub code: Vec<HotCode>,
    /// Of the first functions the call paths that bring them.
    pub paths: Vec<Vec<CallPath>>,
    /// What threads waited for, if that was recorded.
    pub waits: Vec<Waits<'p>>,
    /// Causes in user code.
    pub causes: Vec<CodeAdvice>,
    /// The programs that ran.
    pub procs: Procs<'p>,
    /// Causes in system calls and page faults, if these were watched; those that could gain more first.
    pub calls: Vec<CallAdvice>,
    /// Causes in how programs are started and end.
    pub processes: Vec<Advice>,
    /// How far all this is to be trusted.
    pub quality: Quality<'p>,
    /// What to do next.
    pub outlook: Outlook,
}

/// What a report is made with.
pub struct ExplainOptions<'a, 'p> {
    /// What is above this share of processor time is worth going on for, in percent.
    pub threshold: f64,
    /// The names of system calls by number.
    pub call_name: &'a dyn Fn(u32) -> Option<&'static str>,
    /// What rules on system calls and page faults found, if these were watched.
    pub calls: Vec<CallAdvice>,
    /// Sources of interpreted programs.
    pub sources: &'a ScriptSources,
    /// The caches of the machine.
    pub caches: CacheSizes,
    /// Where time off the processor was recorded, if not beside the time on it.
    pub waits: Option<&'p Profile>,
}

impl<'p> Explanation<'p> {
    /// What a report is made of: what `filter` keeps. Its event has to be one that can be explained ([`explained_event`]).
    pub fn view(profile: &'p Profile, filter: &Filter) -> View<'p> {
        let mut view = View::new(profile, filter);
        view.refer_to_part();
        view
    }

    /// Makes the report of such a view. `code`: what was read of the functions that are [`worth_reading`].
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
        // What threads take to end is told with them.
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

    /// Whether it is a program in Go, whose goroutines wait, not its threads.
    pub fn has_goroutines(&self) -> bool {
        has_goroutines(&self.view)
    }

    /// What is to be told first, of what is above the threshold.
    pub fn first(&self) -> Option<(Bottleneck, Share)> {
        let first = self.outlook.first_of(&self.causes, &self.calls)?;
        let &largest = self.outlook.above.first()?;
        // Page faults that no line of the user's leads to say less than that a larger part has no names.
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

    /// The user's own code that the calls of a rule are made for, and what is done for that.
    pub fn callers_of(&self, advice: &CallAdvice) -> KernelCallers {
        let rows = self.time.rows.iter().zip(&self.kernel_callers);
        let mut of_rule = rows.filter(|(row, _)| verdict::is_about(advice, row));
        of_rule.next().map_or_else(KernelCallers::default, |(_, callers)| callers.clone())
    }

    /// What is predicted to be gained by following a rule on system calls and page faults, of processor time: what is done for the
    /// lines that make the calls, and some or all of what the functions around them do.
    pub fn prediction_of(&self, advice: &CallAdvice) -> Prediction {
        let rows = self.time.rows.iter().zip(&self.kernel_callers);
        let of_rule: Vec<_> = rows.filter(|(row, _)| verdict::is_about(advice, row)).collect();
        let percent = |cost: Cost| cost.percent_of(self.time.whole);
        let of_rows: f64 = of_rule.iter().map(|(row, _)| percent(row.cost)).sum();
        // Rules may be about some of the calls only.
        let part = if of_rows > 0.0 { (advice.cpu_percent / of_rows).clamp(0.0, 1.0) } else { 1.0 };
        let lines: f64 = of_rule.iter().map(|(_, callers)| percent(callers.lines) * part).sum();
        let lines = lines.max(advice.cpu_percent).min(100.0);
        let around = of_rule.iter().map(|(_, callers)| percent(callers.around)).fold(0.0, f64::max);
        let high = (lines * MOST_OF_LINES + around * part).min(100.0);
        // What so many calls are made for may go with them, but for what other lines do.
        let others = of_rule.iter().map(|(_, callers)| percent(callers.others)).fold(100.0, f64::min);
        let most = if lines >= GOOD_PART { 100.0 - others } else { 0.0 };
        Prediction { low: lines * 0.9, high: high.max(most), is_cpu_only: false }
    }

    /// What less processor time could save of the elapsed time at most, in percent, where that is below the threshold because the target
    /// waits: whatever takes processor time is not what makes it slow.
    pub fn saved_at_most(&self) -> Option<f64> {
        let waits = self.pace.class() == Some(BoundBy::Waiting);
        let (_, most) = self.pace.wanted().filter(|_| waits && !self.pace.is_machine)?;
        let threshold = self.outlook.threshold;
        // Where others had the processors nobody knows what of that wait was for them.
        let runs_little = || self.pace.cores().is_some_and(|cores| cores * 100.0 < threshold);
        let is_small = |percent: f64| {
            percent < threshold
                || percent < MOST_OF_WAITING && (self.outlook.above.is_empty() || runs_little())
        };
        Some(most * 100.0).filter(|&percent| is_small(percent))
    }
}

/// The event to explain: the first with samples that goes by processor time, or else one that may, for all that is told of it.
pub fn explained_event(profile: &Profile) -> Option<EventId> {
    let mut sampled = vec![false; profile.events.len()];
    profile.samples.iter().for_each(|sample| sampled[sample.event.index()] = true);
    let first = |is_it: fn(&str) -> bool| {
        let mut events = profile.events.iter().filter(|(id, _)| sampled[id.index()]);
        events.find(|(_, event)| is_it(profile.strings.get(event.name))).map(|(id, _)| id)
    };
    first(is_clock).or_else(|| first(is_untold))
}

/// Whether the program is one in Go: its threads wait by futex when there is no goroutine to run, and its goroutines don't wait so.
fn has_goroutines(view: &View<'_>) -> bool {
    view.frames()
        .any(|(_, frame)| frame.name.starts_with("runtime.mcall") || frame.name.starts_with("runtime.goexit"))
}

/// What is counted, if nobody knows what that is.
fn untold<'p>(profile: &'p Profile, filter: &Filter) -> Option<&'p str> {
    let event = filter.event.map(|event| &profile.events[event]).or(profile.events.rows().first())?;
    Some(profile.strings.get(event.name)).filter(|name| is_untold(name))
}

/// The pace is that of the whole target: ignored or not, it took its time.
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
        // Who waits is not disturbed by being watched.
        let filter = Filter { event: Some(event), except: Vec::new(), ..filter.clone() };
        let mut view = View::new(profile, &filter);
        view.refer_to_part();
        let sums = WaitSums::set_idle_aside(&mut view, &filter, options.call_name);
        let time = KernelTime::new(&view, &filter, options.call_name);
        let callers = KernelCallers::of_rows(&view, &OwnCode::of(&view), &time.rows);
        Waits { event: profile.strings.get(profile.events[event].name), view, sums, time, callers }
    };
    WAITS.into_iter().filter_map(named).map(of).filter(Waits::is_some).collect()
}

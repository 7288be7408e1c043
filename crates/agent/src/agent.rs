//! The agent's main loop: takes samples, inspects new processes and frames, and closes windows.

use std::sync::Arc;
use std::time::{Duration, Instant};

use plumb_process::Host;
use plumb_profile::Profile;
use plumb_record::EndedWindows;

use crate::bursts::Bursts;
use crate::capture::Capture;
use crate::clock::{OpenWindow, unix_ns_of_samples};
use crate::cost::CostMeter;
use crate::delivery::{Delivery, PreparedDelivery};
use crate::error::AgentError;
use crate::figures::WindowFigures;
use crate::kernel_time::KernelTime;
use crate::labels::ProcessDirectory;
use crate::measured::MeasuredWindows;
use crate::observe::{self, Observer};
use crate::options::AgentOptions;
use crate::other_agents::other_agents;
use crate::privileges::{missing, shortcomings};
use crate::processes;
use crate::spending::Spending;
use crate::symbols::SymbolUpload;
use crate::totals::{Quantity, SharedTotals, Totals};
use crate::window::{self, ClosedWindow, WindowFacts};

/// Interval between two inspections of new processes and frames.
const LOOK: Duration = Duration::from_secs(1);
/// Longest time that the records of a measured quantity wait in their rings; the rings hold a few seconds of them.
const READ: Duration = Duration::from_millis(250);
/// Service name under which the agent reports itself.
const OWN_SERVICE: &str = "plumb-agent";

/// Parts that follow services from window to window.
struct Habits {
    observer: Observer,
    bursts: Bursts,
}

/// A profiler of the whole machine that runs until a signal ends it.
pub struct Agent {
    interval: Duration,
    capture: Capture,
    directory: ProcessDirectory,
    measured: Option<MeasuredWindows>,
    kernel_time: Option<KernelTime>,
    counts_processes: bool,
    delivery: Delivery,
    symbols: SymbolUpload,
    habits: Habits,
    totals: Arc<SharedTotals>,
    window: OpenWindow,
    own: Vec<(String, String)>,
    spending: Spending,
    /// Lost samples at the end of the last window.
    lost: u64,
    /// The server symbolizes frames, as far as the agent knows.
    has_left_names: bool,
}

impl Agent {
    /// Starts sampling. `meter`: opened before the process dropped its capabilities.
    ///
    /// # Errors
    /// A capability is missing, the spool is unusable, or the kernel refuses to sample.
    pub fn begin(options: &AgentOptions, meter: CostMeter) -> Result<Self, AgentError> {
        let host = Host::read();
        let missing = missing(&host);
        if !missing.is_empty() {
            return Err(AgentError::Capabilities(missing));
        }
        for shortcoming in shortcomings(&host) {
            tracing::warn!("{shortcoming}");
        }
        for pid in other_agents() {
            tracing::warn!(
                pid,
                "another agent of plumb runs on this machine: if both send to one server, every sample is there twice"
            );
        }
        let totals = Arc::new(SharedTotals::default());
        let delivery = PreparedDelivery::open(options)?;
        let mut common = vec![("host.name".to_owned(), host.name)];
        common.extend(options.attributes.iter().cloned());
        let mut own = common.clone();
        own.push(("service.name".to_owned(), OWN_SERVICE.to_owned()));
        let watch = options.observe.then(observe::load).flatten();
        // From here on, signals are blocked in this thread and in threads started later; the recorder reads them.
        let capture = Capture::begin(options, None)?;
        let directory = || ProcessDirectory::new(common.iter().cloned().collect(), options.rules.clone());
        let measured = MeasuredWindows::begin(options, directory(), own.clone())?;
        let delivery = delivery.begin(totals.clone())?;
        let symbols = SymbolUpload::begin(options)?;
        // Before the observer starts: tracing a service adds to the cost of a system call.
        let kernel_time = KernelTime::begin(options)?;
        let observer = Observer::begin(watch)?;
        // Most of the program text that setup needed is not needed again.
        plumb_capture_perf::release_program();
        let interval = options.interval;
        tracing::info!(
            url = options.url,
            hz = capture.frequency_hz(),
            interval_seconds = interval.as_secs_f64(),
            max_cpu = format_args!("{}%", options.max_cpu * 100.0),
            "started"
        );
        Ok(Self {
            interval,
            directory: directory(),
            measured,
            kernel_time,
            counts_processes: options.profiles.processes,
            delivery,
            symbols,
            habits: Habits { observer, bursts: Bursts::default() },
            totals,
            window: OpenWindow::begin(interval),
            own,
            spending: Spending::begin(options, meter, capture.frequency_hz()),
            lost: capture.recording.lost(),
            has_left_names: false,
            capture,
        })
    }

    /// Runs until a signal ends the agent, then sends the last window. Returns the totals of the run.
    ///
    /// # Errors
    /// The kernel refuses to continue sampling.
    pub fn run(mut self) -> Result<Totals, AgentError> {
        let mut looked = Instant::now();
        self.leave_names();
        loop {
            let next = LOOK.saturating_sub(looked.elapsed()).min(self.window.left());
            if self.step(next)? {
                return Ok(self.end());
            }
            if self.window.left().is_zero() {
                let (facts, cost) = self.facts(self.capture.recording.lost());
                let taken = self.capture.recording.take();
                self.symbols.note(&taken);
                self.leave_names();
                self.directory.learn(taken.cgroups);
                self.close(&taken.profile, facts, &cost);
                drop(taken.profile);
                self.capture.trim();
                self.close_measured(facts);
                self.window = OpenWindow::begin(self.interval);
                self.look_at_cost();
                looked = Instant::now();
            } else if looked.elapsed() >= LOOK {
                looked = Instant::now();
                let finds_names = self.symbols.is_decided();
                if !self.has_left_names {
                    self.leave_names();
                }
                let (directory, kernel_time) = (&mut self.directory, &mut self.kernel_time);
                self.capture.recording.look(finds_names, |profile| {
                    directory.look(profile);
                    kernel_time.iter_mut().for_each(|kernel_time| kernel_time.look(profile, directory));
                });
                self.measured.iter_mut().for_each(|measured| measured.look(finds_names));
                self.look_at_cost();
            }
        }
    }

    /// Sleeps until there is work or `timeout` has passed, and does the work. Returns `true` if a signal ends the agent.
    fn step(&mut self, mut timeout: Duration) -> Result<bool, AgentError> {
        if let Some(kernel_time) = &mut self.kernel_time {
            kernel_time.sweep();
            timeout = timeout.min(kernel_time.left());
        }
        let Some(measured) = &mut self.measured else { return self.capture.step(timeout) };
        measured.step()?;
        self.capture.step(timeout.min(READ))
    }

    /// Adjusts the sample rate and the observer to the budget.
    fn look_at_cost(&mut self) {
        self.add_watches();
        self.spending.look(&mut self.capture);
        self.habits.observer.spare(self.spending.is_over());
    }

    /// Adds the time by which tracing slowed system calls to the agent's cost.
    fn add_watches(&mut self) {
        let kernel_time_ns = self.kernel_time.as_mut().map_or(0, KernelTime::take_cost_ns);
        self.spending.add_watches(self.habits.observer.take_cost_ns() + kernel_time_ns);
    }

    /// Leaves symbolization to the server for the files that it can symbolize.
    fn leave_names(&mut self) {
        if let Some(left) = self.symbols.left_names() {
            self.has_left_names = true;
            self.measured.iter_mut().for_each(|measured| measured.leave_identified(left.clone()));
            self.capture.recording.leave_identified(left);
        }
    }

    /// Returns the facts of the window that ends now, and its cost in percent of the machine.
    fn facts(&mut self, lost: u64) -> (WindowFacts, String) {
        let (time_unix_ns, duration_ns) = self.window.so_far();
        self.add_watches();
        let (cost, share) = self.spending.of_window();
        let facts = WindowFacts {
            time_unix_ns,
            duration_ns,
            machine_ns: self.spending.machine_ns(duration_ns),
            frequency_hz: self.capture.frequency_hz(),
            cost,
            lost: lost.saturating_sub(self.lost),
        };
        self.lost = lost;
        (facts, share)
    }

    /// Closes a window and queues it for delivery.
    fn close(&mut self, profile: &Profile, facts: WindowFacts, cost: &str) {
        let directory = &mut self.directory;
        let kernel_time = self.kernel_time.as_mut().map(|one| one.close(profile, directory));
        let more = with_processes(kernel_time, self.counts_processes, profile, directory);
        let resources = self.directory.finish(profile);
        self.habits.observer.note(profile, &resources, facts.frequency_hz);
        let (hz, unix_ns) = (facts.frequency_hz, unix_ns_of_samples());
        let bursts = self.habits.bursts.of_window(profile, &resources, hz, unix_ns);
        let (observed, own) = (self.habits.observer.take(), self.own.clone());
        let closed = window::close(profile, resources, observed, more, bursts, own, facts);
        tracing::info!(
            samples = closed.taken.samples,
            services = closed.services,
            bytes = closed.request.body.len(),
            lost = facts.lost,
            hz = facts.frequency_hz,
            cost,
            "window"
        );
        hand_over(&self.totals, &self.delivery, closed, self.lost);
    }

    /// Closes the window of a measured quantity and queues it for delivery.
    fn close_measured(&mut self, facts: WindowFacts) {
        let Some(measured) = &mut self.measured else { return };
        let (name, symbols) = (measured.measure().words().name, &self.symbols);
        let closed = measured.close(facts, |taken| symbols.note(taken));
        self.hand_over_measured(name, closed);
    }

    fn hand_over_measured(&self, name: &str, closed: ClosedWindow) {
        let bytes = closed.request.body.len();
        let seconds = closed.taken.weight(Quantity::OffCpu) / 1_000_000_000;
        let lost_ns = closed.lost_off_cpu_ns;
        tracing::info!(seconds, services = closed.services, bytes, lost_ns, "window of {name}");
        hand_over(&self.totals, &self.delivery, closed, self.lost);
    }

    fn end(mut self) -> Totals {
        tracing::info!("stopping");
        let (facts, _) = self.facts(self.capture.recording.lost());
        if let Some(measured) = self.measured.take() {
            self.hand_over_measured(measured.measure().words().name, measured.end(facts));
        }
        let Self {
            capture,
            mut directory,
            kernel_time,
            counts_processes,
            delivery,
            habits: Habits { observer, mut bursts },
            totals,
            own,
            ..
        } = self;
        let observed = observer.take();
        drop(observer);
        let EndedWindows { profile, cgroups, samples, lost, .. } = capture.recording.end();
        directory.learn(cgroups);
        let mut facts = facts;
        facts.lost += lost.saturating_sub(self.lost);
        let kernel_time = kernel_time.map(|one| one.end(&profile, &mut directory));
        let more = with_processes(kernel_time, counts_processes, &profile, &mut directory);
        let resources = directory.finish(&profile);
        let bursts = bursts.of_window(&profile, &resources, facts.frequency_hz, unix_ns_of_samples());
        let closed = window::close(&profile, resources, observed, more, bursts, own, facts);
        hand_over(&totals, &delivery, closed, lost);
        delivery.end();
        let totals = totals.read();
        if totals.taken.samples != samples {
            tracing::error!(
                counted = samples,
                taken = totals.taken.samples,
                "samples are missing from windows"
            );
        }
        totals
    }
}

/// Figures of a window, with those of its processes if processes are counted.
fn with_processes(
    kernel_time: Option<WindowFigures>,
    counts_processes: bool,
    profile: &Profile,
    directory: &mut ProcessDirectory,
) -> WindowFigures {
    let mut figures = kernel_time.unwrap_or_default();
    if counts_processes {
        figures.services.extend(processes::of_window(profile, directory));
    }
    figures
}

/// Adds a window to the totals and queues it for delivery. `lost`: samples that the kernel lost since the agent started.
fn hand_over(totals: &SharedTotals, delivery: &Delivery, closed: ClosedWindow, lost: u64) {
    totals.change(|totals| {
        totals.taken += closed.taken;
        totals.left_out += closed.left_out;
        totals.lost_off_cpu_ns += closed.lost_off_cpu_ns;
        totals.lost = lost;
    });
    delivery.hand_over(closed.request);
}

//! Records the waits of a target in addition to its CPU time: only once it waits most of the time, so that nothing else is disturbed.
//!
//! Invariant: a target that keeps half a CPU busy is never recorded here, and the first recording does not depend on this one: if
//! it is not possible, it is omitted. Elsewhere: reporting the waits (analyze).

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use plumb_capture_api::TargetObserver;
use plumb_process::procfs;
use plumb_profile::Profile;
use plumb_target::Target;

use crate::measure::MeasureRequest;
use crate::recording::{Looks, Sampled};
use crate::request::RecordRequest;
use crate::session::{Session, Step};

/// Observation time before a target counts as waiting, and interval of repetition.
const WINDOW: Duration = Duration::from_millis(400);
/// A target that uses less of a CPU than this waits: see `plumb_analyze::BoundBy`.
const WAITS_BELOW: f64 = 0.5;
/// Interval of checks for the end.
const STEP: Duration = Duration::from_millis(50);

/// A recording of waits that starts automatically.
pub struct SecondLook {
    request: RecordRequest,
    pids: Vec<u32>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Option<Profile>>>,
}

impl SecondLook {
    /// Prepares one for a request. `None`: its target does not consist of processes that can be followed.
    pub fn beside(request: &RecordRequest) -> Option<Self> {
        let is_followed =
            matches!(request.target, Target::Command(_) | Target::Processes(_) | Target::Tree(_));
        let mut sampling = request.sampling.clone();
        sampling.heeds_signals = false;
        (sampling.counter, sampling.also) = (None, Vec::new());
        let measure = Some(MeasureRequest::OffCpu { min_ns: 0 });
        let request = RecordRequest { measure, duration: None, sampling, ..request.clone() };
        let stop = Arc::new(AtomicBool::new(false));
        is_followed.then_some(Self { request, pids: Vec::new(), stop, thread: None })
    }

    /// The recorded waits. `None`: the target never waited for long, or off-CPU time can't be recorded here.
    pub fn profile(mut self) -> Option<Profile> {
        self.stop.store(true, Ordering::Release);
        let profile = self.thread.take()?.join().ok().flatten()?;
        (!profile.samples.is_empty()).then_some(profile)
    }
}

impl TargetObserver for SecondLook {
    fn follow_all(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn only_followed(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn follow(&mut self, pid: BorrowedFd<'_>, _from_exec: bool) -> io::Result<()> {
        let text = std::fs::read_to_string(format!("/proc/self/fdinfo/{}", pid.as_raw_fd()))?;
        let number = text.lines().find_map(|line| line.strip_prefix("Pid:")?.trim().parse::<u32>().ok());
        self.pids.extend(number);
        Ok(())
    }

    fn begin(&mut self) -> io::Result<()> {
        let (pids, stop) = (self.pids.clone(), self.stop.clone());
        let mut request = self.request.clone();
        request.target = match (&self.request.target, &pids[..]) {
            (_, []) => return Ok(()),
            (Target::Processes(_), _) => Target::Processes(pids.clone()),
            (_, &[pid, ..]) => Target::Tree(pid),
        };
        let look = move || if begins_to_wait(&pids, &stop) { record(&request, &stop) } else { None };
        self.thread = Some(std::thread::Builder::new().name("waits".into()).spawn(look)?);
        Ok(())
    }

    fn end(&mut self) -> io::Result<()> {
        self.stop.store(true, Ordering::Release);
        Ok(())
    }
}

/// Waits until the target waits; `false`: it has ended before.
fn begins_to_wait(pids: &[u32], stop: &AtomicBool) -> bool {
    let mut last = (Instant::now(), wanted(pids));
    while !stop.load(Ordering::Acquire) {
        std::thread::sleep(STEP);
        let elapsed = last.0.elapsed();
        if elapsed >= WINDOW {
            let now = wanted(pids);
            // The total falls if a thread ended that was waiting for a CPU: then the load is unknown.
            let wanted = now.checked_sub(last.1);
            if wanted.is_some_and(|wanted| wanted.as_secs_f64() < WAITS_BELOW * elapsed.as_secs_f64()) {
                return true;
            }
            last = (Instant::now(), now);
        }
    }
    false
}

/// CPU time of the processes and their descendants so far, plus the run-queue wait of those still alive.
fn wanted(pids: &[u32]) -> Duration {
    let tree = procfs::tree(pids);
    let ran = tree.iter().filter_map(|&pid| procfs::cpu_time(pid));
    let queued = tree.iter().flat_map(|&pid| {
        plumb_process::threads(pid).into_iter().filter_map(move |tid| procfs::run_times(pid, tid))
    });
    let queued: u64 = queued.map(|times| times.waited_ns).sum();
    ran.map(|(own, children)| own.total() + children.total()).sum::<Duration>() + Duration::from_nanos(queued)
}

/// Records until `stop` is set. `None`: off-CPU time can't be recorded here; the report then has no waits.
fn record(request: &RecordRequest, stop: &AtomicBool) -> Option<Profile> {
    let (mut session, _) = Session::start(request, None).ok()?;
    // A message from here would come after the end of its recording.
    if stop.load(Ordering::Acquire) {
        return None;
    }
    let mut looks = Looks::begin(request, None, &mut ());
    while !stop.load(Ordering::Acquire) {
        match session.step(STEP) {
            Ok(Step::GoesOn) => looks.symbols.look(&mut session.recorder),
            Ok(Step::TimeUp | Step::Ended(_)) => break,
            Err(_) => return None,
        }
    }
    let (recorded, _) = session.stop();
    Sampled::new(request, recorded, looks).named(&mut ()).into_profile().ok()
}

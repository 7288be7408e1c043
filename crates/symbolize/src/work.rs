//! Hands the files to as many threads as there are processors, the biggest first.
//!
//! Invariant: whatever one file makes its parser do, the others' answers arrive; a parser that fails by panicking
//! loses that file only, which is counted.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::mpsc::{self, Sender};
use std::thread;

use crate::job::{Answer, Job};
use crate::options::{Options, Progress};
use crate::summary::Missing;

/// A worker's stack: deeper than usual, because demanglers are recursive.
pub(crate) const STACK: usize = 8 << 20;

/// What a worker says.
pub(crate) enum Message {
    /// For the user.
    Progress(Progress),
    /// A file is done.
    Done(Box<Answer>),
}

/// Does all jobs with `solve`; the answers come in any order.
pub(crate) fn run(
    mut jobs: Vec<Job>,
    options: &Options,
    progress: &mut dyn FnMut(Progress),
    solve: impl Fn(&Job, &Sender<Message>) -> Answer + Sync,
) -> Vec<Answer> {
    let total = jobs.len();
    let threads = match options.threads {
        0 => thread::available_parallelism().map_or(1, usize::from),
        threads => threads,
    };
    // Taken from the end.
    jobs.sort_by_cached_key(size);
    let queue = Mutex::new(jobs);
    let mut answers = Vec::with_capacity(total);
    thread::scope(|scope| {
        let (sender, receiver) = mpsc::channel();
        for _ in 0..threads.min(total) {
            let (sender, queue, solve) = (sender.clone(), &queue, &solve);
            let worker = move || {
                while let Some(job) = next(queue) {
                    let answer = guarded(&job, &sender, solve);
                    if sender.send(Message::Done(Box::new(answer))).is_err() {
                        return;
                    }
                }
            };
            let builder = thread::Builder::new().name("symbolize".into()).stack_size(STACK);
            if builder.spawn_scoped(scope, worker).is_err() && answers.is_empty() {
                // No thread to be had: this one does what is left, below.
                break;
            }
        }
        drop(sender);
        for message in receiver {
            match message {
                Message::Progress(what) => progress(what),
                Message::Done(answer) => {
                    answers.push(*answer);
                    let path = answers.last().map(|answer| answer.summary.path.clone()).unwrap_or_default();
                    progress(Progress::File { path, done: answers.len(), total });
                }
            }
        }
    });
    let (sender, _receiver) = mpsc::channel();
    while let Some(job) = next(&queue) {
        answers.push(guarded(&job, &sender, &solve));
    }
    answers
}

fn next(queue: &Mutex<Vec<Job>>) -> Option<Job> {
    // A poisoned lock only says that another worker died; the queue itself is whole.
    queue.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).pop()
}

fn guarded(job: &Job, sender: &Sender<Message>, solve: &impl Fn(&Job, &Sender<Message>) -> Answer) -> Answer {
    let start = cpu_seconds();
    let solved = catch_unwind(AssertUnwindSafe(|| solve(job, sender)));
    let mut answer = solved.unwrap_or_else(|_| {
        let mut answer = Answer::new(job);
        answer.miss(Missing::Skipped { what: format!("{}: its parser failed", job.path) });
        answer
    });
    answer.summary.seconds = cpu_seconds() - start;
    answer
}

/// Processor time of this thread, 0 if the kernel doesn't count it.
fn cpu_seconds() -> f64 {
    // "time on cpu, time waiting, time slices", in nanoseconds (kernel: Documentation/scheduler/sched-stats.rst).
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split(' ').next().and_then(|ns| ns.parse::<f64>().ok()).unwrap_or(0.0) * 1e-9
}

/// How long a job is likely to take.
fn size(job: &Job) -> u64 {
    std::fs::metadata(&job.path).map_or(0, |meta| meta.len())
}

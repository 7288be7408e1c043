//! Whom calls are seen of: found, followed, let go and waited for, with samples of their stacks or without.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, bail};
use plumb_capture_bpf::Calls;
use plumb_capture_perf::{Counter, Error, EventSpec, Named, Recorded, Recorder, SamplingOptions, Trigger};
use plumb_profile::Profile;
use plumb_target::{End, Notice, Running, Subject, Target};

use crate::recording::capture::{Capture, assistant};
use crate::recording::{self, notice};
use crate::terminal::say;

/// Memory for tables by which stacks are walked in the kernel, as `plumb record` has it.
const TABLES_MIB: u16 = 64;

/// Whom.
pub(super) enum Watched {
    /// Their calls alone are seen.
    Alone(Box<Subject>),
    /// A sample is taken as each call begins.
    Sampled(Box<Recorder>),
}

/// A command that may still run.
pub(super) enum Command {
    Alone(Box<Subject>),
    Sampled(Option<Running>),
}

impl Watched {
    /// Finds the target and has its calls followed. `events`: the tracepoints at which samples are taken; `None`: no samples.
    pub fn find(target: &Target, events: Option<Vec<String>>, calls: &mut Calls) -> Result<Self> {
        let Some(events) = events else {
            return Ok(Watched::Alone(Box::new(alone(target, calls)?)));
        };
        let mut triggers = events.iter().map(|name| trigger(name)).collect::<Result<Vec<_>>>()?.into_iter();
        let counter = |trigger| Counter::Trigger(Arc::new(trigger));
        let Some(first) = triggers.next() else {
            bail!("--stack needs a tracepoint, and these calls have none")
        };
        let default = SamplingOptions::default();
        let options = SamplingOptions {
            counter: Some(counter(first)),
            also: triggers
                .map(|trigger| EventSpec {
                    counter: counter(trigger),
                    code: default.code,
                    period: None,
                    is_copied: false,
                })
                .collect(),
            period: Some(1),
            keep_tables: true,
            ..default
        };
        let (assistant, note) = assistant(Capture::Bpf, target, &options, true, TABLES_MIB);
        note.iter().for_each(|note| say!("{note}"));
        let recorder = Recorder::start_beside(target, &options, assistant, Some(calls))?;
        Ok(Watched::Sampled(Box::new(recorder)))
    }

    /// The processes that it begins with.
    pub fn pids(&self) -> &[u32] {
        match self {
            Watched::Alone(subject) => subject.pids(),
            Watched::Sampled(recorder) => recorder.pids(),
        }
    }

    /// From now on calls are seen, and a command goes on to its exec. With samples that was so from the beginning.
    pub fn begin(&mut self, calls: &mut Calls) -> Result<(), Error> {
        let Watched::Alone(subject) = self else { return Ok(()) };
        calls.begin().map_err(Error::system("seeing calls"))?;
        Ok(subject.release()?)
    }

    /// Sleeps for so long, or until something is to be done. `is_busy`: calls come all the time, and wait until then.
    pub fn wait(&mut self, calls: &Calls, is_busy: bool, time: Duration) -> Result<Option<End>, Error> {
        match self {
            Watched::Alone(subject) if is_busy => Ok(subject.wait(&[], time)?),
            Watched::Alone(subject) => Ok(subject.wait(&[calls.wakes()], time)?),
            Watched::Sampled(recorder) => recorder.step(time),
        }
    }

    /// Goes on with those of these processes that run, now that the others have ended. Returns whether there is one.
    pub fn goes_on_with(&mut self, pids: Vec<u32>) -> bool {
        match self {
            Watched::Alone(subject) => subject.go_on_with(pids),
            // It knows the descendants of its target itself.
            Watched::Sampled(_) => false,
        }
    }

    /// What the user is to know of a command that a Ctrl-C didn't end.
    pub fn notice(&mut self) -> Option<Notice> {
        match self {
            Watched::Alone(subject) => subject.notice(),
            Watched::Sampled(recorder) => recorder.notice(),
        }
    }

    /// Ends it: the samples, with names, and what may still run.
    pub fn end(self) -> (Option<Profile>, Command) {
        let recorder = match self {
            Watched::Alone(subject) => return (None, Command::Alone(subject)),
            Watched::Sampled(recorder) => recorder,
        };
        let Recorded { mut profile, running, .. } = recorder.finish();
        plumb_symbolize::symbolize(&mut profile, &plumb_symbolize::Options::default(), &mut |_| {});
        plumb_symbolize::make_readable(&mut profile);
        (Some(profile), Command::Sampled(running))
    }
}

impl Command {
    /// Ends it, if there is one.
    pub fn end(self, target: &Target) {
        match self {
            Command::Alone(mut subject) => {
                let end = subject.end_command(|notice| notice::say_of(target, notice));
                notice::say_refused(target, end);
            }
            Command::Sampled(running) => running.into_iter().for_each(|one| recording::end(one, target)),
        }
    }
}

fn alone(target: &Target, calls: &mut Calls) -> Result<Subject, Error> {
    let subject = Subject::find(target)?;
    if let Target::Machine = target {
        return Ok(subject);
    }
    calls.only_followed().map_err(Error::system("following processes"))?;
    match target {
        Target::Command(_) => subject.follow(|pid| calls.follow_from_exec(pid))?,
        _ => subject.follow(|pid| calls.follow(pid))?,
    }
    Ok(subject)
}

fn trigger(name: &str) -> Result<Trigger> {
    match Named::parse(name)? {
        Named::Trigger(trigger, _) => Ok(trigger),
        _ => bail!("{name} is no tracepoint"),
    }
}

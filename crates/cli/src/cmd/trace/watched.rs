//! The traced processes: finds, follows, resumes and awaits them, with or without sampling stacks.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, bail};
use plumb_capture_bpf::{Calls, LoadOptions};
use plumb_capture_perf::{Counter, Error, EventSpec, Named, Recorded, Recorder, SamplingOptions, Trigger};
use plumb_profile::Profile;
use plumb_record::{Capture, kernel_unwinder};
use plumb_target::{End, Notice, Running, Subject, Target};

use crate::recording::{self, notice};
use crate::terminal::say;

/// The traced processes.
pub(super) enum Watched {
    /// Calls only, without samples.
    Alone(Box<Subject>),
    /// A sample is taken at the start of each call.
    Sampled(Box<Recorder>),
}

/// A command that may still be running.
pub(super) enum Command {
    Alone(Box<Subject>),
    Sampled(Option<Running>),
}

impl Watched {
    /// Finds the target and traces its calls. `events`: the tracepoints at which samples are taken; `None`: no samples.
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
        let kernel = LoadOptions { counting: false, ..LoadOptions::default() };
        let (unwinder, note) = kernel_unwinder(Capture::Bpf, &options, kernel);
        note.iter().for_each(|note| say!("{note}"));
        let recorder = Recorder::start_beside(target, &options, unwinder, Some(calls))?;
        Ok(Watched::Sampled(Box::new(recorder)))
    }

    /// The processes of the target at the start.
    pub fn pids(&self) -> &[u32] {
        match self {
            Watched::Alone(subject) => subject.pids(),
            Watched::Sampled(recorder) => recorder.target().pids(),
        }
    }

    /// Starts recording, and lets a command continue to its exec. With samples, recording has already started.
    pub fn begin(&mut self, calls: &mut Calls) -> Result<(), Error> {
        let Watched::Alone(subject) = self else { return Ok(()) };
        calls.begin().map_err(Error::system("seeing calls"))?;
        Ok(subject.release()?)
    }

    /// Sleeps up to `time`, or until there is work. `is_busy`: calls arrive all the time and can wait until then.
    pub fn wait(&mut self, calls: &Calls, is_busy: bool, time: Duration) -> Result<Option<End>, Error> {
        match self {
            Watched::Alone(subject) if is_busy => Ok(subject.wait(&[], time)?),
            Watched::Alone(subject) => Ok(subject.wait(&[calls.wakes()], time)?),
            Watched::Sampled(recorder) => recorder.step(time),
        }
    }

    /// Continues with those of these processes that run, after the others have ended. Returns whether there is one.
    pub fn goes_on_with(&mut self, pids: Vec<u32>) -> bool {
        match self {
            Watched::Alone(subject) => subject.go_on_with(pids),
            // The recorder finds the descendants of its target itself.
            Watched::Sampled(_) => false,
        }
    }

    /// A notice for the user if the command did not end on Ctrl-C.
    pub fn notice(&mut self) -> Option<Notice> {
        match self {
            Watched::Alone(subject) => subject.notice(),
            Watched::Sampled(recorder) => recorder.target_mut().notice(),
        }
    }

    /// Stops recording. Returns the samples, with names, and the command that may still be running.
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
    /// Ends the command, if there is one.
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

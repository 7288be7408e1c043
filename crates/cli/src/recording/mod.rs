//! Recordings of the commands: requests made of options, progress and messages on the terminal, the file, and the exit status.
//!
//! Elsewhere: the recording itself (`plumb_record`), its summary (`cmd::record`).

pub mod notice;
pub mod output;
mod progress;
mod request;

use std::path::Path;

use anyhow::{Result, bail};
use plumb_capture_api::TargetObserver;
use plumb_profile::Profile;
use plumb_record::{Ending, RecordError, RecordRequest, Recording, Sampled, sample};
use plumb_target::{Running, Target};

use crate::exit::Exit;
use crate::newfile::{Destination, NewFile};
use crate::terminal::say;
use output::{Output, Written};

pub use progress::ProgressLine;
pub use request::{prints_beside, request, request_of_command, with_events};

/// Help on the effect of signals, for all commands that run one.
pub const CTRL_C: &str = "Ctrl-C goes to the command: plumb waits until the command ends, keeps what was measured, and exits \
                          with the command's status. The third Ctrl-C kills the command.";

/// A recording, and the file that it was written to.
pub type Recorded = (Recording, Written);

/// Records to a file, or whatever the output refers to. If the recording could not be written, it is an error, which must be reported; its end is
/// returned even so.
///
/// # Errors
/// Nothing can be recorded, or the command can't be started: [`Exit::of_error`] has the status.
pub fn record(
    request: &RecordRequest,
    output: &Output,
    observer: Option<&mut dyn TargetObserver>,
    mut notices: ProgressLine,
) -> Result<(Result<Recorded>, Ending)> {
    let (sampled, mut ending) = sample(request, output.file(), observer, &mut notices)?;
    let recorded = write(sampled, output, &mut notices);
    ending.running = ending.running.filter(|_| recorded.is_ok());
    Ok((recorded, ending))
}

/// Looks up names, and writes the recording.
fn write(mut sampled: Sampled, output: &Output, notices: &mut ProgressLine) -> Result<Recorded> {
    // If names take long, the recording is first written without them: it remains if the look-up is interrupted, or the disk becomes full.
    let is_early = !sampled.has_names() && output.file().is_some();
    let early = match is_early {
        true => Some(output.write_by(&mut |file| plain(sampled.write(file)))?),
        false => None,
    };
    let mut recording = sampled.named(notices);
    let mut whole = |file: &mut NewFile| plain(recording.write(file));
    let written = match early {
        None => output.write_by(&mut whole)?,
        Some(mut written) => {
            if let Err(error) = written.replace_by(&mut whole) {
                say!("{error:#}\nplumb: the recording is there, but without symbols");
            }
            written
        }
    };
    recording.remove_journal();
    Ok((recording, written))
}

/// The error of an output itself.
fn plain(written: Result<(), RecordError>) -> Result<()> {
    written.map_err(|error| match error {
        RecordError::Output(error) => error.into(),
        error => error.into(),
    })
}

/// Ends a command that outlives its recording because the time is up, and returns plumb's exit status.
///
/// # Errors
/// The reason why the recording ended early.
pub fn exit(ending: Ending, target: &Target) -> Result<Exit> {
    Ok(match ending.end? {
        None => {
            ending.running.into_iter().for_each(|running| end(running, target));
            Exit::Success
        }
        Some(end) => {
            if ending.running.is_some() {
                notice::say_goes_on(target);
            }
            Exit::of_end(end, matches!(target, Target::Command(_)))
        }
    })
}

/// Ends a command that outlives its recording.
pub fn end(running: Running, target: &Target) {
    notice::say_refused(target, running.end(|notice| notice::say_of(target, notice)).ok());
}

/// Records for a command that shows the profile. `file`: also write the recording there. Returns the command's exit status.
///
/// # Errors
/// As [`record`]; `file` can't be a file, or could not be written.
pub fn record_profile(
    request: &RecordRequest,
    file: Option<&Path>,
    observer: Option<&mut dyn TargetObserver>,
) -> Result<(Profile, Exit)> {
    let output = match file {
        Some(path) if !matches!(Destination::of(path)?, Destination::File(_)) => {
            bail!("{}: the recording is kept in a file; name one", path.display())
        }
        Some(path) => Some(Output::check(path)?),
        None => None,
    };
    let (recorded, ending) = match &output {
        Some(output) => {
            let (recorded, ending) = record(request, output, observer, ProgressLine::quiet())?;
            (recorded.map(|(recording, written)| (recording, Some(written))), ending)
        }
        None => {
            let mut notices = ProgressLine::quiet();
            let (sampled, ending) = sample(request, None, observer, &mut notices)?;
            (Ok((sampled.named(&mut notices), None)), ending)
        }
    };
    let (recording, written) = match recorded {
        Ok(recorded) => recorded,
        Err(error) => {
            exit(ending, &request.target)?;
            return Err(error);
        }
    };
    notice::say_left(Some(recording.left.clone()));
    if let Some(written) = written.filter(Written::is_elsewhere) {
        say!("{}", written.text());
    }
    let exit = exit(ending, &request.target)?;
    Ok((recording.into_profile()?, exit))
}

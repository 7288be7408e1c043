//! Makes a request for a recording of the options of a command line.
//!
//! Elsewhere: the options themselves (`args`), the request (`plumb_record`).

use std::ffi::OsString;

use anyhow::Result;
use plumb_capture_perf::{Code, EventSpec};
use plumb_record::{RecordRequest, events as event_names};
use plumb_target::{Launch, Prints, Target};

use crate::args::{EventArgs, RecordArgs, TargetArgs};

/// The destination of a command's output if its report goes to standard output. `is_data`: the report is for a program or a file, and must not
/// be mixed with other output.
pub fn prints_beside(is_data: bool) -> Prints {
    if is_data { Prints::AsErrors } else { Prints::Through }
}

/// A request to record the CPU time of the target given by options or words.
///
/// # Errors
/// No target is given, or it does not exist.
pub fn request(target: &TargetArgs, recording: &RecordArgs, command: &[OsString]) -> Result<RecordRequest> {
    let words = command.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let request = of_target(target.target(recording.wait, command)?, recording);
    Ok(RecordRequest { duration: target.duration, command: words, ..request })
}

/// A request to record the CPU time of a command.
pub fn request_of_command(launch: &Launch, recording: &RecordArgs) -> RecordRequest {
    of_target(Target::Command(launch.clone()), recording)
}

fn of_target(target: Target, recording: &RecordArgs) -> RecordRequest {
    let mut request =
        RecordRequest::new(target).with_memory(recording.max_memory, recording.max_table_memory);
    if let Some(frequency_hz) = recording.frequency {
        (request.sampling.frequency_hz, request.sampling.each_if_rare) = (frequency_hz, false);
    }
    request.sampling.scan = recording.scan;
    request.capture = recording.capture.unwrap_or_default().into();
    request.debuginfod |= recording.debuginfod;
    request
}

/// Sets other events, or restricts the code.
///
/// # Errors
/// The event does not exist, or the target has no such function.
pub fn with_events(mut request: RecordRequest, events: &EventArgs) -> Result<RecordRequest> {
    let code = match (events.user_only, events.kernel_only) {
        (true, _) => Code::User,
        (_, true) => Code::Kernel,
        _ => Code::All,
    };
    let code_of = |only: Option<Code>| if code == Code::All { only.unwrap_or(code) } else { code };
    let mut counters = event_names::counters(&events.event, &request.target)?.into_iter();
    let (counter, only) = counters.next().unzip();
    request.timeline = events.timeline;
    request.sampling.period = events.count;
    request.sampling.code = code_of(only.flatten());
    let event = |(counter, only)| EventSpec { counter, code: code_of(only), period: None, is_copied: false };
    request.sampling.also = counters.map(event).collect();
    request.sampling.counter = counter;
    Ok(request)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use plumb_record::Capture;

    use super::*;
    use crate::args::CaptureMethod;

    #[test]
    fn a_request_is_what_the_options_say() {
        let words: Vec<OsString> = ["A=b", "sh", "-c", "true"].map(Into::into).into();
        let target = TargetArgs { duration: Some(Duration::from_millis(1500)), ..TargetArgs::default() };
        let recording =
            RecordArgs { frequency: Some(99), capture: Some(CaptureMethod::Bpf), ..RecordArgs::default() };
        let made = request(&target, &recording, &words).expect("it names a command");
        assert_eq!(made.duration, target.duration);
        assert_eq!((made.sampling.frequency_hz, made.capture), (99, Capture::Bpf));
        assert_eq!(made.command, ["A=b", "sh", "-c", "true"]);
        let Target::Command(launch) = &made.target else { panic!("{:?}", made.target) };
        assert_eq!(request_of_command(launch, &recording).command, made.command);
        let pids = TargetArgs { attach: vec![1, 2], ..TargetArgs::default() };
        let made = request(&pids, &recording, &[]).expect("it names processes");
        assert!(matches!(&made.target, Target::Processes(pids) if *pids == [1, 2]));
        assert!(request(&TargetArgs::default(), &recording, &[]).is_err());
    }
}

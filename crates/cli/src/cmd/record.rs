//! `plumb record`: samples a command, processes or the machine, and writes a recording.
//!
//! Not here: the recording (`plumb_record`), the file's format (formats).

use std::path::PathBuf;

use anyhow::Result;
use plumb_record::{MeasureRequest, RecordRequest};
use plumb_target::Prints;

use crate::args::{CommandArgs, EventArgs, RecordArgs, TargetArgs, value};
use crate::examples;
use crate::exit::Exit;
use crate::recording::output::Output;
use crate::recording::{self, CTRL_C, ProgressLine, notice};
#[cfg(feature = "server")]
use crate::showing;
use crate::terminal::say;

/// Arguments of `plumb record`.
#[derive(clap::Args)]
#[command(mut_arg("attach", |arg| arg.alias("pid")), override_usage = "plumb record [OPTIONS] [--] [VAR=VALUE]... COMMAND [ARGUMENT]...\n       \
                            plumb record [OPTIONS] -p PID[,PID]...\n       plumb record [OPTIONS] --tree PID\n       \
                            plumb record [OPTIONS] --cgroup PATH\n       plumb record [OPTIONS] --name PROGRAM [--wait]\n       \
                            plumb record [OPTIONS] -a",
    after_help = examples::below(CTRL_C, examples::RECORD))]
pub struct Args {
    /// Output file, - for standard output; an existing file is renamed to FILE.old
    ///
    /// Only its owner can read the file, because it contains command lines. While recording, the data is in FILE.part: if the
    /// recorder is killed, plumb report reads that file, which lacks only the last seconds. With -, a pipe or a device there is no
    /// such file. With -, the command's standard output goes to standard error.
    #[arg(short, long, value_name = "FILE", default_value = "profile.plumb")]
    output: PathBuf,

    /// Do not print the live line and the summary
    #[arg(short, long)]
    quiet: bool,

    /// Open the result in a browser
    ///
    /// plumb then serves the recording on this machine until Ctrl-C, as plumb open does.
    #[cfg(feature = "server")]
    #[arg(long)]
    open: bool,

    /// Record how long threads are off the CPU, and where: blocked or in the run queue
    ///
    /// With -e, these events are recorded as well: -e cpu-clock --off-cpu shows where wall-clock time goes, on the CPU and off it; reports
    /// show one event, which --event chooses. Without -e, time off the CPU is recorded alone.
    ///
    /// The event off-cpu counts the time that threads were blocked, run-queue the time that they were runnable without a CPU. Each
    /// interval has the stack at which it began.
    ///
    /// A thread that is already blocked when the recording begins counts from its beginning; a thread that is still blocked when the
    /// recording ends counts until its end. So a process that hangs shows where. With -a, kernel threads are included once they run.
    ///
    /// Requires BPF (root, Linux 6.1 or newer). Up to -F intervals per second and CPU have a stack each. Beyond that rate, only long
    /// intervals have their own stack; of shorter ones some are sampled and represent the others. Before Linux 6.15 the length of an
    /// interval is known too late for that: intervals beyond the rate have no stack.
    #[arg(long, conflicts_with_all = ["count", "user_only", "kernel_only"])]
    off_cpu: bool,

    /// With --off-cpu: ignore intervals shorter than TIME (1ms, 50us)
    ///
    /// The summary reports their number and their total time.
    #[arg(long, value_name = "TIME", requires = "off_cpu", value_parser = value::nanoseconds, default_value = "0")]
    min_block: u64,

    #[command(flatten)]
    command: CommandArgs,

    #[command(flatten)]
    target: TargetArgs,

    #[command(flatten)]
    recording: RecordArgs,

    #[command(flatten)]
    events: EventArgs,
}

/// Runs `plumb record`.
pub fn run(args: Args) -> Result<Exit> {
    let request = recording::request(&args.target, &args.recording, &args.command.words)?;
    let request = recording::with_events(request, &args.events)?;
    let output = Output::check(&args.output)?;
    let request = RecordRequest {
        measure: args.off_cpu.then_some(MeasureRequest::OffCpu { min_ns: args.min_block }),
        ..request.printing(if output.is_stdout() { Prints::AsErrors } else { Prints::Through })
    };
    let notices = if args.quiet { ProgressLine::quiet() } else { ProgressLine::new(&request) };
    let (recorded, ending) = recording::record(&request, &output, None, notices)?;
    match &recorded {
        Ok((recording, written)) if args.quiet => {
            notice::say_left(Some(recording.left.clone()));
            if written.is_elsewhere() {
                say!("{}", written.text());
            }
        }
        Ok((recording, written)) => {
            recording.summary().iter().for_each(|line| say!("{line}"));
            say!("{}", written.text());
            recording.unwinding_summary().iter().for_each(|line| say!("{line}"));
        }
        Err(error) => say!("{error:#}"),
    }
    if let Some(text) = ending.exceeded.as_ref().filter(|_| !args.quiet) {
        say!("{text}");
    }
    let exit = recording::exit(ending, &request.target)?;
    let Ok((recording, _)) = recorded else { return Ok(exit.or(Exit::Failure)) };
    #[cfg(feature = "server")]
    if args.open {
        let name = args.output.display().to_string();
        let profile = recording.into_profile()?.into();
        showing::show(vec![crate::loaded::recording(&name, profile)], showing::ShowArgs::default(), true)?;
    }
    #[cfg(not(feature = "server"))]
    drop(recording);
    Ok(exit)
}

//! The `plumb` command: parses the command line and hands over to one file per subcommand in `cmd/`.
//!
//! Not here: anything that a library could do. The edges live here: terminal, files, exit codes.

// What is printed goes through `terminal`, which keeps names from steering the terminal.
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

mod cmd;
mod code;
mod columns;
mod filters;
mod limits;
mod load;
mod markdown;
mod newfile;
mod page;
mod pager;
mod terminal;
mod words;

#[cfg(test)]
#[path = "../../analyze/tests/made/mod.rs"]
mod made;

#[cfg(test)]
mod mutations;

use std::process::ExitCode;

use clap::{CommandFactory, Parser};

use terminal::say;

/// Says that there is no memory, instead of aborting.
#[global_allocator]
static ALLOCATOR: plumb_process::Allocator = plumb_process::Allocator;

/// A Linux profiler that gets to the bottom of every stack.
#[derive(Parser)]
#[command(name = "plumb", version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Sample a command, processes or the machine, and write a recording
    Record(cmd::record::Args),
    /// Show where the time goes, as it goes: functions, stacks, executables, processes
    Top(cmd::top::Args),
    /// Show where the time went: functions by their share
    Report(cmd::report::Args),
    /// Show one function, instruction by instruction: what each cost, and what the processor waited for
    Annotate(cmd::annotate::Args),
    /// Show which programs ran how often, what their processes cost, and who started them
    Procs(cmd::procs::Args),
    /// Show what a command takes: time, memory, faults, switches, system calls, run once or several times
    Stat(cmd::stat::Args),
    /// Show where processor time went: user code, each system call, page faults, exec, exit, interrupts
    Kernel(cmd::kernel::Args),
    /// Say whether one command is faster than another, and how sure that is
    Compare(cmd::compare::Args),
    /// Say what is slow, why, what could be gained at most, and whether to go on: the hotspot report
    Explain(cmd::explain::Args),
    /// Show what changed between recordings, and what of it is no chance
    Diff(cmd::diff::Args),
    /// Print every sample with its stack, as `perf script` does
    Script(cmd::script::Args),
    /// Print folded stacks, one line a stack, for flame graph tools
    Fold(cmd::fold::Args),
    /// Write a recording in the format of another tool: pprof, Firefox Profiler, speedscope, Perfetto, callgrind
    Export(cmd::export::Args),
    /// Look through a recording in the terminal: functions, stacks, programs, processes
    View(cmd::view::Args),
    /// Draw a flame graph as one HTML or SVG file
    Flame(cmd::flame::Args),
    /// Print the stacks that running processes have right now, as pstack does
    Stack(cmd::stack::Args),
    /// Show system calls as they are made: how long they took, with what arguments, and what came of them
    Trace(cmd::trace::Args),
    /// Measure what starting a program takes here
    Bench(cmd::bench::Args),
    /// Say what this user may record here, and what a recording lacks
    Doctor(cmd::doctor::Args),
    /// Write manual pages, or completions for a shell
    Generate(cmd::generate::Args),
    /// Say how large the unwind tables of programs and libraries are
    UnwindStats(cmd::unwind_stats::Args),
}

fn main() -> ExitCode {
    let cli = Cli::try_parse().unwrap_or_else(|error| refuse(&error));
    let outcome = match cli.command {
        Command::Record(args) => cmd::record::run(args),
        Command::Top(args) => cmd::top::run(args),
        Command::Report(args) => cmd::report::run(args),
        Command::Annotate(args) => cmd::annotate::run(args),
        Command::Procs(args) => cmd::procs::run(args),
        Command::Stat(args) => cmd::stat::run(args),
        Command::Kernel(args) => cmd::kernel::run(args),
        Command::Compare(args) => cmd::compare::run(args),
        Command::Explain(args) => cmd::explain::run(args),
        Command::Diff(args) => cmd::diff::run(args),
        Command::Script(args) => cmd::script::run(args),
        Command::Fold(args) => cmd::fold::run(args),
        Command::Export(args) => cmd::export::run(args),
        Command::View(args) => cmd::view::run(args),
        Command::Flame(args) => cmd::flame::run(args),
        Command::Stack(args) => cmd::stack::run(args),
        Command::Trace(args) => cmd::trace::run(args),
        Command::Bench(args) => cmd::bench::run(args),
        Command::Doctor(args) => cmd::doctor::run(args),
        Command::Generate(args) => cmd::generate::run(args, Cli::command()),
        Command::UnwindStats(args) => cmd::unwind_stats::run(args),
    };
    outcome.unwrap_or_else(|error| {
        say!("{error:#}");
        ExitCode::FAILURE
    })
}

/// Ends with what clap says of the command line. That repeats words of it, which may be names that somebody else chose.
fn refuse(error: &clap::Error) -> ! {
    let text = error.render().to_string();
    if text.contains(|one| !matches!(one, '\n' | '\t') && plumb_formats::escape::is_unsafe(one)) {
        terminal::say!("{}", text.trim_start_matches("error: ").trim_end());
        std::process::exit(error.exit_code());
    }
    error.exit()
}

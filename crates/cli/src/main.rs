//! The `plumb` command: parses the command line and calls one file per subcommand in `cmd/`.
//!
//! Elsewhere: anything that a library can do. Only the edges are here: terminal, files, exit codes.

// Output goes through `terminal`, which keeps names from controlling the terminal.
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

mod advice;
mod args;
mod browse;
mod cmd;
mod examples;
mod exit;
mod habits;
#[cfg(feature = "server")]
mod http;
mod limits;
mod load;
mod loaded;
mod newfile;
mod pager;
mod panics;
mod recording;
mod render;
#[cfg(feature = "server")]
mod showing;
mod terminal;
mod words;

#[cfg(test)]
mod mutations;

use std::process::ExitCode;

use clap::{CommandFactory, Parser};

use exit::Exit;
use terminal::say;

/// Reports a lack of memory, instead of aborting.
#[global_allocator]
static ALLOCATOR: plumb_process::Allocator = plumb_process::Allocator;

/// A Linux profiler that gets to the bottom of every stack.
///
/// Records on x86_64 and aarch64. For 32-bit ARM plumb has unwinding as a library (plumb-unwind).
#[derive(Parser)]
#[command(name = "plumb", version, arg_required_else_help = true, after_help = examples::PLUMB, after_long_help = examples::below(exit::HELP, examples::PLUMB))]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Record a profile of a command, of processes or of the whole machine
    Record(cmd::record::Args),
    /// Show a live profile: functions, stacks, executables, processes
    Top(cmd::top::Args),
    /// Show the hottest functions, or the call tree
    Report(cmd::report::Args),
    /// Show the cost of each instruction and source line of a function
    Annotate(cmd::annotate::Args),
    /// Show the programs that ran: number of processes, CPU time, who started them
    Procs(cmd::procs::Args),
    /// Measure a command: time, memory, page faults, context switches, system calls
    Stat(cmd::stat::Args),
    /// Show CPU time by system call, page fault, exec, exit and interrupt
    Kernel(cmd::kernel::Args),
    /// Compare the run times of two commands, with a significance test
    Compare(cmd::compare::Args),
    /// Report the hotspots: what is slow, why, and the largest possible gain
    Explain(cmd::explain::Args),
    /// Compare recordings and mark the significant differences
    Diff(cmd::diff::Args),
    /// Print every sample with its stack, like `perf script`
    Script(cmd::script::Args),
    /// Print folded stacks for flame graph tools, one line per stack
    Fold(cmd::fold::Args),
    /// Convert a recording to pprof, Firefox Profiler, speedscope, Perfetto or callgrind
    Export(cmd::export::Args),
    /// Browse a recording in the terminal: functions, stacks, executables, processes
    View(cmd::view::Args),
    /// Draw a flame graph as an HTML or SVG file
    Flame(cmd::flame::Args),
    /// Print the current stacks of running processes, like pstack
    Stack(cmd::stack::Args),
    /// Trace system calls with arguments, results and latencies, like strace
    Trace(cmd::trace::Args),
    /// Profile the whole machine all the time and send the profiles to a server
    #[cfg(feature = "agent")]
    Agent(cmd::agent::Args),
    /// Show recordings in the browser: timeline, flame graph, tables, verdict
    #[cfg(feature = "server")]
    #[command(alias = "load")]
    Open(cmd::open::Args),
    /// Serve recordings to the browser, or keep profiles of many services and answer queries over HTTP
    #[cfg(feature = "server")]
    Serve(cmd::serve::Args),
    /// Send a profile to a server
    #[cfg(feature = "server")]
    Push(cmd::push::Args),
    /// Ask a server for services, functions, callers or a whole profile
    #[cfg(feature = "server")]
    Query(cmd::query::Args),
    /// Benchmark process creation on this machine
    Bench(cmd::bench::Args),
    /// Check what plumb can record on this machine, or what a recording lacks
    Doctor(cmd::doctor::Args),
    /// Generate manual pages or shell completions
    Generate(cmd::generate::Args),
}

fn main() -> ExitCode {
    panics::report_all_but_handled();
    let words = habits::translated(std::env::args_os());
    let cli = Cli::try_parse_from(&words).unwrap_or_else(|mut error| {
        habits::hint(&mut error, &words);
        refuse(&error)
    });
    let exit = run(cli.command).unwrap_or_else(|error| match error.downcast::<clap::Error>() {
        Ok(wrong) => refuse(&wrong),
        Err(error) => {
            say!("{}", exit::message(&error));
            Exit::of_error(&error)
        }
    });
    exit.into()
}

fn run(command: Command) -> anyhow::Result<Exit> {
    match command {
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
        Command::View(args) => cmd::view::run(args, cmd::LISTINGS),
        Command::Flame(args) => cmd::flame::run(args),
        Command::Stack(args) => cmd::stack::run(args),
        Command::Trace(args) => cmd::trace::run(args),
        #[cfg(feature = "agent")]
        Command::Agent(args) => cmd::agent::run(args),
        #[cfg(feature = "server")]
        Command::Open(args) => cmd::open::run(args),
        #[cfg(feature = "server")]
        Command::Serve(args) => cmd::serve::run(args),
        #[cfg(feature = "server")]
        Command::Push(args) => cmd::push::run(args),
        #[cfg(feature = "server")]
        Command::Query(args) => match cmd::query::passed_on(&args)? {
            Some(words) => run(Cli::try_parse_from(words).unwrap_or_else(|error| refuse(&error)).command),
            None => cmd::query::run(args),
        },
        Command::Bench(args) => cmd::bench::run(args),
        Command::Doctor(args) => cmd::doctor::run(args),
        Command::Generate(args) => cmd::generate::run(args, Cli::command()),
    }
}

/// Exits with clap's message on the command line, sanitised, as it repeats words that may be untrusted names.
fn refuse(error: &clap::Error) -> ! {
    let text = error.render().to_string();
    if text.contains(|one| !matches!(one, '\n' | '\t') && plumb_formats::escape::is_unsafe(one)) {
        terminal::say!("{}", text.trim_start_matches("error: ").trim_end());
        std::process::exit(error.exit_code());
    }
    error.exit()
}

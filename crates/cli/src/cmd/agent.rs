//! `plumb agent`: profiles the whole machine until it is stopped, and sends the profiles to a server.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::value_parser;
use plumb_agent::{
    Agent, AgentError, AgentOptions, CostMeter, Quantity, RelabelRule, RelabelRules, RetainedCapabilities,
    SpoolOptions, SymbolPolicy, drop_capabilities, missing_capabilities,
};
use plumb_target::signals::block_termination;

use crate::args::value::{label, percent, seconds, size};
use crate::args::{LogArgs, ProfileArgs};
use crate::examples;
use crate::exit::Exit;
use crate::newfile::keep_private;

/// Arguments of `plumb agent`.
#[derive(clap::Args, Debug)]
#[command(after_help = examples::AGENT)]
pub struct Args {
    #[command(flatten)]
    server: ServerArgs,
    /// Sampling frequency, in samples per second of CPU time
    #[arg(short = 'F', long, visible_alias = "hz", value_name = "HZ", default_value = "97", value_parser = value_parser!(u32).range(1..=999))]
    frequency: u32,
    #[command(flatten)]
    profiles: ProfileArgs,
    /// Time between two requests, in seconds
    ///
    /// Samples with the same stack are merged within this time. Requests are sent when the clock is at a multiple of it.
    #[arg(short, long, value_name = "SECONDS", default_value = "15", value_parser = interval)]
    interval: Duration,
    /// Label of the profile (repeatable)
    #[arg(long, value_name = "NAME=VALUE", value_parser = label)]
    label: Vec<(String, String)>,
    /// Rule that changes labels or drops processes (repeatable): keep:, drop: or replace:NAME=PATTERN
    ///
    /// keep:NAME=PATTERN drops all processes whose label does not match, drop:NAME=PATTERN those whose label does. PATTERN is a regular
    /// expression that matches the whole value. replace:NAME=PATTERN=>VALUE changes the value of a label that matches; $1 in VALUE is
    /// the first group of PATTERN, and an empty VALUE removes the label. Rules apply in the order in which they are given.
    #[arg(long, value_name = "RULE")]
    relabel: Vec<RelabelRule>,
    /// Directory where requests wait while the server is away
    ///
    /// The agent writes to no other directory.
    #[arg(long, value_name = "DIR", default_value = "/var/lib/plumb-agent")]
    spool: PathBuf,
    /// Drop the oldest waiting requests beyond this size
    #[arg(long, value_name = "SIZE", default_value = "100M", value_parser = size)]
    max_spool: u64,
    /// Side that names functions of files that have a build ID
    ///
    /// A server of plumb names them itself: it asks the agent for each program and library once, which costs the agent next to nothing. Other servers
    /// get names from the agent.
    #[arg(long, value_enum, value_name = "WHO", default_value = "auto")]
    symbols: Symbols,
    /// Never watch system calls
    ///
    /// Otherwise the agent watches the system calls of services that stand out by their kernel time, one service at a time, for five seconds
    /// every few minutes, and says at which interval a service wakes, which calls it makes then, and how large their buffers are. It keeps paths below
    /// /proc and /sys, and no others. While the agent is over its budget it watches one service every two minutes.
    #[arg(long)]
    no_observe: bool,
    /// Share of the whole machine that the agent may take
    ///
    /// Processor time of its threads and of its BPF programs, over all processors. Above it the agent samples less often, down to 5 times a second;
    /// as soon as there is room, more often again, up to --frequency. Each sample counts for the time between two samples when it was taken.
    #[arg(long, value_name = "PERCENT", default_value = "1%", value_parser = percent)]
    max_cpu: f64,
    /// Limit of plumb's own memory, such as 256M or 1G
    ///
    /// [default: 80M, with --off-cpu 160M]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    max_memory: Option<u64>,
    /// Process that started the agent, and with which it ends
    #[arg(long, value_name = "PID", hide = true)]
    parent: Option<u32>,
    #[command(flatten)]
    log: LogArgs,
}

/// Default memory limit of one recorder, in bytes.
const MEMORY: u64 = 80 << 20;

/// The server that receives the profiles, and access to it.
#[derive(clap::Args, Debug)]
struct ServerArgs {
    /// URL of the server
    ///
    /// A server of plumb, or any other that takes OpenTelemetry's profiles (v1development) over HTTP: requests go to
    /// URL/v1development/profiles.
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:4041")]
    to: String,
    /// File that holds a token
    ///
    /// Without it, the variable PLUMB_AGENT_TOKEN may hold the token itself.
    #[arg(long, value_name = "FILE")]
    token: Option<PathBuf>,
    /// Certificates (PEM) to verify the server by, if no public authority has signed its own
    #[arg(long, value_name = "FILE")]
    ca_cert: Option<PathBuf>,
}

/// The side that looks up function names.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Symbols {
    /// The server if it asks for symbols, otherwise the agent
    Auto,
    /// The server
    Server,
    /// The agent
    Agent,
}

impl Symbols {
    fn policy(self) -> SymbolPolicy {
        match self {
            Self::Auto => SymbolPolicy::Auto,
            Self::Server => SymbolPolicy::Server,
            Self::Agent => SymbolPolicy::Agent,
        }
    }
}

/// Makes the kernel send this process SIGTERM when its parent ends.
fn end_with(parent: Option<u32>) -> Result<()> {
    use rustix::process::{Signal, getppid, set_parent_process_death_signal};
    let Some(parent) = parent else { return Ok(()) };
    // The kernel sends the signal again for each thread of the parent that other threads outlive; the last window must be kept even so.
    block_termination();
    set_parent_process_death_signal(Some(Signal::TERM)).context("cannot ask to be ended with the parent")?;
    // The parent may have ended before.
    let is_there = getppid().is_some_and(|pid| pid.as_raw_pid().cast_unsigned() == parent);
    anyhow::ensure!(is_there, "process {parent}, which started this agent, has ended");
    Ok(())
}

fn interval(text: &str) -> Result<Duration, String> {
    let interval = seconds(text)?;
    let is_valid = (Duration::from_secs(1)..=Duration::from_secs(600)).contains(&interval);
    if is_valid { Ok(interval) } else { Err("expected 1 to 600 seconds".to_owned()) }
}

impl ServerArgs {
    /// Reads the token and the certificates of the server.
    fn secrets(&self) -> Result<(Option<String>, Option<Vec<u8>>)> {
        let token = self.token.as_ref().map(|path| {
            let text = std::fs::read_to_string(path);
            text.with_context(|| format!("cannot read the token in {}", path.display()))
        });
        let token = token.transpose()?.or_else(|| std::env::var("PLUMB_AGENT_TOKEN").ok());
        let ca_pem = self.ca_cert.as_ref().map(|path| {
            let pem = std::fs::read(path);
            pem.with_context(|| format!("cannot read the certificates in {}", path.display()))
        });
        Ok((token.map(|text| text.trim().to_owned()), ca_pem.transpose()?))
    }
}

/// Runs `plumb agent`.
pub fn run(args: Args) -> Result<Exit> {
    let missing = missing_capabilities();
    if !missing.is_empty() {
        return Err(AgentError::Capabilities(missing).into());
    }
    let (token, ca_pem) = args.server.secrets()?;
    end_with(args.parent)?;
    let meter = CostMeter::open(args.profiles.off_cpu);
    // After everything that only root may read, and before any thread starts.
    let retained = drop_capabilities()?;
    args.log.init();
    keep_private(&args.spool);
    if retained == RetainedCapabilities::SysAdminForPerf {
        tracing::info!(
            "CAP_SYS_ADMIN is kept: this kernel refuses perf events without it; to do without: sysctl kernel.perf_event_paranoid=2"
        );
    }
    let options = AgentOptions {
        url: args.server.to,
        token,
        ca_pem,
        frequency_hz: args.frequency,
        profiles: args.profiles.options(),
        interval: args.interval,
        attributes: args.label,
        rules: RelabelRules(args.relabel),
        spool: SpoolOptions { directory: args.spool, max_bytes: args.max_spool },
        symbols: args.symbols.policy(),
        observe: !args.no_observe,
        max_cpu: args.max_cpu / 100.0,
        max_memory: args.max_memory.unwrap_or(if args.profiles.off_cpu { 2 * MEMORY } else { MEMORY }),
    };
    let totals = Agent::begin(&options, meter)?.run()?;
    tracing::info!(
        taken = totals.taken.samples,
        taken_ns = totals.taken.weight(Quantity::CpuTime),
        found = totals.found.samples,
        left_out = totals.left_out.samples,
        sent = totals.sent.samples,
        sent_ns = totals.sent.weight(Quantity::CpuTime),
        off_cpu_taken_ns = totals.taken.weight(Quantity::OffCpu),
        off_cpu_sent_ns = totals.sent.weight(Quantity::OffCpu),
        page_faults_taken = totals.taken.weight(Quantity::PageFaults),
        page_faults_sent = totals.sent.weight(Quantity::PageFaults),
        spooled = totals.spooled.samples,
        dropped = totals.dropped.samples,
        lost = totals.lost,
        off_cpu_lost_ns = totals.lost_off_cpu_ns,
        "stopped"
    );
    Ok(Exit::Success)
}

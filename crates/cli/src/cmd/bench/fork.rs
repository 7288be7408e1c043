//! `plumb bench fork`: measures starting `/bin/true` from a parent of a given memory size, by fork, vfork and
//! posix_spawn.
//!
//! The methods take turns, so that a slowdown of the machine affects all of them. Figures are CPU time of parent and child, which
//! a busy machine disturbs least; wall-clock time is shown beside it.

use std::ffi::CString;
use std::io::{IsTerminal, Write, stderr};

use anyhow::{Context, Result, bail};
use plumb_analyze::{Spread, slope};
use plumb_documents::fork::{ForkDocument, ForkSize, ForkTimes, SpreadJson};
use plumb_target::spawn::Way;
use plumb_target::spawn::start_and_wait;

use crate::examples;
use crate::exit::Exit;
use crate::render::table::{self, Column, Layout};
use crate::terminal::{Output, finish, status};

/// Largest share of the available memory to use.
const SHARE: f64 = 0.8;
const MIB: u64 = 1 << 20;

/// Arguments of `plumb bench fork`.
#[derive(clap::Args, Debug)]
#[command(after_help = examples::BENCH_FORK)]
pub struct Args {
    /// Resident memory of the parent, in MiB
    #[arg(long, value_name = "MIB,...", value_delimiter = ',', default_value = "0,1,10,100,250,500,1000")]
    sizes: Vec<u64>,
    /// Number of starts per method and size
    #[arg(long, alias = "runs", value_name = "N", default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    starts: u32,
    /// Program to start; it gets no arguments and must exit with status 0
    #[arg(long, value_name = "FILE", default_value = "/bin/true")]
    program: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Results for one size: a spread per method, of CPU time and of wall-clock time, in milliseconds.
struct Measured {
    mib: u64,
    cpu: [Spread; Way::ALL.len()],
    wall: [Spread; Way::ALL.len()],
}

/// Runs `plumb bench fork`.
pub fn run(args: Args) -> Result<Exit> {
    let available =
        plumb_process::available_memory().context("cannot read the size of the available memory")?;
    let room = (available as f64 * SHARE) as u64;
    let (fits, left_out): (Vec<u64>, Vec<u64>) =
        args.sizes.iter().partition(|&&mib| mib.checked_mul(MIB).is_some_and(|bytes| bytes <= room));
    if fits.is_empty() {
        bail!(
            "{} MiB of memory are available, which is too little for any of these sizes: see --sizes",
            available / MIB
        );
    }
    let program = CString::new(args.program.as_str()).context("--program")?;
    let mut measured = Vec::new();
    for (index, &mib) in fits.iter().enumerate() {
        progress(&format!("size {} of {}: {mib} MiB", index + 1, fits.len()));
        let one = measure(mib, &args, &program);
        progress("");
        measured.push(one?);
    }
    let mut out = Output::stdout();
    finish(match args.json {
        true => write_json(&measured, &left_out, available, &args, &mut out),
        false => write(&measured, &left_out, available, &args, &mut out),
    })
}

fn measure(mib: u64, args: &Args, program: &CString) -> Result<Measured> {
    let bytes = usize::try_from(mib * MIB).context("--sizes")?;
    // Written to, so that it is resident.
    let memory = std::hint::black_box(vec![1_u8; bytes]);
    let mut cpu: [Vec<f64>; Way::ALL.len()] = Default::default();
    let mut wall: [Vec<f64>; Way::ALL.len()] = Default::default();
    // The first start of each method is a warm-up.
    for run in 0..=args.starts {
        for (index, way) in Way::ALL.into_iter().enumerate() {
            let took = start_and_wait(way, program)
                .with_context(|| format!("starting {} by {}", args.program, way.name()))?;
            if run > 0 {
                cpu[index].push(took.cpu.as_secs_f64() * 1e3);
                wall[index].push(took.wall.as_secs_f64() * 1e3);
            }
        }
    }
    drop(std::hint::black_box(memory));
    let spread = |values: [Vec<f64>; Way::ALL.len()]| {
        values.map(|values| Spread::of(&values).expect("there is a run at least"))
    };
    Ok(Measured { mib, cpu: spread(cpu), wall: spread(wall) })
}

/// Added cost of a start per MiB of the parent, in milliseconds of CPU time.
fn slope_of(measured: &[Measured], way: usize) -> Option<f64> {
    let points: Vec<(f64, f64)> = measured.iter().map(|one| (one.mib as f64, one.cpu[way].median)).collect();
    slope(&points)
}

fn ratio(one: &Measured) -> f64 {
    one.cpu[0].median / one.cpu[Way::ALL.len() - 1].median
}

fn write(
    measured: &[Measured],
    left_out: &[u64],
    available: u64,
    args: &Args,
    out: &mut Output<'_>,
) -> Result<()> {
    writeln!(
        out,
        "# {} started {} times each; ms of processor time of parent and child, median (quartiles); wall: ms on the clock",
        args.program, args.starts
    )?;
    writeln!(out, "# kernel {}; {}", kernel(), huge_pages())?;
    if !left_out.is_empty() {
        let sizes: Vec<String> = left_out.iter().map(u64::to_string).collect();
        writeln!(
            out,
            "# left out: {} MB, as only {} MiB of memory are available and a fifth of that is left alone",
            sizes.join(", "),
            available / MIB
        )?;
    }
    let titles = ["MB", "fork", "vfork", "posix_spawn", "fork/posix_spawn", "fork wall", "posix_spawn wall"];
    let columns = titles.map(|title| Column { title, layout: Layout::Number });
    let lines: Vec<Vec<String>> = measured
        .iter()
        .map(|one| {
            let mut cells = vec![one.mib.to_string()];
            cells.extend(
                one.cpu.map(|Spread { lower, median, upper }| format!("{median:.2} ({lower:.2}–{upper:.2})")),
            );
            cells.push(format!("{:.1}", ratio(one)));
            cells.extend([one.wall[0], one.wall[2]].map(|wall| format!("{:.2}", wall.median)));
            cells
        })
        .collect();
    table::write(&columns, &lines, true, out)?;
    for (index, way) in Way::ALL.into_iter().enumerate() {
        if let Some(slope) = slope_of(measured, index) {
            // Avoid a minus sign before zero.
            let slope = (slope * 1e4).round() / 1e4 + 0.0;
            writeln!(
                out,
                "# {}: {slope:.4} ms for each MB of the parent (Theil-Sen over the medians)",
                way.name()
            )?;
        }
    }
    out.flush()?;
    Ok(())
}

fn write_json(
    measured: &[Measured],
    left_out: &[u64],
    available: u64,
    args: &Args,
    out: &mut Output<'_>,
) -> Result<()> {
    let by_way = || Way::ALL.into_iter().enumerate();
    let size = |one: &Measured| {
        let times = |index: usize| ForkTimes {
            cpu_ms: SpreadJson::new(one.cpu[index]),
            wall_ms: SpreadJson::new(one.wall[index]),
        };
        ForkSize {
            mb: one.mib,
            ways: by_way().map(|(index, way)| (way.name(), times(index))).collect(),
            fork_to_posix_spawn: ratio(one),
        }
    };
    let document = ForkDocument {
        version: plumb_documents::JSON_VERSION,
        program: &args.program,
        runs: args.starts,
        kernel: kernel(),
        huge_pages: huge_pages(),
        available_bytes: available,
        left_out_mb: left_out,
        sizes: measured.iter().map(size).collect(),
        cpu_ms_per_mb: by_way().map(|(index, way)| (way.name(), slope_of(measured, index))).collect(),
    };
    plumb_documents::json::write(&document, &mut *out)?;
    Ok(out.flush()?)
}

/// Huge pages make a fork far cheaper, so their setting is shown with the figures.
fn huge_pages() -> String {
    let text = std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled").unwrap_or_default();
    let chosen = text.split(['[', ']']).nth(1).unwrap_or("not known");
    format!("transparent huge pages: {chosen}")
}

fn kernel() -> String {
    std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default().trim().to_owned()
}

/// Shows a progress line on the terminal; removes it if `text` is empty.
fn progress(text: &str) {
    if stderr().is_terminal() {
        status(&format!("{}{text}", if text.is_empty() { "" } else { "plumb: " }));
    }
}

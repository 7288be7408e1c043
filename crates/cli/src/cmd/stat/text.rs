//! The result as text: a line per figure, and threads by name.

use std::io::Write;

use anyhow::Result;
use plumb_analyze::{CONFIDENCE, Median, Share};
use plumb_capture_perf::Code;
use plumb_stat_runner::{Metric, RunSet};

use super::{Args, worst};
use crate::render::metric::{self, MetricUnit, bytes, thousands, time};
use crate::render::padding;
use crate::terminal::{Output, printable};

/// Column of the titles.
const TITLES: usize = 21;
/// A larger counting overhead, as a fraction of the CPU time, is reported.
const DEAR: f64 = 0.01;
/// Processes that were not waited for are reported if they used more than this fraction of the total.
const LEFT_BEHIND: f64 = 0.01;
/// Figures that are shown only if they are not 0.
const ONLY_IF_SOME: [&str; 5] =
    ["major_faults", "blocks_read", "blocks_written", "stalled-cycles-frontend", "stalled-cycles-backend"];

/// Writes the result.
pub(super) fn write(gathered: &RunSet, args: &Args, out: &mut Output<'_>) -> Result<()> {
    let command: Vec<String> =
        args.command.iter().map(|word| printable(&word.to_string_lossy()).into_owned()).collect();
    writeln!(out)?;
    put(&format!(" {}", head(&command.join(" "), gathered)), out)?;
    writeln!(out)?;
    for (metric, values) in gathered.values() {
        if ONLY_IF_SOME.contains(&metric.name) && values.iter().all(|&value| value == 0.0) {
            continue;
        }
        let Some(median) = Median::of(&values, CONFIDENCE) else { continue };
        let line = figure(metric, &median, &values, gathered);
        put(&line, out)?;
        if metric.name == "cpus_used"
            && let [kernel, samples] = gathered.kernel_samples()
            && let Some(kernel) = Share::of_samples(kernel, samples)
        {
            modes(kernel, samples, gathered, out)?;
        }
    }
    threads(gathered, args.threads, out)?;
    let notes = notes(gathered);
    if !notes.is_empty() {
        writeln!(out)?;
    }
    notes.iter().try_for_each(|note| put(&format!(" {note}"), out))
}

/// Writes a line; on a narrow terminal the rest continues below the figures' titles.
fn put(line: &str, out: &mut Output<'_>) -> Result<()> {
    let width = out.width.unwrap_or(usize::MAX);
    let begin = line.chars().take_while(|&one| one == ' ').count();
    let is_figure = begin > 1;
    let hanging = if is_figure { TITLES.min(width / 2).saturating_sub(begin) } else { 2 };
    for line in padding::fold(line.trim_end(), width, hanging) {
        writeln!(out, "{line}")?;
    }
    Ok(())
}

fn head(command: &str, gathered: &RunSet) -> String {
    match gathered.runs.len() {
        1 => command.to_owned(),
        runs => {
            let reached = Median::of(&vec![0.0; runs], CONFIDENCE).map_or(0.0, |median| median.confidence);
            let interval = match reached >= CONFIDENCE {
                true => "medians [95% interval of the median]".to_owned(),
                false => format!(
                    "medians [range of {runs} runs: {:.0}% confidence for the median; -n 6 gives 95%]",
                    (reached * 100.0).floor()
                ),
            };
            format!("{command}   {runs} runs: {interval}")
        }
    }
}

fn figure(metric: &Metric, median: &Median, values: &[f64], gathered: &RunSet) -> String {
    let interval = match values.len() {
        1 => String::new(),
        _ => format!(
            "[{} .. {}]",
            metric::text(metric.unit, median.low),
            metric::text(metric.unit, median.high)
        ),
    };
    let rate = match (metric.unit, gathered.of("cpu_ns")) {
        (MetricUnit::Count, Some(cpu)) if median.value > 0.0 && metric.name == "calls" => {
            let cpu: f64 = cpu.iter().sum();
            let rate = values.iter().sum::<f64>() / cpu.max(1.0) * 1e9;
            format!("{} per second of processor time", thousands(rate))
        }
        _ => String::new(),
    };
    line(&metric::text(metric.unit, median.value), metric.title, &[interval, rate].join(" "))
}

fn line(value: &str, title: &str, rest: &str) -> String {
    format!("  {value:>16}   {title:<24} {}", rest.trim())
}

/// User code and kernel: the sampled split, with the kernel's own beside it.
fn modes(kernel: Share, samples: u64, gathered: &RunSet, out: &mut Output<'_>) -> Result<()> {
    // Parts of the median shown above: those of other runs would not add up to it.
    let cpu = gathered.of("cpu_ns").and_then(|values| Median::of(&values, CONFIDENCE));
    let cpu = cpu.map_or(0.0, |median| median.value);
    let accounted = gathered.tick_ns()[1] as f64 / gathered.cpu_ns().max(1.0);
    let percent = kernel.percent;
    let interval = format!("[{:.1}% .. {:.1}%]", kernel.low, kernel.high);
    let user = time(cpu * (1.0 - percent / 100.0));
    put(&line(&format!("{:.1}%", 100.0 - percent), "in user code", &user), out)?;
    let rest = format!(
        "{}  {interval} of {} samples; the kernel's tick says {:.1}%",
        time(cpu * percent / 100.0),
        thousands(samples as f64),
        accounted * 100.0
    );
    put(&line(&format!("{:.1}%", percent), "in the kernel", &rest), out)
}

fn threads(gathered: &RunSet, most: usize, out: &mut Output<'_>) -> Result<()> {
    let (rows, untold) = gathered.threads();
    let all = gathered.cpu_ns();
    if rows.is_empty() || all <= 0.0 || most == 0 {
        return Ok(());
    }
    let runs = gathered.runs.len() as f64;
    let wall: f64 = gathered.runs.iter().map(|run| run.wall.as_nanos() as f64).sum();
    writeln!(out, "\n  processor time of threads, by name")?;
    let write = |out: &mut Output<'_>, cpu: u64, name: &str| {
        let share = cpu as f64 / all * 100.0;
        let busy = cpu as f64 / wall.max(1.0) * 100.0;
        let time = time(cpu as f64 / runs);
        put(&format!("  {time:>16}  {share:5.1}%  {name:<24} busy {busy:.1}% of the time"), out)
    };
    for row in rows.iter().take(most) {
        let count = row.threads as f64 / runs;
        let name = printable(&row.comm).into_owned();
        let name = if row.threads as f64 == runs { name } else { format!("{name} ({count:.0} threads)") };
        write(out, row.cpu_ns, &name)?;
    }
    let rest: u64 = rows.iter().skip(most).map(|row| row.cpu_ns).sum();
    if rest > 0 {
        write(out, rest, &format!("{} other names", rows.len() - most))?;
    }
    // The end of some threads is never reported.
    if untold as f64 > all * 0.005 {
        write(out, untold, "threads that ended unseen")?;
    }
    Ok(())
}

/// Further notes.
fn notes(gathered: &RunSet) -> Vec<String> {
    let mut notes = Vec::new();
    let runs = gathered.runs.len();
    let failed = gathered.runs.iter().filter(|run| !run.status.success()).count();
    if failed > 0 {
        notes.push(format!("{failed} of {runs} runs failed: exit status {}", worst(gathered).code()));
    }
    if let Some(why) = &gathered.missing {
        notes.push(format!(
            "not known: the kernel's share, threads, system calls ({why}). The kernel's own division into user and sys is left \
             out: it goes by its tick, and is wrong for short processes"
        ));
    }
    if gathered.of("max_rss_bytes").is_none()
        && let Some(floor) = gathered.runs.iter().map(|run| run.rss_floor_bytes).max()
        && let Some(most) = gathered.runs.iter().map(|run| run.usage.max_rss_bytes).max()
    {
        notes.push(format!(
            "peak memory: at most {} (plumb itself has {} when it starts the command; less can't be measured)",
            bytes(most.max(floor) as f64),
            bytes(floor as f64)
        ));
    }
    if let Some(cost) = gathered.calls_cost().filter(|&cost| cost >= DEAR) {
        notes.push(format!(
            "counting system calls took {:.1}% of the processor time ({:.0} ns each): --no-calls leaves them uncounted",
            cost * 100.0,
            gathered.per_call_ns.unwrap_or(0.0)
        ));
    }
    let all: f64 = gathered.runs.iter().filter_map(|run| Some(run.all?.total_ns() as f64)).sum();
    let waited = gathered.cpu_ns();
    if all - waited > all * LEFT_BEHIND {
        notes.push(format!(
            "processes that were not waited for used {} more",
            time((all - waited) / gathered.runs.len() as f64)
        ));
    }
    if gathered.counted_code() == Some(Code::User) {
        notes.push(
            "counters: user code only; to count the kernel's too: sysctl kernel.perf_event_paranoid=1, or run as root"
                .to_owned(),
        );
    }
    let turns = gathered.runs.iter().flat_map(|run| &run.counts).map(|count| count.counted);
    let least = turns.fold(1.0, f64::min);
    if least < 0.99 {
        notes.push(format!(
            "counters took turns: the least was counted {:.0}% of the time, and scaled up",
            least * 100.0
        ));
    }
    notes
}

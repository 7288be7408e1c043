//! The formats, what files in them are called, and what they keep.

use std::path::Path;

use anyhow::{Result, bail};

/// A format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// profile.proto, gzipped: go tool pprof, Pyroscope, Parca
    Pprof,
    /// <https://www.speedscope.app>
    Speedscope,
    /// <https://profiler.firefox.com>
    Firefox,
    /// Trace events: <https://ui.perfetto.dev>, chrome://tracing
    Trace,
    /// KCachegrind, callgrind_annotate
    Callgrind,
    /// Folded stacks: FlameGraph, inferno
    Folded,
    /// What perf script prints
    PerfScript,
    /// OpenTelemetry's profiles, in development
    Otlp,
    /// A line for each sample
    Csv,
}

/// What the names of files end in.
const ENDINGS: [(&str, Format); 19] = [
    (".pb.gz", Format::Pprof),
    (".pprof", Format::Pprof),
    (".pprof.gz", Format::Pprof),
    (".speedscope.json", Format::Speedscope),
    (".speedscope", Format::Speedscope),
    (".firefox.json", Format::Firefox),
    (".firefox", Format::Firefox),
    (".trace.json", Format::Trace),
    (".trace", Format::Trace),
    (".callgrind", Format::Callgrind),
    (".callgrind.out", Format::Callgrind),
    (".folded", Format::Folded),
    (".collapsed", Format::Folded),
    (".stacks", Format::Folded),
    (".perf.txt", Format::PerfScript),
    (".perf", Format::PerfScript),
    (".otlp", Format::Otlp),
    (".otlp.pb", Format::Otlp),
    (".csv", Format::Csv),
];

/// What `--help` says of the formats.
pub const KEPT: &str = "\
What formats keep, beside names of functions, inlined calls and weights:
  pprof       .pb.gz .pprof        threads, files, lines, addresses, build ids; equal stacks are one: no times, no processors
  speedscope  .speedscope.json     threads, order, source files, lines; no addresses, no files of programs, no times
  firefox     .firefox.json        threads, times, files, lines, addresses below 4 GB, build ids; no processors
  trace       .trace.json          threads, times, files; weights only as lengths of slices, which reach from sample to sample
  callgrind   .callgrind           files, lines, events; calls instead of stacks, counted in samples; no threads, no times
  folded      .folded              stacks and threads' names with counts, as plumb fold prints them; of one event; nothing else
  perf-script .perf.txt            threads, times, processors, files, addresses; no lines, no build ids
  otlp        .otlp                as pprof, with times (opentelemetry-proto 1.10.0, v1development: not stable yet)
  csv         .csv                 threads, times, processors; stacks as folded text
Names are kept whatever they hold. In texts (callgrind, folded, perf-script, csv) characters that would break a line, steer a terminal or
hide what it says, `;` in stacks, and what a spreadsheet would take for a formula are escapes: \\x3b, \\u{202e}. plumb takes them back.
Where a stack is cut, its outermost frame says why in brackets. Lives of processes, system calls and what was counted beside samples are
in plumb's own recordings only.
pprof, speedscope, firefox, folded and perf-script are also read, by all commands that take a recording, compressed by gzip or not: what
they don't tell is said in the report's header.";

/// The format that a file's name says.
pub fn by_name(path: &Path) -> Result<Format> {
    let name = path.to_string_lossy();
    let unpacked = name.strip_suffix(".gz").unwrap_or(&name);
    let found = ENDINGS.iter().find(|(ending, _)| name.ends_with(ending) || unpacked.ends_with(ending));
    let Some((_, format)) = found else {
        let endings: Vec<&str> = ENDINGS.iter().map(|(ending, _)| *ending).collect();
        bail!(
            "{name}: what format that is isn't known: say it by --format, or by an ending: {}",
            endings.join(" ")
        )
    };
    Ok(*format)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endings_say_the_format() {
        assert_eq!(by_name(Path::new("x/a.b.pb.gz")).unwrap(), Format::Pprof);
        assert_eq!(by_name(Path::new("x.speedscope.json")).unwrap(), Format::Speedscope);
        assert_eq!(by_name(Path::new("x.firefox.json.gz")).unwrap(), Format::Firefox);
        assert_eq!(by_name(Path::new("x.folded")).unwrap(), Format::Folded);
        assert!(by_name(Path::new("x.json")).unwrap_err().to_string().contains("--format"));
    }
}

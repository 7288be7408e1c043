//! The export formats, their file extensions, and what they keep.

use std::path::Path;

use anyhow::{Result, bail};
use clap::ValueEnum as _;

use crate::newfile;

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
    /// Output of perf script
    PerfScript,
    /// OpenTelemetry profiles (in development)
    Otlp,
    /// CSV, one line per sample
    Csv,
}

/// File extensions by format.
const ENDINGS: [(&str, Format); 20] = [
    (".pb.gz", Format::Pprof),
    (".pprof", Format::Pprof),
    (".pprof.gz", Format::Pprof),
    (".pgo", Format::Pprof),
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

/// Text of `--help` on the formats.
pub const KEPT: &str = "\
Extension and contents of each format, besides function names, inlined functions and weights:
  pprof        .pb.gz            threads, files, lines, addresses, build IDs; no times
  speedscope   .speedscope.json  threads, order, files, lines; no addresses, no times
  firefox      .firefox.json     threads, times, files, lines, addresses below 4 GB, build IDs
  trace        .trace.json       threads, times, files; weights only as lengths of slices
  callgrind    .callgrind        files, lines, events; calls instead of stacks; no threads, no times
  folded       .folded           thread names, as in plumb fold; one event only
  perf-script  .perf.txt         threads, times, CPUs, files, addresses; no lines, no build IDs
  otlp         .otlp             as pprof, with times (v1development: not stable yet)
  csv          .csv              threads, times, CPUs; stacks as folded text

Names are kept unchanged. Text formats (callgrind, folded, perf-script, csv) escape line breaks,
terminal control characters, invisible characters, `;` in stacks, and the start of spreadsheet
formulas: \\x3b, \\u{202e}. plumb decodes these escapes.

The outermost frame of a truncated stack gives the reason in brackets. Only plumb's own recordings
have process lifetimes, system calls and counters.

plumb also reads these formats, except otlp and csv, uncompressed or compressed by gzip, zstd or
xz. The header of plumb report names the data that a format lacks.";

/// The format for a file name.
pub fn by_name(path: &Path) -> Result<Format> {
    let name = path.to_string_lossy();
    let unpacked = name.strip_suffix(".gz").unwrap_or(&name);
    let found = ENDINGS.iter().find(|(ending, _)| name.ends_with(ending) || unpacked.ends_with(ending));
    let Some((_, format)) = found else {
        let ending =
            Path::new(unpacked).extension().map(|ending| format!("unknown ending .{}", ending.display()));
        let what = ending.unwrap_or_else(|| format!("{} has no ending", newfile::name(path)));
        bail!("{what}: name the format by --format FORMAT, which is {}", formats().join(", "))
    };
    Ok(*format)
}

/// The names of all formats, each with the extension that selects it.
fn formats() -> Vec<String> {
    let named = |format: &Format| {
        let (ending, _) = ENDINGS.iter().find(|(_, one)| one == format)?;
        Some(format!("{} ({ending})", format.to_possible_value()?.get_name()))
    };
    Format::value_variants().iter().filter_map(named).collect()
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
        let said = |name: &str| by_name(Path::new(name)).unwrap_err().to_string();
        let how =
            "name the format by --format FORMAT, which is pprof (.pb.gz), speedscope (.speedscope.json), ";
        assert!(
            said("x/a.b.docx").starts_with(&format!("unknown ending .docx: {how}")),
            "{}",
            said("x/a.b.docx")
        );
        assert!(said("x.json.gz").starts_with("unknown ending .json: "), "{}", said("x.json.gz"));
        assert!(said("a.b/x").starts_with("a.b/x has no ending: "), "{}", said("a.b/x"));
        assert!(said("-").starts_with("standard output has no ending: "), "{}", said("-"));
        assert_eq!(formats().len(), Format::value_variants().len());
    }
}

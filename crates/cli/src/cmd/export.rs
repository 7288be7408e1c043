//! `plumb export`: converts a recording to the format of another tool.
//!
//! Elsewhere: the formats.

mod format;

use std::io::{BufWriter, Write};
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use flate2::Compression;
use flate2::write::GzEncoder;
use plumb_analyze::{Filter, View, is_clock};
use plumb_formats::{callgrind, chrome, csv, firefox, otlp, pprof, speedscope};
use plumb_profile::Profile;

use crate::args::FilterArgs;
use crate::examples;
use crate::exit::Exit;
use crate::newfile::{self, Destination, NewFile};
use crate::render::{folded as folded_stacks, perf_script};
use crate::terminal::{Output, finish, say};
use format::{Format, KEPT, by_name};

/// Arguments of `plumb export`.
#[derive(clap::Args, Debug)]
#[command(after_help = examples::EXPORT, after_long_help = examples::below(KEPT, examples::EXPORT))]
pub struct Args {
    /// Recording, or a profile of another tool
    #[arg(default_value = "profile.plumb")]
    file: PathBuf,
    /// Output file, - for standard output; its extension selects the format (see --help), .gz compresses
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Output format, if the extension does not select it
    #[arg(long, value_name = "FORMAT")]
    format: Option<Format>,
    #[command(flatten)]
    filters: FilterArgs,
}

/// Runs `plumb export`.
pub fn run(args: Args) -> Result<Exit> {
    let format = args.format.map_or_else(|| by_name(&args.output), Ok)?;
    let profile = crate::load::load(&args.file, &args.filters.symfs)?;
    if format == Format::Trace {
        check_times(&profile).with_context(|| args.file.display().to_string())?;
    }
    let destination = Destination::of(&args.output)?;
    let cannot = || format!("cannot write {}", newfile::name(&args.output));
    let mut file = NewFile::to(&destination).with_context(cannot)?;
    let mut out = BufWriter::new(&mut file);
    let is_gz = args.output.extension().is_some_and(|end| end == "gz") && format != Format::Pprof;
    let written = if is_gz {
        let mut packed = GzEncoder::new(&mut out, Compression::default());
        write(&profile, format, &args.filters, &mut packed).and_then(|()| Ok(packed.finish().map(|_| ())?))
    } else {
        write(&profile, format, &args.filters, &mut out)
    };
    let written = written.and_then(|()| Ok(out.flush()?));
    // Dropped without flushing: after a failure, buffered bytes can't be written.
    drop(out.into_parts());
    finish(written.and_then(|()| Ok(file.commit()?)).with_context(cannot))
}

fn write(profile: &Profile, format: Format, filters: &FilterArgs, out: &mut impl Write) -> Result<()> {
    let kept = View::new(profile, &filters.filter(profile)?).to_profile();
    let written = match format {
        Format::Pprof => pprof::write(&kept, out),
        Format::Speedscope => speedscope::write(&kept, out),
        Format::Firefox => firefox::write(&kept, out),
        Format::Trace => chrome::write(&kept, out),
        Format::Callgrind => callgrind::write(&kept, out),
        Format::Otlp => otlp::write(&kept, out),
        Format::Csv => csv::write(&kept, out),
        Format::Folded => return folded_stacks::write(profile, filters, false, false, out),
        Format::PerfScript => {
            let (fields, all) = (perf_script::Fields::default(), Filter::default());
            perf_script::write(&kept, fields, &all, &mut Output::plain(out))
        }
    };
    Ok(written?)
}

/// Fails if a timeline format is asked for and samples have no times.
fn check_times(profile: &Profile) -> Result<()> {
    let mut times = profile.samples.iter().map(|sample| sample.time_ns);
    let first = times.next();
    if times.len() > 0 && times.all(|time| Some(time) == first) {
        bail!("a trace needs timestamps, and the samples have none");
    }
    let clock = |sample: &plumb_profile::Sample| {
        is_clock(profile.strings.get(profile.events[sample.event].name))
            && profile
                .meta
                .frequency_hz
                .is_some_and(|hz| sample.weight > 2_000_000_000 / u64::from(hz.max(1)))
    };
    if profile.samples.iter().any(|sample| clock(&sample)) {
        say!(
            "identical stacks were aggregated while recording: the trace shows all of them at the time of the first; \
             for the time of each sample, record with --timeline"
        );
    }
    Ok(())
}

//! `plumb push`: sends a profile to a server, whatever file it is in, or a file with symbols.

use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail};
use plumb_formats::pprof;
use plumb_server::{PUSH_PATH, SYMBOLS_PATH, push_request};

use crate::args::value::label;
use crate::examples;
use crate::exit::Exit;
use crate::http::Client;
use crate::terminal::{Output, finish};

/// Arguments of `plumb push`.
#[derive(clap::Args, Debug)]
#[command(after_help = examples::PUSH)]
pub struct Args {
    /// Recording, or a profile of another tool; or an ELF file, whose symbols name the frames that came without
    #[arg(default_value = "profile.plumb")]
    file: PathBuf,
    /// URL of the server
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:4041")]
    to: String,
    /// Service that was profiled [default: the recorded program, or the name of the file]
    #[arg(long, value_name = "NAME")]
    service: Option<String>,
    /// Label of the profile (repeatable)
    #[arg(long, value_name = "NAME=VALUE", value_parser = label)]
    label: Vec<(String, String)>,
    /// Kind of profile
    #[arg(long, value_name = "NAME", default_value = "process_cpu")]
    kind: String,
    /// File that holds a token
    #[arg(long, value_name = "FILE")]
    token: Option<PathBuf>,
}

/// Runs `plumb push`.
pub fn run(args: Args) -> Result<Exit> {
    if is_elf(&args.file) {
        return push_symbols(&args);
    }
    let mut profile = crate::load::load(&args.file)?;
    if profile.samples.is_empty() {
        bail!("{} has no samples", args.file.display());
    }
    if profile.meta.start_unix_ns == 0 {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
        profile.meta.start_unix_ns = u64::try_from(now.as_nanos()).unwrap_or(u64::MAX);
    }
    let name = |path: &str| path.rsplit('/').next().unwrap_or(path).to_owned();
    let service = args.service.or_else(|| profile.meta.command.first().map(|program| name(program)));
    let service = match service {
        Some(service) => service,
        None => args.file.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into_owned()),
    };
    let mut bytes = Vec::new();
    pprof::write(&profile, &mut bytes).context("cannot convert the profile")?;
    let mut labels = args.label;
    labels.push(("__name__".to_owned(), args.kind));
    labels.push(("service_name".to_owned(), service.clone()));
    let client = Client::new(&args.to, args.token.as_deref())?;
    client.post(PUSH_PATH, "application/proto", &push_request(&labels, bytes))?;
    let samples = profile.samples.len();
    let mut out = Output::stdout();
    finish((|| {
        writeln!(out, "sent {samples} samples of {service} to {}", args.to)?;
        Ok(out.flush()?)
    })())
}

/// Whether a file starts with the ELF magic. Read errors are reported by whoever reads all of it.
fn is_elf(path: &Path) -> bool {
    let mut start = [0; 4];
    File::open(path).and_then(|mut file| file.read_exact(&mut start)).is_ok() && start == *b"\x7fELF"
}

fn push_symbols(args: &Args) -> Result<Exit> {
    let name = args.file.display();
    let Some(build_id) = plumb_symbolize::build_id_of(&args.file) else {
        bail!("{name} has no build ID, by which frames find it; link it with --build-id");
    };
    let bytes = std::fs::read(&args.file).with_context(|| format!("cannot read {name}"))?;
    let client = Client::new(&args.to, args.token.as_deref())?;
    client.put(&format!("{SYMBOLS_PATH}/{build_id}"), &bytes)?;
    let mut out = Output::stdout();
    finish((|| {
        writeln!(out, "sent the symbols of {name} (build ID {build_id}) to {}", args.to)?;
        Ok(out.flush()?)
    })())
}

//! `plumb push`: sends a profile to a server, whatever file it is in, or a file with symbols.

use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail};
use plumb_formats::otlp::{self, ExportRequest};
use plumb_formats::pprof;
use plumb_profile::Profile;
use plumb_server::{PUSH_PATH, SYMBOLS_PATH, push_request};

use crate::args::value::label;
use crate::args::{AccessArgs, SymfsArgs};
use crate::examples;
use crate::exit::{Exit, wrong_usage};
use crate::http::Client;
use crate::load::{Payload, payload};
use crate::terminal::{Output, finish, say};

/// Services that are named, at most.
const SERVICES: usize = 8;
/// Kind of a profile where none is named.
const KIND: &str = "process_cpu";

/// Arguments of `plumb push`.
#[derive(clap::Args, Debug)]
#[command(after_help = examples::PUSH)]
pub struct Args {
    /// Recording, or a profile of another tool; a request of OpenTelemetry's profilers; or an ELF file, whose symbols name the frames
    /// that came without
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
    /// Kind of profile [default: process_cpu]
    #[arg(long, value_name = "NAME")]
    kind: Option<String>,
    #[command(flatten)]
    symfs: SymfsArgs,
    #[command(flatten)]
    access: AccessArgs,
}

/// Runs `plumb push`.
pub fn run(args: Args) -> Result<Exit> {
    if is_elf(&args.file) {
        return push_symbols(&args);
    }
    match payload(&args.file, &args.symfs)? {
        Payload::Profile(profile) => push_profile(args, *profile),
        Payload::Otlp(request) => push_otlp(&args, *request),
    }
}

fn push_profile(args: Args, mut profile: Profile) -> Result<Exit> {
    if profile.samples.is_empty() {
        bail!("{} has no samples", args.file.display());
    }
    if profile.meta.start_unix_ns == 0 {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
        profile.meta.start_unix_ns = u64::try_from(now.as_nanos()).unwrap_or(u64::MAX);
    }
    let name = |path: &str| path.rsplit('/').next().unwrap_or(path).to_owned();
    let service = args.service.or_else(|| profile.meta.command.first().map(|program| name(program)));
    let service = service.unwrap_or_else(|| stem(&args.file));
    let mut bytes = Vec::new();
    pprof::write(&profile, &mut bytes).context("cannot convert the profile")?;
    let mut labels = args.label;
    labels.push(("__name__".to_owned(), args.kind.unwrap_or_else(|| KIND.to_owned())));
    labels.push(("service_name".to_owned(), service.clone()));
    let client = Client::new(&args.to, &args.access)?;
    client.post(PUSH_PATH, "application/proto", &push_request(&labels, bytes))?;
    sent(&format!("{} samples of {service}", profile.samples.len()), &args.to)
}

/// Sends an OTLP request. Services and kinds are those in the file, unless an option sets others.
fn push_otlp(args: &Args, mut request: ExportRequest) -> Result<Exit> {
    let file = args.file.display();
    if args.kind.is_some() {
        return Err(wrong_usage(format!(
            "{file} holds OpenTelemetry's profiles, which have a kind; leave out --kind"
        )));
    }
    match &args.service {
        Some(service) => request.set_service(service),
        None => request.name_services(&stem(&args.file)),
    }
    args.label.iter().for_each(|(name, value)| request.set_attribute(name, value));
    let profiles = request.profiles();
    let services = named(&request.services().into_iter().collect::<Vec<_>>());
    let client = Client::new(&args.to, &args.access)?;
    let answer = client.post(otlp::HTTP_PATH, "application/x-protobuf", &request.into_bytes())?;
    match otlp::refusal(&answer) {
        Some(refusal) if refusal.rejected_profiles != 0 => {
            let rejected = refusal.rejected_profiles;
            bail!(
                "{} rejected {rejected} of the {profiles} profiles in {file}: {}",
                args.to,
                refusal.error_message
            )
        }
        Some(warning) => say!("{} warns: {}", args.to, warning.error_message),
        None => {}
    }
    let noun = if profiles == 1 { "profile" } else { "profiles" };
    sent(&format!("{profiles} {noun} of {services}"), &args.to)
}

/// The names, or the first of many.
fn named(services: &[&str]) -> String {
    let first = &services[..services.len().min(SERVICES)];
    let more = if services.len() > SERVICES { ", …" } else { "" };
    first.join(", ") + more
}

/// The name of a file without its ending.
fn stem(file: &Path) -> String {
    file.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into_owned())
}

fn sent(what: &str, url: &str) -> Result<Exit> {
    let mut out = Output::stdout();
    finish((|| {
        writeln!(out, "sent {what} to {url}")?;
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
    let labelled = [
        ("--service", args.service.is_some()),
        ("--label", !args.label.is_empty()),
        ("--kind", args.kind.is_some()),
    ];
    if let Some((option, _)) = labelled.into_iter().find(|(_, is_given)| *is_given) {
        return Err(wrong_usage(format!(
            "{name} holds symbols, which belong to all services that run it; leave out {option}"
        )));
    }
    let Some(build_id) = plumb_symbolize::build_id_of(&args.file) else {
        bail!("{name} has no build ID, by which frames find it; link it with --build-id");
    };
    let bytes = std::fs::read(&args.file).with_context(|| format!("cannot read {name}"))?;
    let client = Client::new(&args.to, &args.access)?;
    client.put(&format!("{SYMBOLS_PATH}/{build_id}"), &bytes)?;
    sent(&format!("the symbols of {name} (build ID {build_id})"), &args.to)
}

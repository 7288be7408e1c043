//! `plumb serve`: shows recordings in the browser, or stores profiles of many services and answers queries, over HTTP.

#[cfg(feature = "agent")]
mod inside;

use std::io::IsTerminal;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use plumb_server::{
    ListenOptions, PeerAuthorities, Reloader, Server, ServerOptions, TenantLimits, Tokens, WatchOptions,
    WebhookOptions,
};
use plumb_store::{Store, StoreOptions};
use rustix::process::{getpid, kill_process};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::args::LogArgs;
#[cfg(feature = "agent")]
use crate::args::profiles::{self, ProfileArgs};
use crate::args::value::{period, size};
use crate::examples;
use crate::exit::{Exit, wrong_usage};
use crate::loaded;
use crate::newfile::keep_private;
use crate::showing::{self, ShowArgs};
use crate::terminal::say;

/// Longest time until renewed files are read.
const RELOAD: Duration = Duration::from_secs(10);
/// Default address of a server with a store.
const STORE: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 4041);

/// Directory for the agent's waiting requests, inside the store's directory.
#[cfg(feature = "agent")]
const SPOOL: &str = "agent";

/// Arguments of a server whose profiles are in a bucket.
#[derive(clap::Args, Debug)]
struct BucketArgs {
    /// Directory of the write-ahead log, with a bucket
    #[arg(long, value_name = "DIR", default_value = "plumb-wal")]
    wal: PathBuf,
    /// URL of this server for the other servers of a bucket
    ///
    /// The servers ask each other for profiles that are in no block yet. With --tokens all have the same admin token.
    #[arg(long, value_name = "URL")]
    advertise: Option<String>,
    /// Certificates (PEM) to verify the server by, if no public authority has signed its own
    ///
    /// The server is another one of the bucket, or the webhook's receiver. Replaces the certificates of public authorities.
    #[arg(long, value_name = "FILE", requires = "verified")]
    ca_cert: Option<PathBuf>,
}

/// Arguments of a webhook.
#[derive(clap::Args, Debug)]
struct WebhookArgs {
    /// URL to which findings are sent when they begin and end
    ///
    /// As an Alertmanager sends alerts to its webhook receivers (version 4). A finding begins and ends once two evaluations in a row have found so.
    #[arg(long, value_name = "URL")]
    webhook: Option<String>,
    /// URL of this server in these messages [default: the address it listens on]
    #[arg(long, value_name = "URL", requires = "webhook")]
    external_url: Option<String>,
}

/// Arguments of encryption and tokens.
#[derive(clap::Args, Debug)]
struct AccessArgs {
    /// Certificate chain (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// Private key of the certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// File of tokens, one per line: token, scopes, and optionally a tenant
    ///
    /// SCOPES are write, read (write,read for both) or admin. Clients send `Authorization: Bearer TOKEN`, or the token as the password of
    /// basic authentication. Only the file's owner may have access to it.
    #[arg(long, value_name = "FILE")]
    tokens: Option<PathBuf>,
}

/// Arguments of `plumb serve`.
#[derive(clap::Args, Debug)]
#[command(group = clap::ArgGroup::new("verified").args(["advertise", "webhook"]).multiple(true))]
#[command(after_help = examples::SERVE)]
pub struct Args {
    /// Recordings, or profiles of other tools, to show instead of a store
    #[cfg_attr(feature = "agent", arg(conflicts_with = "no_agent", conflicts_with_all = profiles::SWITCHES))]
    #[arg(value_name = "FILE", conflicts_with_all = ["store", "wal", "advertise", "ca_cert", "webhook", "retention", "max_size", "max_body", "max_query_length", "max_age", "tls_cert", "tokens", "tenants"])]
    files: Vec<PathBuf>,
    #[command(flatten)]
    show: ShowArgs,
    /// Directory or bucket of the profiles: DIR or s3://BUCKET/PREFIX
    ///
    /// Any number of servers may have the same bucket. Region, keys and endpoint come from the environment: AWS_REGION, AWS_ACCESS_KEY_ID,
    /// AWS_SECRET_ACCESS_KEY, AWS_ENDPOINT_URL, AWS_ALLOW_HTTP.
    #[arg(long, value_name = "PLACE", default_value = "plumb-store")]
    store: String,
    #[command(flatten)]
    bucket: BucketArgs,
    #[command(flatten)]
    webhook: WebhookArgs,
    /// Delete profiles older than this
    #[arg(long, value_name = "TIME", default_value = "30d", value_parser = period)]
    retention: Duration,
    /// Delete the oldest profiles beyond this size
    #[arg(long, value_name = "SIZE", default_value = "10G", value_parser = size)]
    max_size: u64,
    /// Refuse requests larger than this
    #[arg(long, value_name = "SIZE", default_value = "32M", value_parser = size)]
    max_body: u64,
    /// Refuse queries of a longer time range
    #[arg(long, value_name = "TIME", value_parser = period)]
    max_query_length: Option<Duration>,
    /// Refuse profiles older than this when they arrive
    #[arg(long, value_name = "TIME", value_parser = period)]
    max_age: Option<Duration>,
    #[command(flatten)]
    access: AccessArgs,
    /// File of limits, one tenant per line: tenant, retention=TIME, max_size=SIZE, rate=SIZE
    ///
    /// The tenant * is that of all others. `rate` is bytes of profiles a second. `--retention` and `--max-size` apply as well.
    #[arg(long, value_name = "FILE")]
    tenants: Option<PathBuf>,
    #[cfg(feature = "agent")]
    #[command(flatten)]
    agent: InsideArgs,
    #[command(flatten)]
    log: LogArgs,
}

/// Options of the built-in agent.
#[cfg(feature = "agent")]
#[derive(clap::Args, Debug)]
struct InsideArgs {
    /// Never profile this machine
    ///
    /// Otherwise a server with a store that has the rights for it (root, or CAP_BPF, CAP_PERFMON and CAP_SYS_PTRACE) also runs plumb agent, as a
    /// process of its own. Where plumb agent runs by itself or with other options, every sample would be there twice.
    #[arg(long, conflicts_with_all = profiles::SWITCHES)]
    no_agent: bool,
    #[command(flatten)]
    profiles: ProfileArgs,
}

/// Runs `plumb serve`.
pub fn run(args: Args) -> Result<Exit> {
    if !args.files.is_empty() {
        let recordings =
            args.files.iter().map(|file| loaded::load(file, &args.show.symfs)).collect::<Result<_>>()?;
        showing::show(recordings, args.show, false)?;
        return Ok(Exit::Success);
    }
    if args.show.symfs.directory().is_some() {
        bail!("--symfs names the files of recordings to show; a server with a store reads no such files");
    }
    plumb_capture_perf::return_freed_memory();
    args.log.init();
    if let Err(error) = plumb_process::usage::raise_file_limit() {
        tracing::warn!(%error, "cannot raise the limit of open files");
    }
    let options = server_options(&args)?;
    let mut listen = ListenOptions::new(args.show.listen.unwrap_or(STORE));
    listen.tls = args.access.tls_cert.zip(args.access.tls_key);
    let is_bucket = args.store.starts_with("s3://");
    let directory = if is_bucket { args.bucket.wal } else { PathBuf::from(&args.store) };
    keep_private(&directory);
    #[cfg(feature = "agent")]
    let agent = (!args.agent.no_agent)
        .then(|| (directory.join(SPOOL), [args.log.arguments(), args.agent.profiles.arguments()].concat()));
    #[cfg(not(feature = "agent"))]
    let agent = None;
    let store = StoreOptions {
        bucket: is_bucket.then_some(args.store),
        address: args.bucket.advertise,
        retention: args.retention,
        max_bytes: args.max_size,
        ..StoreOptions::new(directory)
    };
    let url = store.bucket.clone();
    let opened = Store::open(store);
    let store = Arc::new(match url {
        None => opened?,
        Some(url) => opened.with_context(|| {
            format!("cannot open {url}; AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_REGION and AWS_ENDPOINT_URL say how to reach it")
        })?,
    });
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.context("cannot start the server's threads")?;
    let served = runtime.block_on(serve(store.clone(), options, listen, agent));
    // Tasks that still hold the store end before it is closed.
    drop(runtime);
    drop(store);
    served
}

/// Options of the server, with the files that they name.
fn server_options(args: &Args) -> Result<ServerOptions> {
    let tokens = args.access.tokens.as_ref().map(Tokens::read).transpose()?;
    let tenants = args.tenants.as_ref().map(TenantLimits::read).transpose()?;
    let peer_authorities = args.bucket.ca_cert.as_deref().map(PeerAuthorities::read).transpose()?;
    let WebhookArgs { webhook, external_url } = &args.webhook;
    let webhook = webhook.as_ref().map(|url| {
        WebhookOptions::new(url, external_url.as_deref(), peer_authorities.clone()).map_err(wrong_usage)
    });
    let mut options = ServerOptions {
        tokens,
        tenants,
        peer_authorities,
        return_memory: Some(plumb_capture_perf::trim_memory as fn()),
        watch: Some(WatchOptions::default()),
        webhook: webhook.transpose()?,
        ..ServerOptions::default()
    };
    options.ingest.body = usize::try_from(args.max_body).unwrap_or(usize::MAX);
    options.ingest.unpacked = options.ingest.unpacked.max(options.ingest.body.saturating_mul(2));
    let memory = &mut options.ingest.memory;
    memory.in_flight = memory.in_flight.max(options.ingest.unpacked);
    options.ingest.oldest = args.max_age;
    options.query.length = args.max_query_length;
    Ok(options)
}

async fn serve(
    store: Arc<Store>,
    options: ServerOptions,
    listen: ListenOptions,
    agent: Option<(PathBuf, Vec<String>)>,
) -> Result<Exit> {
    let is_open = listen.tls.is_none() && options.tokens.is_none();
    let server = Server::bind(store.clone(), options.clone(), listen).await?;
    let url = server.url();
    say!("listening on {url}");
    tracing::info!(url, "started");
    tokio::spawn(reload(server.reloader(), signal(SignalKind::hangup())?));
    let asked = showing::asked_to_stop()?;
    let asked = async move {
        asked.await;
        tracing::info!("stopping");
    };
    let stop = with_agent(agent, (store, options), is_open.then_some(url), asked).await?;
    server.run(stop).await;
    tracing::info!("stopped");
    Ok(Exit::Success)
}

/// Reads the server's certificate, tokens and limits again: on SIGHUP, and from time to time, since who renews them may send no signal. SIGHUP from a terminal
/// that has been closed ends the server.
async fn reload(reloader: Reloader, mut asked: Signal) {
    let is_on_terminal = || std::io::stderr().is_terminal();
    let was_on_terminal = is_on_terminal();
    loop {
        let _ = tokio::time::timeout(RELOAD, asked.recv()).await;
        if was_on_terminal && !is_on_terminal() {
            let _ = kill_process(getpid(), rustix::process::Signal::TERM);
            return;
        }
        reloader.reload();
    }
}

/// Returns when asked to stop, after the agent has sent its last window. `url`: an address that accepts profiles without a token.
#[cfg(feature = "agent")]
async fn with_agent(
    agent: Option<(PathBuf, Vec<String>)>,
    (store, options): (Arc<Store>, ServerOptions),
    url: Option<String>,
    asked: impl Future<Output = ()>,
) -> Result<impl Future<Output = ()>> {
    let agent = match agent {
        Some((spool, more)) => inside::InsideAgent::prepare(store, options, url, spool, more).await?,
        None => None,
    };
    Ok(async move {
        match agent {
            Some(agent) => agent.run(asked).await,
            None => asked.await,
        }
    })
}

/// Returns when asked to stop.
#[cfg(not(feature = "agent"))]
async fn with_agent(
    _: Option<(PathBuf, Vec<String>)>,
    _: (Arc<Store>, ServerOptions),
    _: Option<String>,
    asked: impl Future<Output = ()>,
) -> Result<impl Future<Output = ()>> {
    Ok(asked)
}

//! Shows recordings in the browser: serves the page on this machine and opens it.
//!
//! Elsewhere: loading recordings (`loaded`), the page and its answers (`plumb_server`), a store of profiles (`plumb serve`).

use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result};
use plumb_documents::answers::LoadedRecording;
use plumb_server::{FileReader, ListenOptions, ServeError, Server, ShownRecordings};
use tokio::signal::unix::{SignalKind, signal};

use crate::args::SymfsArgs;
use crate::loaded;
use crate::terminal::say;

/// First port that is tried.
const FIRST_PORT: u16 = 4041;
/// Number of further ports to try.
const MORE_PORTS: u16 = 50;

/// Link to the most common editor, on all systems.
const EDITOR: &str = "vscode://file{file}:{line}";

/// Options of the local server that shows recordings.
#[derive(clap::Args, Clone, Debug)]
pub struct ShowArgs {
    /// Address to listen on
    ///
    /// Without it, 127.0.0.1:4041, or for recordings the first free port from there. Recordings are shown on loopback addresses only; a store on others needs
    /// --tls-cert, --tls-key and --tokens.
    #[arg(long, value_name = "ADDR", value_parser = crate::args::value::address)]
    pub listen: Option<SocketAddr>,
    /// Link that opens a source line in an editor
    ///
    /// {file} and {line} are replaced, for example `idea://open?file={file}&line={line}`. Empty: no links.
    #[arg(long, value_name = "URL", default_value = EDITOR, value_parser = editor)]
    pub editor: String,
    #[command(flatten)]
    pub symfs: SymfsArgs,
}

impl Default for ShowArgs {
    fn default() -> Self {
        Self { listen: None, editor: EDITOR.into(), symfs: SymfsArgs::default() }
    }
}

/// Checks that a link can't be a script.
fn editor(text: &str) -> Result<String, String> {
    let scheme = text.split_once(':').map_or("", |(scheme, _)| scheme).to_ascii_lowercase();
    let is_script = ["javascript", "data", "vbscript", "blob"].contains(&scheme.as_str());
    let is_scheme = scheme.chars().next().is_some_and(|letter| letter.is_ascii_alphabetic())
        && scheme.chars().all(|letter| letter.is_ascii_alphanumeric() || "+-.".contains(letter));
    if text.is_empty() || is_scheme && !is_script && text.contains("{file}") {
        return Ok(text.to_owned());
    }
    Err("expected a URL with {file}, such as vscode://file{file}:{line}".into())
}

/// Serves recordings until Ctrl-C, and opens the page if requested.
///
/// # Errors
/// No address can be listened on.
pub fn show(recordings: Vec<LoadedRecording>, options: ShowArgs, is_opened: bool) -> Result<()> {
    let ShowArgs { listen, editor, symfs } = options;
    let read = move |name: &str, bytes| {
        loaded::load_bytes(name, bytes, &symfs).map_err(|error| format!("{error:#}"))
    };
    let reader = FileReader::new(read);
    let shown = ShownRecordings { recordings, editor, reader };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.context("cannot start the server's threads")?;
    runtime.block_on(async {
        let server = bind(shown, listen).await?;
        let stop = asked_to_stop()?;
        let url = format!("http://{}/", server.address());
        say!("listening on {url}; Ctrl-C ends it");
        if is_opened && let Err(why) = open(&url) {
            say!("cannot open a browser: {why}; open {url} by hand");
        }
        server.run(stop).await;
        Ok(())
    })
}

/// Completes on Ctrl-C or SIGTERM, which no longer end the process from here on.
///
/// # Errors
/// The signal handlers can't be installed.
pub fn asked_to_stop() -> std::io::Result<impl Future<Output = ()>> {
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    })
}

/// User IDs whose programs may connect: this user, root, and the user who ran sudo.
fn users() -> Vec<u32> {
    let invoking = std::env::var("SUDO_UID").ok().and_then(|user| user.parse().ok());
    [rustix::process::geteuid().as_raw(), 0].into_iter().chain(invoking).collect()
}

async fn bind(shown: ShownRecordings, listen: Option<SocketAddr>) -> Result<Server, ServeError> {
    if let Some(address) = listen {
        return Server::bind_recordings(shown, users(), ListenOptions::new(address)).await;
    }
    let at = |port| SocketAddr::from(([127, 0, 0, 1], port));
    for port in FIRST_PORT..FIRST_PORT + MORE_PORTS {
        match Server::bind_recordings(shown.clone(), users(), ListenOptions::new(at(port))).await {
            Err(ServeError::Listen(_, error)) if error.kind() == std::io::ErrorKind::AddrInUse => {}
            bound => return bound,
        }
    }
    Server::bind_recordings(shown, users(), ListenOptions::new(at(0))).await
}

/// Opens a browser, which outlives this process and doesn't receive Ctrl-C.
fn open(url: &str) -> Result<(), String> {
    use std::os::unix::process::CommandExt;
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    if rustix::process::geteuid().is_root() && set("SUDO_USER").is_some() {
        return Err("plumb runs as root, and a browser should not".into());
    }
    let chosen = set("BROWSER");
    if chosen.is_none() && set("DISPLAY").is_none() && set("WAYLAND_DISPLAY").is_none() {
        return Err("there is no display, and BROWSER is not set".into());
    }
    let browser = chosen.unwrap_or_else(|| "xdg-open".into());
    let mut command = Command::new(&browser);
    command.arg(url).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
    match command.spawn() {
        Ok(_) => Ok(()),
        Err(error) => Err(format!("cannot start {}: {error}", Path::new(&browser).display())),
    }
}

//! The agent built into `plumb serve`: profiles this machine in a separate process.
//!
//! A process rather than a thread: sampling blocks signals, drops capabilities and may run out of memory, none of which may affect the
//! store. It ends with the server, however that ends. Elsewhere: sampling (`plumb agent`).

use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use plumb_agent::missing_capabilities;
use plumb_server::{ListenOptions, Server, ServerOptions, Tokens};
use plumb_store::Store;
use rustix::process::{Pid, Signal, kill_process};
use tokio::process::{Child, Command};
use tokio::sync::oneshot;

/// Environment variable that passes the agent its token for this server.
const TOKEN: &str = "PLUMB_AGENT_TOKEN";
/// Bytes of that token.
const TOKEN_BYTES: usize = 16;
/// An agent that ran for less time is not started again: it would fail again.
const RAN: Duration = Duration::from_secs(60);
/// Time for the agent to send its last window.
const FAREWELL: Duration = Duration::from_secs(20);

/// The settings to start the agent with.
pub(super) struct InsideAgent {
    url: String,
    token: Option<String>,
    spool: PathBuf,
    /// Additional arguments.
    more: Vec<String>,
    /// The separate server for the agent's requests, if any, and the sender that stops it.
    own_server: Option<(tokio::task::JoinHandle<()>, oneshot::Sender<()>)>,
}

impl InsideAgent {
    /// Prepares the agent; returns `None`, after logging it, if this process may not profile the machine. `url`: the server's address, if it needs
    /// no token. Otherwise the agent gets a port on loopback and a token of its own.
    pub async fn prepare(
        store: Arc<Store>,
        options: ServerOptions,
        url: Option<String>,
        spool: PathBuf,
        more: Vec<String>,
    ) -> Result<Option<Self>> {
        let missing = missing_capabilities();
        if !missing.is_empty() {
            tracing::warn!(
                "this machine is not profiled: the server lacks {}; run as root, or say --no-agent",
                missing.join(", ")
            );
            return Ok(None);
        }
        if let Some(url) = url {
            return Ok(Some(Self { url, token: None, spool, more, own_server: None }));
        }
        let token = random_token()?;
        // Findings are computed by the server that people ask, which also applies the limits of tenants. The own agent has no rate.
        let tokens = Some(Tokens::writer(&token));
        let options = ServerOptions { tokens, tenants: None, watch: None, webhook: None, ..options };
        let server = Server::bind(store, options, ListenOptions::new(([127, 0, 0, 1], 0).into())).await?;
        let url = format!("http://{}", server.address());
        let (stop, stopped) = oneshot::channel();
        let running = tokio::spawn(server.run(async move {
            let _ = stopped.await;
        }));
        Ok(Some(Self { url, token: Some(token), spool, more, own_server: Some((running, stop)) }))
    }

    /// Keeps an agent running until `asked` completes, and lets it send its last window.
    pub async fn run(mut self, asked: impl Future<Output = ()>) {
        tokio::pin!(asked);
        loop {
            let began = Instant::now();
            let mut child = match self.start() {
                Ok(child) => child,
                Err(error) => {
                    tracing::warn!("this machine is not profiled: {error:#}");
                    asked.await;
                    break;
                }
            };
            let status = tokio::select! {
                () = &mut asked => {
                    end(child).await;
                    break;
                }
                status = child.wait() => status,
            };
            let status = status.map_or_else(|error| error.to_string(), |status| status.to_string());
            if began.elapsed() < RAN {
                tracing::warn!("this machine is not profiled: the agent ended ({status})");
                asked.await;
                break;
            }
            tracing::warn!("the agent ended ({status}) and is started again");
        }
        if let Some((running, stop)) = self.own_server.take() {
            let _ = stop.send(());
            let _ = running.await;
        }
    }

    /// Starts the agent. It ends when the calling thread ends, so that has to be the main thread.
    fn start(&self) -> Result<Child> {
        let program = std::env::current_exe().context("cannot find plumb itself")?;
        let mut command = Command::new(program);
        command.args(["agent", "--to", &self.url, "--parent", &std::process::id().to_string(), "--spool"]);
        command.arg(&self.spool).args(&self.more);
        // Ctrl-C on a terminal is for the server, which then ends the agent.
        command.stdin(Stdio::null()).stdout(Stdio::null()).process_group(0).kill_on_drop(true);
        match &self.token {
            Some(token) => command.env(TOKEN, token),
            None => command.env_remove(TOKEN),
        };
        command.spawn().context("cannot start the agent")
    }
}

/// Stops an agent, which first sends its last window.
async fn end(mut child: Child) {
    let pid = child.id().and_then(|pid| Pid::from_raw(pid.cast_signed()));
    if let Some(Err(error)) = pid.map(|pid| kill_process(pid, Signal::TERM)) {
        tracing::warn!(%error, "cannot end the agent");
    }
    if tokio::time::timeout(FAREWELL, child.wait()).await.is_err() {
        tracing::warn!("the agent did not end and is killed: its last samples are lost");
        let _ = child.kill().await;
    }
}

fn random_token() -> Result<String> {
    use std::io::Read;
    let mut bytes = [0; TOKEN_BYTES];
    std::fs::File::open("/dev/urandom")
        .and_then(|mut random| random.read_exact(&mut bytes))
        .context("cannot make a token for the agent")?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

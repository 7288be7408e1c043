//! Listens, and serves connections until told to stop.
//!
//! Slow clients cost little: nothing is set up for a connection before its first bytes have arrived, headers, bodies and answers have
//! time limits, and if there are too many connections, those without a request are closed first.

#[cfg(test)]
mod cancelled;
mod connection;
mod owner;
mod timed;
mod tls;
mod waiting;

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use plumb_store::Store;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use self::connection::{Protocols, serve_connection};
use self::tls::Certificate;
use self::waiting::Waiting;
use crate::access::Tokens;
use crate::app::App;
use crate::limits::TenantLimits;
use crate::metrics::Metrics;
use crate::options::ServerOptions;
use crate::routes::{ShownRecordings, recordings_router, refusing_router, router_of};
use crate::watch::Watch;

/// Address and limits of a listening server.
#[derive(Clone, Debug)]
pub struct ListenOptions {
    /// The address.
    pub address: SocketAddr,
    /// Files of a certificate chain and its key (PEM).
    pub tls: Option<(PathBuf, PathBuf)>,
    /// Most connections at the same time.
    pub connections: usize,
    /// Time limit for receiving the headers of a request, and for being idle.
    pub header_time: Duration,
    /// Time limit for a client that does not read the answer.
    pub write_time: Duration,
    /// Time limit for running requests after the server was told to stop.
    pub stop_time: Duration,
}

impl ListenOptions {
    /// Options with a limit of 16,384 connections.
    pub fn new(address: SocketAddr) -> Self {
        Self {
            address,
            tls: None,
            connections: 16_384,
            header_time: Duration::from_secs(15),
            write_time: Duration::from_secs(30),
            stop_time: Duration::from_secs(10),
        }
    }
}

/// The reason why a server can't start.
#[derive(Debug)]
pub enum ServeError {
    /// The server would be open to the network without encryption or tokens.
    Exposed(SocketAddr),
    /// Recordings would be open to the network.
    ExposedRecordings(SocketAddr),
    /// The address can't be listened on.
    Listen(SocketAddr, io::Error),
    /// The certificate or its key is not usable: the file and the reason.
    Certificate(PathBuf, String),
}

impl fmt::Display for ServeError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exposed(address) => write!(
                out,
                "{address} is not a loopback address: a server that others can reach needs TLS (--tls-cert, --tls-key) and tokens (--tokens)"
            ),
            Self::ExposedRecordings(address) => write!(
                out,
                "{address} is not a loopback address: recordings are shown on this machine only; from another, forward a port: ssh -L 4041:127.0.0.1:4041 HOST"
            ),
            Self::Listen(address, error) if error.kind() == io::ErrorKind::AddrInUse => write!(
                out,
                "cannot listen on {address}: another program does; stop it, or choose another port (--listen)"
            ),
            Self::Listen(address, error) => write!(out, "cannot listen on {address}: {error}"),
            Self::Certificate(path, why) => write!(out, "cannot use {}: {why}", path.display()),
        }
    }
}

impl std::error::Error for ServeError {}

/// A listening server.
pub struct Server {
    router: Router,
    metrics: Arc<Metrics>,
    options: ListenOptions,
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    /// Users whose connections are served; `None`: all.
    users: Option<Vec<u32>>,
    reloader: Reloader,
    /// Computes findings while the server runs.
    watch: Option<Watch>,
}

/// Reads the files of a running server again: its certificate, its tokens, and the limits of tenants.
#[derive(Clone)]
pub struct Reloader {
    certificate: Option<Arc<Certificate>>,
    tokens: Option<Tokens>,
    /// The limits, and the store that applies them.
    limits: Option<(TenantLimits, Arc<Store>)>,
    /// The error of each file that was refused the last time.
    refused: Arc<Mutex<BTreeMap<&'static str, String>>>,
}

impl Reloader {
    /// Reads the files again, and logs what has changed. A refused file leaves everything as it was, and is logged once; connections and requests go on.
    pub fn reload(&self) {
        self.log("certificate", self.certificate.as_ref().map(|certificate| certificate.reload()));
        self.log("tokens", self.tokens.as_ref().map(Tokens::reload));
        if let Some((limits, store)) = &self.limits {
            self.log("limits of tenants", Some(limits.reload()));
            store.set_quotas(limits.quotas());
        }
    }

    fn log<E: fmt::Display>(&self, what: &'static str, reloaded: Option<Result<bool, E>>) {
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        match reloaded {
            Some(Err(error)) => {
                let error = error.to_string();
                if refused.get(what) != Some(&error) {
                    tracing::error!(what, error, "not reloaded: the old one stays");
                    refused.insert(what, error);
                }
            }
            Some(Ok(is_new)) => {
                let was_refused = refused.remove(what).is_some();
                if is_new || was_refused {
                    tracing::info!(what, "reloaded");
                }
            }
            None => {}
        }
    }
}

impl Server {
    /// Starts to listen. Connections wait until [`Server::run`].
    pub async fn bind(
        store: Arc<Store>,
        options: ServerOptions,
        listen: ListenOptions,
    ) -> Result<Self, ServeError> {
        let is_open = !listen.address.ip().is_loopback();
        if is_open && (listen.tls.is_none() || options.tokens.is_none()) {
            return Err(ServeError::Exposed(listen.address));
        }
        let tokens = options.tokens.clone();
        let limits = options.tenants.clone().map(|limits| (limits, store.clone()));
        let app = App::new(store, options);
        let watch = app.options.watch.map(|options| Watch::new(app.clone(), options));
        let mut server = Self::listen(router_of(app.clone()), app.metrics, listen, None).await?;
        server.reloader.tokens = tokens;
        server.reloader.limits = limits;
        server.watch = watch;
        Ok(server)
    }

    /// Starts to listen for recordings, which are shown only on this machine, to programs of these users: the files of recordings are readable only
    /// by their owners too.
    pub async fn bind_recordings(
        shown: ShownRecordings,
        users: Vec<u32>,
        listen: ListenOptions,
    ) -> Result<Self, ServeError> {
        if !listen.address.ip().is_loopback() {
            return Err(ServeError::ExposedRecordings(listen.address));
        }
        Self::listen(recordings_router(shown), Arc::new(Metrics::new()), listen, Some(users)).await
    }

    async fn listen(
        router: Router,
        metrics: Arc<Metrics>,
        options: ListenOptions,
        users: Option<Vec<u32>>,
    ) -> Result<Self, ServeError> {
        let read = |(chain, key): &(PathBuf, PathBuf)| Certificate::read(chain, key).map(Arc::new);
        let certificate = options.tls.as_ref().map(read).transpose()?;
        let tls = certificate.clone().map(Certificate::acceptor).transpose()?;
        let listener = TcpListener::bind(options.address).await;
        let listener = listener.map_err(|error| ServeError::Listen(options.address, error))?;
        Ok(Self {
            router,
            metrics,
            options,
            listener,
            tls,
            users,
            reloader: Reloader { certificate, tokens: None, limits: None, refused: Arc::default() },
            watch: None,
        })
    }

    /// The address it listens on, with the port chosen by the system if none was given.
    pub fn address(&self) -> SocketAddr {
        self.listener.local_addr().unwrap_or(self.options.address)
    }

    /// The URL of that address.
    pub fn url(&self) -> String {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        format!("{scheme}://{}", self.address())
    }

    /// Reads its files again while it runs.
    pub fn reloader(&self) -> Reloader {
        self.reloader.clone()
    }

    /// Serves until `stop` completes; then lets running requests end.
    pub async fn run(self, stop: impl Future<Output = ()>) {
        let url = self.url();
        let (stopping, stopped) = watch::channel(false);
        let waiting = Waiting::default();
        let refusing = Arc::new(Protocols::new(refusing_router(), &self.options, self.tls.clone()));
        let protocols = Arc::new(Protocols::new(self.router, &self.options, self.tls));
        let mut connections = JoinSet::new();
        let mut background = JoinSet::new();
        if let Some(watch) = self.watch {
            background.spawn(watch.run(url));
        }
        tokio::pin!(stop);
        loop {
            tokio::select! {
                () = &mut stop => break,
                Some(_) = connections.join_next() => {}
                accepted = self.listener.accept() => match accepted {
                    Ok((stream, peer)) => {
                        let is_known = self.users.as_ref().is_none_or(|users| {
                            owner::of(peer, &stream).is_some_and(|user| users.contains(&user))
                        });
                        let protocols = if is_known { &protocols } else { &refusing };
                        let metrics = self.metrics.clone();
                        if connections.len() >= self.options.connections {
                            metrics.shed.inc();
                            if !waiting.end_oldest() {
                                // All are busy: the newest has to try again.
                                continue;
                            }
                        }
                        metrics.connections.inc();
                        let (entry, ended) = waiting.enter();
                        let served = serve_connection(protocols.clone(), stream, entry, ended, stopped.clone());
                        connections.spawn(async move {
                            served.await;
                            metrics.connections.dec();
                        });
                    }
                    Err(error) => {
                        // Mostly out of file descriptors; ending connections free some.
                        tracing::warn!(%error, "cannot accept a connection");
                        waiting.end_oldest();
                        tokio::time::sleep(Duration::from_millis(20)).await;
                    }
                },
            }
        }
        drop(self.listener);
        background.abort_all();
        let _ = stopping.send(true);
        let all = async { while connections.join_next().await.is_some() {} };
        if tokio::time::timeout(self.options.stop_time, all).await.is_err() {
            tracing::warn!(connections = connections.len(), "requests were cut off");
        }
    }
}

//! One connection: detects its HTTP version, and serves its requests.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;

use super::ListenOptions;
use super::timed::Timed;
use super::waiting::{Ended, Entry};

/// The first bytes of an HTTP/2 connection.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Most concurrent requests of one connection.
const STREAMS: u32 = 64;

/// State shared by all connections.
pub(super) struct Protocols {
    router: Router,
    tls: Option<TlsAcceptor>,
    header_time: Duration,
    write_time: Duration,
}

impl Protocols {
    pub fn new(router: Router, options: &ListenOptions, tls: Option<TlsAcceptor>) -> Self {
        Self { router, tls, header_time: options.header_time, write_time: options.write_time }
    }
}

/// Serves a connection until it ends, is closed, or is idle when the server stops.
pub(super) async fn serve_connection(
    protocols: Arc<Protocols>,
    stream: TcpStream,
    entry: Entry,
    ended: Ended,
    stopped: watch::Receiver<bool>,
) {
    let _ = stream.set_nodelay(true);
    let has_to_end = async {
        if ended.await.is_ok() {
            std::future::pending::<()>().await;
        }
    };
    let mut stopping = stopped.clone();
    let served = async {
        if let Some(tls) = &protocols.tls {
            let handshake = timeout(protocols.header_time, tls.accept(stream));
            let stream = tokio::select! {
                shaken = handshake => shaken,
                () = stop_of(&mut stopping) => return,
            };
            let Ok(Ok(stream)) = stream else { return };
            let is_second = stream.get_ref().1.alpn_protocol() == Some(b"h2");
            Box::pin(serve(&protocols, stream, is_second, entry, stopped)).await;
        } else {
            let begin = timeout(protocols.header_time, begins_second(&stream));
            let is_second = tokio::select! {
                begun = begin => begun,
                () = stop_of(&mut stopping) => return,
            };
            let Ok(Some(is_second)) = is_second else { return };
            // Set up only now that the client has sent something.
            Box::pin(serve(&protocols, stream, is_second, entry, stopped)).await;
        }
    };
    tokio::select! {
        () = has_to_end => {}
        () = served => {}
    }
}

/// Completes when the server stops.
async fn stop_of(stopped: &mut watch::Receiver<bool>) {
    _ = stopped.wait_for(|&stopped| stopped).await.is_ok();
}

/// Whether a connection starts as HTTP/2; `None` if it ended before that was known.
async fn begins_second(stream: &TcpStream) -> Option<bool> {
    let mut bytes = [0; PREFACE.len()];
    loop {
        let count = stream.peek(&mut bytes).await.ok().filter(|&count| count > 0)?;
        if bytes[..count] != PREFACE[..count] {
            return Some(false);
        }
        if count == PREFACE.len() {
            return Some(true);
        }
        // Peeked bytes stay readable, so another peek would return at once.
        sleep(Duration::from_millis(20)).await;
    }
}

async fn serve<S>(
    protocols: &Protocols,
    stream: S,
    is_second: bool,
    entry: Entry,
    mut stopped: watch::Receiver<bool>,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let io = TokioIo::new(Timed::new(stream, protocols.write_time));
    let router = TowerToHyperService::new(protocols.router.clone());
    let entry = Arc::new(entry);
    let service = service_fn(move |request: hyper::Request<Incoming>| {
        entry.leave();
        hyper::service::Service::call(&router, request.map(Body::new))
    });
    // Both kinds of connection have these methods, but no common trait.
    macro_rules! until_stopped {
        ($connection:expr) => {{
            let mut connection = std::pin::pin!($connection);
            let result = tokio::select! {
                result = connection.as_mut() => result,
                () = stop_of(&mut stopped) => {
                    connection.as_mut().graceful_shutdown();
                    connection.await
                }
            };
            if let Err(error) = result {
                tracing::trace!(%error, "a connection ended early");
            }
        }};
    }
    if is_second {
        let mut builder = http2::Builder::new(TokioExecutor::new());
        builder
            .timer(TokioTimer::new())
            .keep_alive_interval(Some(protocols.header_time))
            .keep_alive_timeout(protocols.header_time)
            .max_concurrent_streams(STREAMS)
            .max_header_list_size(16 << 10)
            .initial_stream_window_size(1 << 20)
            .initial_connection_window_size(4 << 20);
        until_stopped!(builder.serve_connection(io, service));
    } else {
        let mut builder = http1::Builder::new();
        builder.timer(TokioTimer::new()).header_read_timeout(protocols.header_time).max_buf_size(64 << 10);
        until_stopped!(builder.serve_connection(io, service));
    }
}

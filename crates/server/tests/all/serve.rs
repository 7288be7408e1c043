//! A listening server: slow and silent clients, tokens, tenants, TLS, HTTP/2, and stopping.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::net::SocketAddr;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use plumb_server::{ListenOptions, ServeError, Server, ServerOptions, Tokens};
use plumb_store::{Store, StoreOptions};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::oneshot;

/// A store in a separate directory, opened outside of any runtime.
fn store(name: &str) -> Arc<Store> {
    let directory: PathBuf = [env!("CARGO_TARGET_TMPDIR"), name].iter().collect();
    _ = std::fs::remove_dir_all(&directory);
    Arc::new(Store::open(StoreOptions::new(directory)).unwrap())
}

fn loopback() -> ListenOptions {
    ListenOptions::new("127.0.0.1:0".parse().unwrap())
}

/// Runs a test on a server, and then stops the server.
fn with_server<F: Future<Output = ()>>(
    name: &str,
    options: ServerOptions,
    listen: ListenOptions,
    look: impl FnOnce(SocketAddr) -> F,
) {
    let store = store(name);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let server = Server::bind(store.clone(), options, listen).await.unwrap();
        let address = server.address();
        let (stop, stopped) = oneshot::channel::<()>();
        let run = tokio::spawn(server.run(async { _ = stopped.await }));
        look(address).await;
        _ = stop.send(());
        run.await.unwrap();
    });
    drop(runtime);
    drop(store);
}

/// The whole answer to a request that closes the connection.
async fn ask(address: SocketAddr, request: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    // A client sees a reset if the server closes with unread bytes.
    _ = stream.read_to_string(&mut answer).await;
    answer
}

const READY: &str = "GET /ready HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";

#[test]
fn silent_clients_keep_nobody_out_and_go_after_a_while() {
    let listen = ListenOptions { connections: 50, header_time: Duration::from_secs(3600), ..loopback() };
    with_server("silent", ServerOptions::default(), listen, |address| async move {
        // Nothing, half of a request, half of the preface of HTTP/2: far more than the limit.
        let mut silent = Vec::new();
        for number in 0..300 {
            let mut stream = TcpStream::connect(address).await.unwrap();
            let begin = [&b""[..], b"GET /ready HT", b"PRI * HTTP/2"][number % 3];
            stream.write_all(begin).await.unwrap();
            silent.push(stream);
        }
        for _ in 0..20 {
            assert!(ask(address, READY).await.starts_with("HTTP/1.1 200"));
        }
        // The oldest was closed, to make space.
        let mut rest = Vec::new();
        _ = silent[0].read_to_end(&mut rest).await;
        assert!(rest.is_empty());
        let metrics = ask(address, &READY.replace("/ready", "/metrics")).await;
        let shed = metrics.lines().find_map(|line| line.strip_prefix("plumb_http_connections_shed_total "));
        assert!(shed.unwrap().parse::<u32>().unwrap() >= 250, "{metrics}");
    });
    let listen = ListenOptions { header_time: Duration::from_millis(50), ..loopback() };
    with_server("impatient", ServerOptions::default(), listen, |address| async move {
        for begin in ["", "GET /ready HT", "PRI * HTTP/2", "GET /ready HTTP/1.1\r\nA: b\r\n"] {
            // The connection ends by itself: otherwise this waits for ever.
            let answer = ask(address, begin).await;
            assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 408"), "{begin}: {answer}");
        }
    });
}

#[test]
fn a_body_that_does_not_come_is_given_up() {
    let mut options = ServerOptions::default();
    options.ingest.body_time = Duration::from_millis(50);
    with_server("slow-body", options, loopback(), |address| async move {
        let request = "POST /push.v1.PusherService/Push HTTP/1.1\r\nHost: x\r\nContent-Type: application/proto\r\nContent-Length: 100\r\n\r\nab";
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = vec![0; 4096];
        let count = stream.read(&mut answer).await.unwrap();
        let answer = String::from_utf8_lossy(&answer[..count]);
        assert!(answer.starts_with("HTTP/1.1 504") && answer.contains("deadline_exceeded"), "{answer}");
    });
}

#[test]
fn a_token_decides_what_may_be_done_and_for_whom() {
    let path: PathBuf = [env!("CARGO_TARGET_TMPDIR"), "tokens.txt"].iter().collect();
    std::fs::write(
        &path,
        "writer-0123456789 write shop\nreader-0123456789 read shop\nother-01234567890 read other\n",
    )
    .unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
    assert!(Tokens::read(&path).unwrap_err().to_string().contains("chmod 600"));
    // A file of another user, for a group that this process is in.
    let own = std::fs::metadata(&path).unwrap().uid();
    if own != 65534 && std::os::unix::fs::chown(&path, Some(65534), None).is_ok() {
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
        assert!(Tokens::read(&path).is_ok());
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        assert!(Tokens::read(&path).unwrap_err().to_string().contains("chmod 600"));
        std::os::unix::fs::chown(&path, Some(0), None).unwrap();
    }
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    let options = ServerOptions { tokens: Some(Tokens::read(&path).unwrap()), ..ServerOptions::default() };
    with_server("tokens", options, loopback(), |address| async move {
        let request = |path: &str, token: &str, body: &str| {
            let length = body.len();
            format!(
                "POST {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: application/json\r\nAuthorization: Bearer {token}\r\nX-Scope-OrgID: other\r\nContent-Length: {length}\r\n\r\n{body}"
            )
        };
        let types = "/querier.v1.QuerierService/ProfileTypes";
        assert!(ask(address, &request("/ingest?name=a", "nobody", "a 1")).await.starts_with("HTTP/1.1 401"));
        assert!(
            ask(address, &request("/ingest?name=a", "reader-0123456789", "a 1"))
                .await
                .starts_with("HTTP/1.1 403")
        );
        assert!(
            ask(address, &request("/ingest?name=a", "writer-0123456789", "a 1"))
                .await
                .starts_with("HTTP/1.1 200")
        );
        assert!(ask(address, &request(types, "writer-0123456789", "{}")).await.starts_with("HTTP/1.1 403"));
        assert!(ask(address, READY).await.starts_with("HTTP/1.1 200"), "this needs no token");
        assert!(ask(address, &READY.replace("/ready", "/metrics")).await.starts_with("HTTP/1.1 401"));
        // The tenant is the token's, whatever the request says.
        assert!(ask(address, &request(types, "reader-0123456789", "{}")).await.contains("process_cpu"));
        assert!(!ask(address, &request(types, "other-01234567890", "{}")).await.contains("process_cpu"));
    });
}

#[test]
fn a_server_is_not_opened_to_others_by_mistake() {
    let store = store("exposed");
    let runtime = tokio::runtime::Runtime::new().unwrap();
    for (address, is_open) in [("0.0.0.0:0", true), ("[::]:0", true), ("127.0.0.1:0", false)] {
        let listen = ListenOptions::new(address.parse().unwrap());
        let bound = runtime.block_on(Server::bind(store.clone(), ServerOptions::default(), listen));
        match bound {
            Err(ServeError::Exposed(_)) => assert!(is_open, "{address}"),
            Err(error) => panic!("{error}"),
            Ok(_) => assert!(!is_open, "{address}"),
        }
    }
    drop(runtime);
}

#[test]
fn a_request_under_way_is_answered_when_the_server_stops() {
    let store = store("stop");
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let server = Server::bind(store.clone(), ServerOptions::default(), loopback()).await.unwrap();
        let address = server.address();
        let (stop, stopped) = oneshot::channel::<()>();
        let run = tokio::spawn(server.run(async { _ = stopped.await }));
        let mut stream = TcpStream::connect(address).await.unwrap();
        let head = "POST /ingest?name=late HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\n";
        stream.write_all(head.as_bytes()).await.unwrap();
        // An idle connection doesn't keep the server running.
        let mut idle = TcpStream::connect(address).await.unwrap();
        idle.write_all(READY.replace("Connection: close\r\n", "").as_bytes()).await.unwrap();
        assert!(idle.read(&mut [0; 1024]).await.unwrap() > 0);
        stop.send(()).unwrap();
        stream.write_all(b"a 1").await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        run.await.unwrap();
        assert!(TcpStream::connect(address).await.is_err());
    });
    assert_eq!(store.status().batches, 1);
    drop(runtime);
}

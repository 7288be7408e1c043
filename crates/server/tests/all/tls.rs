//! TLS and tokens, with real clients: ureq with rustls, curl with its own TLS library, HTTP/2 and compression.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use plumb_fixtures::{Requirement, needs_command};
use plumb_server::{ListenOptions, Reloader, Server, ServerOptions, Tokens};
use plumb_store::{Store, StoreOptions};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use ureq::tls::{Certificate, RootCerts, TlsConfig};

const WRITER: &str = "writer-0123456789";
const READER: &str = "reader-0123456789";

/// A directory with a self-signed certificate for 127.0.0.1, its key, and tokens.
fn folder(name: &str) -> PathBuf {
    let folder: PathBuf = [env!("CARGO_TARGET_TMPDIR"), name].iter().collect();
    _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    make_certificate(&folder);
    write_tokens(&folder, &format!("{WRITER} write shop\n{READER} read shop\n"));
    folder
}

fn write_tokens(folder: &Path, text: &str) {
    let tokens = folder.join("tokens");
    std::fs::write(&tokens, text).unwrap();
    std::fs::set_permissions(&tokens, std::fs::Permissions::from_mode(0o600)).unwrap();
}

/// Makes a certificate with a key, and replaces earlier ones.
fn make_certificate(folder: &Path) {
    let made = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"])
        .args(["-days", "30", "-subj", "/CN=plumb", "-addext", "subjectAltName=IP:127.0.0.1"])
        .args(["-addext", "basicConstraints=critical,CA:FALSE"])
        .args(["-keyout", "key.pem", "-out", "cert.pem"])
        .current_dir(folder)
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
}

/// Runs a test on a server with that certificate and these tokens, and then stops the server.
fn with_server<F: Future<Output = ()>>(folder: &Path, look: impl FnOnce(SocketAddr, Reloader) -> F) {
    let store = Arc::new(Store::open(StoreOptions::new(folder.join("store"))).unwrap());
    let tokens = Some(Tokens::read(folder.join("tokens")).unwrap());
    let options = ServerOptions { tokens, ..ServerOptions::default() };
    let tls = Some((folder.join("cert.pem"), folder.join("key.pem")));
    let listen = ListenOptions { tls, ..ListenOptions::new("127.0.0.1:0".parse().unwrap()) };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let server = Server::bind(store.clone(), options, listen).await.unwrap();
        let (address, reloader) = (server.address(), server.reloader());
        let (stop, stopped) = oneshot::channel::<()>();
        let run = tokio::spawn(server.run(async { _ = stopped.await }));
        look(address, reloader).await;
        _ = stop.send(());
        run.await.unwrap();
    });
    drop(runtime);
    drop(store);
}

/// A client that trusts only these certificates.
fn client(roots: RootCerts) -> ureq::Agent {
    let tls = TlsConfig::builder().root_certs(roots).build();
    ureq::Agent::config_builder().http_status_as_error(false).tls_config(tls).build().into()
}

fn status(answer: Result<ureq::http::Response<ureq::Body>, ureq::Error>) -> u16 {
    answer.unwrap().status().as_u16()
}

#[test]
fn a_client_with_rustls_gets_in_with_the_right_certificate_and_token() {
    if !needs_command(Requirement::Tools, "openssl") {
        return;
    }
    let folder = folder("tls-rustls");
    let pem = std::fs::read(folder.join("cert.pem")).unwrap();
    with_server(&folder, |address, _| async move {
        let asked = tokio::task::spawn_blocking(move || {
            let own = Certificate::from_pem(&pem).unwrap().to_owned();
            let trusting = client(RootCerts::new_with_certs(&[own]));
            let url = |path: &str| format!("https://{address}{path}");
            assert_eq!(status(trusting.get(url("/ready")).call()), 200);
            let push = |token: &str| {
                let request = trusting.post(url("/ingest?name=api.cpu")).header("Authorization", token);
                status(request.send("main;work 7\n"))
            };
            assert_eq!(push("Bearer nobody-0123456789"), 401);
            assert_eq!(push(""), 401);
            assert_eq!(push(&format!("Bearer {READER}")), 403);
            assert_eq!(push(&format!("Bearer {WRITER}")), 200);
            let services = |token: &str| {
                let request = trusting.get(url("/api/v1/services"));
                request.header("Authorization", format!("Bearer {token}")).call().unwrap()
            };
            assert_eq!(services(WRITER).status(), 403);
            assert_eq!(services(READER).body_mut().read_to_string().unwrap(), r#"["api"]"#);
            // A client that does not trust the certificate ends the handshake.
            let other = client(RootCerts::WebPki).get(url("/ready")).call();
            assert!(other.is_err(), "{other:?}");
        });
        asked.await.unwrap();
    });
}

#[test]
fn a_renewed_certificate_and_new_tokens_are_taken_under_load() {
    if !needs_command(Requirement::Tools, "openssl") {
        return;
    }
    let folder = folder("tls-renewed");
    let read = |folder: &Path| {
        let pem = std::fs::read(folder.join("cert.pem")).unwrap();
        Certificate::from_pem(&pem).unwrap().to_owned()
    };
    let old = read(&folder);
    let inside = folder.clone();
    with_server(&folder, |address, reloader| async move {
        let asked = tokio::task::spawn_blocking(move || {
            let renewed = inside.join("renewed");
            std::fs::create_dir(&renewed).unwrap();
            make_certificate(&renewed);
            let new = read(&renewed);
            let url = format!("https://{address}/api/v1/services");
            let ask = |agent: &ureq::Agent, token: &str| {
                agent.get(&url).header("Authorization", format!("Bearer {token}")).call()
            };
            let (is_over, answered) = (AtomicBool::new(false), AtomicUsize::new(0));
            std::thread::scope(|scope| {
                let load = || {
                    while !is_over.load(Ordering::Relaxed) {
                        // Ten requests for each new connection.
                        let both = client(RootCerts::new_with_certs(&[old.clone(), new.clone()]));
                        for _ in 0..10 {
                            assert_eq!(status(ask(&both, READER)), 200);
                            answered.fetch_add(1, Ordering::Relaxed);
                        }
                    }
                };
                let loads: Vec<_> = (0..3).map(|_| scope.spawn(load)).collect();
                // A request that fails ends its thread.
                let await_answers = |more: usize| {
                    let until = answered.load(Ordering::Relaxed) + more;
                    while answered.load(Ordering::Relaxed) < until
                        && !loads.iter().any(|load| load.is_finished())
                    {
                        std::thread::sleep(Duration::from_millis(1));
                    }
                };
                for file in ["key.pem", "cert.pem"] {
                    std::fs::rename(renewed.join(file), inside.join(file)).unwrap();
                    // With one of the two, the old ones stay.
                    reloader.reload();
                    await_answers(60);
                }
                write_tokens(&inside, &format!("{READER} read shop\nanother-0123456789 read shop\n"));
                reloader.reload();
                await_answers(60);
                is_over.store(true, Ordering::Relaxed);
                loads.into_iter().for_each(|load| load.join().unwrap());
            });
            let only = |certificate: &Certificate<'static>| {
                client(RootCerts::new_with_certs(std::slice::from_ref(certificate)))
            };
            assert_eq!(status(ask(&only(&new), "another-0123456789")), 200);
            assert_eq!(status(ask(&only(&new), WRITER)), 401, "it is in the file no more");
            assert!(ask(&only(&old), READER).is_err());
            // A file that is refused changes nothing.
            write_tokens(&inside, "short read\n");
            reloader.reload();
            assert_eq!(status(ask(&only(&new), READER)), 200);
        });
        asked.await.unwrap();
    });
}

#[test]
fn a_connection_without_tls_gets_no_answer_and_harms_nobody() {
    if !needs_command(Requirement::Tools, "openssl") {
        return;
    }
    let folder = folder("tls-plain");
    with_server(&folder, |address, _| async move {
        let request =
            format!("GET /api/v1/services HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {READER}\r\n\r\n");
        for bytes in [request.as_bytes(), b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"\x16\x03\x01\xff\xff\0\0\0"]
        {
            let mut stream = TcpStream::connect(address).await.unwrap();
            stream.write_all(bytes).await.unwrap();
            stream.shutdown().await.unwrap();
            let mut answer = Vec::new();
            // A client sees a reset if the server closes with unread bytes.
            _ = stream.read_to_end(&mut answer).await;
            // At most a TLS alert (RFC 8446, section 5.1).
            assert!(answer.is_empty() || answer[0] == 21, "{}", String::from_utf8_lossy(&answer));
        }
    });
}

#[test]
fn curl_speaks_http_2_over_tls_and_unpacks_what_is_compressed() {
    if !needs_command(Requirement::Tools, "openssl") || !needs_command(Requirement::Tools, "curl") {
        return;
    }
    let folder = folder("tls-curl");
    with_server(&folder.clone(), |address, _| async move {
        let asked = tokio::task::spawn_blocking(move || {
            let curl = |words: &[&str], path: &str| {
                let mut command = Command::new("curl");
                command.args(["--silent", "--show-error", "--noproxy", "*", "--cacert", "cert.pem"]);
                let output = command.args(words).arg(format!("https://{address}{path}")).current_dir(&folder);
                output.output().unwrap()
            };
            let written = "%{http_code} %{http_version}";
            let said = |words: &[&str], path: &str| {
                let words = [words, &["--output", "/dev/null", "--write-out", written]].concat();
                let output = curl(&words, path);
                assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
                String::from_utf8(output.stdout).unwrap()
            };
            assert_eq!(said(&[], "/ready"), "200 2");
            assert_eq!(said(&["--http1.1"], "/ready"), "200 1.1");
            assert_eq!(said(&["--user", "me:wrong-0123456789"], "/api/v1/services"), "401 2");
            assert_eq!(said(&["--user", &format!("me:{READER}")], "/api/v1/services"), "200 2");
            let plain = curl(&[], "/page.js").stdout;
            let unpacked = curl(&["--compressed"], "/page.js").stdout;
            assert!(!plain.is_empty() && plain == unpacked);
            let head =
                curl(&["--compressed", "--output", "/dev/null", "--dump-header", "-"], "/page.js").stdout;
            let head = String::from_utf8(head).unwrap().to_ascii_lowercase();
            assert!(
                head.contains("content-encoding: zstd") || head.contains("content-encoding: gzip"),
                "{head}"
            );
        });
        asked.await.unwrap();
    });
}

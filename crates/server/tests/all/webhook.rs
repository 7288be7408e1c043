//! The messages that a receiver gets of findings that begin and end.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::net::TcpListener;
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::support::live::{LiveServer, until};
use axum::Router;
use axum::http::StatusCode;
use axum::routing::post;
use plumb_fixtures::{Requirement, needs_command};
use plumb_server::{ListenOptions, PeerAuthorities, ServerOptions, WatchOptions, WebhookOptions};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

const OWN: &str = "anonymous";

/// A receiver that refuses the first message once.
struct Receiver {
    url: String,
    /// All bodies, those that were refused too.
    received: Arc<Mutex<Vec<Value>>>,
    _runtime: Runtime,
}

impl Receiver {
    fn start() -> Self {
        let runtime = Runtime::new().unwrap();
        let received = Arc::<Mutex<Vec<Value>>>::default();
        let bodies = received.clone();
        let take = post(move |body: String| async move {
            let mut bodies = bodies.lock().unwrap();
            bodies.push(serde_json::from_str(&body).unwrap());
            if bodies.len() == 1 { StatusCode::SERVICE_UNAVAILABLE } else { StatusCode::OK }
        });
        let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
        let url = format!("http://{}/hook", listener.local_addr().unwrap());
        let router = Router::new().route("/hook", take);
        runtime.spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { url, received, _runtime: runtime }
    }

    fn received(&self) -> Vec<Value> {
        self.received.lock().unwrap().clone()
    }
}

fn server(name: &str, url: &str, page_url: Option<&str>) -> LiveServer {
    with_webhook(name, WebhookOptions::new(url, page_url, None).unwrap())
}

fn with_webhook(name: &str, webhook: WebhookOptions) -> LiveServer {
    let watch = WatchOptions {
        least_interval: Duration::from_millis(50),
        cpu_share: 1000.0,
        ..WatchOptions::default()
    };
    let options = ServerOptions { watch: Some(watch), webhook: Some(webhook), ..ServerOptions::default() };
    LiveServer::start(name, options)
}

/// Pushes again and again, so that there are evaluations, until this many messages have come.
fn after(receiver: &Receiver, count: usize, push: impl Fn()) -> Vec<Value> {
    until("the messages come", || {
        push();
        std::thread::sleep(Duration::from_millis(100));
        Some(receiver.received()).filter(|received| received.len() >= count)
    })
}

#[test]
fn findings_that_begin_and_end_are_sent_once_each() {
    let receiver = Receiver::start();
    let server = server("webhook-messages", &receiver.url, None);
    let begin = || server.push(OWN, "shop", "main;price_basket 70\nmain;serve 30\n", 60);
    // The first attempt is refused, and made again.
    let received = after(&receiver, 2, begin);
    assert_eq!(received[0], received[1]);
    let message = &received[0];
    assert_eq!(
        (&message["version"], &message["status"], &message["receiver"]),
        (&json!("4"), &json!("firing"), &json!("plumb"))
    );
    assert_eq!(message["groupLabels"], json!({"alertname": "PlumbFinding", "tenant": OWN}));
    assert_eq!((&message["externalURL"], &message["truncatedAlerts"]), (&json!(server.url()), &json!(0)));
    let alerts = message["alerts"].as_array().unwrap();
    assert_eq!(alerts.len(), 2, "{message}");
    let alert = alerts.iter().find(|alert| alert["labels"]["subject"] == "price_basket").unwrap();
    assert_eq!(
        alert["labels"],
        json!({"alertname": "PlumbFinding", "tenant": OWN, "service": "shop", "kind": "function", "subject": "price_basket"})
    );
    assert_eq!(alert["annotations"]["summary"], "shop: price_basket: 70% of its CPU time");
    assert!(alert["annotations"]["description"].as_str().unwrap().starts_with("95% interval"), "{alert}");
    assert_eq!((&alert["status"], &alert["endsAt"]), (&json!("firing"), &json!("0001-01-01T00:00:00Z")));
    assert!(alert["startsAt"].as_str().unwrap().ends_with('Z'), "{alert}");
    // The link leads to the page.
    let link = alert["generatorURL"].as_str().unwrap();
    let path = link.strip_prefix(&server.url()).unwrap();
    assert!(
        path.starts_with("/?service=shop&type=process_cpu") && path.contains("focus=%5Eprice_basket%24"),
        "{path}"
    );
    assert_eq!(server.status(path), 200);
    // Both become too small to be findings.
    let ended = after(&receiver, 4, || server.push(OWN, "shop", "main;sort 20000\n", 30));
    let [sort, gone] = &ended[2..] else { panic!("{ended:?}") };
    assert_eq!(
        (&sort["status"], &sort["alerts"][0]["labels"]["subject"]),
        (&json!("firing"), &json!("sort"))
    );
    assert_eq!((&gone["status"], gone["alerts"].as_array().map(Vec::len)), (&json!("resolved"), Some(2)));
    let resolved =
        gone["alerts"].as_array().unwrap().iter().find(|one| one["labels"] == alert["labels"]).unwrap();
    assert_eq!(
        (&resolved["startsAt"], &resolved["fingerprint"], &resolved["status"]),
        (&alert["startsAt"], &alert["fingerprint"], &json!("resolved"))
    );
    assert!(resolved["endsAt"].as_str() > alert["startsAt"].as_str(), "{resolved}");
    // Whatever lasts is not sent again.
    server.push(OWN, "shop", "main;sort 100\n", 10);
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(receiver.received().len(), 4);
    let sent = |text: &str| text.contains("plumb_webhook_messages_total{outcome=\"sent\"} 3");
    until("the messages are counted", || sent(&server.get(OWN, "/metrics")).then_some(()));
}

/// Neither queries nor the end of the server wait for a receiver that takes connections and says nothing.
#[test]
fn a_silent_receiver_holds_nobody_up() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", silent.local_addr().unwrap());
    let server = server("webhook-silent", &url, Some("https://plumb.example/"));
    for _ in 0..5 {
        server.push(OWN, "shop", "main;price_basket 700\n", 60);
        std::thread::sleep(Duration::from_millis(200));
    }
    let begin = Instant::now();
    let found = server.json(OWN, "/api/v1/findings");
    assert_eq!(found["findings"].as_array().map(Vec::len), Some(1));
    drop(server);
    assert!(begin.elapsed() < Duration::from_secs(8), "less than the time limit of a message");
}

/// A receiver with TLS that refuses every message: one that was refused has come through.
#[test]
fn a_receiver_with_tls_is_verified_by_the_named_authority() {
    if !needs_command(Requirement::Tools, "openssl") {
        return;
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("webhook-certificate");
    _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    let made = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"])
        .args(["-days", "30", "-subj", "/CN=plumb", "-addext", "subjectAltName=IP:127.0.0.1"])
        .args(["-addext", "basicConstraints=critical,CA:FALSE"])
        .args(["-keyout", "key.pem", "-out", "cert.pem"])
        .current_dir(&folder)
        .output();
    assert!(made.unwrap().status.success());
    let certificate = folder.join("cert.pem");
    let tls = Some((certificate.clone(), folder.join("key.pem")));
    let listen = ListenOptions { tls, ..ListenOptions::new("127.0.0.1:0".parse().unwrap()) };
    let receiver = LiveServer::listen("webhook-tls-receiver", ServerOptions::default(), listen);
    let url = format!("https://{}/none", receiver.address);
    let authorities = PeerAuthorities::read(&certificate).unwrap();
    let trusting = WebhookOptions::new(&url, None, Some(authorities)).unwrap();
    let server = with_webhook("webhook-tls", trusting);
    let other = with_webhook("webhook-tls-other", WebhookOptions::new(&url, None, None).unwrap());
    let refused = |server: &LiveServer| {
        server.push(OWN, "shop", "main;price_basket 700\n", 60);
        server.get(OWN, "/metrics").contains("plumb_webhook_messages_total{outcome=\"failed\"} 1")
    };
    until("the message is refused", || refused(&server).then_some(()));
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_secs(2) {
        assert!(!refused(&other), "the receiver is not verified, so that nothing is sent");
        std::thread::sleep(Duration::from_millis(50));
    }
}

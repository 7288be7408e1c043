//! A server that listens, with a client for it.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use plumb_server::{ListenOptions, ServerOptions};
use plumb_store::{Store, StoreOptions};
use serde_json::Value;
use tokio::runtime::Runtime;

pub struct LiveServer {
    runtime: Option<Runtime>,
    address: SocketAddr,
}

impl Drop for LiveServer {
    fn drop(&mut self) {
        drop(self.runtime.take());
    }
}

impl LiveServer {
    /// Starts a server on an empty store.
    pub fn start(name: &str, options: ServerOptions) -> Self {
        let directory: PathBuf = [env!("CARGO_TARGET_TMPDIR"), name].iter().collect();
        _ = std::fs::remove_dir_all(&directory);
        let store = Arc::new(Store::open(StoreOptions::new(directory)).unwrap());
        let runtime = Runtime::new().unwrap();
        let listen = ListenOptions::new("127.0.0.1:0".parse().unwrap());
        let server = runtime.block_on(plumb_server::Server::bind(store, options, listen)).unwrap();
        let address = server.address();
        runtime.spawn(server.run(std::future::pending()));
        Self { runtime: Some(runtime), address }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Sends folded stacks of a service, as of this many seconds ago.
    pub fn push(&self, tenant: &str, service: &str, stacks: &str, ago: u64) {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
        let from = now.as_secs() - ago;
        let url = format!("{}/ingest?name={service}.cpu&from={from}&sampleRate=100", self.url());
        let request = ureq::post(url).header("X-Scope-OrgID", tenant).header("Content-Type", "text/plain");
        assert_eq!(request.send(stacks).unwrap().status(), 200);
    }

    /// The body of an answer.
    pub fn get(&self, tenant: &str, path: &str) -> String {
        let request = ureq::get(format!("{}{path}", self.url())).header("X-Scope-OrgID", tenant);
        request.call().unwrap().body_mut().read_to_string().unwrap()
    }

    pub fn json(&self, tenant: &str, path: &str) -> Value {
        serde_json::from_str(&self.get(tenant, path)).unwrap()
    }
}

/// Waits until a value is there.
pub fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let begin = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(begin.elapsed() < Duration::from_secs(60), "not within a minute: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

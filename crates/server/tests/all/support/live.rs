//! A server that listens, with a client for it.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use plumb_server::{ListenOptions, Reloader, ServerOptions};
use plumb_store::{Store, StoreOptions};
use serde_json::Value;
use tokio::runtime::Runtime;

pub struct LiveServer {
    runtime: Option<Runtime>,
    pub address: SocketAddr,
    pub reloader: Reloader,
}

impl Drop for LiveServer {
    fn drop(&mut self) {
        drop(self.runtime.take());
    }
}

impl LiveServer {
    /// Starts a server on an empty store.
    pub fn start(name: &str, options: ServerOptions) -> Self {
        Self::listen(name, options, ListenOptions::new("127.0.0.1:0".parse().unwrap()))
    }

    /// As [`LiveServer::start`], with other options of listening.
    pub fn listen(name: &str, options: ServerOptions, listen: ListenOptions) -> Self {
        let directory: PathBuf = [env!("CARGO_TARGET_TMPDIR"), name].iter().collect();
        _ = std::fs::remove_dir_all(&directory);
        Self::open(directory, options, listen)
    }

    /// As [`LiveServer::listen`], on the store of a directory.
    pub fn open(directory: PathBuf, options: ServerOptions, listen: ListenOptions) -> Self {
        let store = Arc::new(Store::open(StoreOptions::new(directory)).unwrap());
        let runtime = Runtime::new().unwrap();
        let server = runtime.block_on(plumb_server::Server::bind(store, options, listen)).unwrap();
        let (address, reloader) = (server.address(), server.reloader());
        runtime.spawn(server.run(std::future::pending()));
        Self { runtime: Some(runtime), address, reloader }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Posts a text; returns the status.
    pub fn post(&self, tenant: &str, path: &str, body: &str) -> u16 {
        let agent: ureq::Agent = ureq::Agent::config_builder().http_status_as_error(false).build().into();
        let request = agent.post(format!("{}{path}", self.url())).header("X-Scope-OrgID", tenant);
        request.header("Content-Type", "text/plain").send(body).unwrap().status().as_u16()
    }

    /// Sends folded stacks of a service, as of this many seconds ago.
    pub fn push(&self, tenant: &str, service: &str, stacks: &str, ago: u64) {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
        let from = now.as_secs() - ago;
        let path = format!("/ingest?name={service}.cpu&from={from}&sampleRate=100");
        assert_eq!(self.post(tenant, &path, stacks), 200);
    }

    /// Sends ten minutes of a service whose version 1.1, of the last five, has made `price_basket` dearer.
    pub fn deploy(&self, tenant: &str, service: &str) {
        let noise = |window: u64, salt: u64| (window * 7919 + salt * 104_729) % 23;
        for window in 0..40 {
            let (version, price) = if window < 20 { ("1.0", 300) } else { ("1.1", 420) };
            let [price, ship, log] =
                [(price, 1), (400, 2), (250, 3)].map(|(part, salt)| part + noise(window, salt));
            let stacks = format!(
                "main;handle;price_basket {price}\nmain;handle;ship {ship}\nmain;log {log}\nmain 150\n"
            );
            let name = format!("{service}.cpu%7Bservice_version%3D{version}%7D");
            let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
            let from = now.as_secs() - 600 + 15 * window;
            let path = format!("/ingest?name={name}&from={from}&sampleRate=100");
            assert_eq!(self.post(tenant, &path, &stacks), 200);
        }
    }

    /// The body of an answer.
    pub fn get(&self, tenant: &str, path: &str) -> String {
        let request = ureq::get(format!("{}{path}", self.url())).header("X-Scope-OrgID", tenant);
        request.call().unwrap().body_mut().read_to_string().unwrap()
    }

    /// As [`LiveServer::get`], without a tenant.
    pub fn get_of_all(&self, path: &str) -> String {
        ureq::get(format!("{}{path}", self.url())).call().unwrap().body_mut().read_to_string().unwrap()
    }

    pub fn status(&self, path: &str) -> u16 {
        let agent: ureq::Agent = ureq::Agent::config_builder().http_status_as_error(false).build().into();
        agent.get(format!("{}{path}", self.url())).call().unwrap().status().as_u16()
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
        assert!(begin.elapsed() < Duration::from_secs(300), "not within five minutes: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

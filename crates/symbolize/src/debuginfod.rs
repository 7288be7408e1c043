//! Downloads debug files by build id from debuginfod servers.
//!
//! Only at the user's request: it tells the server what runs here, and a file may have gigabytes. Downloads
//! go into the cache of debuginfod's own client (`debuginfod_find_debuginfo(3)`), so both share them. The HTTP
//! client is the system's `curl`: a TLS client of our own would double the build time of this crate.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::Sender;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use plumb_profile::BuildId;

use crate::job::Answer;
use crate::options::{Options, Progress};
use crate::summary::Missing;
use crate::work::Message;

/// Largest download.
const MAX_BYTES: u64 = 4 << 30;
/// Interval between progress messages.
const TICK: Duration = Duration::from_millis(100);

/// The servers, and the time left for downloads.
pub(crate) struct Debuginfod {
    urls: Vec<String>,
    cache: Option<PathBuf>,
    deadline: Instant,
    /// Serializes downloads, which share the bandwidth.
    turn: Mutex<()>,
}

impl Debuginfod {
    /// Creates a client if servers are configured.
    pub fn new(options: &Options) -> Option<Self> {
        if !options.debuginfod {
            return None;
        }
        let mut urls = options.debuginfod_urls.clone();
        if urls.is_empty() {
            let listed = std::env::var("DEBUGINFOD_URLS").unwrap_or_default();
            urls = listed.split_whitespace().map(str::to_owned).collect();
        }
        urls.retain(|url| url.starts_with("http://") || url.starts_with("https://"));
        let cache = options.debuginfod_cache.clone().or_else(default_cache);
        let deadline = Instant::now() + options.debuginfod_time;
        Some(Self { urls, cache, deadline, turn: Mutex::new(()) })
    }

    /// Returns the debug file with this build id, from the cache or a server.
    pub fn fetch(
        &self,
        build_id: &BuildId,
        answer: &mut Answer,
        sender: &Sender<Message>,
    ) -> Option<PathBuf> {
        let failed = |url: &str, error: &str| Missing::Download { url: url.into(), error: error.into() };
        let Some(cache) = &self.cache else {
            answer.miss(failed("debuginfod", "there is no folder for downloads: set XDG_CACHE_HOME"));
            return None;
        };
        let folder = cache.join(build_id.to_string());
        let path = folder.join("debuginfo");
        // The debuginfod client stores an empty file if no server had it.
        if fs::metadata(&path).is_ok_and(|meta| meta.len() > 0) {
            return Some(path);
        }
        if self.urls.is_empty() {
            answer.miss(failed("debuginfod", "no server is known: set DEBUGINFOD_URLS"));
            return None;
        }
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        for url in &self.urls {
            let url = format!("{}/buildid/{build_id}/debuginfo", url.trim_end_matches('/'));
            let partial = folder.join(format!("debuginfo.{}.part", std::process::id()));
            let done = fs::create_dir_all(&folder).map_err(|error| error.to_string());
            let done = done.and_then(|()| self.download(&url, &partial, sender));
            let done = done.and_then(|()| fs::rename(&partial, &path).map_err(|error| error.to_string()));
            match done {
                Ok(()) => return Some(path),
                Err(error) => {
                    let _ = fs::remove_file(&partial);
                    answer.miss(failed(&url, &error));
                }
            }
        }
        None
    }

    /// Downloads `url` into the file `path`.
    fn download(&self, url: &str, path: &Path, sender: &Sender<Message>) -> Result<(), String> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err("the time for downloads is over".into());
        }
        let child = Command::new("curl")
            .args(["--fail", "--silent", "--show-error", "--location", "--proto", "=http,https"])
            .args(["--max-time", &format!("{:.3}", left.as_secs_f64())])
            .args(["--max-filesize", &MAX_BYTES.to_string(), "--user-agent", "plumb", "--output"])
            .arg(path)
            .arg("--")
            .arg(url)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn();
        let child = child.map_err(|error| match error.kind() {
            ErrorKind::NotFound => "curl is needed for downloads and is not installed".into(),
            _ => format!("curl: {error}"),
        })?;
        self.wait(child, url, path, sender)
    }

    /// Waits for the download and reports its progress.
    fn wait(&self, mut child: Child, url: &str, path: &Path, sender: &Sender<Message>) -> Result<(), String> {
        let mut told = 0;
        loop {
            match child.try_wait().map_err(|error| error.to_string())? {
                Some(status) if status.success() => return Ok(()),
                Some(_) => {
                    let mut text = String::new();
                    let _ = child
                        .stderr
                        .take()
                        .map(|mut stderr| std::io::Read::read_to_string(&mut stderr, &mut text));
                    return Err(text.trim().to_owned());
                }
                None => std::thread::sleep(TICK),
            }
            let bytes = fs::metadata(path).map_or(0, |meta| meta.len());
            // curl enforces both limits itself if the server announces a size and responds at all.
            if bytes > MAX_BYTES || Instant::now() > self.deadline + TICK * 5 {
                let _ = child.kill();
                let _ = child.wait();
                return Err("too large or too slow".into());
            }
            if bytes != told {
                told = bytes;
                let _ = sender.send(Message::Progress(Progress::Download { url: url.into(), bytes }));
            }
        }
    }
}

/// Returns the cache directory of debuginfod's own client.
fn default_cache() -> Option<PathBuf> {
    let folder = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    folder("DEBUGINFOD_CACHE_PATH")
        .or_else(|| folder("XDG_CACHE_HOME").map(|cache| cache.join("debuginfod_client")))
        .or_else(|| folder("HOME").map(|home| home.join(".cache/debuginfod_client")))
}

//! Downloads debug files by build id from debuginfod servers.
//!
//! Only at the user's request, which `DEBUGINFOD_URLS` or an option is: it tells the server what runs here, and a file may have gigabytes. Downloads
//! go into the cache of debuginfod's own client (`debuginfod_find_debuginfo(3)`), so both share them. The HTTP
//! client is the system's `curl`: a TLS client of our own would double the build time of this crate.

use std::fs;
use std::io::{ErrorKind, Read};
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
/// Time for which a missing file is not asked for again, if the cache's file `cache_miss_s` has no other, as in debuginfod's own client.
const MISS_S: u64 = 600;
/// Most bytes of curl's messages that are read.
const MAX_MESSAGE: u64 = 4096;
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

/// Whether the environment names debuginfod servers, which is how the user asks for downloads from them.
pub fn names_debuginfod_servers() -> bool {
    !servers_of_environment().is_empty()
}

fn servers_of_environment() -> Vec<String> {
    let listed = std::env::var("DEBUGINFOD_URLS").unwrap_or_default();
    listed.split_whitespace().filter(|url| is_url(url)).map(str::to_owned).collect()
}

fn is_url(url: &str) -> bool {
    url.starts_with("http://") || url.starts_with("https://")
}

/// The reason why a server did not provide a file.
enum Refusal {
    /// Status 404: the server does not have the file.
    NotThere(String),
    Failed(String),
}

impl From<String> for Refusal {
    fn from(error: String) -> Self {
        Refusal::Failed(error)
    }
}

impl Debuginfod {
    /// Creates a client if servers are configured.
    pub fn new(options: &Options) -> Option<Self> {
        if !options.debuginfod {
            return None;
        }
        let mut urls = options.debuginfod_urls.clone();
        if urls.is_empty() {
            urls = servers_of_environment();
        }
        urls.retain(|url| is_url(url));
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
        match fs::metadata(&path) {
            Ok(meta) if meta.len() > 0 => return Some(path),
            Ok(meta) if is_recent(&meta, cache) => {
                answer.miss(failed("debuginfod", "no server had the file a short while ago"));
                return None;
            }
            _ => {}
        }
        if self.urls.is_empty() {
            answer.miss(failed("debuginfod", "no server is known: set DEBUGINFOD_URLS"));
            return None;
        }
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(error) = fs::create_dir_all(&folder) {
            answer.miss(failed(&folder.display().to_string(), &error.to_string()));
            return None;
        }
        let mut is_nowhere = true;
        for url in &self.urls {
            let url = format!("{}/buildid/{build_id}/debuginfo", url.trim_end_matches('/'));
            let partial = folder.join(format!("debuginfo.{}.part", std::process::id()));
            let done = self.download(&url, &partial, sender);
            let done = done.and_then(|()| {
                fs::rename(&partial, &path).map_err(|error| Refusal::Failed(error.to_string()))
            });
            let error = match done {
                Ok(()) => return Some(path),
                Err(Refusal::NotThere(error)) => error,
                Err(Refusal::Failed(error)) => {
                    is_nowhere = false;
                    error
                }
            };
            let _ = fs::remove_file(&partial);
            answer.miss(failed(&url, &error));
        }
        if is_nowhere {
            let _ = fs::File::create(&path);
        }
        None
    }

    /// Downloads `url` into the file `path`.
    fn download(&self, url: &str, path: &Path, sender: &Sender<Message>) -> Result<(), Refusal> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err("the time for downloads is over".to_owned().into());
        }
        let child = Command::new("curl")
            .args(["--fail", "--silent", "--show-error", "--location", "--proto", "=http,https"])
            .args(["--max-time", &format!("{:.3}", left.as_secs_f64())])
            .args(["--max-filesize", &MAX_BYTES.to_string(), "--user-agent", "plumb"])
            .args(["--write-out", "%{http_code}", "--output"])
            .arg(path)
            .arg("--")
            .arg(url)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        let child = child.map_err(|error| match error.kind() {
            ErrorKind::NotFound => "curl is needed for downloads and is not installed".to_owned(),
            _ => format!("curl: {error}"),
        })?;
        self.wait(child, url, path, sender)
    }

    /// Waits for the download and reports its progress.
    fn wait(
        &self,
        mut child: Child,
        url: &str,
        path: &Path,
        sender: &Sender<Message>,
    ) -> Result<(), Refusal> {
        let mut told = 0;
        loop {
            match child.try_wait().map_err(|error| error.to_string())? {
                Some(status) if status.success() => return Ok(()),
                Some(_) => {
                    let text = read(child.stderr.take());
                    return Err(match read(child.stdout.take()).as_str() {
                        "404" => Refusal::NotThere(text),
                        _ => Refusal::Failed(text),
                    });
                }
                None => std::thread::sleep(TICK),
            }
            let bytes = fs::metadata(path).map_or(0, |meta| meta.len());
            // curl enforces both limits itself if the server announces a size and responds at all.
            if bytes > MAX_BYTES || Instant::now() > self.deadline + TICK * 5 {
                let _ = child.kill();
                let _ = child.wait();
                return Err("too large or too slow".to_owned().into());
            }
            if bytes != told {
                told = bytes;
                let _ = sender.send(Message::Progress(Progress::Download { url: url.into(), bytes }));
            }
        }
    }
}

/// Reads the output of a child that has ended.
fn read(output: Option<impl Read>) -> String {
    let mut text = String::new();
    let _ = output.map(|output| output.take(MAX_MESSAGE).read_to_string(&mut text));
    text.trim().to_owned()
}

/// Whether a miss that was noted in the cache still counts.
fn is_recent(noted: &fs::Metadata, cache: &Path) -> bool {
    let stored = fs::read_to_string(cache.join("cache_miss_s"));
    let seconds = stored.ok().and_then(|text| text.trim().parse().ok()).unwrap_or(MISS_S);
    noted.modified().is_ok_and(|time| time.elapsed().is_ok_and(|age| age < Duration::from_secs(seconds)))
}

/// Returns the cache directory of debuginfod's own client.
fn default_cache() -> Option<PathBuf> {
    let folder = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    folder("DEBUGINFOD_CACHE_PATH")
        .or_else(|| folder("XDG_CACHE_HOME").map(|cache| cache.join("debuginfod_client")))
        .or_else(|| folder("HOME").map(|home| home.join(".cache/debuginfod_client")))
}

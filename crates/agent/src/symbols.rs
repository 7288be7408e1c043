//! Uploads files with symbols to the server: the server asks for them by build id, and each is sent once.
//!
//! A thread asks which files are missing at the start, and then every [`PAUSE`]. Files are located through the processes that were sampled with them,
//! and their build id is verified. Files are streamed, so memory does not grow with their size. Elsewhere: symbolization on this machine (`capture`).

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{self, Seek};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use plumb_process::{FileKey, FileOrigin, open_mapped};
use plumb_profile::{BuildId, DsoKind};
use plumb_record::{LeftNames, TakenWindow};
use serde::Deserialize;

use crate::connection::Connection;
use crate::error::AgentError;
use crate::options::{AgentOptions, SymbolPolicy};

/// Endpoint, below the server's URL, that lists the build ids that the server lacks.
const MISSING: &str = "/api/v1/symbols/missing";
/// Endpoint that files are sent to.
const FILES: &str = "/api/v1/symbols";
/// Usual interval between two requests for missing build ids; the first intervals are shorter.
const PAUSE: Duration = Duration::from_secs(20);
/// Shortest interval between two such requests.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// Pause between two files, to keep the load low.
const BETWEEN: Duration = Duration::from_millis(500);
/// Timeout for sending a file.
const TIMEOUT: Duration = Duration::from_secs(300);
/// Largest file that is sent, in bytes; the server accepts no larger ones.
const LARGEST: u64 = 256 << 20;
/// Bytes of an answer that are read at most.
const ANSWER: u64 = 4 << 20;
/// Most files held open for the server to ask for them, and for how long.
const HELD: usize = 64;
const HOLD: Duration = Duration::from_secs(60);
/// Most files per round that the server is asked about.
const QUESTIONS: usize = 100;
/// Most files that are remembered.
const MOST: usize = 10_000;
/// Most processes through which a file is opened.
const PROCESSES: usize = 4;
/// Directory of separate debug information.
const DEBUG: &str = "/usr/lib/debug/.build-id";

/// Locations of a file.
#[derive(Clone, Debug, Default)]
struct FilePlaces {
    path: String,
    /// Processes that map it, the newest last.
    mapped: Vec<FileOrigin>,
    /// The agent symbolizes its frames, unless the server has the file.
    is_held: bool,
    /// The open file, kept for a while: it may be gone when the server asks for it.
    open: Option<Arc<File>>,
    noted: Option<Instant>,
}

/// Recently sampled files, by build id.
type SampledFiles = Mutex<HashMap<String, FilePlaces>>;

/// Handle of the thread that sends files.
pub(crate) struct SymbolUpload {
    files: Arc<SampledFiles>,
    is_server: Arc<AtomicBool>,
    is_decided: Arc<AtomicBool>,
    left: Arc<Mutex<LeftNames>>,
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl SymbolUpload {
    /// Starts the thread, unless the agent does all symbolization.
    pub fn begin(options: &AgentOptions) -> Result<Self, AgentError> {
        let files = Arc::new(SampledFiles::default());
        let is_server = Arc::new(AtomicBool::new(options.symbols == SymbolPolicy::Server));
        let is_decided = Arc::new(AtomicBool::new(options.symbols != SymbolPolicy::Auto));
        let left = Arc::new(Mutex::new(LeftNames::default()));
        let (stop, stopped) = channel();
        let thread = if options.symbols == SymbolPolicy::Agent {
            None
        } else {
            let worker = Uploader {
                connection: Connection::new(options, TIMEOUT)?,
                files: files.clone(),
                is_server: is_server.clone(),
                is_decided: is_decided.clone(),
                left: left.clone(),
                done: HashMap::new(),
            };
            let thread = std::thread::Builder::new().name("symbols".to_owned());
            let failed = |error| AgentError::System("cannot start the thread that sends symbols", error);
            Some(thread.spawn(move || worker.work(&stopped)).map_err(failed)?)
        };
        Ok(Self { files, is_server, is_decided, left, stop: Some(stop), thread })
    }

    /// Whether it is known who symbolizes frames: the server has answered, or need not be asked.
    pub fn is_decided(&self) -> bool {
        self.is_decided.load(Ordering::Acquire)
    }

    /// Files that the server cannot have, and those that it has. `None` if the server does not symbolize frames.
    pub fn left_names(&self) -> Option<LeftNames> {
        let left = || self.left.lock().unwrap_or_else(PoisonError::into_inner).clone();
        self.is_server.load(Ordering::Relaxed).then(left)
    }

    /// Records the locations of the files sampled in a window.
    pub fn note(&self, taken: &TakenWindow) {
        let profile = &taken.profile;
        if self.thread.is_none() {
            return;
        }
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        if files.len() > MOST {
            files.clear();
        }
        for mapping in &profile.mappings {
            let dso = &profile.dsos[mapping.dso];
            let Some(build_id) = dso.build_id.as_ref().filter(|_| dso.kind == DsoKind::File) else {
                continue;
            };
            let places = files.entry(build_id.to_string()).or_default();
            let pid = profile.processes[mapping.process].pid;
            let mapped = FileOrigin::Process { pid, range: mapping.start..mapping.end, parent: 0 };
            if places.path.is_empty() {
                profile.strings.get(dso.path).clone_into(&mut places.path);
            }
            if !places.mapped.contains(&mapped) {
                // The newest processes are the most likely to be still running.
                if places.mapped.len() == PROCESSES {
                    places.mapped.remove(0);
                }
                places.mapped.push(mapped);
            }
        }
        hold(&mut files);
        for build_id in &taken.held {
            files.entry(build_id.to_string()).or_default().is_held = true;
        }
    }
}

impl Drop for SymbolUpload {
    fn drop(&mut self) {
        drop(self.stop.take());
        // Do not join: a file may be in transit for minutes, and the process can end without it.
        drop(self.thread.take());
    }
}

/// State of the thread.
struct Uploader {
    connection: Connection,
    files: Arc<SampledFiles>,
    is_server: Arc<AtomicBool>,
    is_decided: Arc<AtomicBool>,
    left: Arc<Mutex<LeftNames>>,
    /// Number of attempts per file. The server may lose a file, but not every minute.
    done: HashMap<String, u32>,
}

/// Attempts to send a file before it is given up.
const TRIES: u32 = 3;

#[derive(Deserialize)]
struct MissingSymbols {
    #[serde(rename = "buildIds")]
    build_ids: Vec<String>,
}

impl Uploader {
    fn work(mut self, stopped: &Receiver<()>) {
        let mut pause = Duration::ZERO;
        while matches!(stopped.recv_timeout(pause), Err(RecvTimeoutError::Timeout)) {
            pause = (pause * 2).clamp(FIRST_PAUSE, PAUSE);
            let answer = self.missing();
            if matches!(answer, Ok(Some(_))) && !self.is_server.swap(true, Ordering::Relaxed) {
                tracing::info!("the server names frames: files are sent when it asks for them");
            }
            self.is_decided.store(true, Ordering::Release);
            match answer {
                Ok(Some(missing)) => {
                    for build_id in missing {
                        if !matches!(stopped.recv_timeout(BETWEEN), Err(RecvTimeoutError::Timeout)) {
                            return;
                        }
                        self.upload(&build_id);
                    }
                    self.ask_for_held();
                }
                // The server does not symbolize frames, or does not reveal that to this agent.
                Ok(None) => pause = PAUSE * 15,
                Err(error) => tracing::debug!(%error, "cannot ask which symbols are missing"),
            }
        }
    }

    /// Build ids that the server lacks, or `None` if it does not accept symbols.
    fn missing(&self) -> Result<Option<Vec<String>>, ureq::Error> {
        let mut response = self.connection.request(ureq::Agent::get, MISSING).call()?;
        if !response.status().is_success() {
            return Ok(None);
        }
        let body = response.body_mut().with_config().limit(ANSWER).read_to_vec()?;
        Ok(serde_json::from_slice::<MissingSymbols>(&body).ok().map(|missing| missing.build_ids))
    }

    /// Asks whether the server has the files that are symbolized here because no path leads to them.
    fn ask_for_held(&self) {
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        let held = files.iter_mut().filter(|(_, places)| places.is_held).take(QUESTIONS);
        let held: Vec<String> = held
            .map(|(build_id, places)| {
                places.is_held = false;
                build_id.clone()
            })
            .collect();
        drop(files);
        for build_id in held {
            let answer = self.connection.request(ureq::Agent::get, &format!("{FILES}/{build_id}")).call();
            if answer.is_ok_and(|response| response.status().is_success()) {
                self.leave(&build_id);
            }
        }
    }

    /// Sends a file if this machine has it.
    fn upload(&mut self, build_id: &str) {
        let places = self.files.lock().unwrap_or_else(PoisonError::into_inner).get(build_id).cloned();
        let Some(places) = places else { return };
        let tries = self.done.entry(build_id.to_owned()).or_default();
        if *tries >= TRIES {
            return self.keep(build_id);
        }
        *tries += 1;
        let Some((path, file)) = find(build_id, &places) else {
            tracing::debug!(build_id, path = places.path, "the file is gone, or too large to send");
            return self.keep(build_id);
        };
        let request = self.connection.request(ureq::Agent::put, &format!("{FILES}/{build_id}"));
        match request.send(&file) {
            Ok(response) if response.status().is_success() => {
                tracing::info!(path = %path.display(), build_id, "sent the symbols of a file");
                self.leave(build_id);
            }
            Ok(mut response) => {
                let status = response.status().as_u16();
                let body =
                    response.body_mut().with_config().limit(ANSWER).read_to_string().unwrap_or_default();
                let why: String = body.chars().take(300).collect();
                tracing::warn!(path = %path.display(), status, why, "the server refused the symbols of a file");
                self.keep(build_id);
            }
            Err(error) => tracing::warn!(path = %path.display(), %error, "cannot send the symbols of a file"),
        }
    }

    /// Makes the agent symbolize the frames of a file from the next window on.
    fn keep(&self, build_id: &str) {
        insert(&mut self.left.lock().unwrap_or_else(PoisonError::into_inner).unsent, build_id);
    }

    /// Leaves the frames of a file, which the server has, to the server from the next window on.
    fn leave(&self, build_id: &str) {
        insert(&mut self.left.lock().unwrap_or_else(PoisonError::into_inner).sent, build_id);
    }
}

/// Opens new files, and closes those that the server has had time to ask for.
fn hold(files: &mut HashMap<String, FilePlaces>) {
    let mut open = 0;
    for places in files.values_mut() {
        places.open = places.open.take().filter(|_| places.noted.is_some_and(|noted| noted.elapsed() < HOLD));
        open += usize::from(places.open.is_some());
    }
    for (build_id, places) in files.iter_mut().filter(|(_, places)| places.noted.is_none()) {
        places.noted = Some(Instant::now());
        if open < HELD {
            places.open = open_where_mapped(build_id, places).map(Arc::new);
            open += usize::from(places.open.is_some());
        }
    }
}

/// Adds a file, unless the set is full.
fn insert(files: &mut HashSet<BuildId>, build_id: &str) {
    if files.len() < MOST {
        files.extend(BuildId::from_hex(build_id));
    }
}

/// The debug file of a build id, or the file itself, opened through a process that maps it or from the held descriptor.
fn find(build_id: &str, places: &FilePlaces) -> Option<(PathBuf, File)> {
    let wanted = BuildId::from_hex(build_id)?;
    let (start, rest) = build_id.split_at_checked(2)?;
    let debug = Path::new(DEBUG).join(start).join(format!("{rest}.debug"));
    if let Ok(file) = open(&debug)
        && plumb_symbolize::build_id_of(&debug).as_ref() == Some(&wanted)
    {
        return Some((debug, file));
    }
    let held = || places.open.as_ref()?.try_clone().ok();
    let mut file = open_where_mapped(build_id, places).or_else(held)?;
    // Reading the build id moved the offset.
    file.rewind().ok()?;
    let is_small = file.metadata().is_ok_and(|meta| meta.len() <= LARGEST);
    is_small.then(|| (PathBuf::from(&places.path), file))
}

/// Opens the file of a build id through a process that maps it.
fn open_where_mapped(build_id: &str, places: &FilePlaces) -> Option<File> {
    let build_id = Some(BuildId::from_hex(build_id)?.bytes().into());
    let key = FileKey { build_id, ..FileKey::of_path(places.path.as_bytes()) };
    places.mapped.iter().rev().find_map(|origin| open_mapped(&key, origin).ok())
}

/// Opens a regular file within the size limit.
fn open(path: &Path) -> io::Result<File> {
    // Check before opening: opening a pipe, for example, could block.
    let is_file = |meta: std::fs::Metadata| meta.is_file() && meta.len() <= LARGEST;
    if !std::fs::metadata(path).is_ok_and(is_file) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    File::open(path)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[test]
    fn a_file_is_found_by_its_build_id_and_no_other_is_taken() {
        let own = std::env::current_exe().unwrap();
        let Some(build_id) = plumb_symbolize::build_id_of(&own) else { return };
        let mapped = vec![FileOrigin::Process { pid: std::process::id(), range: 0..0, parent: 0 }];
        let places = FilePlaces { path: own.to_string_lossy().into_owned(), mapped, ..FilePlaces::default() };
        assert_eq!(find(&build_id.to_string(), &places).unwrap().0, own);
        assert!(find("00ff00ff", &places).is_none());
        let gone = FilePlaces { path: "/no/such/file".to_owned(), ..places };
        let identity = |meta: std::fs::Metadata| (meta.dev(), meta.ino());
        let (_, found) = find(&build_id.to_string(), &gone).expect("a program that was deleted is found");
        assert_eq!(identity(found.metadata().unwrap()), identity(std::fs::metadata(&own).unwrap()));
        let mut files = HashMap::from([(build_id.to_string(), gone)]);
        hold(&mut files);
        let places = files.remove(&build_id.to_string()).unwrap();
        let ended = FilePlaces { mapped: Vec::new(), ..places };
        assert!(find(&build_id.to_string(), &ended).is_some(), "it is open, whoever had it mapped");
        assert!(find(&build_id.to_string(), &FilePlaces { open: None, ..ended }).is_none());
    }
}

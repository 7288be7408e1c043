//! Files that were dropped on the page: read as recordings, kept in memory, never stored.
//!
//! Invariant: they are bounded in number, bytes and, on a server with a store, time. Whoever drops a file chooses its bytes: on a server with a
//! store no file is read that it names. Not here: HTTP (`routes`).

use std::collections::VecDeque;
use std::fmt;
use std::io::{Cursor, Read};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use plumb_formats::{foreign, native};
use plumb_report::answers::LoadedRecording;
use plumb_store::Tenant;

use crate::error::{ApiError, ErrorCode};
use crate::selections::lacks;

/// Most bytes of a file's name that are kept.
const LONGEST_NAME: usize = 200;

/// Reads the bytes of a file with a name; the error is a sentence for people.
#[derive(Clone)]
pub struct FileReader(Arc<ReadFn>);

type ReadFn = dyn Fn(&str, Vec<u8>) -> Result<LoadedRecording, String> + Send + Sync;

impl FileReader {
    /// A reader that calls this function.
    pub fn new(
        read: impl Fn(&str, Vec<u8>) -> Result<LoadedRecording, String> + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(read))
    }

    /// Reads a file.
    pub(crate) fn read(&self, name: &str, bytes: Vec<u8>) -> Result<LoadedRecording, ApiError> {
        (self.0)(&shortened(name), bytes).map_err(ApiError::invalid)
    }
}

impl fmt::Debug for FileReader {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("FileReader")
    }
}

/// A name as it is shown: one line of bounded length.
fn shortened(name: &str) -> String {
    let name = name.rsplit(['/', '\\']).next().unwrap_or_default();
    let shown: String = name.chars().filter(|letter| !letter.is_control()).take(LONGEST_NAME).collect();
    if shown.is_empty() { "dropped file".into() } else { shown }
}

/// Reads a file without looking at any other: symbols are those that it brings.
pub(crate) fn read_alone(name: &str, bytes: Vec<u8>) -> Result<LoadedRecording, ApiError> {
    let name = shortened(name);
    let wrong = |why: String| ApiError::invalid(format!("cannot open {name}: {why}"));
    if bytes.starts_with(b"PERFILE2") {
        let remedy = "a store reads no binaries of this machine, which perf.data needs; run: plumb open FILE";
        return Err(wrong(remedy.into()));
    }
    let mut profile = match bytes.starts_with(b"PK") {
        true => native::read(Cursor::new(bytes)).map_err(|error| wrong(error.to_string()))?,
        false => foreign::read(&bytes).map_err(|error| wrong(error.to_string()))?,
    };
    plumb_symbolize::make_readable(&mut profile);
    let lacks = lacks::lacks(&profile);
    Ok(LoadedRecording { name, profile: Arc::new(profile), lacks, calls: None })
}

/// Files that a server with a store keeps open.
const KEPT: usize = 16;
/// Most samples of all of them, and most bytes of the files, unpacked.
const MOST_SAMPLES: usize = 4_000_000;
const MOST_BYTES: usize = 256 << 20;
/// For how long after somebody last looked.
const LIFE: Duration = Duration::from_secs(3600);
/// How often the old ones are looked for.
const SWEEP: Duration = Duration::from_secs(60);

struct Opened {
    id: String,
    tenant: Tenant,
    used: Instant,
    recording: Arc<LoadedRecording>,
    bytes: usize,
}

/// Files that were opened on the page of a store. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct OpenedFiles(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    /// The one that was looked at last is the last.
    files: VecDeque<Opened>,
    /// Whether a task is about to forget what is old.
    is_swept: bool,
}

impl OpenedFiles {
    /// Keeps a recording of a file of so many bytes, and returns its id, which cannot be guessed. The ones that were not looked at for the
    /// longest make room: the tenant's own, as long as there are any.
    pub fn add(&self, tenant: Tenant, recording: LoadedRecording, bytes: usize) -> Result<String, ApiError> {
        let id = unguessable().map_err(|error| {
            ApiError::new(ErrorCode::Internal, format!("cannot read /dev/urandom: {error}"))
        })?;
        let (used, recording) = (Instant::now(), Arc::new(recording));
        let opened = Opened { id: id.clone(), tenant: tenant.clone(), used, recording, bytes };
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let all = &mut state.files;
        all.push_back(opened);
        let samples = |all: &VecDeque<Opened>| -> usize {
            all.iter().map(|one| one.recording.profile.samples.len()).sum()
        };
        let bytes = |all: &VecDeque<Opened>| -> usize { all.iter().map(|one| one.bytes).sum() };
        while all.len() > 1 && (all.len() > KEPT || samples(all) > MOST_SAMPLES || bytes(all) > MOST_BYTES) {
            let older = all.len() - 1;
            let own = all.iter().take(older).position(|one| one.tenant == tenant);
            all.remove(own.unwrap_or(0));
        }
        if !std::mem::replace(&mut state.is_swept, true) {
            self.forget_later();
        }
        Ok(id)
    }

    /// The recording with this id, if this tenant opened it; it is kept for longer.
    pub fn get(&self, tenant: &Tenant, id: &str) -> Option<Arc<LoadedRecording>> {
        let all = &mut self.0.lock().unwrap_or_else(PoisonError::into_inner).files;
        all.retain(|one| one.used.elapsed() < LIFE);
        let at = all.iter().position(|one| one.id == id && one.tenant == *tenant)?;
        let mut one = all.remove(at)?;
        one.used = Instant::now();
        let recording = one.recording.clone();
        all.push_back(one);
        Some(recording)
    }

    /// Forgets what nobody looks at any more.
    fn forget_later(&self) {
        let files = self.clone();
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(SWEEP).await;
                let mut state = files.0.lock().unwrap_or_else(PoisonError::into_inner);
                state.files.retain(|one| one.used.elapsed() < LIFE);
                if state.files.is_empty() {
                    state.is_swept = false;
                    return;
                }
            }
        });
    }
}

fn unguessable() -> std::io::Result<String> {
    let mut bytes = [0; 16];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(format!("{:032x}", u128::from_le_bytes(bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folded(samples: usize) -> LoadedRecording {
        read_alone("dir/a.folded", format!("main;work {samples}\n").into_bytes()).unwrap()
    }

    #[tokio::test]
    async fn only_who_opened_a_file_sees_it_and_the_least_used_make_room() {
        let files = OpenedFiles::default();
        let (mine, other) = (Tenant::new("mine").unwrap(), Tenant::new("other").unwrap());
        let first = files.add(mine.clone(), folded(3), 30).unwrap();
        assert_eq!(files.get(&mine, &first).unwrap().name, "a.folded");
        assert!(files.get(&other, &first).is_none());
        let second = files.add(mine.clone(), folded(1), 30).unwrap();
        for _ in 2..KEPT {
            files.add(mine.clone(), folded(1), 30).unwrap();
        }
        // Looked at again, the first is not the one that goes.
        assert!(files.get(&mine, &first).is_some());
        files.add(mine.clone(), folded(1), 30).unwrap();
        assert!(files.get(&mine, &first).is_some());
        assert!(files.get(&mine, &second).is_none());
    }

    #[tokio::test]
    async fn a_tenant_takes_room_from_its_own_files_first_and_large_ones_make_room() {
        let files = OpenedFiles::default();
        let (mine, other) = (Tenant::new("mine").unwrap(), Tenant::new("other").unwrap());
        let first = files.add(mine.clone(), folded(1), 30).unwrap();
        for _ in 0..2 * KEPT {
            files.add(other.clone(), folded(1), 30).unwrap();
        }
        assert!(files.get(&mine, &first).is_some());
        files.add(other, folded(1), MOST_BYTES).unwrap();
        assert!(files.get(&mine, &first).is_none(), "nothing has room beside that");
    }

    #[test]
    fn what_is_no_profile_is_refused_with_a_reason() {
        for (bytes, why) in [
            (&b"Dear reader,\n"[..], "neither folded stacks"),
            (b"PERFILE2\0\0", "plumb open FILE"),
            (b"PK\x03\x04 no archive", "cannot open a\u{301}b"),
            (b"", "nothing at all"),
        ] {
            let error = read_alone("../x/a\u{301}\nb", bytes.to_vec()).unwrap_err();
            assert!(error.message.starts_with("cannot open a\u{301}b: "), "{error:?}");
            assert!(error.message.contains(why), "{error:?}");
        }
    }
}

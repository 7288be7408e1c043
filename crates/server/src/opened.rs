//! Files dropped on the page: read as recordings, kept in memory, never stored.
//!
//! Invariant: they are bounded in number, bytes and, on a server with a store, time. A dropped file has untrusted content: a server with a
//! store reads no file that it names. Elsewhere: HTTP (`routes`).

use std::collections::VecDeque;
use std::fmt;
use std::io::{Cursor, Read};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use plumb_documents::answers::LoadedRecording;
use plumb_formats::{foreign, native};
use plumb_store::Tenant;

use crate::error::{ApiError, ErrorCode};
use crate::selections::lacks;

/// Longest file name that is kept, in bytes.
const LONGEST_NAME: usize = 200;

/// Parses the bytes of a named file; the error is a sentence for people.
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

/// A file name for display: one line of bounded length.
fn shortened(name: &str) -> String {
    let name = name.rsplit(['/', '\\']).next().unwrap_or_default();
    let shown: String = name.chars().filter(|letter| !letter.is_control()).take(LONGEST_NAME).collect();
    if shown.is_empty() { "dropped file".into() } else { shown }
}

/// Reads a file without access to any other: only symbols in the file are used.
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

/// Most files that a server with a store keeps open.
const KEPT: usize = 16;
/// Limits for all of them together: samples, and unpacked bytes of the files.
const MOST_SAMPLES: usize = 4_000_000;
const MOST_BYTES: usize = 256 << 20;
/// Time for which a file is kept after its last use.
const LIFE: Duration = Duration::from_secs(3600);
/// Interval of the search for expired files.
const SWEEP: Duration = Duration::from_secs(60);

struct Opened {
    id: String,
    tenant: Tenant,
    used: Instant,
    recording: Arc<LoadedRecording>,
    bytes: usize,
}

/// Files opened on the page of a store. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct OpenedFiles(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    /// Least recently used first.
    files: VecDeque<Opened>,
    /// Whether a task is waiting to remove expired files.
    is_swept: bool,
}

impl OpenedFiles {
    /// Keeps the recording of a file with `bytes` bytes, and returns its unguessable ID. Least recently used files are removed
    /// to make space: the tenant's own first.
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

    /// The recording with this ID, if this tenant opened it; extends its life.
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

    /// Removes expired files, now and later.
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
        // The first file was used again, so another one is removed.
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

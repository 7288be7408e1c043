//! The recording's journal: during a recording, new data is appended to a file next to the output (`FILE.part`), so that
//! a killed recorder loses seconds rather than hours, and a long recording need not stay in memory.
//!
//! Elsewhere: the journal's format (`plumb_formats::native`).

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Cursor, Seek, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use plumb_capture_perf::Recorder;
use plumb_formats::native::{self, Journal};
use plumb_profile::{Profile, Samples, Stacks};
use plumb_stack_quality::StackCounts;

use crate::error::RecordError;
use crate::memory;
use crate::notices::Notices;
use crate::request::RecordRequest;

/// Shortest and longest pause between two writes.
const PAUSE: (Duration, Duration) = (Duration::from_secs(2), Duration::from_secs(30));
/// The pause is at least this multiple of the CPU time of the last write.
const PAUSE_TIMES: u32 = 200;
/// Approximate memory of a sample and of a stack node, in bytes, including the table that finds equal nodes.
const SAMPLE: u64 = 64;
const NODE: u64 = 56;

/// The journal of a recording in progress.
pub(crate) struct RecordingJournal {
    journal: Option<Journal<File>>,
    /// Path of the journal's file, if it has a name.
    path: Option<PathBuf>,
    words: Vec<String>,
    /// Limit for samples and stacks in memory, in bytes.
    most: u64,
    next: Instant,
    /// Counts of the parts that were removed from memory.
    earlier: StackCounts,
    failure: Option<String>,
}

impl RecordingJournal {
    /// Starts the journal of a command with these words, next to the file `beside`, or in a nameless one. If no journal can be written, data stays in
    /// memory only, with a warning.
    pub fn begin(beside: Option<&Path>, bound: u64, words: Vec<String>, notices: &mut dyn Notices) -> Self {
        let opened = match beside {
            Some(path) => create_beside(path).map(|(file, path)| (file, Some(path))),
            None => nameless_file().map(|file| (file, None)),
        };
        let journal = opened.map_err(RecordError::Temporary).and_then(|(file, path)| {
            let journal = Journal::begin(file)?;
            Ok((journal, path))
        });
        let mut begun = Self {
            journal: None,
            path: None,
            words,
            most: memory::for_samples(bound),
            next: Instant::now() + PAUSE.0,
            earlier: StackCounts::default(),
            failure: None,
        };
        match journal {
            Ok((journal, path)) => (begun.journal, begun.path) = (Some(journal), path),
            Err(error) => begun.fail(&error, notices),
        }
        begun
    }

    /// Writes new data if it is due, and drops stacks and samples from memory if they are large. `is_scarce`: little
    /// memory is left.
    pub fn look(&mut self, recorder: &mut Recorder, is_scarce: bool, notices: &mut dyn Notices) {
        let profile = recorder.samples().profile();
        let bytes = profile.samples.len() as u64 * SAMPLE + profile.stacks.len() as u64 * NODE;
        let is_large = bytes > self.most || is_scarce && bytes > self.most / 4;
        let is_due = self.path.is_some() && Instant::now() >= self.next;
        if self.journal.is_none() || !(is_due || is_large) {
            return;
        }
        let is_part = is_large && recorder.samples_mut().can_be_in_parts();
        if is_part || is_due {
            let before = cpu_time();
            if let Err(error) = self.append(recorder, is_part) {
                self.fail(&error, notices);
            }
            let pause = cpu_time().saturating_sub(before) * PAUSE_TIMES;
            self.next = Instant::now() + pause.clamp(PAUSE.0, PAUSE.1);
        }
    }

    fn append(&mut self, recorder: &mut Recorder, is_part: bool) -> Result<(), RecordError> {
        let Some(journal) = &mut self.journal else { return Ok(()) };
        if is_part {
            recorder.samples_mut().end_part();
        }
        let mut meta = recorder.facts_so_far();
        meta.recorder = RecordRequest::RECORDER.into();
        meta.command.clone_from(&self.words);
        let earlier = &mut self.earlier;
        recorder.samples_mut().meanwhile(|profile| {
            if !is_part {
                return journal.grow(profile, &meta);
            }
            profile.samples.sort_by_time();
            journal.part(profile, &meta)?;
            *earlier = earlier.and(profile);
            (profile.samples, profile.stacks) = (Samples::default(), Stacks::default());
            Ok(())
        })?;
        if is_part {
            recorder.samples_mut().forget_ended();
            journal.forget(recorder.samples().profile());
            // Writing made another copy of the tables.
            recorder.samples_mut().meanwhile(|_| plumb_capture_perf::trim_memory());
        }
        Ok(())
    }

    /// Handles a failed write. Data written so far stays.
    fn fail(&mut self, error: &RecordError, notices: &mut dyn Notices) {
        let has_parts = self.journal.as_ref().is_some_and(|journal| journal.parts() > 0);
        let text = format!(
            "what is recorded could not be kept on disk from time to time ({error}): a recorder that is killed loses it, and memory \
             is not bounded"
        );
        notices.message(&text);
        self.failure = Some(text);
        if has_parts {
            // The parts are needed at the end. Writing is retried until then, as there may be space again.
            self.next = Instant::now() + PAUSE.1;
        } else {
            self.journal = None;
            self.remove();
        }
    }

    /// Takes the error message, for the recording.
    pub fn failure(&mut self) -> Option<String> {
        self.failure.take()
    }

    /// Writes the recording with its earlier parts. `out` is at its beginning.
    pub fn write(
        &mut self,
        profile: &Profile,
        out: &mut (impl Write + Seek + Send),
    ) -> Result<(), RecordError> {
        let Some(journal) = self.journal.as_mut().filter(|journal| journal.parts() > 0) else {
            return write_profile(profile, out);
        };
        if out.stream_position().is_ok() && self.path.is_some() {
            let mut out = io::BufWriter::new(out);
            journal.finish(profile, &mut out)?;
            return out.flush().map_err(RecordError::Output);
        }
        // A pipe can't be rewound.
        let mut whole = nameless_file().map_err(RecordError::Temporary)?;
        journal.finish(profile, &mut whole)?;
        whole.rewind().and_then(|()| io::copy(&mut whole, out)).map_err(RecordError::Output)?;
        Ok(())
    }

    /// Counts of the parts that were removed from memory.
    pub fn earlier(&self) -> StackCounts {
        self.earlier.clone()
    }

    /// Returns the whole profile. A recording in parts is assembled in a nameless file: its samples were never all in memory, and
    /// stacks of different parts get new numbers.
    pub fn into_profile(mut self, profile: Profile) -> Result<Profile, RecordError> {
        let Some(journal) = self.journal.as_mut().filter(|journal| journal.parts() > 0) else {
            return Ok(profile);
        };
        let mut whole = nameless_file().map_err(RecordError::Temporary)?;
        journal.finish(&profile, &mut whole)?;
        drop(profile);
        whole.rewind().map_err(RecordError::Temporary)?;
        native::read(whole).map_err(RecordError::Parts)
    }

    /// Removes the file, once the recording is written.
    pub fn remove(&mut self) {
        if let Some(path) = self.path.take() {
            let _ = fs::remove_file(path);
        }
    }
}

/// Writes a profile as a recording.
///
/// # Errors
/// A table can't be encoded, or `out` rejects it.
pub fn write_profile(profile: &Profile, out: &mut impl Write) -> Result<(), RecordError> {
    // Built in memory, as it is small: a full disk then fails one write rather than one inside the archive.
    let mut bytes = Cursor::new(Vec::new());
    native::write(profile, &mut bytes)?;
    out.write_all(bytes.get_ref()).map_err(RecordError::Output)
}

/// Opens the journal for a recording at `path`. An existing one is kept as `FILE.part.old`, unless its recorder still runs, which holds
/// a lock on it.
fn create_beside(path: &Path) -> io::Result<(File, PathBuf)> {
    let with = |more: &str| {
        let mut name = path.as_os_str().to_owned();
        name.push(more);
        PathBuf::from(name)
    };
    let part = with(".part");
    let is_busy = File::open(&part).is_ok_and(|file| file.try_lock_shared().is_err());
    let part = if is_busy { with(&format!(".{}.part", std::process::id())) } else { part };
    if fs::symlink_metadata(&part).is_ok() {
        fs::rename(&part, with(".part.old"))?;
    }
    let file = create(&part)?;
    // Without locks, another recorder of the same file would rename it, which loses nothing.
    let _ = file.try_lock();
    Ok((file, part))
}

/// Creates a file that disappears when it is closed, in the first writable directory.
///
/// # Errors
/// No directory is writable.
pub fn nameless_file() -> io::Result<File> {
    let mut name = OsString::from(".plumb-");
    name.push(format!("{}-{:?}.part", std::process::id(), Instant::now()));
    let mut failure = None;
    for folder in temporary_folders() {
        let path = folder.join(&name);
        match create(&path) {
            Ok(file) => {
                fs::remove_file(&path)?;
                return Ok(file);
            }
            Err(error) => failure = Some(error),
        }
    }
    Err(failure.unwrap_or_else(|| io::Error::other("no folder for temporary files")))
}

/// Directories for temporary files, best first; any of them may be missing or full.
pub fn temporary_folders() -> [PathBuf; 4] {
    [std::env::temp_dir(), "/tmp".into(), "/var/tmp".into(), "/dev/shm".into()]
}

fn create(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(path)
}

/// CPU time of this thread; zero if the kernel doesn't count it.
fn cpu_time() -> Duration {
    let text = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    Duration::from_nanos(text.split(' ').next().and_then(|ns| ns.parse().ok()).unwrap_or(0))
}

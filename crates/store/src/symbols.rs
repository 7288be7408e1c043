//! Names for frames that came without: symbols of files, by build id, which may come long after the profiles.
//!
//! Frames stay as they were sent; names are put in when they are read, so that old profiles get them too. What is kept of a file, and what that says
//! of an address, is the [`SymbolSource`]'s to know: this crate reads no ELF. Symbols that were not needed for longest make room for new ones.

use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use bytes::Bytes;

use crate::batch::Millis;
use crate::bucket::Bucket;
use crate::clock::now;
use crate::dictionary::{Dictionary, TextId};
use crate::error::StoreError;
use crate::resolved::{FileAddress, FrameNames, ResolvedCall, is_build_id};
use crate::tenant::Tenant;
use crate::wanted::WantedFiles;

/// A reader of files with symbols.
///
/// [`extract`](Self::extract) is called once for a file that was uploaded, [`names_more`](Self::names_more) if the store has symbols of that build
/// ID already, and [`resolve`](Self::resolve) by queries, from several threads at once. A file comes from a client: it is untrusted, and reading it
/// has to
/// bound work and memory. An error of `extract` refuses the upload and leaves the store as it was.
///
/// `resolve` returns one list for each address, in order, empty where a name is not known; it does not fail. `read` may fail: then
/// no address has a name.
///
/// Example: `ElfSymbols` in `plumb-server` (`symbols.rs`).
pub trait SymbolSource: Send + Sync {
    /// Returns what is stored of a file that was sent: its symbols. By default, the whole file.
    ///
    /// # Errors
    /// The file cannot be read.
    fn extract(&self, sent: &Path) -> Result<Bytes, StoreError> {
        whole(sent)
    }

    /// Returns the functions at each of these addresses of the `file` with this name, outermost first; none where unknown. `read` returns what is
    /// stored of the file.
    fn resolve(
        &self,
        build_id: &str,
        file: &str,
        addresses: &[FileAddress],
        read: &dyn Fn() -> Result<Bytes, StoreError>,
    ) -> Vec<Vec<ResolvedCall>>;

    /// Whether what is stored of a file names more than what another of the same build id has.
    fn names_more(&self, _stored: Bytes, _new: &Bytes) -> bool {
        false
    }
}

/// A file's path and its frames without a name: their places and addresses.
type NamelessFrames = (TextId, Vec<(u32, FileAddress)>);

/// A file of a tenant.
type FileKey = (Tenant, String);

/// Names by file and address, so that each address is looked up once.
#[derive(Default)]
struct KnownNames {
    files: HashMap<FileKey, HashMap<FileAddress, Arc<[ResolvedCall]>>>,
    addresses: usize,
}

/// Addresses whose functions are remembered.
const MOST_KNOWN: usize = 1_000_000;

impl KnownNames {
    fn forget(&mut self, file: &FileKey) {
        self.addresses -= self.files.remove(file).map_or(0, |names| names.len());
    }
}

/// The stored symbols of a file.
struct StoredSymbols {
    bytes: u64,
    /// Milliseconds since 1970 of their last use by a query of this server; before the first one, of their storing.
    used: AtomicI64,
}

/// The stored symbols of a tenant's files, by build id.
type StoredFiles = HashMap<String, StoredSymbols>;

/// The symbols of all tenants' files.
#[derive(Default)]
pub(crate) struct SymbolFiles {
    files: RwLock<HashMap<Tenant, StoredFiles>>,
    source: RwLock<Option<Arc<dyn SymbolSource>>>,
    /// One query at a time reads files: they are large, and others mostly want the same.
    known: Mutex<KnownNames>,
    wanted: Mutex<WantedFiles>,
    /// Held from the comparison with the existing file until the new one is in place.
    replacing: Mutex<()>,
}

fn path(tenant: &Tenant, build_id: &str) -> String {
    format!("{tenant}/symbols/{build_id}")
}

impl SymbolFiles {
    /// Finds the files of a tenant; says whether they are others than before.
    pub fn open(&self, bucket: &Bucket, tenant: &Tenant) -> Result<bool, StoreError> {
        let mut found = StoredFiles::new();
        for (path, bytes, Millis(written)) in bucket.objects(&format!("{tenant}/symbols"))? {
            if let Some((_, build_id)) = path.rsplit_once('/') {
                found.insert(build_id.to_owned(), StoredSymbols { bytes, used: written.into() });
            }
        }
        let mut files = self.files.write().unwrap_or_else(PoisonError::into_inner);
        let before = files.remove(tenant).unwrap_or_default();
        let mut known = lock(&self.known);
        let mut is_changed = found.keys().any(|build_id| !before.contains_key(build_id));
        for (build_id, old) in before {
            match found.get_mut(&build_id).filter(|new| new.bytes == old.bytes) {
                Some(new) => new.used = old.used,
                None => {
                    known.forget(&(tenant.clone(), build_id));
                    is_changed = true;
                }
            }
        }
        files.insert(tenant.clone(), found);
        Ok(is_changed)
    }

    /// Notes which files a batch has nameless frames of.
    pub fn want(&self, tenant: &Tenant, dictionary: &Dictionary) {
        if self.source.read().unwrap_or_else(PoisonError::into_inner).is_some() {
            lock(&self.wanted).note(tenant, dictionary, |build_id| self.has(tenant, build_id));
        }
    }

    /// The build ids of files that frames came of without names, and that are not there.
    pub fn missing(&self, tenant: &Tenant) -> Vec<String> {
        lock(&self.wanted).of(tenant)
    }

    pub fn set_source(&self, source: Arc<dyn SymbolSource>) {
        *self.source.write().unwrap_or_else(PoisonError::into_inner) = Some(source);
    }

    pub fn has(&self, tenant: &Tenant, build_id: &str) -> bool {
        let files = self.files.read().unwrap_or_else(PoisonError::into_inner);
        files.get(tenant).is_some_and(|files| files.contains_key(&build_id.to_ascii_lowercase()))
    }

    /// Stores the symbols of a file, unless the stored ones name more. Returns whether it did. A tenant's symbols take at most `quota` bytes: the least
    /// recently used ones are removed.
    pub fn put(
        &self,
        bucket: &Bucket,
        (tenant, build_id): (&Tenant, &str),
        sent: &Path,
        quota: u64,
    ) -> Result<bool, StoreError> {
        if !is_build_id(build_id) {
            return Err(StoreError::BuildId(build_id.chars().take(200).collect()));
        }
        let build_id = build_id.to_ascii_lowercase();
        let source = self.source.read().unwrap_or_else(PoisonError::into_inner).clone();
        let new = source.as_ref().map_or_else(|| whole(sent), |source| source.extract(sent))?;
        let bytes = new.len() as u64;
        if bytes > quota {
            let message =
                format!("its symbols take {} MiB, and {} MiB are allowed", bytes >> 20, quota >> 20);
            return Err(StoreError::Full(message));
        }
        let _replacing = lock(&self.replacing);
        if let Some(source) = source.filter(|_| self.has(tenant, &build_id))
            && source.names_more(bucket.get(&path(tenant, &build_id))?, &new)
        {
            return Ok(false);
        }
        self.make_room(bucket, (tenant, &build_id), quota - bytes)?;
        bucket.put(&path(tenant, &build_id), new)?;
        lock(&self.wanted).came(tenant, &build_id);
        let mut files = self.files.write().unwrap_or_else(PoisonError::into_inner);
        lock(&self.known).forget(&(tenant.clone(), build_id.clone()));
        let stored = StoredSymbols { bytes, used: now().0.into() };
        files.entry(tenant.clone()).or_default().insert(build_id, stored);
        Ok(true)
    }

    /// Removes the least recently used symbols of other files, until all take no more than `most` bytes.
    fn make_room(
        &self,
        bucket: &Bucket,
        (tenant, new): (&Tenant, &String),
        most: u64,
    ) -> Result<(), StoreError> {
        let mut by_use: Vec<(i64, String, u64)> = {
            let files = self.files.read().unwrap_or_else(PoisonError::into_inner);
            let others = files.get(tenant).into_iter().flatten().filter(|&(other, _)| other != new);
            others.map(|(id, file)| (file.used.load(Ordering::Relaxed), id.clone(), file.bytes)).collect()
        };
        by_use.sort_unstable();
        let mut taken: u64 = by_use.iter().map(|&(_, _, bytes)| bytes).sum();
        for (_, build_id, bytes) in by_use {
            if taken <= most {
                break;
            }
            bucket.delete(&path(tenant, &build_id))?;
            tracing::info!(%tenant, build_id, bytes, "removed symbols that were not needed for longest");
            taken -= bytes;
            let mut files = self.files.write().unwrap_or_else(PoisonError::into_inner);
            files.entry(tenant.clone()).or_default().remove(&build_id);
            lock(&self.known).forget(&(tenant.clone(), build_id));
        }
        Ok(())
    }

    /// Removes all files of a tenant, and the lists of known and wanted ones.
    pub fn remove_all(&self, bucket: &Bucket, tenant: &Tenant) -> Result<(), StoreError> {
        let _replacing = lock(&self.replacing);
        bucket.remove_tree(&format!("{tenant}/symbols"))?;
        let removed = self.files.write().unwrap_or_else(PoisonError::into_inner).remove(tenant);
        let mut known = lock(&self.known);
        removed.into_iter().flatten().for_each(|(build_id, _)| known.forget(&(tenant.clone(), build_id)));
        lock(&self.wanted).forget(tenant);
        Ok(())
    }

    /// Names for the frames of a dictionary that have none.
    pub fn names(&self, bucket: &Bucket, tenant: &Tenant, dictionary: &Dictionary) -> FrameNames {
        let source = self.source.read().unwrap_or_else(PoisonError::into_inner).clone();
        let Some(source) = source else { return FrameNames::new() };
        let wanted = self.nameless(tenant, dictionary);
        let mut names = FrameNames::new();
        for (build_id, (mapping, frames)) in wanted {
            let read = || bucket.get(&path(tenant, &build_id));
            let mut known = lock(&self.known);
            let file = (tenant.clone(), build_id.clone());
            let of_file = known.files.entry(file).or_default();
            let mut unknown: Vec<FileAddress> =
                frames.iter().map(|&(_, at)| at).filter(|at| !of_file.contains_key(at)).collect();
            unknown.sort_unstable_by_key(|at| (at.is_file_offset, at.address));
            unknown.dedup();
            if !unknown.is_empty() {
                let calls = source.resolve(&build_id, dictionary.resolve(mapping), &unknown, &read);
                of_file.extend(unknown.iter().copied().zip(calls.into_iter().map(Arc::from)));
            }
            let named = frames.iter().filter_map(|&(place, at)| Some((place, of_file.get(&at)?.clone())));
            names.extend(named.filter(|(_, calls)| !calls.is_empty()));
            known.addresses += unknown.len();
            if known.addresses > MOST_KNOWN {
                *known = KnownNames::default();
            }
        }
        names
    }

    /// Returns, by build ID of an existing file, its name and the frames without a name: their indices and addresses.
    fn nameless(&self, tenant: &Tenant, dictionary: &Dictionary) -> HashMap<String, NamelessFrames> {
        let (mut nameless, now) = (HashMap::<String, NamelessFrames>::new(), now().0);
        let files = self.files.read().unwrap_or_else(PoisonError::into_inner);
        let Some(files) = files.get(tenant).filter(|files| !files.is_empty()) else {
            return nameless;
        };
        let mut is_there: HashMap<TextId, Option<String>> = HashMap::new();
        for (place, frame) in dictionary.frames().enumerate().filter(|(_, frame)| frame.is_nameless()) {
            let build_id = is_there.entry(frame.build_id).or_insert_with(|| {
                let text = dictionary.resolve(frame.build_id).to_ascii_lowercase();
                files.get(&text)?.used.store(now, Ordering::Relaxed);
                Some(text)
            });
            if let Some(build_id) = build_id {
                let at = FileAddress { address: frame.address, is_file_offset: frame.is_file_offset };
                let of_file = nameless.entry(build_id.clone()).or_insert((frame.mapping, Vec::new()));
                of_file.1.push((place as u32, at));
            }
        }
        nameless
    }
}

fn whole(sent: &Path) -> Result<Bytes, StoreError> {
    let unread = |source| StoreError::Io { path: sent.to_owned(), action: "read", source };
    Ok(std::fs::read(sent).map_err(unread)?.into())
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

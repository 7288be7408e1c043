//! Names for frames that came without: files with symbols, by build id, which may come long after the profiles.
//!
//! Frames stay as they were sent; names are put in when they are read, so that old profiles get them too. What a file says of an address is the
//! [`SymbolSource`]'s to know: this crate reads no ELF.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use bytes::Bytes;

use crate::bucket::Bucket;
use crate::dictionary::{Dictionary, TextId};
use crate::error::StoreError;
use crate::resolved::{FileAddress, FrameNames, ResolvedCall, is_build_id};
use crate::tenant::Tenant;
use crate::wanted::WantedFiles;

/// A reader of files with symbols.
pub trait SymbolSource: Send + Sync {
    /// Returns the functions at each of these addresses of the `file` with this name, outermost first; none where unknown. `read` returns the file.
    fn resolve(
        &self,
        build_id: &str,
        file: &str,
        addresses: &[FileAddress],
        read: &dyn Fn() -> Result<Bytes, StoreError>,
    ) -> Vec<Vec<ResolvedCall>>;

    /// Whether a file that is stored names more than another of the same build id, which is sent.
    fn names_more(&self, _stored: Bytes, _sent: &Path) -> bool {
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

/// The files with symbols of all tenants.
#[derive(Default)]
pub(crate) struct SymbolFiles {
    /// By tenant and build id how large each is.
    files: RwLock<HashMap<Tenant, HashMap<String, u64>>>,
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
        let mut found = HashMap::new();
        for (path, size) in bucket.sizes(&format!("{tenant}/symbols"))? {
            if let Some((_, build_id)) = path.rsplit_once('/') {
                found.insert(build_id.to_owned(), size);
            }
        }
        let mut files = self.files.write().unwrap_or_else(PoisonError::into_inner);
        let before = files.insert(tenant.clone(), found).unwrap_or_default();
        let now = &files[tenant];
        let mut known = lock(&self.known);
        for (build_id, _) in before.iter().filter(|&(build_id, size)| now.get(build_id) != Some(size)) {
            known.forget(&(tenant.clone(), build_id.clone()));
        }
        Ok(before != *now)
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

    /// Stores a file, unless the existing one has more names; returns whether it did. All files of a tenant take at most `quota` bytes.
    pub fn put(
        &self,
        bucket: &Bucket,
        (tenant, build_id): (&Tenant, &str),
        sent: &Path,
        quota: u64,
    ) -> Result<bool, StoreError> {
        let unread = |source| StoreError::Io { path: sent.to_owned(), action: "read", source };
        if !is_build_id(build_id) {
            return Err(StoreError::BuildId(build_id.chars().take(200).collect()));
        }
        let (build_id, size) = (build_id.to_ascii_lowercase(), sent.metadata().map_err(unread)?.len());
        let taken: u64 = {
            let files = self.files.read().unwrap_or_else(PoisonError::into_inner);
            let others = files.get(tenant).into_iter().flatten().filter(|&(other, _)| *other != build_id);
            others.map(|(_, size)| size).sum()
        };
        if taken.saturating_add(size) > quota {
            let message = format!("symbols take {} of {} MiB already", taken >> 20, quota >> 20);
            return Err(StoreError::Full(message));
        }
        let source = self.source.read().unwrap_or_else(PoisonError::into_inner).clone();
        let _replacing = lock(&self.replacing);
        if let Some(source) = source.filter(|_| self.has(tenant, &build_id))
            && source.names_more(bucket.get(&path(tenant, &build_id))?, sent)
        {
            return Ok(false);
        }
        // Only one of the two files is in memory at a time: each may be large.
        bucket.put(&path(tenant, &build_id), std::fs::read(sent).map_err(unread)?.into())?;
        lock(&self.wanted).came(tenant, &build_id);
        let mut files = self.files.write().unwrap_or_else(PoisonError::into_inner);
        lock(&self.known).forget(&(tenant.clone(), build_id.clone()));
        files.entry(tenant.clone()).or_default().insert(build_id, size);
        Ok(true)
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
        let mut nameless: HashMap<String, NamelessFrames> = HashMap::new();
        let files = self.files.read().unwrap_or_else(PoisonError::into_inner);
        let Some(files) = files.get(tenant).filter(|files| !files.is_empty()) else {
            return nameless;
        };
        let mut is_there: HashMap<TextId, Option<String>> = HashMap::new();
        for (place, frame) in dictionary.frames().enumerate().filter(|(_, frame)| frame.is_nameless()) {
            let build_id = is_there.entry(frame.build_id).or_insert_with(|| {
                let text = dictionary.resolve(frame.build_id).to_ascii_lowercase();
                files.contains_key(&text).then_some(text)
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

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

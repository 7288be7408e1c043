//! Names for frames that came without: files with symbols, by build id, which may come long after the profiles.
//!
//! Frames stay as they were sent; names are put in when they are read, so that old profiles get them too. What a file says of an address is the
//! [`SymbolSource`]'s to know: this crate reads no ELF.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use bytes::Bytes;

use crate::bucket::Bucket;
use crate::dictionary::{Dictionary, TextId};
use crate::error::StoreError;
use crate::tenant::Tenant;

/// A function at an address: the one that the compiler made code of, or one that it put into it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResolvedCall {
    /// The readable name.
    pub function: String,
    /// The mangled name, if that is another.
    pub system_name: String,
    /// The source file; empty if it isn't known.
    pub file: String,
    /// The line in it; 0 if it isn't known.
    pub line: u32,
    /// The line where the function begins; 0 if it isn't known.
    pub start_line: u32,
    /// The compiler put it into its caller.
    pub inlined: bool,
}

/// What reads files with symbols.
pub trait SymbolSource: Send + Sync {
    /// The functions at each of these addresses of a file, the outermost first; none where the file knows none. `read` gives the file.
    fn resolve(
        &self,
        build_id: &str,
        addresses: &[u64],
        read: &dyn Fn() -> Result<Bytes, StoreError>,
    ) -> Vec<Vec<ResolvedCall>>;
}

/// By frame of a dictionary the calls that it really is.
pub(crate) type FrameNames = HashMap<u32, Vec<ResolvedCall>>;

/// The files with symbols of all tenants.
#[derive(Default)]
pub(crate) struct SymbolFiles {
    /// By tenant and build id how large each is.
    files: RwLock<HashMap<Tenant, HashMap<String, u64>>>,
    source: RwLock<Option<Arc<dyn SymbolSource>>>,
}

fn path(tenant: &Tenant, build_id: &str) -> String {
    format!("{tenant}/symbols/{build_id}")
}

/// Whether a text is a build id: up to 64 bytes in hexadecimal digits.
fn is_build_id(text: &str) -> bool {
    (4..=128).contains(&text.len()) && text.bytes().all(|one| one.is_ascii_hexdigit())
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
        let before = files.insert(tenant.clone(), found);
        Ok(before.unwrap_or_default() != files[tenant])
    }

    pub fn set_source(&self, source: Arc<dyn SymbolSource>) {
        *self.source.write().unwrap_or_else(PoisonError::into_inner) = Some(source);
    }

    pub fn has(&self, tenant: &Tenant, build_id: &str) -> bool {
        let files = self.files.read().unwrap_or_else(PoisonError::into_inner);
        files.get(tenant).is_some_and(|files| files.contains_key(&build_id.to_ascii_lowercase()))
    }

    /// Stores a file. All of a tenant's take at most `quota` bytes.
    pub fn put(
        &self,
        bucket: &Bucket,
        (tenant, build_id): (&Tenant, &str),
        bytes: Bytes,
        quota: u64,
    ) -> Result<(), StoreError> {
        if !is_build_id(build_id) {
            return Err(StoreError::BuildId(build_id.chars().take(200).collect()));
        }
        let (build_id, size) = (build_id.to_ascii_lowercase(), bytes.len() as u64);
        let taken: u64 = {
            let files = self.files.read().unwrap_or_else(PoisonError::into_inner);
            let others = files.get(tenant).into_iter().flatten().filter(|&(other, _)| *other != build_id);
            others.map(|(_, size)| size).sum()
        };
        if taken.saturating_add(size) > quota {
            let message = format!("symbols take {} of {} MiB already", taken >> 20, quota >> 20);
            return Err(StoreError::Full(message));
        }
        bucket.put(&path(tenant, &build_id), bytes)?;
        let mut files = self.files.write().unwrap_or_else(PoisonError::into_inner);
        files.entry(tenant.clone()).or_default().insert(build_id, size);
        Ok(())
    }

    /// Names for the frames of a dictionary that have none.
    pub fn names(&self, bucket: &Bucket, tenant: &Tenant, dictionary: &Dictionary) -> FrameNames {
        let source = self.source.read().unwrap_or_else(PoisonError::into_inner).clone();
        let mut wanted: HashMap<String, Vec<(u32, u64)>> = HashMap::new();
        {
            let files = self.files.read().unwrap_or_else(PoisonError::into_inner);
            let Some(files) = files.get(tenant).filter(|files| !files.is_empty()) else {
                return FrameNames::new();
            };
            let mut is_known: HashMap<TextId, Option<String>> = HashMap::new();
            let nameless = |frame: &crate::StoredFrame| frame.function == TextId::default();
            for (place, frame) in dictionary.frames().enumerate().filter(|(_, frame)| nameless(frame)) {
                let build_id = is_known.entry(frame.build_id).or_insert_with(|| {
                    let text = dictionary.resolve(frame.build_id).to_ascii_lowercase();
                    files.contains_key(&text).then_some(text)
                });
                if let Some(build_id) = build_id {
                    wanted.entry(build_id.clone()).or_default().push((place as u32, frame.address));
                }
            }
        }
        let mut names = FrameNames::new();
        let Some(source) = source else { return names };
        for (build_id, frames) in wanted {
            let addresses: Vec<u64> = frames.iter().map(|&(_, address)| address).collect();
            let found = source.resolve(&build_id, &addresses, &|| bucket.get(&path(tenant, &build_id)));
            let named = frames.iter().zip(found).filter(|(_, calls)| !calls.is_empty());
            names.extend(named.map(|(&(place, _), calls)| (place, calls)));
        }
        names
    }
}

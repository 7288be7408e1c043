//! Tombstones: deletions of tenants, which a restarted server finishes.
//!
//! Invariant: a tombstone is on disk before anything of its tenant is removed, and stays until the tenant's blocks and the log segments with its
//! records are gone. Each one has the first log segment whose records count again, as a deleted tenant may send further profiles.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::StoreError;
use crate::tenant::Tenant;

/// Deletion of a tenant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Tombstone {
    pub tenant: String,
    /// First log segment with records that were stored after the deletion.
    pub first_segment: u64,
    /// Whether its blocks and symbols are gone.
    is_removed: bool,
}

/// All tombstones, and their file in the directory of the log.
#[derive(Debug)]
pub(crate) struct Tombstones {
    folder: PathBuf,
    all: Vec<Tombstone>,
}

impl Tombstones {
    /// Reads the file. Fails if it is damaged: without it, deleted profiles would come back.
    pub fn open(folder: &Path) -> Result<Self, StoreError> {
        let path = folder.join("deleted");
        let all = match std::fs::read(&path) {
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(|error| StoreError::Damaged {
                path: path.display().to_string(),
                message: format!(
                    "{error}; it lists deleted tenants, whose profiles may come back if you remove it"
                ),
            })?,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
            Err(source) => return Err(StoreError::Io { path, action: "read", source }),
        };
        Ok(Self { folder: folder.to_owned(), all })
    }

    /// Marks the records of a tenant before `first_segment`, and its blocks, as deleted. On failure nothing changes.
    pub fn add(&mut self, tenant: &Tenant, first_segment: u64) -> Result<Tombstone, StoreError> {
        let tombstone = Tombstone { tenant: tenant.to_string(), first_segment, is_removed: false };
        let mut all = self.all.clone();
        all.retain(|one| one.tenant != tombstone.tenant);
        all.push(tombstone.clone());
        self.replace(all)?;
        Ok(tombstone)
    }

    /// Notes that the blocks and symbols of a tombstone are gone, unless its tenant was deleted again since.
    pub fn removed(&mut self, tombstone: &Tombstone) -> Result<(), StoreError> {
        let mut all = self.all.clone();
        all.iter_mut().filter(|one| *one == tombstone).for_each(|one| one.is_removed = true);
        self.replace(all)
    }

    /// Forgets finished deletions, given the number of the oldest log segment that is left.
    pub fn forget(&mut self, oldest_segment: u64) -> Result<(), StoreError> {
        let is_needed = |one: &&Tombstone| !one.is_removed || one.first_segment > oldest_segment;
        let left: Vec<Tombstone> = self.all.iter().filter(is_needed).cloned().collect();
        if left.len() == self.all.len() { Ok(()) } else { self.replace(left) }
    }

    /// Deletions whose blocks and symbols may still be there.
    pub fn unfinished(&self) -> Vec<Tombstone> {
        self.all.iter().filter(|one| !one.is_removed).cloned().collect()
    }

    /// Whether the records of a tenant in a log segment are deleted.
    pub fn is_deleted(&self, tenant: &str, segment: u64) -> bool {
        self.all.iter().any(|one| one.tenant == tenant && segment < one.first_segment)
    }

    /// Lowest number that a new log segment may have.
    pub fn next_segment(&self) -> u64 {
        self.all.iter().map(|one| one.first_segment).max().unwrap_or(0)
    }

    /// Writes the file durably, then takes over its content.
    fn replace(&mut self, all: Vec<Tombstone>) -> Result<(), StoreError> {
        let (path, partial) = (self.folder.join("deleted"), self.folder.join("deleted.part"));
        let content = serde_json::to_vec(&all).map_err(std::io::Error::other);
        let written = content.and_then(|content| {
            let mut file = File::create(&partial)?;
            file.write_all(&content)?;
            file.sync_all()?;
            std::fs::rename(&partial, &path)?;
            File::open(&self.folder)?.sync_all()
        });
        written.map_err(|source| StoreError::Io { path, action: "write", source })?;
        self.all = all;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

    use super::*;

    #[test]
    fn a_tombstone_stays_until_blocks_and_records_are_gone() {
        let folder = tempfile::tempdir().unwrap();
        let shop = Tenant::new("shop").unwrap();
        let mut tombstones = Tombstones::open(folder.path()).unwrap();
        let earlier = tombstones.add(&shop, 5).unwrap();
        let tombstone = tombstones.add(&shop, 7).unwrap();
        tombstones.removed(&earlier).unwrap();
        tombstones.forget(100).unwrap();
        let mut tombstones = Tombstones::open(folder.path()).unwrap();
        assert_eq!(tombstones.unfinished().len(), 1);
        let deleted = [6, 7].map(|segment| tombstones.is_deleted("shop", segment));
        assert_eq!((deleted, tombstones.is_deleted("mail", 6)), ([true, false], false));
        tombstones.removed(&tombstone).unwrap();
        tombstones.forget(6).unwrap();
        let mut tombstones = Tombstones::open(folder.path()).unwrap();
        assert!(tombstones.unfinished().is_empty() && tombstones.is_deleted("shop", 6));
        tombstones.forget(7).unwrap();
        assert!(!Tombstones::open(folder.path()).unwrap().is_deleted("shop", 6));
    }

    #[test]
    fn a_damaged_file_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("deleted"), "[{").unwrap();
        let error = Tombstones::open(folder.path()).unwrap_err().to_string();
        assert!(error.contains("deleted") && error.contains("may come back"), "{error}");
    }
}

//! Files that are needed to symbolize frames, which clients are asked to upload.
//!
//! Collected as profiles arrive, and forgotten when the server ends: processes that still run will send such frames again.

use std::collections::HashMap;

use indexmap::IndexSet;

use crate::dictionary::{Dictionary, TextId};
use crate::resolved::is_build_id;
use crate::tenant::Tenant;

/// Most files that are remembered per tenant; the oldest are dropped first.
const MOST: usize = 10_000;

/// Build ids of such files, by tenant.
#[derive(Default)]
pub(crate) struct WantedFiles(HashMap<Tenant, IndexSet<String>>);

impl WantedFiles {
    /// Adds the files of a dictionary's nameless frames, except those for which `has` is true.
    pub fn note(&mut self, tenant: &Tenant, dictionary: &Dictionary, has: impl Fn(&str) -> bool) {
        // Frames of the same file are mostly adjacent.
        let mut last = TextId::default();
        for frame in dictionary.frames().filter(|frame| frame.is_nameless()) {
            if frame.build_id == last || frame.build_id == TextId::default() {
                continue;
            }
            last = frame.build_id;
            let build_id = dictionary.resolve(frame.build_id).to_ascii_lowercase();
            if is_build_id(&build_id) && !has(&build_id) {
                let files = self.0.entry(tenant.clone()).or_default();
                files.insert(build_id);
                if files.len() > MOST {
                    files.shift_remove_index(0);
                }
            }
        }
    }

    /// Removes a file that has been uploaded.
    pub fn came(&mut self, tenant: &Tenant, build_id: &str) {
        if let Some(files) = self.0.get_mut(tenant) {
            files.shift_remove(build_id);
        }
    }

    /// Removes all files of a tenant.
    pub fn forget(&mut self, tenant: &Tenant) {
        self.0.remove(tenant);
    }

    /// Build ids of a tenant's files.
    pub fn of(&self, tenant: &Tenant) -> Vec<String> {
        self.0.get(tenant).into_iter().flatten().cloned().collect()
    }
}

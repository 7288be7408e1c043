//! Which files have frames without names: what clients are asked to upload.
//!
//! Noted as profiles come, and forgotten when the server ends: whoever still runs sends such frames again.

use std::collections::HashMap;

use indexmap::IndexSet;

use crate::dictionary::{Dictionary, TextId};
use crate::resolved::is_build_id;
use crate::tenant::Tenant;

/// Files that are remembered for a tenant; the first ones go first.
const MOST: usize = 10_000;

/// By tenant the build ids of such files.
#[derive(Default)]
pub(crate) struct WantedFiles(HashMap<Tenant, IndexSet<String>>);

impl WantedFiles {
    /// Notes the files of a dictionary's nameless frames, unless they are there.
    pub fn note(&mut self, tenant: &Tenant, dictionary: &Dictionary, has: impl Fn(&str) -> bool) {
        // Frames of a file mostly follow each other.
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

    /// The file is there now.
    pub fn came(&mut self, tenant: &Tenant, build_id: &str) {
        if let Some(files) = self.0.get_mut(tenant) {
            files.shift_remove(build_id);
        }
    }

    /// The files of a tenant.
    pub fn of(&self, tenant: &Tenant) -> Vec<String> {
        self.0.get(tenant).into_iter().flatten().cloned().collect()
    }
}

//! Names for addresses, from files that clients upload: ELF files with symbols or debug information, read by `symbolize`.
//!
//! Only the uploaded file is read: no debug file, cache or kernel of the server's machine.

use std::collections::HashMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use plumb_profile::{
    Address, AddressSpace, BuildId, Dso, DsoKind, Found, Frame, FrameId, FrameKind, Profile, UnnamedFunctions,
};
use plumb_store::{FileAddress, ResolvedCall, StoreError, SymbolSource};
use plumb_symbolize::{Options, symbolize};
use tempfile::{NamedTempFile, TempDir};

/// Memory limit for reading one file's debug information, in bytes; of larger ones only the symbol table is read.
const MOST_MEMORY: u64 = 512 << 20;

/// Reads uploaded ELF files.
pub(crate) struct ElfSymbols {
    /// Directory for a file while it is read.
    pub temporary: PathBuf,
}

impl SymbolSource for ElfSymbols {
    fn resolve(
        &self,
        build_id: &str,
        file: &str,
        addresses: &[FileAddress],
        read: &dyn Fn() -> Result<Bytes, StoreError>,
    ) -> Vec<Vec<ResolvedCall>> {
        let found = read().map_err(io::Error::other).and_then(|bytes| {
            let folder = tempfile::tempdir_in(&self.temporary)?;
            let kept = keep(&bytes, folder.path())?;
            drop(bytes);
            Ok(calls((build_id, file), addresses, &folder, kept.path()))
        });
        found.unwrap_or_else(|error| {
            tracing::warn!(build_id, %error, "cannot read the symbols of a file");
            vec![Vec::new(); addresses.len()]
        })
    }

    fn names_more(&self, stored: Bytes, sent: &Path) -> bool {
        let file = keep(&stored, &self.temporary);
        drop(stored);
        match file.map(|file| plumb_symbolize::detail_of(file.path())) {
            Ok(stored) => stored > plumb_symbolize::detail_of(sent),
            Err(error) => {
                tracing::warn!(%error, "cannot compare files with symbols");
                false
            }
        }
    }
}

/// The build ID of an ELF file, in hexadecimal digits; `None` if it has none, or is not an ELF file.
pub(crate) fn build_id(file: &Path) -> Option<String> {
    plumb_symbolize::build_id_of(file).map(|id| id.to_string())
}

fn keep(bytes: &[u8], folder: &Path) -> io::Result<NamedTempFile> {
    let mut file = NamedTempFile::new_in(folder)?;
    file.write_all(bytes)?;
    Ok(file)
}

fn calls(
    (build_id, called): (&str, &str),
    addresses: &[FileAddress],
    folder: &TempDir,
    file: &Path,
) -> Vec<Vec<ResolvedCall>> {
    let mut profile = Profile::default();
    let path = profile.strings.add(called);
    let mut images = HashMap::new();
    let [stated, offsets] = [AddressSpace::Svma, AddressSpace::FileOffset].map(|addresses| {
        let build_id = BuildId::from_hex(build_id);
        let dso = profile.dsos.add(Dso { path, build_id, kind: DsoKind::File, addresses });
        images.insert(dso, vec![file.to_owned()]);
        dso
    });
    let frames: Vec<FrameId> = addresses
        .iter()
        .map(|at| {
            profile.frames.add(Frame {
                kind: FrameKind::User,
                dso: Some(if at.is_file_offset { offsets } else { stated }),
                address: Address(at.address),
                is_return: false,
                found: Found::Sampled,
            })
        })
        .collect();
    let nowhere = folder.path().to_owned();
    let options = Options {
        images,
        debug_roots: Vec::new(),
        root: nowhere.join("root"),
        proc: nowhere.join("proc"),
        perf_maps: nowhere.join("maps"),
        kernel: false,
        cache: None,
        threads: 1,
        max_memory: Some(MOST_MEMORY),
        ..Options::default()
    };
    let summary = symbolize(&mut profile, &options, &mut |_| {});
    tracing::debug!(build_id, addresses = addresses.len(), ?summary, "read the symbols of a file");
    frames.into_iter().map(|frame| calls_of(&profile, frame)).collect()
}

/// The functions of a frame, outermost first; a function without a symbol is named by its start address.
fn calls_of(profile: &Profile, frame: FrameId) -> Vec<ResolvedCall> {
    let text = |id| profile.strings.get(id).to_owned();
    let call = |line: &plumb_profile::Line| {
        let function = &profile.symbols.functions[line.function];
        let (name, linkage_name) = (text(function.name), text(function.linkage_name));
        ResolvedCall {
            system_name: if linkage_name == name { String::new() } else { linkage_name },
            function: name,
            file: text(line.file),
            line: line.line,
            start_line: function.start_line,
            inlined: line.inlined,
        }
    };
    if profile.symbols.nameless_start(frame).is_some() {
        let function = UnnamedFunctions::default().find(profile, frame).name(profile);
        return vec![ResolvedCall { function, ..ResolvedCall::default() }];
    }
    profile.symbols.of(frame).iter().rev().map(call).collect()
}

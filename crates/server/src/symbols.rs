//! Names for addresses, from files that clients upload: ELF files with symbols or debug information, read by `symbolize`.
//!
//! Only the uploaded file is read: no debug file, cache or kernel of the server's machine. A table of its symbols is stored, which takes a few percent
//! of its size. Versions before stored the file itself, which is still read.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use plumb_profile::unnamed_function_name;
use plumb_store::{FileAddress, ResolvedCall, StoreError, SymbolSource};
use plumb_symbolize::{CompactCall, CompactError, CompactSymbols};
use tempfile::NamedTempFile;

/// Memory limit for reading one file's debug information, in bytes; of larger ones only the symbol table is read.
const MOST_MEMORY: u64 = 512 << 20;

/// Reads uploaded ELF files.
pub(crate) struct ElfSymbols {
    /// Directory for a file while it is read.
    pub temporary: PathBuf,
}

impl SymbolSource for ElfSymbols {
    fn extract(&self, sent: &Path) -> Result<Bytes, StoreError> {
        let symbols = CompactSymbols::of(sent, MOST_MEMORY);
        symbols
            .map(|symbols| symbols.to_bytes().into())
            .map_err(|missing| StoreError::Symbols(missing.to_string()))
    }

    fn resolve(
        &self,
        build_id: &str,
        file: &str,
        addresses: &[FileAddress],
        read: &dyn Fn() -> Result<Bytes, StoreError>,
    ) -> Vec<Vec<ResolvedCall>> {
        let symbols = read().map_err(io::Error::other).and_then(|stored| self.symbols(stored));
        match symbols {
            Ok(symbols) => resolve(&symbols, file, addresses),
            Err(error) => {
                tracing::warn!(build_id, %error, "cannot read the symbols of a file");
                vec![Vec::new(); addresses.len()]
            }
        }
    }

    fn names_more(&self, stored: Bytes, new: &Bytes) -> bool {
        let (stored, new) = (self.symbols(stored), CompactSymbols::from_bytes(new));
        // An unreadable table is replaced.
        stored.is_ok_and(|stored| new.is_ok_and(|new| stored.detail() > new.detail()))
    }
}

impl ElfSymbols {
    /// The symbols in what is stored of a file: their table, or the file itself.
    fn symbols(&self, stored: Bytes) -> io::Result<CompactSymbols> {
        match CompactSymbols::from_bytes(&stored) {
            Err(CompactError::Magic) => {
                let mut file = NamedTempFile::new_in(&self.temporary)?;
                file.write_all(&stored)?;
                drop(stored);
                CompactSymbols::of(file.path(), MOST_MEMORY)
                    .map_err(|missing| io::Error::other(missing.to_string()))
            }
            symbols => symbols.map_err(io::Error::other),
        }
    }
}

/// The build ID of an ELF file, in hexadecimal digits; `None` if it has none, or is not an ELF file.
pub(crate) fn build_id(file: &Path) -> Option<String> {
    plumb_symbolize::build_id_of(file).map(|id| id.to_string())
}

/// The functions at each of the addresses of a file with this name, outermost first.
fn resolve(symbols: &CompactSymbols, file: &str, addresses: &[FileAddress]) -> Vec<Vec<ResolvedCall>> {
    let stated = |at: &FileAddress| match at.is_file_offset {
        true => symbols.address_of_offset(at.address),
        false => Some(at.address),
    };
    let stated: Vec<Option<u64>> = addresses.iter().map(stated).collect();
    let mut found = symbols.resolve(&stated.iter().flatten().copied().collect::<Vec<_>>()).into_iter();
    let calls = |calls: Vec<CompactCall>| calls.into_iter().map(|call| named(call, file)).collect();
    stated.into_iter().map(|at| at.and_then(|_| found.next()).map(calls).unwrap_or_default()).collect()
}

/// A call; a function without a symbol is named by its start address.
fn named(call: CompactCall, file: &str) -> ResolvedCall {
    let CompactCall { function, linkage_name, nameless_start, file: source, line, start_line, inlined } =
        call;
    let function = nameless_start.map_or(function, |start| unnamed_function_name(file, start));
    let system_name = if linkage_name == function { String::new() } else { linkage_name };
    ResolvedCall { function, system_name, file: source, line, start_line, inlined }
}

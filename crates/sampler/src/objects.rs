//! The code of this process: the objects that the dynamic loader has loaded, with their call-frame information, and other executable memory.
//!
//! A snapshot that never changes, so that a signal handler can read it. The call-frame information of the program itself is read where it is mapped;
//! that of libraries, which may be unloaded at any time, is copied.

#![allow(unsafe_code)]

use std::ffi::{CStr, c_int, c_void};
use std::ops::Range;
use std::sync::Arc;

use plumb_unwind::{Avma, CodeMap, Located, Module, Section, Sections, Svma};

/// Bytes of call-frame information.
#[derive(Debug)]
pub(crate) enum Bytes {
    /// Part of the program's own image, which is never unmapped.
    Mapped(&'static [u8]),
    Copied(Box<[u8]>),
}

impl AsRef<[u8]> for Bytes {
    fn as_ref(&self) -> &[u8] {
        match self {
            Bytes::Mapped(bytes) => bytes,
            Bytes::Copied(bytes) => bytes,
        }
    }
}

/// A program, a library or the vDSO.
#[derive(Debug)]
pub(crate) struct Object {
    name: Vec<u8>,
    bias: u64,
    code: Vec<Range<u64>>,
    module: Module<Bytes>,
}

/// Number of loads and of unloads so far: if both are the same, nothing has changed.
pub(crate) type Changes = (u64, u64);

/// A snapshot of all executable memory.
#[derive(Debug, Default)]
pub(crate) struct Objects {
    /// Ranges by address, with the index of the object, or `None` for code without a file.
    ranges: Vec<(Range<u64>, Option<usize>)>,
    objects: Vec<Arc<Object>>,
    changes: Changes,
}

impl Objects {
    /// Takes a snapshot. Reuses the parts of `old` for objects that are still loaded.
    pub fn look(old: Option<&Objects>) -> Objects {
        let mut look = Look { old, found: Objects::default() };
        // SAFETY: `each` is called before this returns, with the pointer to `look`, which nothing else uses in that time.
        unsafe { libc::dl_iterate_phdr(Some(each), (&raw mut look).cast()) };
        let mut found = look.found;
        found.index();
        found
    }

    /// Current number of loads and unloads.
    pub fn changes_now() -> Changes {
        unsafe extern "C" fn first(info: *mut libc::dl_phdr_info, _: usize, data: *mut c_void) -> c_int {
            // SAFETY: the loader passes a valid `info`, and `data` is the pointer passed below.
            unsafe { *data.cast::<Changes>() = ((*info).dlpi_adds, (*info).dlpi_subs) };
            1
        }
        let mut changes: Changes = (0, 0);
        // SAFETY: `first` writes to `changes` only, which is live.
        unsafe { libc::dl_iterate_phdr(Some(first), (&raw mut changes).cast()) };
        changes
    }

    /// Number of loads and unloads at the time of the snapshot.
    pub fn changes(&self) -> Changes {
        self.changes
    }

    fn index(&mut self) {
        for (index, object) in self.objects.iter().enumerate() {
            self.ranges.extend(object.code.iter().map(|range| (range.clone(), Some(index))));
        }
        self.ranges.sort_by_key(|(range, _)| range.start);
        // Code written by JIT compilers.
        let text = plumb_process::mappings(std::process::id()).unwrap_or_default();
        let executable = plumb_process::parse_maps(&text).filter(|line| line.executable);
        let other: Vec<_> = executable
            .filter(|line| self.find(line.start).is_none() && self.find(line.end - 1).is_none())
            .map(|line| (line.start..line.end, None))
            .collect();
        self.ranges.extend(other);
        self.ranges.sort_by_key(|(range, _)| range.start);
    }

    fn find(&self, at: u64) -> Option<&(Range<u64>, Option<usize>)> {
        let after = self.ranges.partition_point(|(range, _)| range.start <= at);
        self.ranges.get(after.checked_sub(1)?).filter(|(range, _)| range.contains(&at))
    }

    /// Path of the file that contains `at`, empty for the program itself, and the address in the file.
    pub fn place(&self, at: u64) -> Option<(&[u8], u64)> {
        let object = self.objects.get(self.find(at)?.1?)?;
        Some((&object.name, at.wrapping_sub(object.bias)))
    }
}

impl CodeMap for Objects {
    type Bytes = Bytes;

    fn locate(&self, pc: Avma) -> Located<'_, Bytes> {
        match self.find(pc.0) {
            None => Located::Unmapped,
            Some((_, index)) => match index.and_then(|index| self.objects.get(index)) {
                Some(object) => Located::Module { module: &object.module, bias: object.bias },
                None => Located::NoInfo,
            },
        }
    }
}

struct Look<'a> {
    old: Option<&'a Objects>,
    found: Objects,
}

/// Called by the dynamic loader for each object. The loader holds its lock, so nothing is unloaded in that time.
unsafe extern "C" fn each(info: *mut libc::dl_phdr_info, _: usize, data: *mut c_void) -> c_int {
    // SAFETY: the loader passes a valid `info`; `data` is the `Look` that `Objects::look` passed to it.
    let (info, look) = unsafe { (&*info, &mut *data.cast::<Look<'_>>()) };
    look.found.changes = (info.dlpi_adds, info.dlpi_subs);
    let name = if info.dlpi_name.is_null() {
        Vec::new()
    } else {
        // SAFETY: the loader's names are NUL-terminated strings.
        unsafe { CStr::from_ptr(info.dlpi_name) }.to_bytes().to_vec()
    };
    let headers = if info.dlpi_phdr.is_null() {
        &[][..]
    } else {
        // SAFETY: the loader reports the address and the number of the program headers.
        unsafe { std::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into()) }
    };
    let object = Parts::of(info.dlpi_addr, headers);
    let known = look.old.filter(|old| old.changes.1 == info.dlpi_subs).and_then(|old| {
        let same = |known: &&Arc<Object>| {
            known.bias == info.dlpi_addr && known.name == name && known.code == object.code
        };
        old.objects.iter().find(same).cloned()
    });
    // The first object is the program. The vDSO, which has no name, is never unloaded either.
    let stays = look.found.objects.is_empty() || name.is_empty();
    look.found.objects.push(known.unwrap_or_else(|| Arc::new(object.read(name, stays))));
    0
}

/// Relevant parts of an object's program headers.
struct Parts {
    bias: u64,
    code: Vec<Range<u64>>,
    loaded: Vec<Range<u64>>,
    eh_frame_hdr: Option<Range<u64>>,
}

impl Parts {
    fn of(bias: u64, headers: &[libc::Elf64_Phdr]) -> Parts {
        let mut parts = Parts { bias, code: Vec::new(), loaded: Vec::new(), eh_frame_hdr: None };
        for header in headers {
            let start = bias.wrapping_add(header.p_vaddr);
            let range = start..start.saturating_add(header.p_memsz);
            match header.p_type {
                libc::PT_LOAD if header.p_flags & libc::PF_X != 0 => {
                    parts.code.push(range.clone());
                    parts.loaded.push(range);
                }
                libc::PT_LOAD if header.p_flags & libc::PF_R != 0 => parts.loaded.push(range),
                libc::PT_GNU_EH_FRAME => parts.eh_frame_hdr = Some(range),
                _ => {}
            }
        }
        parts
    }

    /// The loaded part of a range.
    fn within(&self, start: u64, end: u64) -> Option<Range<u64>> {
        let segment = self.loaded.iter().find(|segment| segment.contains(&start))?;
        Some(start..segment.end.min(end))
    }

    fn read(self, name: Vec<u8>, stays: bool) -> Object {
        let bytes = |range: Range<u64>| {
            // SAFETY: the range is within a readable segment that the loader has mapped and, as it holds its lock, does not unmap; it is only kept,
            // beyond the copy, for objects that are never unmapped.
            let mapped: &'static [u8] = unsafe {
                std::slice::from_raw_parts(range.start as *const u8, (range.end - range.start) as usize)
            };
            if stays { Bytes::Mapped(mapped) } else { Bytes::Copied(mapped.into()) }
        };
        let section = |range: Range<u64>| {
            let address = Svma(range.start.wrapping_sub(self.bias));
            Section { address, bytes: bytes(range) }
        };
        let header =
            self.eh_frame_hdr.clone().and_then(|range| self.within(range.start, range.end)).map(section);
        let start = header.as_ref().and_then(|header| {
            plumb_process::elf::eh_frame_address(
                header.bytes.as_ref(),
                header.address.0.wrapping_add(self.bias),
            )
        });
        // The end of the section is unknown: it is at an empty entry, or at the latest at the end of its segment.
        let eh_frame = start.and_then(|start| self.within(start, u64::MAX)).map(section);
        let module = Module::new(Sections { eh_frame, eh_frame_hdr: header, ..Sections::default() });
        // Builds the module's index now, rather than in a signal handler.
        for range in &self.code {
            let _ = module.row(Svma(range.start.wrapping_sub(self.bias)));
        }
        Object { name, bias: self.bias, code: self.code, module }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_function_here_and_in_libraries_has_rules() {
        let objects = Objects::look(None);
        for at in [every_function_here_and_in_libraries_has_rules as *const (), libc::qsort as *const ()] {
            let at = at as u64;
            let Located::Module { module, bias } = objects.locate(Avma(at)) else { panic!("it is mapped") };
            assert!(module.row(Svma(at - bias)).unwrap().is_some());
        }
        assert!(matches!(objects.locate(Avma(8)), Located::Unmapped));
        let local = 0;
        assert!(
            matches!(objects.locate(Avma(&raw const local as u64)), Located::Unmapped),
            "a stack is no code"
        );
    }

    #[test]
    fn what_is_known_is_not_read_again() {
        let first = Objects::look(None);
        let second = Objects::look(Some(&first));
        assert_eq!(first.objects.len(), second.objects.len());
        assert!(first.objects.iter().zip(&second.objects).all(|(a, b)| Arc::ptr_eq(a, b)));
        assert_eq!(Objects::changes_now(), first.changes());
    }
}

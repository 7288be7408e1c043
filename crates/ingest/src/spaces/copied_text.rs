//! Text of a file that its process has moved to anonymous memory at the same addresses, to get huge pages (node's
//! `--use-largepages`, PHP's `opcache.huge_code_pages`, BOLT's `-hugify`).
//!
//! Such memory lies within the addresses that the file's program headers give to its code, and the file's other parts are still mapped around
//! it. JIT compilers never get such memory: the loader reserves these addresses for the file until all of it is unmapped.

use std::ops::Range;

use plumb_process::{Backing, FileId, FileKey, FileOffset, MapLine, Vma, parse_maps, read_memory};

use super::space::SpaceId;
use super::{AddressSpaces, is_memory};
use crate::Source;

/// Number of places at which the memory is compared with the file ...
const PLACES: u64 = 16;
/// ... and number of bytes compared at each.
const BYTES: usize = 64;
/// Most lines without a file in a maps file that are skipped on the way to the next one with a file.
const SKIPPED: usize = 16;
/// Smallest page size.
const PAGE: u64 = 4096;

impl AddressSpaces {
    /// The mappings at the addresses of a new mapping: the mapping itself, or, if it is memory with a copy of a file's text, parts
    /// that belong to the file. `lines`: all mappings of the process, if they were read.
    pub(crate) fn with_copied_text(
        &mut self,
        process: (u32, u32),
        space: SpaceId,
        mapping: Vma,
        lines: Option<&[MapLine<'_>]>,
    ) -> Vec<Vma> {
        if mapping.backing != Backing::Anonymous {
            return vec![mapping];
        }
        let range = mapping.start..mapping.end;
        let files = match (self.source, lines) {
            (Source::Live, Some(lines)) => self.files_around(process, &range, lines),
            _ => self.files_before(process, space, &range),
        };
        for (file, bias) in files {
            let parts = self.text_within(file, bias, &range);
            let is_copy = |part: &Vma| self.is_copy(process.0, file, part);
            if !parts.is_empty() && parts.iter().all(is_copy) {
                self.copied_text.extend(parts.iter().map(|&part| (process.0, part)));
                return with_gaps(mapping, parts);
            }
        }
        vec![mapping]
    }

    /// Files that had code at these addresses until now, with their bias. Files without another mapping are left out.
    fn files_before(
        &mut self,
        process: (u32, u32),
        space: SpaceId,
        range: &Range<u64>,
    ) -> Vec<(FileId, u64)> {
        let mappings = &self.spaces.get(space).mappings;
        let buried = mappings.mappings().iter().filter(|old| old.start < range.end && range.start < old.end);
        let mut files: Vec<(FileId, u64)> = buried.filter_map(|old| self.bias(old)).collect();
        files.dedup();
        if files.is_empty() || self.source != Source::Live {
            return files;
        }
        match plumb_process::mappings(process.0).filter(|text| !text.is_empty()) {
            Some(text) => {
                let lines: Vec<MapLine<'_>> = parse_maps(&text).collect();
                self.files_around(process, range, &lines)
            }
            // The process has ended.
            None => files,
        }
    }

    fn bias(&self, mapping: &Vma) -> Option<(FileId, u64)> {
        let Backing::File(file) = mapping.backing else { return None };
        let stated = self.code.with_elf(file, |elf| elf.stated(mapping.offset))??;
        Some((file, mapping.start.wrapping_sub(stated)))
    }

    /// The files mapped next to these addresses, with their bias.
    fn files_around(
        &mut self,
        process: (u32, u32),
        range: &Range<u64>,
        lines: &[MapLine<'_>],
    ) -> Vec<(FileId, u64)> {
        let below = lines.partition_point(|line| line.end <= range.start);
        let above = lines.partition_point(|line| line.start < range.end);
        let is_of_file = |line: &&MapLine<'_>| line.path.starts_with(b"/") && !is_memory(line.path);
        let (below, above) = (lines.get(..below).unwrap_or_default(), lines.get(above..).unwrap_or_default());
        let below = below.iter().rev().take(SKIPPED).find(is_of_file);
        let above = above.iter().take(SKIPPED).find(is_of_file);
        let mut files = Vec::new();
        for line in below.into_iter().chain(above) {
            let (backing, _) = self.backing(process, &(line.start..line.end), FileKey::of_line(line));
            let offset = FileOffset(line.offset);
            let found = self.bias(&Vma { start: line.start, end: line.end, offset, backing });
            files.extend(found.filter(|found| !files.contains(found)));
        }
        files
    }

    /// The parts of these addresses that contain code of a file with this bias.
    fn text_within(&self, file: FileId, bias: u64, range: &Range<u64>) -> Vec<Vma> {
        let of_segment = |(address, offset, size): (u64, FileOffset, u64)| {
            // Whole pages are mapped.
            let skipped = address % PAGE;
            let begin = address.wrapping_add(bias).wrapping_sub(skipped);
            let end = begin.checked_add(size.checked_add(skipped)?)?.checked_next_multiple_of(PAGE)?;
            let (start, end) = (begin.max(range.start), end.min(range.end));
            let offset = FileOffset(offset.0.wrapping_sub(skipped).wrapping_add(start.wrapping_sub(begin)));
            (start < end).then_some(Vma { start, end, offset, backing: Backing::File(file) })
        };
        let mut parts: Vec<Vma> =
            self.code.with_elf(file, |elf| elf.code().filter_map(of_segment).collect()).unwrap_or_default();
        parts.sort_by_key(|part| part.start);
        parts.dedup_by(|next, part| next.start < part.end);
        parts
    }

    /// Whether memory has the bytes of a file. If it can't be read, or was not written yet, the addresses decide; a few places
    /// may differ, for example at breakpoints.
    fn is_copy(&self, pid: u32, file: FileId, part: &Vma) -> bool {
        if self.source != Source::Live {
            return true;
        }
        let (mut same, mut other) = (0, 0);
        let step = ((part.end - part.start) / PLACES).max(BYTES as u64);
        for at in (part.start..part.end).step_by(step as usize) {
            let (mut memory, mut text) = ([0; BYTES], [0; BYTES]);
            let is_read = read_memory(pid, at, &mut memory) == BYTES
                && self.code.read_text(file, part.file_offset(at), &mut text);
            if is_read && memory != [0; BYTES] {
                *(if memory == text { &mut same } else { &mut other }) += 1;
            }
        }
        same >= other
    }
}

/// Splits a mapping into parts of a file and the rest.
fn with_gaps(mapping: Vma, parts: Vec<Vma>) -> Vec<Vma> {
    let (mut all, mut at) = (Vec::new(), mapping.start);
    let gap = |start, end| (start < end).then_some(Vma { start, end, ..mapping });
    for part in parts {
        all.extend(gap(at, part.start));
        at = part.end;
        all.push(part);
    }
    all.extend(gap(at, mapping.end));
    all
}

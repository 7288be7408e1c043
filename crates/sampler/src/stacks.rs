//! Counts samples by stack, and writes them as text.

#![allow(unsafe_code)]

use std::collections::HashMap;
use std::ffi::CStr;
use std::io::{self, Write};
use std::mem::MaybeUninit;

use plumb_unwind::End;

use crate::objects::Objects;
use crate::ring::{Frame, Stack};

/// Distinct stacks with their number of samples.
#[derive(Debug, Default)]
pub struct Stacks {
    counts: HashMap<(i32, Vec<Frame>, Option<&'static str>), u64>,
}

impl Stacks {
    /// Adds a sample of a thread.
    pub fn add(&mut self, tid: i32, stack: &Stack) {
        *self.counts.entry((tid, stack.frames.clone(), cut(stack.end))).or_default() +=
            u64::from(stack.weight);
    }

    /// Total weight of all samples.
    pub fn total(&self) -> u64 {
        self.counts.values().sum()
    }

    /// Writes one line per distinct stack, `root;…;leaf count`, for flame graph tools. A function without a dynamic symbol is written as
    /// `file+0xaddress`, for use with `addr2line`. A truncated stack begins with the reason.
    pub fn write_folded(&self, out: &mut dyn Write) -> io::Result<()> {
        let objects = Objects::look(None);
        let mut names: HashMap<u64, String> = HashMap::new();
        let mut lines: HashMap<String, u64> = HashMap::new();
        for ((_, frames, cut), count) in &self.counts {
            let mut line = cut.map_or_else(String::new, |cut| format!("[{cut}];"));
            for (index, frame) in frames.iter().rev().enumerate() {
                if index > 0 {
                    line.push(';');
                }
                let lookup = frame.pc.wrapping_sub(frame.is_return.into());
                line.push_str(names.entry(lookup).or_insert_with(|| name(&objects, lookup)));
            }
            *lines.entry(line).or_default() += count;
        }
        let mut lines: Vec<_> = lines.into_iter().collect();
        lines.sort_unstable();
        lines.iter().try_for_each(|(line, count)| writeln!(out, "{line} {count}"))
    }

    /// Writes one line per distinct stack of a thread, `tid count end address…` from the leaf on, with `*` before addresses that are not return
    /// addresses; then a line `maps:` and the process's mappings.
    pub fn write_addresses(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut lines: Vec<_> = self.counts.iter().collect();
        lines.sort_unstable();
        for ((tid, frames, cut), count) in lines {
            write!(out, "{tid} {count} {}", cut.unwrap_or("root"))?;
            for frame in frames {
                write!(out, " {}{:#x}", if frame.is_return { "" } else { "*" }, frame.pc)?;
            }
            writeln!(out)?;
        }
        writeln!(out, "maps:")?;
        out.write_all(&std::fs::read("/proc/self/maps")?)
    }
}

/// Reason for a truncated stack, in one word, or `None` if the stack is complete.
pub(crate) fn cut(end: End) -> Option<&'static str> {
    Some(match end {
        End::Root => return None,
        End::BeyondCopy | End::StackUnreadable => "stack-unreadable",
        End::NoUnwindInfo => "no-unwind-info",
        End::BadUnwindInfo => "bad-unwind-info",
        End::NotMapped => "not-mapped",
        End::ProbedReturn => "probed-return",
        End::FileUnreadable => "file-unreadable",
        End::RegisterUnknown => "register-unknown",
        End::NotAdvancing => "not-advancing",
        End::TooManyFrames => "too-many-frames",
    })
}

/// Name of the dynamic symbol at `at`, or the address in its file.
fn name(objects: &Objects, at: u64) -> String {
    let mut info = MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: `info` is live and all zeroes are valid for it; the loader only compares `at` with its own tables, and the names that it returns are
    // NUL-terminated and valid as long as their file is loaded.
    let symbol = unsafe {
        let found = libc::dladdr(at as *const libc::c_void, info.as_mut_ptr()) != 0;
        let symbol = info.assume_init().dli_sname;
        (found && !symbol.is_null()).then(|| CStr::from_ptr(symbol).to_string_lossy().into_owned())
    };
    symbol.map(|name| name.replace([';', '\n'], "_")).unwrap_or_else(|| match objects.place(at) {
        Some((path, address)) => {
            let path = String::from_utf8_lossy(path).into_owned();
            let file = match path.rsplit('/').next() {
                Some("") | None => program(),
                Some(file) => file.to_owned(),
            };
            format!("{file}+{address:#x}")
        }
        None => format!("{at:#x}"),
    })
}

/// File name of the program.
fn program() -> String {
    let path = std::env::current_exe().unwrap_or_default();
    path.file_name().map_or_else(|| "program".into(), |name| name.to_string_lossy().into_owned())
}

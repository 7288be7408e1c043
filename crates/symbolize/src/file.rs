//! Frames in ELF files: finds the recorded file and everything that goes with it, and looks the addresses up.

use std::path::{Path, PathBuf};

use object::elf::{SHT_DYNSYM, SHT_SYMTAB};
use plumb_profile::AddressSpace;

use crate::demangle::demangle;
use crate::elf::Image;
use crate::job::{Answer, FoundFunction, Job, Place};
use crate::options::Options;
use crate::summary::Missing;
use crate::symtab::Symtab;

/// Resolves the frames of a file.
pub(crate) fn solve(job: &Job, options: &Options) -> Answer {
    let mut answer = Answer::new(job);
    let Some(image) = open_recorded(job, options, &mut answer) else {
        return answer;
    };
    let mut symbols = None;
    for kind in [SHT_SYMTAB, SHT_DYNSYM] {
        match Symtab::read(&image, kind) {
            Ok(found) => symbols = symbols.or(found),
            Err(missing) => answer.miss(missing),
        }
    }
    let symbols = symbols.unwrap_or_default();
    answer.summary.functions = symbols.len();
    for &(frame, address) in &job.frames {
        let Some(address) = stated(job, &image, address) else { continue };
        if let Some(named) = symbols.find(address) {
            let function = FoundFunction {
                name: demangle(&named.linkage_name),
                linkage_name: named.linkage_name,
                start: Some(named.start),
                source_file: String::new(),
            };
            let function = answer.function(function);
            answer.set(frame, &[Place { function, file: 0, line: 0, inlined: false }]);
        }
    }
    answer
}

/// An address of the job as the file states it.
fn stated(job: &Job, image: &Image, address: u64) -> Option<u64> {
    match job.addresses {
        AddressSpace::Svma => Some(address),
        AddressSpace::FileOffset => image.address_of_offset(address),
        AddressSpace::Avma => None,
    }
}

/// The file that was recorded, from the first place where it still is.
fn open_recorded(job: &Job, options: &Options, answer: &mut Answer) -> Option<Image> {
    let mut reasons = Vec::new();
    for path in places(job, options) {
        match Image::open(&path) {
            Ok(image) if job.build_id.is_some() && image.build_id != job.build_id => {
                reasons.push(Missing::Replaced { path });
            }
            Ok(image) => {
                answer.summary.sources.push(path);
                return Some(image);
            }
            Err(missing) => reasons.push(missing),
        }
    }
    reasons.into_iter().for_each(|missing| answer.miss(missing));
    None
}

/// Where the recorded file may be, likeliest first.
fn places(job: &Job, options: &Options) -> Vec<PathBuf> {
    let mut places = options.images.get(&job.dso).cloned().unwrap_or_default();
    let relative = Path::new(&job.path).strip_prefix("/").unwrap_or(Path::new(&job.path));
    places.push(options.root.join(relative));
    for pid in &job.pids {
        places.push(options.proc.join(pid.to_string()).join("root").join(relative));
    }
    places
}

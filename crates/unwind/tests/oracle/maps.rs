//! Executable mappings of a traced process.

use std::collections::HashMap;
use std::ops::Range;
use std::rc::Rc;

use plumb_unwind::{Avma, CodeMap, Located, Module};

use super::ptrace::Tracee;
use crate::elf;

/// A file, or the vdso, with its unwind information.
pub struct Image {
    pub name: String,
    pub data: Vec<u8>,
    pub module: Module<Vec<u8>>,
}

/// An executable mapping.
#[derive(Clone)]
pub struct Mapping {
    pub range: Range<u64>,
    pub image: Option<Rc<Image>>,
    pub bias: u64,
}

/// All executable mappings, sorted by address.
#[derive(Default)]
pub struct Maps {
    pub mappings: Vec<Mapping>,
    images: HashMap<String, Option<Rc<Image>>>,
}

impl Maps {
    /// Reads the mappings again. Returns the ranges that changed.
    pub fn refresh(&mut self, tracee: &Tracee) -> Vec<Range<Avma>> {
        let text = std::fs::read_to_string(format!("/proc/{}/maps", tracee.pid())).unwrap_or_default();
        let mut mappings = Vec::new();
        for line in text.lines() {
            mappings.extend(self.mapping(line, tracee));
        }
        let same = |a: &Mapping, b: &Mapping| {
            a.range == b.range
                && a.bias == b.bias
                && a.image.as_ref().map(|i| &i.name) == b.image.as_ref().map(|i| &i.name)
        };
        let old = std::mem::replace(&mut self.mappings, mappings);
        let gone = old.iter().filter(|a| !self.mappings.iter().any(|b| same(a, b)));
        let come = self.mappings.iter().filter(|a| !old.iter().any(|b| same(a, b)));
        gone.chain(come).map(|mapping| Avma(mapping.range.start)..Avma(mapping.range.end)).collect()
    }

    fn mapping(&mut self, line: &str, tracee: &Tracee) -> Option<Mapping> {
        let mut fields = line.split_ascii_whitespace();
        let (start, end) = fields.next()?.split_once('-')?;
        let hex = |text| u64::from_str_radix(text, 16).ok();
        let range = hex(start)?..hex(end)?;
        if fields.next()?.as_bytes().get(2) != Some(&b'x') {
            return None;
        }
        let offset = hex(fields.next()?)?;
        let name = fields.nth(2).unwrap_or_default();
        let image = self.images.entry(name.to_owned()).or_insert_with(|| load(name, &range, tracee)).clone();
        let bias = image.as_ref().and_then(|image| {
            let stated = elf::stated_minus_offset(&image.data, offset)?.wrapping_add(offset);
            Some(range.start.wrapping_sub(stated))
        });
        Some(Mapping { range, image, bias: bias.unwrap_or(0) })
    }

    /// Returns the mapping that holds `pc`.
    pub fn at(&self, pc: u64) -> Option<&Mapping> {
        let index = self.mappings.partition_point(|mapping| mapping.range.start <= pc);
        self.mappings[..index].last().filter(|mapping| mapping.range.contains(&pc))
    }

    /// Returns the address of the symbol called `name`, in the first file that has it.
    pub fn address_of(&self, name: &str) -> Option<u64> {
        self.mappings.iter().find_map(|mapping| {
            let stated = elf::address_of(&mapping.image.as_ref()?.data, name)?;
            Some(stated.wrapping_add(mapping.bias))
        })
    }

    /// Returns the symbol or section at `pc`, without an offset, and the file.
    pub fn function(&self, pc: u64) -> String {
        let Some(mapping) = self.at(pc) else { return "no mapping".to_owned() };
        let Some(image) = &mapping.image else { return "anonymous memory".to_owned() };
        let symbol = elf::symbol(&image.data, pc.wrapping_sub(mapping.bias));
        let symbol = symbol.rsplit_once('+').map_or(&*symbol, |(symbol, _)| symbol);
        let file = image.name.rsplit('/').next().unwrap_or_default();
        format!("{symbol} of {file}")
    }

    /// Returns the file and symbol at `pc`, for messages.
    pub fn describe(&self, pc: u64) -> String {
        let Some(mapping) = self.at(pc) else { return format!("{pc:#x} in no mapping") };
        let Some(image) = &mapping.image else { return format!("{pc:#x} in anonymous memory") };
        let stated = pc.wrapping_sub(mapping.bias);
        format!("{} at {stated:#x} ({})", image.name, elf::symbol(&image.data, stated))
    }
}

fn load(name: &str, range: &Range<u64>, tracee: &Tracee) -> Option<Rc<Image>> {
    let data = if name == "[vdso]" {
        let mut data = vec![0; (range.end - range.start) as usize];
        let length = tracee.read(range.start, &mut data);
        data.truncate(length);
        data
    } else if name.starts_with('/') {
        std::fs::read(name).ok()?
    } else {
        return None;
    };
    let module = Module::new(elf::sections(&data)?);
    Some(Rc::new(Image { name: name.to_owned(), data, module }))
}

impl CodeMap for Maps {
    type Bytes = Vec<u8>;

    fn locate(&self, pc: Avma) -> Located<'_, Vec<u8>> {
        match self.at(pc.0) {
            None => Located::Unmapped,
            Some(Mapping { image: None, .. }) => Located::NoInfo,
            Some(Mapping { image: Some(image), bias, .. }) => {
                Located::Module { module: &image.module, bias: *bias }
            }
        }
    }
}

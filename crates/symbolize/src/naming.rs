//! Chooses the names of frames in ELF files between symbols and DWARF.
//!
//! A frame's outlined function has the name of the symbol that covers the address, as in perf, so that a clone
//! (`.cold`, `.isra.0`) is distinguished from its original; DWARF names it only if no symbol does. Inlined calls and lines
//! come from DWARF.

use std::collections::HashMap;
use std::rc::Rc;

use rustc_hash::FxHashMap;

use crate::demangle::readable_at_once;
use crate::dwarf::{self, Found};
use crate::job::{Answer, FoundFunction, FrameAddress, Place};
use crate::symbols::FileSymbols;

/// The functions of a file by their numbers in an answer, which must be the same for all calls.
#[derive(Default)]
pub(crate) struct Naming {
    /// Functions with a symbol, by start address.
    functions: HashMap<u64, u32>,
    /// Functions named by DWARF, by the identity of their name, which is held so that its address is not reused.
    inlined: FxHashMap<(*const dwarf::Name, Option<u64>), Numbered>,
}

/// A name and the number of its function.
type Numbered = (Rc<dwarf::Name>, u32);

impl Naming {
    /// Records a frame in the answer; `found` is what DWARF has for its address.
    pub fn frame(
        &mut self,
        symbols: &mut FileSymbols,
        answer: &mut Answer,
        at: FrameAddress,
        found: Option<&Found>,
    ) {
        let FrameAddress { address, frame, is_return } = at;
        let dwarf = found.map_or(&[][..], |found| &found.frames);
        let Some((outlined, inlined)) = dwarf.split_last() else {
            let mut function = self.outlined(symbols, answer, address, None);
            if function.is_none()
                && is_return
                && let Some(start) = symbols.begun_at(address)
            {
                function = self.outlined(symbols, answer, start, None);
            }
            match function {
                Some(function) => answer.set(frame, &[Place { function, file: 0, line: 0, inlined: false }]),
                // Frames of one function are grouped even if its name is unknown.
                None => symbols
                    .nameless_start(address)
                    .into_iter()
                    .for_each(|start| answer.set_start(frame, start)),
            }
            return;
        };
        let mut places = Vec::new();
        for place in inlined {
            let Some(name) = &place.name else { continue };
            let function = self.by_dwarf(answer, name, None);
            let file = answer.file(&place.file);
            places.push(Place { function, file, line: place.line, inlined: true });
        }
        if let Some(function) = self.outlined(symbols, answer, address, found) {
            let file = answer.file(&outlined.file);
            places.push(Place { function, file, line: outlined.line, inlined: false });
            answer.set(frame, &places);
        }
    }

    /// Returns the outlined function: from its symbol, otherwise from DWARF.
    fn outlined(
        &mut self,
        symbols: &mut FileSymbols,
        answer: &mut Answer,
        address: u64,
        found: Option<&Found>,
    ) -> Option<u32> {
        let name = found.and_then(|found| found.frames.last()?.name.as_ref());
        let Some(named) = symbols.find(address) else {
            return Some(self.by_dwarf(answer, name?, found.and_then(|found| found.start)));
        };
        if let Some(&function) = self.functions.get(&named.start) {
            return Some(function);
        }
        let function = FoundFunction {
            name: named.shown(),
            linkage_name: if named.near.is_some() { named.shown() } else { named.linkage_name },
            start: Some(named.start),
            source_file: name.map(|name| name.source_file.clone()).unwrap_or_default(),
            start_line: name.map_or(0, |name| name.start_line),
        };
        let function = answer.function(function);
        self.functions.insert(named.start, function);
        Some(function)
    }

    fn by_dwarf(&mut self, answer: &mut Answer, name: &Rc<dwarf::Name>, start: Option<u64>) -> u32 {
        let key = (Rc::as_ptr(name), start);
        if let Some(&(_, function)) = self.inlined.get(&key) {
            return function;
        }
        let readable = match (name.linkage_name.as_str(), name.name.as_str()) {
            ("", "") => "(no name in DWARF)".to_owned(),
            ("", name) => name.to_owned(),
            (linkage_name, _) => readable_at_once(linkage_name),
        };
        let function = FoundFunction {
            name: readable,
            linkage_name: name.linkage_name.clone(),
            start,
            source_file: name.source_file.clone(),
            start_line: name.start_line,
        };
        let function = answer.function(function);
        self.inlined.insert(key, (Rc::clone(name), function));
        function
    }
}

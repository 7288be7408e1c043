//! Reads costs of lines and calls, as written by Valgrind's tool, Xdebug and plumb.
//!
//! <https://valgrind.org/docs/manual/cl-format.html>.

use std::collections::HashMap;

use plumb_profile::Profile;

use super::graph::{Function, Graph};
use super::paths;
use crate::escape::unescaped;
use crate::foreign::{Assembly, ForeignError};

/// Largest number of events in a file.
const MOST_EVENTS: usize = 64;

/// Reads the file.
pub(crate) fn read(bytes: &[u8]) -> Result<Profile, ForeignError> {
    let text = String::from_utf8_lossy(bytes);
    let mut reading = Reading::default();
    for (at, line) in text.lines().enumerate() {
        reading.line(line.trim()).map_err(|message| ForeignError::Line { line: at + 1, message })?;
    }
    let mut assembly = Assembly::new();
    let mut recorder = "callgrind";
    if reading.creator.starts_with("plumb ") {
        recorder = &reading.creator;
    }
    assembly.profile.meta.command = reading.command.split_whitespace().map(str::to_owned).collect();
    assembly.profile.meta.untold.samples = true;
    let left_out = paths::add(&mut assembly, &reading.graph, &reading.events)
        .map_err(|message| ForeignError::Row { table: "functions", row: 0, message: message.into() })?;
    let warnings = &mut assembly.profile.meta.warnings;
    warnings.push(
        "imported from callgrind's format, which tells costs of functions and of calls, not stacks: callers of callers are estimates; it tells \
         neither times, threads, processors nor samples"
            .into(),
    );
    if left_out > 0.0005 {
        warnings.push(format!("{:.1}% of the costs are shown without callers", left_out * 100.0));
    }
    Ok(assembly.finish(recorder))
}

/// Names of files, objects or functions by their numbers.
type Names = HashMap<u64, String>;

#[derive(Default)]
struct Reading {
    graph: Graph,
    /// Name and unit.
    events: Vec<(String, String)>,
    units: HashMap<String, String>,
    command: String,
    creator: String,
    /// Whether positions include instructions, and lines.
    has_instructions: bool,
    has_no_lines: bool,
    /// The last position of each kind.
    last: [u64; 2],
    objects: Names,
    files: Names,
    functions: Names,
    at: Place,
    called: Place,
    /// The callee, if the next cost line is that of a call.
    callee: Option<usize>,
}

/// The current file and function, to which lines refer.
#[derive(Default)]
struct Place {
    object: String,
    file: String,
    function: Option<usize>,
}

impl Reading {
    fn line(&mut self, line: &str) -> Result<(), &'static str> {
        if line.is_empty() || line.starts_with('#') {
            return Ok(());
        }
        if line.starts_with(|first: char| first.is_ascii_digit() || "+-*".contains(first)) {
            return self.costs(line);
        }
        if let Some((key, value)) = line.split_once('=')
            && key.bytes().all(|byte| byte.is_ascii_alphabetic())
        {
            return self.position(key, value);
        }
        match line.split_once(':') {
            Some((key, value)) => self.header(key, value.trim()),
            None => Err("neither costs, nor a name, nor a header"),
        }
    }

    fn header(&mut self, key: &str, value: &str) -> Result<(), &'static str> {
        match key {
            "version" if value != "1" => return Err("a version of the format other than 1"),
            "creator" => self.creator = value.into(),
            "cmd" => self.command = unescaped(value).into_owned(),
            "positions" => {
                self.has_instructions = value.split_whitespace().any(|word| word == "instr");
                self.has_no_lines = !value.split_whitespace().any(|word| word == "line");
            }
            "event" => {
                // In plumb's own form: `name : long name (unit)`.
                if let Some((name, long)) = value.split_once(" : ")
                    && let Some((_, unit)) = long.strip_suffix(')').and_then(|long| long.rsplit_once('('))
                {
                    self.units.insert(name.into(), unescaped(unit).into_owned());
                }
            }
            "events" => {
                let names: Vec<&str> = value.split_whitespace().take(MOST_EVENTS + 1).collect();
                if names.len() > MOST_EVENTS || (!self.events.is_empty() && self.events.len() != names.len())
                {
                    return Err("too many events, or others than before");
                }
                let event = |name: &&str| {
                    (unescaped(name).into_owned(), self.units.get(*name).cloned().unwrap_or_default())
                };
                self.events = names.iter().map(event).collect();
            }
            _ => {}
        }
        Ok(())
    }

    fn position(&mut self, key: &str, value: &str) -> Result<(), &'static str> {
        match key {
            "ob" => self.at.object = name(&mut self.objects, value)?,
            "fl" | "fi" | "fe" => self.at.file = name(&mut self.files, value)?,
            "fn" => {
                let function = self.function(value, &self.at.object.clone(), &self.at.file.clone(), true)?;
                self.at.function = Some(function);
            }
            "cob" => self.called.object = name(&mut self.objects, value)?,
            "cfi" | "cfl" => self.called.file = name(&mut self.files, value)?,
            "cfn" => {
                let of = |called: &str, own: &str| {
                    if called.is_empty() { own.to_owned() } else { called.to_owned() }
                };
                let object = of(&self.called.object, &self.at.object);
                let file = of(&self.called.file, &self.at.file);
                self.called.function = Some(self.function(value, &object, &file, false)?);
            }
            "calls" => {
                let called = std::mem::take(&mut self.called);
                self.callee = Some(called.function.ok_or("calls of no function")?);
            }
            // Jumps have no cost.
            _ => {}
        }
        Ok(())
    }

    /// Returns the function with that name; a number distinguishes functions of the same name.
    fn function(
        &mut self,
        value: &str,
        object: &str,
        file: &str,
        is_own: bool,
    ) -> Result<usize, &'static str> {
        let number = number(value).map(|(number, _)| number);
        let name = name(&mut self.functions, value)?;
        let function =
            Function { name: unescaped(&name).into_owned(), file: known(file), object: known(object) };
        Ok(self.graph.function(number, function, is_own))
    }

    /// Reads a cost line: of the function itself, or of a call.
    fn costs(&mut self, line: &str) -> Result<(), &'static str> {
        let mut words = line.split_ascii_whitespace();
        let mut at = [0; 2];
        for (kind, is_there) in [(0, self.has_instructions), (1, !self.has_no_lines)] {
            if is_there {
                let word = words.next().ok_or("a position is missing")?;
                self.last[kind] = position(word, self.last[kind]).ok_or("a position that is no number")?;
                at[kind] = self.last[kind];
            }
        }
        let costs = words.map(|word| word.parse().ok()).collect::<Option<Vec<u64>>>();
        let costs = costs.filter(|costs| costs.len() <= self.events.len());
        let costs = costs.ok_or("not as many numbers as there are events")?;
        let function = self.at.function.ok_or("costs of no function")?;
        let line = u32::try_from(at[1]).unwrap_or(0);
        match self.callee.take() {
            Some(callee) => self.graph.call(function, callee, line, &costs),
            None => {
                self.graph.own(function, known(&self.at.file), line, &costs);
            }
        }
        Ok(())
    }
}

/// A file or an object; empty if it is not known.
fn known(text: &str) -> String {
    if text == "???" { String::new() } else { unescaped(text).into_owned() }
}

/// Parses `(3) name` or `(3)`: returns the number, and the rest.
fn number(value: &str) -> Option<(u64, &str)> {
    let (number, rest) = value.strip_prefix('(')?.split_once(')')?;
    Some((number.parse().ok()?, rest.trim()))
}

/// Returns the name in `(3) name`, `(3)` or `name`.
fn name(names: &mut Names, value: &str) -> Result<String, &'static str> {
    match number(value) {
        None => Ok(value.into()),
        Some((number, "")) => names.get(&number).cloned().ok_or("a number that no name was told for"),
        Some((number, name)) => {
            names.insert(number, name.into());
            Ok(name.into())
        }
    }
}

/// Parses a position, which may be relative to the last one.
fn position(word: &str, last: u64) -> Option<u64> {
    let number = |text: &str| match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    };
    match word.as_bytes().first()? {
        b'*' => Some(last),
        b'+' => last.checked_add(number(&word[1..])?),
        b'-' => last.checked_sub(number(&word[1..])?),
        _ => number(word),
    }
}

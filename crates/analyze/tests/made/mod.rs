//! Profiles made by hand for tests, from stacks written as text.
//!
//! A stack is its frames from the outermost to the innermost with `;` between them. A frame is `function@file`, with
//! `outer+inlined+deeper@file` for inlined calls, `name:12@file` for line 12 of `name.c`, `vfs_read@k` for the
//! kernel, `main@py` for a function of a Python program, `0x1234@file` without a symbol and `!` for a marker of a stack deeper
//! than its copy.

#![allow(clippy::unwrap_used, reason = "a bad stack text is a bad test")]

use plumb_profile::*;

/// A profile in the making.
#[derive(Default)]
pub struct Made {
    pub profile: Profile,
    event: Option<EventId>,
    syscall: Option<u32>,
    time_ns: u64,
    functions: u64,
}

impl Made {
    pub fn new() -> Self {
        let mut made = Made { time_ns: 1_000_000_000, ..Made::default() };
        made.event("cpu-clock", "ns");
        made.profile.meta.start_ns = 1_000_000_000;
        made
    }

    /// Later samples are of this event.
    pub fn event(&mut self, name: &str, unit: &str) -> &mut Self {
        let event = Event { name: self.profile.strings.add(name), unit: self.profile.strings.add(unit) };
        self.event = Some(self.profile.events.push(event));
        self
    }

    /// Later samples are known to have interrupted this system call.
    #[allow(dead_code, reason = "not every test that uses this file asks for it")]
    pub fn syscall(&mut self, number: Option<u32>) -> &mut Self {
        self.syscall = number;
        self
    }

    /// Appends a sample, 1 ms after the one before. `who` is `comm/pid/tid`.
    pub fn sample(&mut self, who: &str, stack: &str, weight: u64) -> &mut Self {
        let texts: Vec<&str> = stack.split(';').filter(|text| !text.is_empty()).rev().collect();
        let frames: Vec<FrameId> =
            texts.iter().enumerate().map(|(depth, text)| self.frame(text, depth > 0)).collect();
        let sample = Sample {
            time_ns: self.time_ns,
            thread: self.thread(who),
            cpu: (self.time_ns / 1_000_000 % 2) as u32,
            event: self.event.unwrap(),
            stack: self.profile.add_stack(&frames),
            syscall: self.syscall,
            weight,
        };
        self.time_ns += 1_000_000;
        self.profile.samples.push(sample);
        self
    }

    fn thread(&mut self, who: &str) -> ThreadId {
        let mut parts = who.split('/');
        let comm = self.profile.strings.add(parts.next().unwrap());
        let pid = parts.next().map_or(100, |pid| pid.parse().unwrap());
        let tid = parts.next().map_or(pid, |tid| tid.parse().unwrap());
        let same =
            |t: &Thread| t.comm == comm && t.tid == tid && self.profile.processes[t.process].pid == pid;
        if let Some((id, _)) = self.profile.threads.iter().find(|(_, thread)| same(thread)) {
            return id;
        }
        let exe = self.profile.strings.empty();
        let process = self.profile.processes.push(Process { pid, ppid: 1, exe });
        self.profile.threads.push(Thread { process, tid, comm })
    }

    fn frame(&mut self, text: &str, is_return: bool) -> FrameId {
        if text == "!" {
            return self.profile.frames.add(Frame::marker(Truncation::CopyTooShort, None));
        }
        let (names, file) = text.split_once('@').unwrap();
        let kernel = file == "k";
        let path = match file {
            "k" => "[kernel.kallsyms]".to_owned(),
            "py" => "[python]".to_owned(),
            file => format!("/opt/{file}"),
        };
        let dso = self.profile.dsos.add(Dso {
            path: self.profile.strings.add(&path),
            build_id: None,
            kind: match file {
                "k" => DsoKind::Kernel,
                "py" => DsoKind::Script,
                _ => DsoKind::File,
            },
            addresses: match file {
                "k" => AddressSpace::Avma,
                "py" => AddressSpace::Line,
                _ => AddressSpace::Svma,
            },
        });
        let plain = names.strip_prefix("0x").map(|hex| u64::from_str_radix(hex, 16).unwrap());
        let text_id = self.profile.strings.add(text);
        let address = plain.unwrap_or(0x1_0000 + 0x10 * text_id.index() as u64);
        let kind = if kernel { FrameKind::Kernel } else { FrameKind::User };
        let frame = Frame { kind, dso: Some(dso), address: Address(address), is_return, found: Found::Cfi };
        let id = self.profile.frames.add(frame);
        if plain.is_none() {
            let lines: Vec<Line> =
                names.split('+').enumerate().map(|(depth, name)| self.line(name, dso, depth > 0)).collect();
            let innermost_first: Vec<Line> = lines.into_iter().rev().collect();
            self.profile.symbols.set(id, &innermost_first);
        }
        id
    }

    fn line(&mut self, name: &str, dso: DsoId, inlined: bool) -> Line {
        let (name, line) = match name.rsplit_once(':') {
            Some((name, line)) if line.parse::<u32>().is_ok() => (name, line.parse().unwrap()),
            _ => (name, 0),
        };
        let strings = &mut self.profile.strings;
        let empty = strings.empty();
        let file = if line > 0 { strings.add(&format!("/src/{name}.c")) } else { empty };
        let name = strings.add(name);
        let known = self.profile.symbols.functions.iter().find(|(_, function)| {
            function.name == name && function.dso == Some(dso) && function.start.is_none() == inlined
        });
        let function = match known {
            Some((id, _)) => id,
            None => {
                self.functions += 1;
                let start = (!inlined).then_some(Address(0x1000 * self.functions));
                let function =
                    Function { name, linkage_name: empty, dso: Some(dso), start, source_file: file };
                self.profile.symbols.functions.add(function)
            }
        };
        Line { function, file, line, inlined }
    }
}

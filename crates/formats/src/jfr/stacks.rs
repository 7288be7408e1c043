//! Converts constants of a chunk to distinct frames, stacks and threads of the profile. Invariant: names together are a small multiple of
//! the file, although many methods may be of one class with a long name.

use std::collections::HashMap;

use plumb_profile::{FrameId, FrameKind, StackId, ThreadId, Truncation};

use super::chunk::Chunk;
use super::value::Value;
use crate::foreign::{Assembly, ForeignError, Place};

/// Placeholder for the file of a Java method, which the format lacks.
const JAVA: &str = "[java]";

/// Bytes of names allowed for any file.
const NAMES_FLOOR: usize = 16 << 20;

/// Additional bytes of names allowed per byte of the file.
const NAMES_GROWTH: usize = 8;

/// Number of bytes of names that may still be created.
pub(super) struct NameBudget(usize);

impl NameBudget {
    pub fn of(file: &[u8]) -> Self {
        Self(file.len().saturating_mul(NAMES_GROWTH).saturating_add(NAMES_FLOOR))
    }

    fn spend(&mut self, length: usize) -> Result<(), ForeignError> {
        let message = || "its names are longer than a file of this size can need".to_owned();
        self.0 =
            self.0.checked_sub(length).ok_or_else(|| ForeignError::Jfr { offset: 0, message: message() })?;
        Ok(())
    }
}

/// The profile's rows for a chunk's constants. Other chunks number constants differently.
#[derive(Default)]
pub(super) struct ChunkStacks {
    /// Whether native frames have their library as class, as async-profiler's do. The JDK's are Java's own native methods.
    libraries: bool,
    stacks: HashMap<i64, Option<StackId>>,
    frames: HashMap<(i64, i64, i64), FrameId>,
    methods: HashMap<i64, Method>,
    classes: HashMap<i64, String>,
    threads: HashMap<i64, ThreadId>,
    frame_types: HashMap<i64, FrameType>,
}

/// A method's name, with its class or library.
#[derive(Clone, Default)]
struct Method {
    class: String,
    name: String,
}

/// The kind of code of a frame.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FrameType {
    Java,
    Native,
    Kernel,
}

impl ChunkStacks {
    pub fn new(libraries: bool) -> Self {
        Self { libraries, ..Self::default() }
    }

    /// Returns the stack of an event.
    pub fn stack(
        &mut self,
        chunk: &Chunk<'_>,
        event: &Value<'_>,
        assembly: &mut Assembly,
        names: &mut NameBudget,
    ) -> Result<Option<StackId>, ForeignError> {
        let Some(&Value::Constant(class, number)) = event.field(&chunk.types, "stackTrace") else {
            return Ok(None);
        };
        if let Some(&known) = self.stacks.get(&number) {
            return Ok(known);
        }
        let mut frames = Vec::new();
        if let Some(trace) = chunk.constant(class, number)? {
            if let Some(Value::Array(all)) = trace.field(&chunk.types, "frames") {
                for frame in all {
                    frames.push(self.frame(chunk, frame, assembly, names)?);
                }
            }
            if chunk.number(&trace, "truncated") != 0 {
                frames.push(assembly.marker("[frame limit reached]").unwrap_or_else(|| {
                    let marker = plumb_profile::Frame::marker(Truncation::TooManyFrames, None);
                    assembly.profile.frames.add(marker)
                }));
            }
        }
        let stack = assembly.profile.add_stack(&frames);
        self.stacks.insert(number, stack);
        Ok(stack)
    }

    fn frame(
        &mut self,
        chunk: &Chunk<'_>,
        frame: &Value<'_>,
        assembly: &mut Assembly,
        names: &mut NameBudget,
    ) -> Result<FrameId, ForeignError> {
        let [method, line, kind] = ["method", "lineNumber", "type"].map(|name| chunk.number(frame, name));
        if let Some(&known) = self.frames.get(&(method, line, kind)) {
            return Ok(known);
        }
        let code = match self.frame_types.get(&kind) {
            Some(&known) => known,
            None => {
                let code = match &*chunk.text(frame, "type")? {
                    "Kernel" => FrameType::Kernel,
                    "Native" | "C++" if self.libraries => FrameType::Native,
                    _ => FrameType::Java,
                };
                self.frame_types.insert(kind, code);
                code
            }
        };
        if !self.methods.contains_key(&method) {
            let found = self.method(chunk, frame)?;
            self.methods.insert(method, found);
        }
        let Method { class, name } = &self.methods[&method];
        names.spend(class.len() + name.len() + 1)?;
        let line = u32::try_from(line).unwrap_or(0);
        let place = |name| Place { name, line, ..Place::default() };
        let id = match code {
            FrameType::Kernel => assembly.frame(FrameKind::Kernel, "", &[place(name)]),
            FrameType::Native => assembly.frame(FrameKind::User, class, &[place(name)]),
            FrameType::Java if class.is_empty() => assembly.frame(FrameKind::User, "", &[place(name)]),
            FrameType::Java => assembly.frame(FrameKind::User, JAVA, &[place(&format!("{class}.{name}"))]),
        };
        self.frames.insert((method, line.into(), kind), id);
        Ok(id)
    }

    fn method(&mut self, chunk: &Chunk<'_>, frame: &Value<'_>) -> Result<Method, ForeignError> {
        let Some(method) = chunk.field(frame, "method")? else {
            return Ok(Method { name: "[unknown method]".into(), ..Method::default() });
        };
        let number = chunk.number(&method, "type");
        let class = match self.classes.get(&number) {
            Some(known) => known.clone(),
            None => {
                let class = chunk.field(&method, "type")?;
                let class = class.map_or(Ok(String::new()), |class| chunk.text(&class, "name"))?;
                let class = readable(&class);
                self.classes.insert(number, class.clone());
                class
            }
        };
        Ok(Method { class, name: chunk.text(&method, "name")? })
    }

    /// Returns the thread that an event's field refers to.
    pub fn thread(
        &mut self,
        chunk: &Chunk<'_>,
        event: &Value<'_>,
        pid: Option<u32>,
        assembly: &mut Assembly,
        names: &mut NameBudget,
    ) -> Result<ThreadId, ForeignError> {
        let field = match event.field(&chunk.types, "sampledThread") {
            Some(_) => "sampledThread",
            None => "eventThread",
        };
        let number = chunk.number(event, field);
        if let Some(&known) = self.threads.get(&number) {
            return Ok(known);
        }
        let (mut tid, mut name) = (None, String::new());
        if let Some(thread) = chunk.field(event, field)? {
            tid = u32::try_from(chunk.number(&thread, "osThreadId")).ok().filter(|&tid| tid > 0);
            name = chunk.text(&thread, "javaName")?;
            if name.is_empty() {
                name = chunk.text(&thread, "osName")?;
            }
        }
        names.spend(name.len())?;
        let id = assembly.thread(pid, tid, &name, "java");
        self.threads.insert(number, id);
        Ok(id)
    }
}

/// Returns a class name as in Java. Classes generated at run time have an address or a number in their names, which differs between runs.
fn readable(class: &str) -> String {
    if let Some(at) = class.find("$$Lambda") {
        return class[..at + "$$Lambda".len()].replace('/', ".");
    }
    let address = ["/0x", "+0x", ".0x"].iter().filter_map(|mark| class.rfind(mark)).max();
    class[..address.unwrap_or(class.len())].replace('/', ".")
}

#[cfg(test)]
mod tests {
    use super::readable;

    #[test]
    fn classes_made_at_run_time_have_the_same_name_in_each_run() {
        assert_eq!(readable("java/lang/Thread"), "java.lang.Thread");
        assert_eq!(readable("a/Load$$Lambda$14/0x00000008000c0a30"), "a.Load$$Lambda");
        assert_eq!(readable("Load$$Lambda.0x00007f1c01000a00"), "Load$$Lambda");
        assert_eq!(
            readable("java/lang/invoke/LambdaForm$MH+0x0000000800c00400"),
            "java.lang.invoke.LambdaForm$MH"
        );
    }
}

//! Where the members of CPython's structures are, in bytes. A test compares them with what a C compiler says.

/// The structures of one version.
#[derive(Debug)]
pub(super) struct Layout {
    pub(super) runtime: Runtime,
    pub(super) interpreter: Interpreter,
    pub(super) thread: Thread,
    pub(super) running: Running,
    pub(super) frame: Frame,
    pub(super) code: Code,
    pub(super) object: Object,
}

/// `_PyRuntimeState`
#[derive(Debug)]
pub(super) struct Runtime {
    /// `interpreters.head`
    pub(super) interpreters: u64,
}

/// `PyInterpreterState`
#[derive(Debug)]
pub(super) struct Interpreter {
    pub(super) next: u64,
    /// `threads.head`
    pub(super) threads: u64,
}

/// `PyThreadState`
#[derive(Debug)]
pub(super) struct Thread {
    pub(super) next: u64,
    pub(super) cframe: u64,
    /// `native_thread_id`
    pub(super) number: u64,
}

/// `_PyCFrame`
#[derive(Debug)]
pub(super) struct Running {
    /// `current_frame`
    pub(super) frame: u64,
}

/// `_PyInterpreterFrame`
#[derive(Debug)]
pub(super) struct Frame {
    /// `f_code`
    pub(super) code: usize,
    /// `previous`
    pub(super) caller: usize,
    /// `prev_instr`
    pub(super) instruction: usize,
    pub(super) is_entry: usize,
    pub(super) owner: usize,
}

/// `PyCodeObject`
#[derive(Debug)]
pub(super) struct Code {
    /// `co_firstlineno`
    pub(super) first_line: usize,
    /// `co_filename`
    pub(super) file: usize,
    /// `co_qualname`
    pub(super) name: usize,
    /// `co_linetable`
    pub(super) lines: usize,
    /// `_co_firsttraceable`
    pub(super) first_traceable: usize,
    /// `co_code_adaptive`
    pub(super) instructions: usize,
}

/// `PyVarObject`, `PyBytesObject`, `PyASCIIObject` and `PyCompactUnicodeObject`
#[derive(Debug)]
pub(super) struct Object {
    /// `ob_size` of bytes
    pub(super) size: u64,
    /// `ob_sval` of bytes
    pub(super) bytes: u64,
    /// `length` of a string
    pub(super) length: usize,
    /// `state` of a string
    pub(super) state: usize,
    /// Where the characters of a string are, if they are ASCII.
    pub(super) ascii: u64,
    /// The same if they are not.
    pub(super) wide: u64,
}

/// Bytes of a frame that are read.
pub(super) const FRAME: usize = 72;
/// Bytes of a code object that are read.
pub(super) const CODE: usize = 184;
/// The bytes of a code object by which it is told from others.
const IDENTITY: std::ops::Range<usize> = 16..144;
/// Of these, `co_warmup` and `_co_linearray_entry_size` change.
const CHANGING: std::ops::Range<usize> = 52..56;

/// A hash of what does not change in a code object: its sizes, flags and numbers, and where all that it refers to is. The
/// kernel's programs do the same (crates/capture-bpf/bpf/python.h).
pub(super) fn identity(code: &[u8; CODE]) -> u32 {
    let mut fixed = *code;
    fixed[CHANGING].fill(0);
    let words = fixed[IDENTITY].as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word));
    let hash = words.fold(0_u64, |hash, word| {
        let hash = (hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        hash ^ hash >> 29
    });
    (hash >> 32) as u32
}

/// `FRAME_OWNED_BY_GENERATOR`
pub(super) const OWNED_BY_GENERATOR: u8 = 1;

/// Version 3.11.
pub(super) static V3_11: Layout = Layout {
    runtime: Runtime { interpreters: 40 },
    interpreter: Interpreter { next: 0, threads: 16 },
    thread: Thread { next: 8, cframe: 56, number: 160 },
    running: Running { frame: 8 },
    frame: Frame { code: 32, caller: 48, instruction: 56, is_entry: 68, owner: 69 },
    code: Code { first_line: 72, file: 112, name: 128, lines: 136, first_traceable: 168, instructions: 184 },
    object: Object { size: 16, bytes: 32, length: 16, state: 32, ascii: 48, wide: 72 },
};

/// The structures of a version (`PY_VERSION_HEX`), if they are known.
pub(super) fn of(version: u32) -> Option<&'static Layout> {
    (version >> 16 == 0x030b).then_some(&V3_11)
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::process::Command;

    use super::*;

    const PROGRAM: &str = r#"
        #define Py_BUILD_CORE 1
        #include <Python.h>
        #include <internal/pycore_runtime.h>
        #include <internal/pycore_interp.h>
        #include <internal/pycore_frame.h>
        #include <internal/pycore_code.h>
        #include <stddef.h>
        #include <stdio.h>
        #define O(t, m) printf("%zu ", offsetof(t, m))
        int main(void) {
            O(_PyRuntimeState, interpreters.head);
            O(PyInterpreterState, next); O(PyInterpreterState, threads.head);
            O(PyThreadState, next); O(PyThreadState, cframe); O(PyThreadState, native_thread_id);
            O(_PyCFrame, current_frame);
            O(_PyInterpreterFrame, f_code); O(_PyInterpreterFrame, previous); O(_PyInterpreterFrame, prev_instr);
            O(_PyInterpreterFrame, is_entry); O(_PyInterpreterFrame, owner);
            O(PyCodeObject, co_firstlineno); O(PyCodeObject, co_filename); O(PyCodeObject, co_qualname);
            O(PyCodeObject, co_linetable); O(PyCodeObject, _co_firsttraceable); O(PyCodeObject, co_code_adaptive);
            O(PyBytesObject, ob_base.ob_size); O(PyBytesObject, ob_sval);
            O(PyASCIIObject, length); O(PyASCIIObject, state);
            printf("%zu %zu %d ", sizeof(PyASCIIObject), sizeof(PyCompactUnicodeObject), FRAME_OWNED_BY_GENERATOR);
            O(PyVarObject, ob_size); O(PyCodeObject, co_warmup);
            printf("%zu ", offsetof(PyCodeObject, _co_linearray_entry_size) + sizeof(short));
            O(PyCodeObject, co_weakreflist);
        }
    "#;

    #[test]
    fn offsets_are_those_of_the_headers() {
        let headers = "/usr/include/python3.11";
        if !Path::new(headers).join("internal/pycore_frame.h").exists() {
            eprintln!("skipped: no headers of Python 3.11 (Debian: libpython3.11-dev)");
            return;
        }
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/tmp/interpreters");
        std::fs::create_dir_all(&folder).unwrap();
        let (source, program) = (folder.join("offsets.c"), folder.join("offsets"));
        std::fs::write(&source, PROGRAM).unwrap();
        let mut gcc = Command::new("gcc");
        assert!(gcc.arg("-I").arg(headers).arg(&source).arg("-o").arg(&program).status().unwrap().success());
        let said = String::from_utf8(Command::new(&program).output().unwrap().stdout).unwrap();
        let Layout { runtime, interpreter, thread, running, frame, code, object } = &V3_11;
        let ours = [
            runtime.interpreters,
            interpreter.next,
            interpreter.threads,
            thread.next,
            thread.cframe,
            thread.number,
            running.frame,
            frame.code as u64,
            frame.caller as u64,
            frame.instruction as u64,
            frame.is_entry as u64,
            frame.owner as u64,
            code.first_line as u64,
            code.file as u64,
            code.name as u64,
            code.lines as u64,
            code.first_traceable as u64,
            code.instructions as u64,
            object.size,
            object.bytes,
            object.length as u64,
            object.state as u64,
            object.ascii,
            object.wide,
            OWNED_BY_GENERATOR.into(),
            IDENTITY.start as u64,
            CHANGING.start as u64,
            CHANGING.end as u64,
            IDENTITY.end as u64,
        ];
        let said: Vec<u64> = said.split_whitespace().map(|number| number.parse().unwrap()).collect();
        assert_eq!(said, ours);
    }
}

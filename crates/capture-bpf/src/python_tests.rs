//! What bpf/python.h says of CPython's structures is what a C compiler makes of Python's own headers.

use std::path::Path;
use std::process::Command;

const PROGRAM: &str = r#"
    #define Py_BUILD_CORE 1
    #include <Python.h>
    #include <internal/pycore_runtime.h>
    #include <internal/pycore_interp.h>
    #include <internal/pycore_frame.h>
    #include <stddef.h>
    #define IS(name, type, member) _Static_assert(name == offsetof(type, member), #name)
    IS(PY_RUNTIME_CURRENT, _PyRuntimeState, gilstate.tstate_current);
    IS(PY_RUNTIME_INTERPRETERS, _PyRuntimeState, interpreters.head);
    IS(PY_INTERPRETER_NEXT, PyInterpreterState, next);
    IS(PY_INTERPRETER_THREADS, PyInterpreterState, threads.head);
    IS(PY_THREAD_NEXT, PyThreadState, next);
    IS(PY_THREAD_CFRAME, PyThreadState, cframe);
    IS(PY_THREAD_ID, PyThreadState, thread_id);
    IS(PY_CFRAME_FRAME, _PyCFrame, current_frame);
    IS(PY_CFRAME_PREVIOUS, _PyCFrame, previous);
    IS(PY_FRAME_CODE, _PyInterpreterFrame, f_code);
    IS(PY_FRAME_PREVIOUS, _PyInterpreterFrame, previous);
    IS(PY_FRAME_INSTRUCTION, _PyInterpreterFrame, prev_instr);
    IS(PY_FRAME_ENTRY, _PyInterpreterFrame, is_entry);
    IS(PY_FRAME_OWNER, _PyInterpreterFrame, owner);
    _Static_assert(PY_OWNED_BY_GENERATOR == FRAME_OWNED_BY_GENERATOR, "owner");
    /* What is read at once. */
    IS(PY_FRAME_CODE + 8, _PyInterpreterFrame, frame_obj);
    IS(PY_FRAME_CODE + 16, _PyInterpreterFrame, previous);
    IS(PY_FRAME_CODE + 24, _PyInterpreterFrame, prev_instr);
    IS(PY_FRAME_CODE + 36, _PyInterpreterFrame, is_entry);
    IS(PY_FRAME_CODE + 37, _PyInterpreterFrame, owner);
    IS(PY_CFRAME_FRAME + 8, _PyCFrame, previous);
    /* What a code object is told by: all but what changes. */
    IS(PY_CODE_IDENTITY, PyVarObject, ob_size);
    IS(PY_CODE_IDENTITY + 4 * 8 + 4, PyCodeObject, co_warmup);
    IS(PY_CODE_IDENTITY + 4 * 8 + 6, PyCodeObject, _co_linearray_entry_size);
    IS(PY_CODE_IDENTITY + 16 * 8, PyCodeObject, co_weakreflist);
    IS(PY_CODE_FILE, PyCodeObject, co_filename);
    IS(PY_CODE_NAME, PyCodeObject, co_qualname);
    IS(PY_CODE_LINES, PyCodeObject, co_linetable);
"#;

#[test]
fn offsets_are_those_of_the_headers() {
    let headers = "/usr/include/python3.11";
    if !Path::new(headers).join("internal/pycore_frame.h").exists() {
        eprintln!("skipped: no headers of Python 3.11 (Debian: libpython3.11-dev)");
        return;
    }
    let ours = include_str!("../bpf/python.h");
    let (_, offsets) = ours.split_once("enum {").expect("they are there");
    let (offsets, _) = offsets.split_once("};").expect("they end");
    let folder = std::env::temp_dir().join(format!("plumb-python-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder for the test");
    let source = folder.join("offsets.c");
    std::fs::write(&source, format!("enum {{{offsets}}};\n{PROGRAM}")).expect("it can be written");
    let compiled = Command::new("gcc").args(["-fsyntax-only", "-I", headers]).arg(&source).output();
    let _ = std::fs::remove_dir_all(&folder);
    let compiled = compiled.expect("gcc is there");
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
}

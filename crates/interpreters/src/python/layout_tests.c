/* Prints where the members of CPython's structures are, in the order of `ours` in layout_tests.rs. */
#define Py_BUILD_CORE 1
#include <Python.h>
#include <internal/pycore_runtime.h>
#include <internal/pycore_interp.h>
#include <internal/pycore_pystate.h>
#if PY_VERSION_HEX >= 0x030b0000
#include <internal/pycore_frame.h>
#include <internal/pycore_code.h>
#else
#include <frameobject.h>
#endif
#include <stddef.h>
#include <stdio.h>

#define O(t, m) printf("%zu ", offsetof(t, m))

int main(void)
{
    O(_PyRuntimeState, interpreters.head);
    O(PyInterpreterState, next);
#if PY_VERSION_HEX >= 0x030b0000
    O(PyInterpreterState, threads.head);
#else
    O(PyInterpreterState, tstate_head);
#endif
    O(PyThreadState, next);
    O(PyThreadState, thread_id);
#if PY_VERSION_HEX >= 0x030d0000
    O(PyThreadState, current_frame);
    O(_PyInterpreterFrame, f_executable);
    O(_PyInterpreterFrame, previous);
    O(_PyInterpreterFrame, instr_ptr);
#elif PY_VERSION_HEX >= 0x030b0000
    O(PyThreadState, cframe);
    O(_PyInterpreterFrame, f_code);
    O(_PyInterpreterFrame, previous);
    O(_PyInterpreterFrame, prev_instr);
#else
    O(PyThreadState, frame);
    O(PyFrameObject, f_code);
    O(PyFrameObject, f_back);
    O(PyFrameObject, f_lasti);
#endif
    O(PyCodeObject, co_firstlineno);
    O(PyCodeObject, co_filename);
#if PY_VERSION_HEX >= 0x030b0000
    O(PyCodeObject, co_qualname);
#else
    O(PyCodeObject, co_name);
#endif
#if PY_VERSION_HEX >= 0x030a0000
    O(PyCodeObject, co_linetable);
#else
    O(PyCodeObject, co_lnotab);
#endif
    O(PyVarObject, ob_size);
    O(PyBytesObject, ob_sval);
    O(PyASCIIObject, length);
    O(PyASCIIObject, state);
    printf("%zu %zu ", sizeof(PyASCIIObject), sizeof(PyCompactUnicodeObject));
#if PY_VERSION_HEX >= 0x030b0000 && PY_VERSION_HEX < 0x030d0000
    O(_PyCFrame, current_frame);
#endif
#if PY_VERSION_HEX >= 0x030b0000 && PY_VERSION_HEX < 0x030c0000
    O(_PyCFrame, previous);
    O(_PyInterpreterFrame, is_entry);
#endif
#if PY_VERSION_HEX >= 0x030b0000
    O(_PyInterpreterFrame, owner);
    O(PyCodeObject, _co_firsttraceable);
    O(PyCodeObject, co_code_adaptive);
    _Static_assert(offsetof(PyCodeObject, co_weakreflist) == 16 + 16 * 8, "what a code object is told by");
#endif
#if PY_VERSION_HEX < 0x030c0000
    O(_PyRuntimeState, gilstate.tstate_current);
#endif
#if PY_VERSION_HEX < 0x030b0000
    _Static_assert(offsetof(PyCodeObject, co_zombieframe) == 16 + 14 * 8, "what a code object is told by");
#elif PY_VERSION_HEX < 0x030c0000
    _Static_assert(offsetof(PyCodeObject, co_warmup) == 16 + 4 * 8 + 4, "what changes in a code object");
    _Static_assert(offsetof(PyCodeObject, _co_linearray_entry_size) == 16 + 4 * 8 + 6, "what changes");
#endif
}

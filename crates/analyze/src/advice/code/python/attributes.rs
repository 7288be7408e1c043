//! Rule: attributes are looked up repeatedly.

use crate::advice::Rule;
use crate::advice::code::{CodeRule, Extent, GainModel, Names};

/// Functions for lookups that the interpreter has not cached: in Python up to 3.10 always; later if classes change,
/// have `__getattr__`, or are many.
const FUNCTIONS: Names = Names {
    whole: &[
        "PyObject_GetAttr",
        "_PyObject_GetMethod",
        "_PyObject_GenericGetAttrWithDict",
        "PyObject_GenericGetAttr",
        "_PyObject_LookupAttr",
        "PyObject_GetOptionalAttr",
        "slot_tp_getattr_hook",
        "slot_tp_getattro",
        "super_getattro",
        "type_getattro",
        "_Py_type_getattro",
        "module_getattro",
        "property_descr_get",
    ],
    begin: &[],
};

pub(in crate::advice::code) const RULE: CodeRule = CodeRule {
    rule: Rule {
        name: "attribute-lookups",
        claim: "looks up attributes",
        pattern: "attributes of objects are looked up by name, through the classes of the object and their dictionaries",
        threshold: "at least 20% of processor time",
        remedy: "look up once before the loop and keep it in a local variable; no __getattr__ and no property where it is asked often; __slots__",
        bound: "the look-ups with all that they call",
        source: "CPython: Objects/object.c, _PyObject_GenericGetAttrWithDict; PEP 659 says where later versions remember the place",
    },
    gain: GainModel::Lines { least: 0.7, most: 1.0, callers: 0.4 },
    extent: Extent::Calls,
    least_percent: 20.0,
    find: |code| code.calls_of(&FUNCTIONS),
};

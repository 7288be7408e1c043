/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0 */
/* What differs with PHP (Zend/zend_compile.h, Zend/zend_execute.h), of one thread alone, as most builds are. Its list of calls has those of
 * functions that are written in C as well, which have native frames of their own. A call from native code, ZEND_CALL_TOP, has a round of
 * the loop (execute_ex) to itself; others are in the round of their caller.
 *
 * Where a call is in its function its own structure says as it calls something. The innermost call keeps that in a register: its line is
 * not told, as the one in its structure is of earlier. */
#ifndef PLUMB_PHP_H
#define PLUMB_PHP_H

enum {
    /* zend_function.type */
    PHP_USER_FUNCTION = 2,
    PHP_EVAL_CODE = 4,
    /* zend_op.lineno */
    PHP_LINE = 24,
    /* zend_class_entry.name */
    PHP_CLASS_NAME = 8,
};

/* Whether a function is written in PHP. */
INLINE int php_is_script(u64 function)
{
    u8 type = 0;
    return function && !py_read(function, &type, 1) && (type == PHP_USER_FUNCTION || type == PHP_EVAL_CODE);
}

/* The line of an instruction; 0: it is not known. */
INLINE u32 php_line(u64 instruction)
{
    u32 line = 0;
    return py_read(instruction + PHP_LINE, &line, 4) ? 0 : line;
}

/* Where the name of a class is said; 0: there is no class. */
INLINE u64 php_class_name(u64 class)
{
    return class ? class + PHP_CLASS_NAME : 0;
}

#endif

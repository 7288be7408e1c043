/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0 */
/* Reading PHP's frames (Zend/zend_compile.h, Zend/zend_execute.h), of one thread only, as most builds have one. The list of calls
 * includes those of functions that are written in C, which have native frames of their own. A call from native code, ZEND_CALL_TOP, has
 * an evaluation loop (execute_ex) to itself; other calls are in the loop of their caller.
 *
 * A call's structure contains its current instruction only once it has called something. The innermost call keeps it in a register, so
 * its line is not reported: the one in its structure is outdated. */
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

/* Returns whether a function is written in PHP. */
INLINE int php_is_script(u64 function)
{
    u8 type = 0;
    return function && !py_read(function, &type, 1) && (type == PHP_USER_FUNCTION || type == PHP_EVAL_CODE);
}

/* Returns the line of an instruction, or 0 if it is not known. */
INLINE u32 php_line(u64 instruction)
{
    u32 line = 0;
    return py_read(instruction + PHP_LINE, &line, 4) ? 0 : line;
}

/* Returns the address of the pointer to a class's name, or 0 without a class. */
INLINE u64 php_class_name(u64 class)
{
    return class ? class + PHP_CLASS_NAME : 0;
}

#endif

/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0 */
/* Reading PHP's frames (Zend/zend_compile.h, Zend/zend_execute.h), of one thread only, as most builds have one. The list of calls
 * includes those of functions that are written in C, which have native frames of their own. A call from native code, ZEND_CALL_TOP, has
 * an evaluation loop (execute_ex) to itself; other calls are in the loop of their caller.
 *
 * A call's structure contains its current instruction only once it has called something. The innermost call keeps it in a register, so
 * its line is not reported: the one in its structure is outdated. */
#ifndef PLUMB_PHP_H
#define PLUMB_PHP_H

/* An offset of PHP's layout. */
#define PHP(layout, NAME) ((layout)->words[PHP_WORD_##NAME])

/* Returns whether a function is written in PHP. */
INLINE int php_is_script(u64 function)
{
    u8 type = 0;
    return function && !script_read(function, &type, 1) && (type == PHP_USER_FUNCTION || type == PHP_EVAL_CODE);
}

/* Returns the line of an instruction, or 0 if it is not known. */
INLINE u32 php_line(u64 instruction)
{
    u32 line = 0;
    return script_read(instruction + PHP_INSTRUCTION_LINE, &line, 4) ? 0 : line;
}

/* The globals are those of the process' only thread with PHP code. */
INLINE u64 php_thread(u64 globals, struct ScriptLayout *layout)
{
    return script_is_main() ? globals : 0;
}

static long php_step(u32 index, struct script_reading *reading)
{
    if (!reading->draft->script.frame || script_is_full(reading, 1))
        return 1;
    struct script_frame *call = &reading->draft->script_frame;
    if (!script_read_frame(reading, reading->draft->script.frame, PHP_CALL_BYTES))
        return 1;
    u32 is_innermost = !reading->draft->script.in_round;
    reading->draft->script.in_round = 1;
    u64 code = FIELD(call, PHP_CALL_FUNCTION), line = 0;
    reading->draft->script.frame = FIELD(call, PHP_CALL_CALLER);
    if (!php_is_script(code))
        return 0;
    if (!is_innermost)
        line = php_line(FIELD(call, PHP_CALL_INSTRUCTION));
    u64 flags = BYTE(call, PHP_CALL_INFO) & PHP_CALL_IS_TOP ? SCRIPT_ENTRY : 0;
    script_append(reading->draft, reading->layout, code, flags, line);
    return 0;
}

INLINE void php_frames(struct script_reading *reading, u64 globals)
{
    reading->draft->script.frame = script_word(globals + PHP(reading->layout, CURRENT));
    bpf_loop(MAX_SCRIPT_STEPS, php_step, reading, 0);
}

/* Behind the file's name comes that of the function's class. */
INLINE void php_names(struct Code *tell, struct ScriptLayout *layout, u64 at, u32 is_text)
{
    u64 class = script_word(at + PHP_FUNCTION_CLASS);
    tell->name_at = script_word(at + PHP_FUNCTION_NAME);
    tell->file_at = script_word(at + PHP(layout, FILE));
    tell->lines_at = class ? script_follow(tell, class + PHP_CLASS_NAME) : 0;
}

#endif

/* Prints PHP's version and where the members of its structures are. */
#include <stddef.h>
#include <stdio.h>
#include "php.h"
#include "zend_compile.h"
#include "zend_globals.h"

#define OFFSET(type, member) printf("%zu ", offsetof(type, member))

int main(void)
{
    /* The place of the only bit of ZEND_CALL_TOP, counted from the beginning of the structure. */
    unsigned bit = 0;
    while (!(ZEND_CALL_TOP >> bit & 1))
        bit++;
    printf("%d %d ", PHP_MAJOR_VERSION, PHP_MINOR_VERSION);
    OFFSET(zend_executor_globals, current_execute_data);
    OFFSET(zend_op_array, filename);
    OFFSET(zend_op_array, line_start);
    OFFSET(zend_execute_data, opline);
    OFFSET(zend_execute_data, func);
    printf("%zu ", offsetof(zend_execute_data, This.u1.type_info) * 8 + bit);
    OFFSET(zend_execute_data, prev_execute_data);
    printf("%d %d ", ZEND_USER_FUNCTION, ZEND_EVAL_CODE);
    OFFSET(zend_function, common.function_name);
    OFFSET(zend_function, common.scope);
    OFFSET(zend_op, lineno);
    OFFSET(zend_class_entry, name);
    OFFSET(zend_string, len);
    OFFSET(zend_string, val);
    return 0;
}

/* Greets Ada, whatever it is given, without the library: with -DWITH_STDIO it imports
 * WASI, which it does not use. */

#include <stdlib.h>
#include <string.h>
#ifdef WITH_STDIO
#include <stdio.h>
#endif

#include "wit.h"

static const char GREETING[] = "{\"greeting\":\"Hello, Ada! Hello, Ada!\"}";

bool exports_toolward_driver_handler_execute(
    exports_toolward_driver_handler_invocation_t *call,
    exports_toolward_driver_handler_outcome_t *outcome,
    exports_toolward_driver_handler_tool_error_t *error)
{
#ifdef WITH_STDIO
    if (call->input.len == 0) printf("no input\n");
#endif
    (void)call;
    (void)error;
    size_t length = sizeof GREETING - 1;
    memset(outcome, 0, sizeof *outcome);
    uint8_t *text = malloc(length);
    if (text == NULL) abort();
    outcome->val.done.structured.ptr = memcpy(text, GREETING, length);
    outcome->val.done.structured.len = length;
    return true;
}

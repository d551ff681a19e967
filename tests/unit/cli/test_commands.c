/* The rules of the table of commands that the compiler cannot see. */
#include "cli/command.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static void a_command_that_is_one_request_says_how_its_answer_is_shown(void **state)
{
    for (const struct command *c = command_first(); c; c = command_next(c))
        if (!c->run && !c->list && !c->columns && !c->done)
            fail_msg("%s has neither run, list, columns nor done", c->words);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_command_that_is_one_request_says_how_its_answer_is_shown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "apps/failure_line.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

static const struct {
    const char *lines, *line;
} cases[] = {
    { "", "" },
    { "one\ntwo\n\n", "two" },
    { "npm error code E404\nnpm error 404 Not Found - GET https://registry.npmjs.org/nosuch - Not found\nnpm error 404\n"
      "npm error 404  'nosuch@*' is not in this registry.\nnpm error A complete log of this run can be found in: /root/.npm/_logs/x-debug-0.log\n",
      "npm error 404 Not Found - GET https://registry.npmjs.org/nosuch - Not found" },
    { "npm warn deprecated x\nnpm ERR! code ENOENT\nnpm ERR! syscall open\nnpm ERR! path /app/package.json\nnpm ERR! errno -2\n"
      "npm ERR! enoent ENOENT: no such file or directory, open '/app/package.json'\nnpm ERR! A complete log of this run can be found in:\nnpm ERR!     /x.log",
      "npm ERR! enoent ENOENT: no such file or directory, open '/app/package.json'" },
    { "npm error Missing script: \"start\"\nnpm error\nnpm error To see a list of scripts, run:\nnpm error   npm run\n",
      "npm error Missing script: \"start\"" },
    { "npm error could not determine executable to run", "npm error could not determine executable to run" },
    { "node:internal/modules/cjs/loader:1228\n  throw err;\n  ^\n\nError: Cannot find module '/app/x.js'\n    at Function.load (node:x:1)\n{\n  code: 'MODULE_NOT_FOUND'\n}\n\nNode.js v22.1.0\n",
      "Error: Cannot find module '/app/x.js'" },
    { "TypeError [ERR_INVALID_ARG]: The argument\n    at x\nNode.js v22.1.0\n",
      "TypeError [ERR_INVALID_ARG]: The argument" },
    { "Traceback (most recent call last):\n  File \"x\"\nKeyError: 'a'\n", "KeyError: 'a'" },
    { "No errors here: done\n", "No errors here: done" },
};

static void the_line_that_names_the_error_is_found(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        assert_string_equal(failure_line(cases[i].lines, a), cases[i].line);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(the_line_that_names_the_error_is_found) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Runs a short program to its end and keeps what it writes: for commands of the system such as systemctl. Blocking,
 * with a deadline; any thread, never the loop's. The program has its own process group, /dev/null as standard input and
 * no descriptors above 2; what it starts and leaves running does not delay the return.
 *
 *     const char *const argv[] = { "systemctl", "--user", "daemon-reload", NULL };
 *     r = run_program(&(struct run_plan){ path, argv, environ, 30000 }, &result, e);
 */
#pragma once

#include "base/err.h"

enum { RUN_OUTPUT_BYTES = 16384, RUN_ERRORS_BYTES = 2048 };

struct run_plan {
    const char *path; /* for execve() */
    const char *const *argv;
    const char *const *envp;
    int64_t deadline_ms; /* from now */
};

struct run_result {
    int code; /* its exit code, 128 + n when signal n ended it */
    /* What it wrote, NUL-terminated, cut at the end. NUL bytes are kept out. */
    char output[RUN_OUTPUT_BYTES], errors[RUN_ERRORS_BYTES];
};

/* 0 also when the program fails. -ETIMEDOUT COMMAND_TIMED_OUT when the deadline passed: its group was killed; else the
 * program did not start. */
int run_program(const struct run_plan *plan, struct run_result *ret, struct err *e) MUST_CHECK;

/* Questions of agents, decided by the person at the terminal.
 *
 *     struct approval_terminal t = { .cli = cli, .session_id = id };
 *     r = approval_decide_pending(&t, e);
 */
#pragma once

#include "cli/command.h"

enum { APPROVALS_LATER_MAX = 256 };

struct approval_terminal {
    struct cli *cli;
    const char *session_id;           /* only questions of this session; NULL: all */
    char *later[APPROVALS_LATER_MAX]; /* questions put off; not shown again here */
    size_t n_later;
    struct err *e;
};

/* Shows each question that waits, reads the person's answer and sends it. 1: the terminal has ended. */
int approval_decide_pending(struct approval_terminal *t, struct err *e) MUST_CHECK;

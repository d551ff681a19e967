/* Waiting for the end of work, for commands with the option --timeout. One thread. */
#pragma once

#include "cli/command.h"

/* The value of --timeout; 0: none was given. -EINVAL BAD_USE. */
int cli_read_timeout(const struct cli *cli, int64_t *ret_ms, struct err *e) MUST_CHECK;
/* Calls look when the stream of events is open, then after every change of the task uuid (NULL: of any task), until
 * look returns non-zero: 1 is the end, and 0 is then returned; negative is an error with e filled. `what` names the
 * work in errors: "The task X". -EINVAL BAD_USE for a wrong --timeout, -ETIMEDOUT after that time, -ENOTCONN without a
 * service. */
int cli_wait(struct cli *cli, const char *what, const char *uuid, int (*look)(void *arg), void *arg,
             struct err *e) MUST_CHECK;
/* The error of work that has ended badly: "WHAT is STATUS: REASON". A reason of several lines is printed on standard
 * error as it is. reason: absent when none is known. Returns -EREMOTEIO. */
int cli_wait_failed(const char *what, const char *status, struct json_value reason, struct err *e);

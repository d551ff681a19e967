/* Reads a key from a terminal, without echo, or from a pipe: unlike an argument, the key is in no list of processes. */
#pragma once

#include "cli/command.h"

/* At most LIMIT_PROVIDER_SECRET characters, without surrounding spaces, in the arena. -EINVAL BAD_USE with the sentence
 * `nothing` when the input is empty. */
/* The same with the question that a terminal shows. */
int cli_read_secret(struct cli *cli, const char *question, const char *nothing, const char **ret,
                    struct err *e) MUST_CHECK;
int cli_read_key(struct cli *cli, const char *nothing, const char **ret, struct err *e) MUST_CHECK;
/* The text without surrounding spaces. */
char *cli_trimmed(struct arena *a, struct slice text);

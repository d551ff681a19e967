/* A decision about a permission, as commands and the watching terminal send it. */
#pragma once

#include "cli/command.h"

struct permission_choice {
    const char *app_id, *permission;
    const char *scope, *until;          /* scope NULL: nothing is decided, the path says what happens */
    bool is_allowed;
};

int permission_send(struct cli *cli, const char *path, const struct permission_choice *choice, struct err *e) MUST_CHECK;

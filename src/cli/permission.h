/* A decision about a permission, as sent by commands and the watching terminal. */
#pragma once

#include "cli/command.h"

struct permission_choice {
    const char *app_id, *permission;
    const char *const *permissions; /* of a decision about several; NULL: `permission` alone */
    size_t n_permissions;
    const char *scope, *until; /* scope NULL: no decision, the path names the action */
    bool is_allowed;
};

int permission_send(struct cli *cli, const char *path, const struct permission_choice *choice,
                    struct err *e) MUST_CHECK;
/* Prints on standard error the unknown permissions of an app's definition, with suggestions. */
void permission_note_unknown(struct cli *cli, struct slice definition);
/* Prints the permissions of an app's definition that nobody has decided about, and how they are granted. */
void permission_note_undecided(struct cli *cli, const char *app_id, struct slice definition);

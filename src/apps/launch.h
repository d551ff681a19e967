/* Makes the command line, environment and folder of a configuration. Pure but for the inherited environment; any
 * thread.
 *
 * docs/local-apps.md, "How each kind is started", describes this file.
 */
#pragma once

#include "apps/config.h"

struct launch_place {
    const char *abbr; /* setting identity.abbr: names the injected variables */
    const char *base_url;
    const char *data_dir;    /* the app's own data folder */
    const char *secret;      /* proves that a caller is this start of the app (identity/launches.h); NULL: none */
    const char *hook_secret; /* signs what the service sends to the app (identity/hook_secret.h); NULL: none */
    uint16_t port;
};

struct launch_plan {
    const char *command;
    const char *const *args; /* NULL-ended */
    const char *const *env;  /* NULL-ended */
    const char *working_dir;
};

/* Strings are in the arena. -EINVAL NOT_LAUNCHABLE for an app that Hearth does not start. */
int launch_plan_make(struct arena *a, const struct app_config *c, const struct launch_place *place,
                     struct launch_plan *ret, struct err *e) MUST_CHECK;
/* The value of PATH in the plan's environment; NULL when there is none. */
const char *launch_search_path(const struct launch_plan *plan);

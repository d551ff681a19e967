/* What is started for a configuration: command line, environment, folder. Pure but for the inherited environment; any thread.
 *
 * docs/local-apps.md, "How each kind is started", is this file in words.
 */
#pragma once

#include "apps/config.h"

struct launch_place {
    const char *abbr;                   /* setting identity.abbr: names the injected variables */
    const char *base_url;
    const char *data_dir;               /* the app's own */
    const char *secret;                 /* proves that a caller is this start of the app (identity/launches.h); NULL: none */
    uint16_t port;
};

struct launch_plan {
    const char *command;
    const char *const *args;            /* NULL-ended */
    const char *const *env;             /* NULL-ended */
    const char *working_dir;
};

/* Strings land in the arena. -EINVAL NOT_LAUNCHABLE for an app that is started elsewhere. */
int launch_plan_make(struct arena *a, const struct app_config *c, const struct launch_place *place, struct launch_plan *ret,
                     struct err *e) MUST_CHECK;
/* PATH in its environment; NULL when there is none. */
const char *launch_search_path(const struct launch_plan *plan);

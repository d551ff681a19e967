/* Agent definitions, workspaces and threads; process agents.
 *
 * A definition of kind process: {name, display_name, description, command, args, working_dir, env, pass_arguments,
 * timeout_s}. Any worker.
 */
#pragma once

#include "base/fields.h"
#include "os/child.h"
#include "store/store.h"

struct agent_definition {
    const char *name, *display_name, *description, *hub_id;
    const char *command;
    struct field_strings args;
    const char *working_dir;
    struct json_value env;
    struct sandbox_definition sandbox;
    bool passes_arguments; /* the activity is also the last argument, which every user of the machine can read */
    double timeout_s;      /* default 900, at most 86400 */
};

extern const struct field agent_definition_fields[];

struct agents;
int agents_open(struct store *store, struct supervisor *supervisor, const char *data_dir, struct agents **ret,
                struct err *e) MUST_CHECK;
/* No run begins any more; when this returns, the on_end calls of all ended processes have returned. */
void agents_finish(struct agents *agents);
struct agents *agents_close(struct agents *agents);

/* Checks the rules that the field table cannot express. */
int agent_check(const struct agents *agents, const struct agent_definition *d, struct err *e) MUST_CHECK;
int agent_put(struct agents *agents, const struct agent_definition *d, struct slice json, struct err *e) MUST_CHECK;
int agent_remove(struct agents *agents, const char *name, struct err *e) MUST_CHECK; /* -ENOENT AGENT_NOT_FOUND */
int agent_find(struct agents *agents, const char *name, struct arena *a, struct agent_definition *ret,
               struct err *e) MUST_CHECK;

/* The agents that are defined, and AGENT_DEFAULT, which always is. Any worker. */
#pragma once

#include "agents/definition.h"
#include "os/child.h"
#include "store/store.h"
#include "store/tables/agents.h"

struct agents;
int agents_open(struct store *store, struct supervisor *supervisor, const char *data_dir, struct agents **ret,
                struct err *e) MUST_CHECK;
/* No run begins any more; when this returns, the on_end calls of all ended processes have returned. */
void agents_finish(struct agents *agents);
struct agents *agents_close(struct agents *agents);

/* The rules of agent_definition_check(), and those of this service. */
int agent_check(const struct agents *agents, const struct agent_definition *d, struct err *e) MUST_CHECK;
int agent_put(struct agents *agents, const struct agent_definition *d, struct slice json, struct err *e) MUST_CHECK;
/* -EBUSY AGENT_ALWAYS_EXISTS for AGENT_DEFAULT. */
int agent_check_remove(const char *name, struct err *e) MUST_CHECK;
/* Also -ENOENT AGENT_NOT_FOUND. */
int agent_remove(struct agents *agents, const char *name, struct err *e) MUST_CHECK;
int agent_find(struct agents *agents, const char *name, struct arena *a, struct agent_definition *ret,
               struct err *e) MUST_CHECK;

/* Rows as stored; AGENT_DEFAULT is among them whether it is stored or not (its times are then NULL). */
int agents_list(struct agents *agents, struct arena *a, struct agent_row **ret, size_t *ret_n,
                struct err *e) MUST_CHECK;
int agent_get(struct agents *agents, const char *name, struct arena *a, struct agent_row *ret,
              struct err *e) MUST_CHECK; /* -ENOENT AGENT_NOT_FOUND */

/* Agent definitions (table agents). Any thread; row texts live in the arena. */
#pragma once

#include "store/store.h"

struct agent_row {
    const char *name; /* primary key, the slug */
    const char *display_name, *description;
    const char *hub_id;                  /* may be NULL */
    const char *kind;                    /* "process" */
    const char *definition;              /* JSON object as validated */
    const char *created_at, *updated_at; /* set by the store */
};

/* -EEXIST AGENT_EXISTS; -E2BIG TOO_MANY_AGENTS beyond LIMIT_AGENTS. */
int store_agents_insert(struct store *s, const struct agent_row *row, struct err *e) MUST_CHECK;
/* Updates every column except created_at; -ENOENT AGENT_NOT_FOUND. */
int store_agents_update(struct store *s, const struct agent_row *row, struct err *e) MUST_CHECK;
int store_agents_get(struct store *s, struct arena *a, const char *name, struct agent_row *ret,
                     struct err *e) MUST_CHECK;
/* Ordered by name. */
int store_agents_list(struct store *s, struct arena *a, struct agent_row **ret, size_t *ret_n,
                      struct err *e) MUST_CHECK;
int store_agents_delete(struct store *s, const char *name, struct err *e) MUST_CHECK;

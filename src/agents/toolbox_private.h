/* What toolbox.c and toolbox_servers.c share; no other file includes this. */
#pragma once

#include "agents/toolbox.h"

struct toolbox_filling {
    const struct agent_toolbox_config *config;
    struct arena *arena;
    struct agent_toolbox *box;
    size_t cap; /* of box->items */
};

/* name: as the tool would like to be called. -E2BIG TOO_MANY_TOOLS. */
int toolbox_add(struct toolbox_filling *f, const struct agent_tool *tool, const char *name, struct err *e) MUST_CHECK;
/* toolbox_servers.c */
int toolbox_add_servers(struct toolbox_filling *f, struct err *e) MUST_CHECK;

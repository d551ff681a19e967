#include "identity/mcp_permit.h"

#include "base/clock.h"
#include "identity/audit.h"
#include "identity/decision.h"
#include "identity/permissions.h"
#include "identity/state.h"
#include "store/tables/grants.h"

#include <string.h>

/* What the decisions of one app say about one server or tool. */
struct verdict {
    const char *permission; /* the decision that counts, or the permission that is missing; in the arena */
    enum decision decision;
};

static const char *name_of(struct arena *a, const char *server, const char *tool)
{
    return arena_printf(a, PERM_MCP_TOOLS "/%s%s%s", server, tool ? "/" : "", tool ? tool : "");
}

static bool is_below(const char *permission, const char *above)
{
    size_t n = strlen(above);

    return strncmp(permission, above, n) == 0 && permission[n] == '/';
}

/* The first of the names that was decided about. */
static struct verdict first_decided(const struct grant_row *rows, size_t n_rows, const char *const *names, size_t n)
{
    int64_t now_ms = clock_wall_ms();

    for (size_t i = 0; i < n; i++)
        for (size_t at = 0; names[i] && at < n_rows; at++)
            if (strcmp(rows[at].permission, names[i]) == 0 && decision_now(&rows[at], now_ms) != DECISION_NONE)
                return (struct verdict){ names[i], decision_now(&rows[at], now_ms) };
    return (struct verdict){ NULL, DECISION_NONE };
}

/* An allowed permission below `above`; NULL: none. */
static const char *allowed_below(const struct grant_row *rows, size_t n_rows, const char *above)
{
    int64_t now_ms = clock_wall_ms();

    for (size_t i = 0; i < n_rows; i++)
        if (is_below(rows[i].permission, above) && decision_now(&rows[i], now_ms) == DECISION_ALLOWED)
            return rows[i].permission;
    return NULL;
}

/* What an app that lacks the permission is to ask for: as narrow as what it was granted so far. */
static const char *missing_name(const struct grant_row *rows, size_t n_rows, const char *of_server, const char *of_tool)
{
    if (of_tool && allowed_below(rows, n_rows, of_server))
        return of_tool;
    return allowed_below(rows, n_rows, PERM_MCP_TOOLS) ? of_server : PERM_MCP_TOOLS;
}

static int judge(struct identity *id, const struct caller *c, const char *server, const char *tool, struct arena *a,
                 struct verdict *ret, struct err *e)
{
    const char *of_server = name_of(a, server, NULL), *of_tool = tool ? name_of(a, server, tool) : NULL;
    const char *const names[] = { of_tool, of_server, PERM_MCP_TOOLS };
    struct grant_row *rows = NULL;
    struct verdict v;
    size_t n = 0;
    int r = store_grants_list(id->store, a, c->app_id, &rows, &n, NULL);

    if (r < 0)
        return err_set(e, r, err_code_of(r, "STORE_ERROR"), "The grants could not be read.");
    v = first_decided(rows, n, names, ARRAY_SIZE(names));
    if (!tool && v.decision != DECISION_ALLOWED && allowed_below(rows, n, of_server))
        v = (struct verdict){ allowed_below(rows, n, of_server), DECISION_ALLOWED };
    if (v.decision == DECISION_NONE)
        v.permission = missing_name(rows, n, of_server, of_tool);
    *ret = v;
    return 0;
}

int mcp_permit(struct identity *id, const struct caller *c, const char *server, const char *tool, struct arena *a,
               struct audit_use **ret, struct err *e)
{
    struct verdict v = { PERM_MCP_TOOLS, DECISION_ALLOWED };
    int r = c->kind == CALLER_APP ? judge(id, c, server, tool, a, &v, e) : 0;

    *ret = NULL;
    if (r < 0)
        return r;
    return tool ? identity_begin_use(id, c, v.permission, a, ret, e) : identity_check(id, c, v.permission, e);
}

int mcp_permit_end(struct audit_use *use, int r, struct err *e)
{
    int stored = audit_end_use(use, r < 0 ? NULL : e);

    return r < 0 ? r : stored;
}

int mcp_permit_find(struct identity *id, const struct caller *c, const char *server, const char *tool, bool *ret,
                    struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct verdict v = { 0 };
    int r;

    if (c->kind != CALLER_APP)
        return identity_has_grant(id, c, PERM_MCP_TOOLS, ret, e);
    r = judge(id, c, server, tool, a, &v, e);
    if (r == 0)
        *ret = v.decision == DECISION_ALLOWED;
    return r;
}

int mcp_permit_any(struct identity *id, const struct caller *c, bool *ret, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct grant_row *rows = NULL;
    size_t n = 0;
    int r = identity_has_grant(id, c, PERM_MCP_TOOLS, ret, e);

    if (r < 0 || *ret || c->kind != CALLER_APP)
        return r;
    r = store_grants_list(id->store, a, c->app_id, &rows, &n, NULL);
    if (r < 0)
        return err_set(e, r, err_code_of(r, "STORE_ERROR"), "The grants could not be read.");
    *ret = allowed_below(rows, n, PERM_MCP_TOOLS) != NULL;
    return 0;
}

#include "agents/toolbox.h"

#include "agents/builtin.h"
#include "agents/definition.h"
#include "agents/toolbox_private.h"
#include "base/limits.h"
#include "base/suggest.h"

#include <string.h>

enum { FIRST_TOOLS = 16 };

/* ---- names ---- */

static bool is_name_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
}

/* At most AGENT_TOOL_NAME_MAX characters that every provider takes. */
static char *mended(struct arena *a, const char *name)
{
    char *to = arena_strndup(a, name, strnlen(name, AGENT_TOOL_NAME_MAX));

    for (char *at = to; *at; at++)
        if (!is_name_char(*at))
            *at = '_';
    return to;
}

static bool is_taken(const struct agent_toolbox *box, const char *name)
{
    return agent_toolbox_find(box, name) != NULL;
}

/* A name that is taken gets a number at its end. */
static const char *unique(struct arena *a, const struct agent_toolbox *box, const char *name)
{
    const char *candidate = mended(a, name);

    for (unsigned i = 2; is_taken(box, candidate); i++) {
        const char *end = arena_printf(a, "_%u", i);
        size_t n = MIN(strlen(name), AGENT_TOOL_NAME_MAX - strlen(end));

        candidate = arena_printf(a, "%s%s", mended(a, arena_strndup(a, name, n)), end);
    }
    return candidate;
}

static void grow(struct toolbox_filling *f)
{
    struct agent_tool *larger = arena_array(f->arena, 2 * f->cap + FIRST_TOOLS, sizeof(*larger));

    if (f->box->n > 0)
        memcpy(larger, f->box->items, f->box->n * sizeof(*larger));
    f->box->items = larger;
    f->cap = 2 * f->cap + FIRST_TOOLS;
}

int toolbox_add(struct toolbox_filling *f, const struct agent_tool *tool, const char *name, struct err *e)
{
    struct agent_toolbox *box = f->box;

    if (box->n == LIMIT_AGENT_TOOLS)
        return err_set(e, -E2BIG, "TOO_MANY_TOOLS",
                       "The agent's tools are more than %d; choose fewer by its patterns in `tools`.",
                       LIMIT_AGENT_TOOLS);
    if (box->n == f->cap)
        grow(f);
    box->items[box->n] = *tool;
    box->items[box->n].name = unique(f->arena, box, name);
    box->n++;
    return 0;
}

const struct agent_tool *agent_toolbox_find(const struct agent_toolbox *toolbox, const char *name)
{
    for (size_t i = 0; i < toolbox->n; i++)
        if (strcmp(toolbox->items[i].name, name) == 0)
            return &toolbox->items[i];
    return NULL;
}

const char *agent_toolbox_suggest(const struct agent_toolbox *toolbox, const char *name, struct arena *a)
{
    const char **names = arena_array(a, toolbox->n + 1, sizeof(*names));

    for (size_t i = 0; i < toolbox->n; i++)
        names[i] = toolbox->items[i].name;
    return suggest_name(name, names, toolbox->n);
}

/* ---- built-in tools ---- */

static bool is_offered(const struct agent_toolbox_config *c, const struct builtin_tool *tool)
{
    bool has = true;

    if (!agent_tools_hold(c->agent, AGENT_BUILTIN_TOOLS, tool->name))
        return false;
    if (tool->is_on && !tool->is_on(c->call))
        return false;
    if (!tool->permission)
        return true;
    return identity_has_grant(c->call->models->identity, c->call->caller, tool->permission, &has, NULL) == 0 && has;
}

static int add_builtin(struct toolbox_filling *f, const struct builtin_tool *from, struct err *e)
{
    struct agent_tool tool = { .tool = from->name,
                               .title = from->title,
                               .description = from->description,
                               .is_read_only = from->is_read_only,
                               .is_destructive = from->is_destructive,
                               .needs_approval = from->needs_approval,
                               .builtin = from };

    tool.compiled = builtin_schema(from, &tool.schema);
    return toolbox_add(f, &tool, from->name, e);
}

int agent_toolbox_fill(const struct agent_toolbox_config *c, struct arena *a, struct agent_toolbox *ret, struct err *e)
{
    struct agent_toolbox box = { .n = 0 };
    struct toolbox_filling f = { .config = c, .arena = a, .box = &box };
    int r = 0;

    for (size_t i = 0; r == 0 && i < n_builtin_tools; i++)
        if (is_offered(c, &builtin_tools[i]))
            r = add_builtin(&f, &builtin_tools[i], e);
    if (r == 0 && c->host)
        r = toolbox_add_servers(&f, e);
    if (r == 0)
        *ret = box;
    return r;
}

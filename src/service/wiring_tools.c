/* The built-in tools that are routes: which route does what each of them does. */
#include "service/private.h"

#include "api/inner.h"
#include "api/routes.h"
#include "api/trigger.h"
#include "base/limits.h"
#include "store/tables/tasks.h"

#include <assert.h>

struct tool_route {
    const char *tool;
    struct inner_route route;
    /* Makes the route's arguments of the tool's; NULL: they are the same. */
    int (*prepare)(struct arena *a, struct json_value arguments, struct json_value *ret, struct err *e);
};

static int prepare_trigger(struct arena *a, struct json_value arguments, struct json_value *ret, struct err *e)
{
    struct trigger in = { 0 };
    int r = trigger_read(a, arguments, &in, e);

    return r < 0 ? r : trigger_delivery(a, &in, ret, e);
}

static const struct tool_route *find_tool_route(const char *tool)
{
    static const struct tool_route rows[] = {
        { "list_activities", { activity_routes, HTTP_GET, "/activities", NULL }, NULL },
        { "add_activity", { activity_routes, HTTP_POST, "/activities", NULL }, NULL },
        { "update_activity", { activity_routes, HTTP_PATCH, "/activities/:id", "id" }, NULL },
        { "trigger_agent", { webhook_routes, HTTP_POST, "/webhooks/{token}", NULL }, prepare_trigger },
        { "task_status", { task_routes, HTTP_GET, "/task/:uuid", "uuid" }, NULL },
    };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        if (strcmp(rows[i].tool, tool) == 0)
            return &rows[i];
    return NULL;
}

/* An agent that triggers itself, or two that trigger each other, would go on for ever. */
static int take_depth(struct service *s, const struct builtin_call *c, int64_t *ret, struct err *e)
{
    struct task_row task = { .trigger_depth = 0 };
    int r = c->task_uuid ? store_tasks_get(s->store, c->call->arena, c->task_uuid, &task, e) : 0;

    if (r < 0)
        return r;
    *ret = task.trigger_depth + 1;
    return *ret <= LIMIT_TRIGGER_DEPTH
               ? 0
               : err_set(e, -EDQUOT, "TRIGGER_LIMIT",
                         "This task is the last of %d in a row that agents have triggered, and triggers no other "
                         "(LIMIT_TRIGGER_DEPTH). Finish the work here, or say what is left to do.",
                         LIMIT_TRIGGER_DEPTH);
}

static int run_route(void *arg, const struct builtin_call *c, const char *tool, struct slice *ret, struct err *e)
{
    struct service *s = arg;
    const struct tool_route *row = find_tool_route(tool);
    struct json_value arguments = c->arguments;
    struct inner_call call = {
        .api = &s->api, .caller = c->call->caller, .holder = c->call->holder, .arena = c->call->arena
    };
    int r = 0;

    assert(row);
    if (row->prepare == prepare_trigger)
        r = take_depth(s, c, &call.trigger_depth, e);
    if (r == 0 && row->prepare)
        r = row->prepare(c->call->arena, c->arguments, &arguments, e);
    return r < 0 ? r : inner_run(&call, &row->route, arguments, ret, e);
}

struct builtin_services wire_builtin_services(struct service *s)
{
    return (struct builtin_services){ .supervisor = s->supervisor, .run_route = run_route, .arg = s };
}

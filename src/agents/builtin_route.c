/* The tools that are routes of the service: list_activities, add_activity, update_activity, trigger_agent, task_status.
 * The route reads the arguments, checks the caller's grant and does the work (builtin_services.run_route). */
#include "agents/builtin_private.h"
#include "base/limits.h"

static int run_route(const struct builtin_call *c, const char *tool, struct mcp_result *ret, struct err *e)
{
    struct slice answer = { 0 };
    int r;

    if (!c->services || !c->services->run_route)
        return err_set(e, -ENOTSUP, "NOT_SERVING", "%s works in a running service only.", tool);
    r = c->services->run_route(c->services->arg, c, tool, &answer, e);
    return r < 0 ? r : builtin_answer_json(c->call->arena, answer, ret, e);
}

int builtin_route_list_activities(const struct builtin_call *c, struct mcp_result *ret, struct err *e)
{
    return run_route(c, "list_activities", ret, e);
}

int builtin_route_add_activity(const struct builtin_call *c, struct mcp_result *ret, struct err *e)
{
    return run_route(c, "add_activity", ret, e);
}

int builtin_route_update_activity(const struct builtin_call *c, struct mcp_result *ret, struct err *e)
{
    return run_route(c, "update_activity", ret, e);
}

int builtin_route_trigger(const struct builtin_call *c, struct mcp_result *ret, struct err *e)
{
    if (c->n_triggers && atomic_fetch_add(c->n_triggers, 1) >= LIMIT_TURN_TRIGGERS)
        return err_set(e, -EDQUOT, "TRIGGER_LIMIT",
                       "This turn has triggered %d tasks already, and no turn may trigger more (LIMIT_TURN_TRIGGERS).",
                       LIMIT_TURN_TRIGGERS);
    return run_route(c, "trigger_agent", ret, e);
}

int builtin_route_task_status(const struct builtin_call *c, struct mcp_result *ret, struct err *e)
{
    return run_route(c, "task_status", ret, e);
}

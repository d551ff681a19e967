/* The tool trigger_agent, of MCP clients and of model agents: its arguments, and the webhook's delivery that does it.
 *
 *     r = trigger_read(arena, arguments, &in, e);
 *     r = trigger_delivery(arena, &in, &delivery, e);       then POST /webhooks/{token} (api/inner.h)
 */
#pragma once

#include "base/fields.h"

struct trigger {
    const char *agent_name, *prompt, *workspace_slug, *thread_slug;
    struct json_value raw_data;
    bool is_auto_run;
    int64_t wait_s;
};

extern const struct field trigger_tool_fields[];

int trigger_read(struct arena *a, struct json_value arguments, struct trigger *ret, struct err *e) MUST_CHECK;
int trigger_delivery(struct arena *a, const struct trigger *in, struct json_value *ret, struct err *e) MUST_CHECK;

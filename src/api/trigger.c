#include "api/trigger.h"

#include "base/limits.h"

const struct field trigger_tool_fields[] = {
    FIELD_STRING(struct trigger, agent_name, "agent_name", .min = 1, .max = LIMIT_NAME_CHARS,
                 .help = "required unless auto_run is false"),
    FIELD_STRING(struct trigger, prompt, "prompt", .max = LIMIT_STRING_DEFAULT, .help = "what the agent shall do"),
    FIELD_OBJECT(struct trigger, raw_data, "raw_data", .help = "what the task is about"),
    FIELD_BOOL(struct trigger, is_auto_run, "auto_run", .def = 1,
               .help = "false: the task waits in the calendar for a person"),
    FIELD_STRING(struct trigger, workspace_slug, "workspace_slug", .min = 1, .max = LIMIT_NAME_CHARS),
    FIELD_STRING(struct trigger, thread_slug, "thread_slug", .min = 1, .max = LIMIT_NAME_CHARS),
    FIELD_INT(struct trigger, wait_s, "wait_s", .max = LIMIT_MCP_WAIT_S,
              .help = "wait so many seconds for the end of the task; the task goes on when the time is over"),
    FIELD_END,
};

int trigger_read(struct arena *a, struct json_value arguments, struct trigger *ret, struct err *e)
{
    int r = fields_read(trigger_tool_fields, arguments, ret, a, "", e);

    if (ret->is_auto_run && !ret->agent_name && json_is_absent(json_get(arguments, "agent_name")))
        r = err_add_field(e, "agent_name", "is required unless auto_run is false");
    return r;
}

int trigger_delivery(struct arena *a, const struct trigger *in, struct json_value *ret, struct err *e)
{
    struct json_writer w;
    struct buf out;
    int r;

    buf_init(&out, LIMIT_BODY_CHAT);
    json_write_init(&w, &out);
    json_begin_object(&w);
    json_add_string(&w, "event", "trigger-agent");
    json_begin_object_as(&w, "payload");
    json_add_string(&w, "agent_name", in->agent_name);
    json_add_string(&w, "prompt", in->prompt);
    json_add_string(&w, "workspace_slug", in->workspace_slug);
    json_add_string(&w, "thread_slug", in->thread_slug);
    json_add_bool(&w, "auto_run", in->is_auto_run);
    if (json_is_absent(in->raw_data))
        json_add_raw(&w, "raw_data", "{}");
    else
        json_add_value(&w, "raw_data", in->raw_data);
    json_end(&w);
    json_end(&w);
    r = buf_check(&out, e);
    if (r == 0)
        r = json_parse(a, buf_slice(&out), ret, e);
    buf_clear(&out);
    return r;
}

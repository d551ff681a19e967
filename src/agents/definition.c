#include "agents/definition.h"

#include "base/limits.h"
#include "os/env.h"

static const char *const kinds[] = { "process", "model", NULL };
static const char *const approvals[] = { "never", "dangerous", "always", NULL };
static const char *const efforts[] = { "none", "minimal", "low", "medium", "high", "xhigh", "max", NULL };

const struct field agent_definition_fields[] = {
    FIELD_STRING(struct agent_definition, name, "name", FIELD_REQUIRED, .min = 1, .max = LIMIT_NAME_CHARS,
                 .help = "What handlers and triggers call it; unique"),
    FIELD_STRING(struct agent_definition, kind, "kind", .one_of = kinds, .def_str = "process",
                 .help = "process: a program; model: a language model with instructions and tools"),
    FIELD_STRING(struct agent_definition, display_name, "display_name", .max = LIMIT_NAME_CHARS,
                 .help = "As people see it; the name when absent"),
    FIELD_STRING(struct agent_definition, description, "description", .max = LIMIT_TEXT_CHARS, .def_str = ""),
    FIELD_STRING(struct agent_definition, hub_id, "hub_id", .max = LIMIT_NAME_CHARS),
    FIELD_STRING(struct agent_definition, command, "command", .min = 1, .max = LIMIT_TEXT_CHARS,
                 .help = "Program; looked up in PATH when it has no slash. Required for kind process"),
    FIELD_STRINGS(struct agent_definition, args, "args", .max = LIMIT_ARGS, .help = "Before the task id"),
    FIELD_STRING(struct agent_definition, working_dir, "working_dir", .max = LIMIT_TEXT_CHARS,
                 .help = "Absolute; a folder of its own when absent"),
    FIELD_STRING_MAP(struct agent_definition, env, "env", .max = LIMIT_ARGS,
                     .help = "Added to the minimal environment"),
    FIELD_STRUCT(struct agent_definition, sandbox, "sandbox", sandbox_definition_fields, .help = "see docs/agents.md"),
    FIELD_BOOL(struct agent_definition, passes_arguments, "pass_arguments",
               .help = "The activity is also an argument after the task id, which every user of the machine can read"),
    FIELD_STRING(struct agent_definition, instructions, "instructions", .max = LIMIT_INSTRUCTIONS_CHARS,
                 .help = "System prompt; {date}, {time}, {time_zone}, {workspace}, {user}, {app} are replaced"),
    FIELD_STRING(struct agent_definition, provider, "provider", .min = 1, .max = LIMIT_NAME_CHARS,
                 .help = "The default provider when absent"),
    FIELD_STRING(struct agent_definition, model, "model", .min = 1, .max = LIMIT_MODEL_BYTES,
                 .help = "The provider's default model when absent"),
    FIELD_STRING(struct agent_definition, effort, "effort", .one_of = efforts,
                 .help = "Of thinking; the model's own when absent"),
    FIELD_DOUBLE(struct agent_definition, temperature, "temperature", .min = 0, .max = 2,
                 .present_offset = offsetof(struct agent_definition, has_temperature),
                 .help = "The model's own when absent"),
    FIELD_STRINGS(struct agent_definition, tools, "tools", .max = LIMIT_AGENT_PATTERNS,
                  .help = "Patterns server/tool, server/*, builtin/*"),
    FIELD_STRING(struct agent_definition, approval, "approval", .one_of = approvals,
                 .help = "Which calls of tools a person is asked about; dangerous when absent"),
    FIELD_INT(struct agent_definition, max_steps, "max_steps", .min = 1, .max = LIMIT_AGENT_STEPS, .def = 20,
              .present_offset = offsetof(struct agent_definition, is_max_steps_given),
              .help = "Answers of the model in one turn"),
    FIELD_INT(struct agent_definition, max_tokens_per_turn, "max_tokens_per_turn", .min = 1, .max = LIMIT_AGENT_TOKENS,
              .present_offset = offsetof(struct agent_definition, is_max_tokens_given),
              .help = "Of all prompts and answers of one turn; no limit when absent"),
    FIELD_DOUBLE(struct agent_definition, timeout_s, "timeout_s", .min = 0.01, .max = 86400, .def = 900,
                 .help = "Of one attempt of a task, or of one turn"),
    FIELD_END
};

bool agent_is_model(const struct agent_definition *d)
{
    return d->kind && strcmp(d->kind, "model") == 0;
}

enum agent_approval agent_approval_of(const struct agent_definition *d)
{
    if (d->approval && strcmp(d->approval, "never") == 0)
        return AGENT_APPROVAL_NEVER;
    return d->approval && strcmp(d->approval, "always") == 0 ? AGENT_APPROVAL_ALWAYS : AGENT_APPROVAL_DANGEROUS;
}

/* ---- rules ---- */

struct given {
    const char *field;
    bool is_given;
};

static int refuse_given(const struct given *fields, size_t n, const char *kind, struct err *e)
{
    int r = 0;

    for (size_t i = 0; i < n; i++)
        if (fields[i].is_given)
            r = err_add_field(e, fields[i].field, "is for agents of kind %s only", kind);
    return r;
}

static int refuse_process_fields(const struct agent_definition *d, struct err *e)
{
    const struct given fields[] = {
        { "command", d->command },
        { "args", d->args.n > 0 },
        { "working_dir", d->working_dir },
        { "env", json_length(d->env) > 0 },
        { "sandbox", d->sandbox.profile || d->sandbox.read.n || d->sandbox.write.n || d->sandbox.is_network_given },
        { "pass_arguments", d->passes_arguments },
    };

    return refuse_given(fields, ARRAY_SIZE(fields), "process", e);
}

static int refuse_model_fields(const struct agent_definition *d, struct err *e)
{
    const struct given fields[] = {
        { "instructions", d->instructions },
        { "provider", d->provider },
        { "model", d->model },
        { "effort", d->effort },
        { "temperature", d->has_temperature },
        { "tools", d->tools.n > 0 },
        { "approval", d->approval },
        { "max_steps", d->is_max_steps_given },
        { "max_tokens_per_turn", d->is_max_tokens_given },
    };

    return refuse_given(fields, ARRAY_SIZE(fields), "model", e);
}

/* The table has refused the field, so that its member is as if the field were absent. */
static bool is_refused(const struct err *e, const char *field)
{
    for (unsigned i = 0; e && i < MIN(e->n_fields, (unsigned)ERR_MAX_FIELDS); i++)
        if (strcmp(e->fields[i].field, field) == 0)
            return true;
    return false;
}

static int check_env(const struct agent_definition *d, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct env_list *env = env_list_new(a);
    struct json_iter it = json_iter(d->env);
    struct json_value value;
    struct slice name;
    int r = 0;

    while (json_next(&it, &name, &value)) {
        struct err why = { 0 };

        if (env_list_set(env, arena_slicedup(a, name), json_cstr(value), &why) < 0)
            r = err_add_field(e, "env", "holds what cannot be: %s", why.text);
    }
    return r;
}

static int check_process(const struct agent_definition *d, const char *data_dir, struct err *e)
{
    int r = refuse_model_fields(d, e);

    if (!d->command && !is_refused(e, "command"))
        r = err_add_field(e, "command", "is required for an agent of kind process");
    if (d->working_dir && *d->working_dir && d->working_dir[0] != '/')
        r = err_add_field(e, "working_dir", "must be an absolute path");
    if (check_env(d, e) < 0 || sandbox_definition_check(&d->sandbox, "sandbox", data_dir, e) < 0)
        r = -EINVAL;
    return r;
}

/* A star ends the tool's part, or is the whole server's part. */
static bool is_pattern(const char *pattern)
{
    const char *slash = strchr(pattern, '/');
    const char *star = slash ? strchr(slash, '*') : NULL;
    size_t n_server = slash ? (size_t)(slash - pattern) : 0;

    if (n_server == 0 || n_server > LIMIT_NAME_CHARS || !slash[1] || strlen(slash + 1) > LIMIT_NAME_CHARS)
        return false;
    if (memchr(pattern, '*', n_server) && n_server > 1)
        return false;
    for (const char *p = pattern; *p; p++)
        if ((unsigned char)*p <= ' ' || *p == 0x7f)
            return false;
    return !star || !star[1];
}

static int check_model(const struct agent_definition *d, struct err *e)
{
    int r = refuse_process_fields(d, e);

    for (size_t i = 0; i < d->tools.n; i++) {
        char field[32];

        snprintf(field, sizeof(field), "tools[%zu]", i);
        if (!is_pattern(d->tools.items[i]))
            r = err_add_field(e, field, "must be a pattern such as server/tool, server/prefix*, server/* or builtin/*");
    }
    return r;
}

int agent_definition_check(const struct agent_definition *d, const char *data_dir, struct err *e)
{
    if (agent_is_model(d))
        return check_model(d, e);
    if (d->name && strcmp(d->name, AGENT_DEFAULT) == 0)
        return err_add_field(e, "kind", "must be model for the agent " AGENT_DEFAULT);
    return check_process(d, data_dir, e);
}

/* ---- patterns ---- */

bool agent_tool_matches(const char *pattern, const char *server, const char *tool)
{
    const char *slash = strchr(pattern, '/');
    size_t n_server = slash ? (size_t)(slash - pattern) : 0, n_tool = slash ? strlen(slash + 1) : 0;
    bool is_any = n_server == 1 && pattern[0] == '*';

    if (n_server == 0 || n_tool == 0)
        return false;
    if (!is_any && (strlen(server) != n_server || memcmp(pattern, server, n_server) != 0))
        return false;
    if (slash[n_tool] == '*')
        return strncmp(slash + 1, tool, n_tool - 1) == 0;
    return strcmp(slash + 1, tool) == 0;
}

bool agent_tools_hold(const struct agent_definition *d, const char *server, const char *tool)
{
    for (size_t i = 0; i < d->tools.n; i++)
        if (agent_tool_matches(d->tools.items[i], server, tool))
            return true;
    return false;
}

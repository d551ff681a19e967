#include "apps/config.h"

#include "apps/config_rules.h"
#include "backend/backend.h"
#include "base/limits.h"

static const char *const app_types[] = { "python", "node", "npx", "uvx", "custom", NULL };
static const char *const event_names[] = { "INSERT", "UPDATE", "DELETE", NULL };
static const char *const backend_modes[] = { "compatible", "custom", NULL };

enum { PATH_CHARS = 4096 };

static const struct field handler_fields[] = {
    FIELD_STRING(struct app_handler, table_name, "tableName", FIELD_REQUIRED, .min = 1, .max = LIMIT_TABLE_NAME),
    FIELD_STRING(struct app_handler, agent_id, "agentId", FIELD_REQUIRED, .min = 1, .max = LIMIT_NAME_CHARS,
                 .help = "name of the agent that does the work"),
    FIELD_STRINGS(struct app_handler, event_types, "eventTypes", FIELD_REQUIRED, .min = 1, .max = 3,
                  .one_of = event_names),
    FIELD_STRING(struct app_handler, description, "description", .max = LIMIT_TEXT_CHARS),
    FIELD_STRING(struct app_handler, workspace_slug, "workspaceSlug", .max = LIMIT_NAME_CHARS),
    FIELD_STRING(struct app_handler, thread_slug, "threadSlug", .max = LIMIT_NAME_CHARS),
    FIELD_STRING(struct app_handler, prompt, "prompt", .max = LIMIT_STRING_DEFAULT),
    FIELD_BOOL(struct app_handler, is_review, "review", .help = "a person starts it from the calendar"),
    FIELD_END,
};

static const struct field backend_fields[] = {
    FIELD_BOOL(struct app_backend_config, is_enabled, "enabled"),
    FIELD_STRING(struct app_backend_config, mode, "mode", .one_of = backend_modes, .def_str = "compatible"),
    FIELD_STRINGS(struct app_backend_config, tables, "tables", .max = LIMIT_APP_TABLES, .help = "schema.table"),
    FIELD_OBJECT(struct app_backend_config, schema, "schema",
                 .help = "tables with columns of their own, which hold data of the app: docs/local-apps.md"),
    FIELD_OBJECT(struct app_backend_config, table_actions, "tableActions",
                 .help = "table to the events that count: INSERT, UPDATE, DELETE; without it all three"),
    FIELD_STRING(struct app_backend_config, filter, "filter", .max = LIMIT_FILTER_BYTES,
                 .help = "column=operator.value; operators eq, neq, gt, gte, lt, lte"),
    FIELD_INT(struct app_backend_config, max_concurrent_tasks, "max_concurrent_tasks", .min = 1,
              .max = LIMIT_MAX_CONCURRENT, .def = 1),
    FIELD_END,
};

/* In JSON these are below `config`; in the struct they are beside the other members. */
static const struct field launch_fields[] = {
    FIELD_STRING(struct app_config, command, "command", .max = PATH_CHARS,
                 .help = "see docs/local-apps.md for each app_type"),
    FIELD_STRINGS(struct app_config, args, "args", .max = LIMIT_ARGS, .help = "{port} and {data_dir} are filled in"),
    FIELD_STRING(struct app_config, working_dir, "working_dir", .max = PATH_CHARS,
                 .help = "absolute; default: the app's data folder"),
    FIELD_STRING_MAP(struct app_config, env, "env", .max = LIMIT_ARGS),
    FIELD_STRUCT(struct app_config, sandbox, "sandbox", sandbox_definition_fields, .help = "see docs/local-apps.md"),
    FIELD_LIST(struct app_config, handlers, "agentHandlers", handler_fields, struct app_handler,
               .max = LIMIT_APP_HANDLERS),
    FIELD_STRUCT(struct app_config, backend, "supabase", backend_fields,
                 .present_offset = offsetof(struct app_config, has_supabase),
                 .help = "the same as backend, under the name of the hosted one"),
    FIELD_STRUCT(struct app_config, backend, "backend", backend_fields,
                 .present_offset = offsetof(struct app_config, has_backend)),
    FIELD_INT(struct app_config, port, "port", .min = 1, .max = 65535, .def = 0,
              .help = "the app's own port; absent: one of apps.port_min to apps.port_max"),
    FIELD_STRING(struct app_config, home_url, "home_url", .max = LIMIT_URL_CHARS,
                 .help = "where the app shows itself; {port} is filled in"),
    FIELD_END,
};

const struct field app_config_fields[] = {
    FIELD_STRING(struct app_config, app_id, "app_id", .format = "uuid", .help = "made when it is not given"),
    FIELD_STRING(struct app_config, name, "name", FIELD_REQUIRED, .min = 1, .max = LIMIT_NAME_CHARS),
    FIELD_STRING(struct app_config, display_name, "display_name", .max = LIMIT_NAME_CHARS, .help = "default: the name"),
    FIELD_STRING(struct app_config, description, "description", .max = LIMIT_TEXT_CHARS),
    FIELD_STRING(struct app_config, icon, "icon", .max = LIMIT_STRING_DEFAULT),
    FIELD_STRING(struct app_config, app_type, "app_type", .one_of = app_types, .def_str = "custom",
                 .present_offset = offsetof(struct app_config, is_type_given)),
    FIELD_BOOL(struct app_config, is_enabled, "enabled", .help = "starts with the service"),
    FIELD_BOOL(struct app_config, is_user_auth_required, "require_user_auth"),
    FIELD_STRINGS(struct app_config, permissions, "permissions", .max = LIMIT_PERMISSIONS_PER_APP,
                  .help = "the manifest: what the app will ask for"),
    { .kind = FIELD_KIND_STRUCT, .name = "config", .fields = launch_fields, .offset = 0 },
    FIELD_END,
};

bool app_config_is_custom(const struct app_config *c)
{
    return c->backend.is_enabled && c->backend.mode && strcmp(c->backend.mode, "custom") == 0;
}

bool app_config_is_launchable(const struct app_config *c)
{
    return c->is_type_given || (c->command && *c->command);
}

int app_config_check(const struct app_config *c, const char *abbr, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    const struct config_rules rules = {
        .config = c,
        .arena = a,
        .activities = arena_printf(a, "%s_activities", abbr),
        .deletions = arena_printf(a, "%s_deletions", abbr),
        .backend = c->has_supabase && !c->has_backend ? "config.supabase" : "config.backend",
        .e = e,
    };
    unsigned n_before = e->n_fields;

    rules_of_name(&rules);
    rules_of_launch(&rules);
    rules_of_home(&rules);
    rules_of_tables(&rules);
    rules_of_schema(&rules);
    rules_of_table_actions(&rules);
    rules_of_handlers(&rules);
    rules_of_filter(&rules);
    return e->n_fields > n_before ? -EINVAL : 0;
}

static bool is_own_member(const char *name)
{
    for (const struct field *f = app_config_fields; f->name; f++)
        if (strcmp(f->name, name) == 0)
            return true;
    return false;
}

int app_config_check_place(struct json_value json, struct err *e)
{
    unsigned n_before = e->n_fields;

    for (const struct field *f = launch_fields; f->name; f++)
        if (!is_own_member(f->name) && json_type(json_get(json, f->name)) > JSON_NULL)
            err_add_field(e, f->name, "must stand inside config: config.%s", f->name);
    return e->n_fields > n_before ? -EINVAL : 0;
}

#define PORT_MARK "{port}"

const char *app_home_url(struct arena *a, const struct app_config *c, uint16_t port)
{
    const char *rest = c->home_url, *mark;
    struct buf out;

    if (!rest || !*rest || (!port && strstr(rest, PORT_MARK)))
        return NULL;
    buf_init(&out, LIMIT_URL_CHARS * 4);
    for (; (mark = strstr(rest, PORT_MARK)); rest = mark + strlen(PORT_MARK)) {
        buf_add(&out, rest, (size_t)(mark - rest));
        buf_printf(&out, "%u", port);
    }
    buf_add_str(&out, rest);
    return buf_to_arena(&out, a);
}

/* The name stands in for a missing display name. */
static void config_complete(struct app_config *c)
{
    if (!c->display_name || !*c->display_name)
        c->display_name = c->name;
}

int app_config_read(struct arena *a, struct slice json, struct app_config *ret, struct err *e)
{
    struct json_value object;
    struct app_config c = { 0 };
    int r = json_parse(a, json, &object, e);

    if (r == 0)
        r = fields_read(app_config_fields, object, &c, a, "", e);
    if (r < 0)
        return r;
    config_complete(&c);
    *ret = c;
    return 0;
}

#include "apps/config_rules.h"

#include "apps/config_schema.h"
#include "backend/filter.h"
#include "base/limits.h"
#include "net/url.h"
#include "os/env.h"
#include <strings.h>

/* A name appears in paths, channels and terminals. */
void rules_of_name(const struct config_rules *x)
{
    const char *name = x->config->name;

    if (!name)
        return;
    for (const unsigned char *at = (const unsigned char *)name; *at; at++)
        if (*at < ' ' || *at == 0x7f || *at == '/') {
            err_add_field(x->e, "name", "must not contain slashes or control characters");
            return;
        }
}

static bool is_blank(const char *text)
{
    return !text || !*text;
}

static void rules_of_working_dir(const struct config_rules *x)
{
    const char *dir = x->config->working_dir;

    if (!is_blank(dir) && dir[0] != '/' && strncmp(dir, "{data_dir}", strlen("{data_dir}")) != 0)
        err_add_field(x->e, "config.working_dir", "must be an absolute path");
}

static void rules_of_env(const struct config_rules *x)
{
    struct env_list *probe = env_list_new(x->arena);
    struct json_value value;
    struct slice name;

    for (struct json_iter it = json_iter(x->config->env); json_next(&it, &name, &value);) {
        const char *field = arena_printf(x->arena, "config.env.%s", name.p);
        int r = env_list_set(probe, name.p, json_cstr(value), NULL);

        if (r == -E2BIG)
            err_add_field(x->e, field, "must be at most %d bytes long with its name", LIMIT_ARG_BYTES);
        else if (r < 0)
            err_add_field(x->e, field,
                          "must have a name of letters, digits and underscores that does not begin with a digit");
    }
}

void rules_of_launch(const struct config_rules *x)
{
    const struct app_config *c = x->config;
    bool is_custom = !c->app_type || strcmp(c->app_type, "custom") == 0;

    if (c->app_type && is_custom && is_blank(c->command) && (c->is_type_given || c->is_enabled))
        err_add_field(x->e, "config.command", "is required when app_type is custom");
    else if (!is_custom && is_blank(c->command) && c->args.n == 0)
        err_add_field(x->e, "config.args", "must name the script or package to run when config.command does not");
    rules_of_working_dir(x);
    rules_of_env(x);
}

/* A browser is sent to it, so it must be an http or https address. */
static void rule_home_url(const struct config_rules *x)
{
    const char *url = app_home_url(x->arena, x->config, 1);
    struct err why = { 0 };
    struct url parts;

    for (const unsigned char *at = (const unsigned char *)(url ? url : ""); *at; at++)
        if (*at <= ' ' || *at == 0x7f) {
            err_add_field(x->e, "config.home_url", "must not contain spaces or control characters");
            return;
        }
    if (url && url_parse(x->arena, url, &parts, &why) < 0)
        err_add_field(x->e, "config.home_url", "is refused: %s", why.text);
}

/* In Custom Mode the service calls the app. */
static void rule_address(const struct config_rules *x)
{
    if (app_config_is_custom(x->config) && is_blank(x->config->home_url) && !app_config_is_launchable(x->config))
        err_add_field(x->e, "config.home_url", "must be given when %s.mode is custom and Hearth does not start the app",
                      x->backend);
}

void rules_of_home(const struct config_rules *x)
{
    rule_home_url(x);
    rule_address(x);
    if (x->config->has_backend && x->config->has_supabase)
        err_add_field(x->e, "config.supabase", "must not be given beside config.backend: both are the same block");
}

/* --- tables --- */

#define TABLE_RULE "must be " BACKEND_TABLE_RULE

static const char *member_of(const struct config_rules *x, const char *name)
{
    return arena_printf(x->arena, "%s.%s", x->backend, name);
}

static char *table_of(const struct config_rules *x, const char *declared)
{
    char *name = NULL;

    return backend_table_name(x->arena, declared, &name, NULL) < 0 ? NULL : name;
}

static bool is_table_declared(const struct config_rules *x, const char *name, size_t n_tables)
{
    for (size_t i = 0; i < n_tables; i++) {
        const char *declared = table_of(x, x->config->backend.tables.items[i]);

        if (declared && strcmp(declared, name) == 0)
            return true;
    }
    return false;
}

/* The table must be one of the backend block, or the activities table that every app has. */
static void rule_known_table(const struct config_rules *x, const char *declared, const char *field)
{
    const char *name = declared ? table_of(x, declared) : x->activities;

    if (!name)
        err_add_field(x->e, field, TABLE_RULE, LIMIT_TABLE_NAME_PART);
    else if (strcmp(name, x->activities) != 0 && !is_table_declared(x, name, x->config->backend.tables.n))
        err_add_field(x->e, field, "names the table %s, which is neither in %s.tables nor %s", declared, x->backend,
                      x->activities);
}

/* Tables of the service and of SQLite are in the same file; SQLite compares names without case. */
static bool is_reserved(const struct config_rules *x, const char *name)
{
    return name[0] == '_' || strncasecmp(name, "sqlite_", strlen("sqlite_")) == 0 ||
           strcasecmp(name, x->deletions) == 0;
}

void rules_of_tables(const struct config_rules *x)
{
    const struct app_backend_config *b = &x->config->backend;

    for (size_t i = 0; i < b->tables.n; i++) {
        const char *field = arena_printf(x->arena, "%s.tables[%zu]", x->backend, i);
        const char *name = table_of(x, b->tables.items[i]);

        if (!name)
            err_add_field(x->e, field, TABLE_RULE, LIMIT_TABLE_NAME_PART);
        else if (is_reserved(x, name))
            err_add_field(x->e, field,
                          "must not begin with _ or sqlite_ and must not be %s: those tables are the service's own",
                          x->deletions);
        else if (is_table_declared(x, name, i))
            err_add_field(x->e, field, "names the table %s a second time", b->tables.items[i]);
        else if (app_config_is_custom(x->config) && strcmp(name, x->activities) == 0)
            err_add_field(x->e, field, "must not be %s in Custom Mode: that table is the service's", x->activities);
    }
    if (app_config_is_custom(x->config) && b->tables.n == 0)
        err_add_field(x->e, member_of(x, "tables"), "must name at least one table when %s.mode is custom", x->backend);
}

static void rule_column(const struct config_rules *x, const struct table_shape *t, const char *name,
                        const enum table_type *types, size_t n_types)
{
    const struct table_column *c = table_shape_column(t, slice_of(name));

    for (size_t i = 0; c && i < n_types; i++)
        if (c->type == types[i])
            return;
    err_add_field(x->e, arena_printf(x->arena, "%s.schema.%.130s.columns.%s", x->backend, t->table, name),
                  "must be declared with the type %s: %s is a table of Custom Mode", table_type_word(types[0]),
                  t->table);
}

/* Work of Custom Mode: docs/custom-mode.md. */
static void rules_of_custom_table(const struct config_rules *x, const struct table_shape *t)
{
    static const enum table_type text[] = { TABLE_TEXT }, time[] = { TABLE_TIMESTAMPTZ, TABLE_TIMESTAMP };
    size_t n_keys = 0;

    rule_column(x, t, "status", text, ARRAY_SIZE(text));
    rule_column(x, t, "locked_by", text, ARRAY_SIZE(text));
    rule_column(x, t, "locked_at", time, ARRAY_SIZE(time));
    for (size_t i = 0; i < t->n_columns; i++)
        n_keys += t->columns[i].is_key;
    if (n_keys != 1)
        err_add_field(x->e, arena_printf(x->arena, "%s.schema.%.130s.columns", x->backend, t->table),
                      "must have a key of one column: %s is a table of Custom Mode", t->table);
}

/* A table of work has the columns of the Activities table, but for those of Custom Mode. */
void rules_of_schema(const struct config_rules *x)
{
    const char *path = member_of(x, "schema");
    struct app_schema schema = { 0 };

    if (app_schema_read(x->arena, x->config->backend.schema, path, &schema, x->e) < 0)
        return;
    for (size_t i = 0; i < schema.n; i++) {
        const char *field = arena_printf(x->arena, "%s.%s", path, schema.tables[i].table);

        if (is_reserved(x, schema.tables[i].table) || strcmp(schema.tables[i].table, x->activities) == 0)
            err_add_field(x->e, field, "must not be a table of the service itself");
        else if (!is_table_declared(x, schema.tables[i].table, x->config->backend.tables.n))
            continue;
        else if (app_config_is_custom(x->config))
            rules_of_custom_table(x, &schema.tables[i]);
        else
            err_add_field(x->e, field, "must not be in %s.tables too: its rows are data, not work", x->backend);
    }
}

static bool is_event(const char *name)
{
    return name && (strcmp(name, "INSERT") == 0 || strcmp(name, "UPDATE") == 0 || strcmp(name, "DELETE") == 0);
}

static void rule_events(const struct config_rules *x, struct json_value events, const char *field)
{
    struct json_value event;
    bool is_good = json_type(events) == JSON_ARRAY && json_length(events) > 0;

    for (struct json_iter it = json_iter(events); is_good && json_next(&it, NULL, &event);)
        is_good = is_event(json_cstr(event));
    if (!is_good)
        err_add_field(x->e, field, "must be an array of INSERT, UPDATE, DELETE with at least one of them");
}

void rules_of_table_actions(const struct config_rules *x)
{
    struct json_value events;
    struct slice table;

    if (json_length(x->config->backend.table_actions) > LIMIT_APP_TABLES + 1) {
        err_add_field(x->e, member_of(x, "tableActions"), "must have at most %d members", LIMIT_APP_TABLES + 1);
        return;
    }
    for (struct json_iter it = json_iter(x->config->backend.table_actions); json_next(&it, &table, &events);) {
        const char *field = arena_printf(x->arena, "%s.tableActions.%s", x->backend, table.p);

        rule_known_table(x, table.p, field);
        rule_events(x, events, field);
    }
}

/* --- handlers --- */

static bool share_event(const struct app_handler *one, const struct app_handler *other)
{
    for (size_t i = 0; i < one->event_types.n; i++)
        for (size_t k = 0; k < other->event_types.n; k++)
            if (strcmp(one->event_types.items[i], other->event_types.items[k]) == 0)
                return true;
    return false;
}

/* Two handlers for one event of one table would make it undefined which of them works. */
static void rule_no_second_handler(const struct config_rules *x, size_t at, const char *field)
{
    const struct app_handler *handlers = x->config->handlers.items;
    const char *table = table_of(x, handlers[at].table_name);

    for (size_t i = 0; table && i < at; i++) {
        const char *other = table_of(x, handlers[i].table_name);

        if (other && strcmp(other, table) == 0 && share_event(&handlers[i], &handlers[at])) {
            err_add_field(x->e, field, "is for an event of %s that config.agentHandlers[%zu] has already",
                          handlers[at].table_name, i);
            return;
        }
    }
}

void rules_of_handlers(const struct config_rules *x)
{
    const struct app_handler *handlers = x->config->handlers.items;

    for (size_t i = 0; i < x->config->handlers.n; i++) {
        const char *field = arena_printf(x->arena, "config.agentHandlers[%zu]", i);

        rule_known_table(x, handlers[i].table_name, arena_printf(x->arena, "%s.tableName", field));
        rule_no_second_handler(x, i, field);
        if (handlers[i].prompt && strlen(handlers[i].prompt) > LIMIT_PROMPT_BYTES)
            err_add_field(x->e, arena_printf(x->arena, "%s.prompt", field), "must be at most %d bytes long",
                          LIMIT_PROMPT_BYTES);
    }
}

void rules_of_filter(const struct config_rules *x)
{
    struct filter *filter;
    struct err why = { 0 };

    if (filter_parse(x->arena, x->config->backend.filter, &filter, &why) < 0)
        err_add_field(x->e, member_of(x, "filter"), "is refused: %s", why.text);
}

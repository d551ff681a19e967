/* Connects siblings: apps provide the listeners of tasks, changes reach the event stream. */
#include "service/private.h"

#include "api/resources/events.h"
#include "apps/config_schema.h"
#include "backend/custom/custom.h"
#include "base/limits.h"
#include "base/log.h"

/* ---- apps -> listeners of tasks ---- */

struct listener_list {
    struct service *service;
    struct arena *arena;
    struct task_listener *items;
    size_t n;
    struct custom_table *custom; /* tables of apps in Custom Mode */
    size_t n_custom;
};

static unsigned events_mask(const char *const *names, size_t n)
{
    static const enum backend_op ops[] = { BACKEND_INSERT, BACKEND_UPDATE, BACKEND_DELETE };
    unsigned mask = 0;

    for (size_t i = 0; i < n; i++)
        for (size_t op = 0; op < ARRAY_SIZE(ops); op++)
            if (strcmp(names[i], backend_op_name(ops[op])) == 0)
                mask |= ops[op];
    return mask;
}

static unsigned mask_of_list(struct json_value list)
{
    struct json_iter it = json_iter(list);
    struct json_value item;
    unsigned mask = 0;

    while (json_next(&it, NULL, &item)) {
        const char *name = json_cstr(item);
        mask |= name ? events_mask(&name, 1) : 0;
    }
    return mask;
}

/* The events of a table that count. tableActions may spell the table's name differently from `tables` ("public.orders",
 * "orders"). */
static unsigned actions_mask(struct json_value actions, const char *table)
{
    AUTO(arena_freep) struct arena *scratch = arena_new();
    struct json_iter it = json_iter(actions);
    struct json_value list;
    struct slice key;
    char *name;

    while (json_next(&it, &key, &list))
        if (backend_table_name(scratch, key.p, &name, NULL) == 0 && strcmp(name, table) == 0)
            return mask_of_list(list);
    return BACKEND_INSERT | BACKEND_UPDATE | BACKEND_DELETE;
}

static int copy_tables(struct listener_list *list, const struct app_config *app, struct task_listener *to,
                       struct err *e)
{
    size_t n = app->backend.tables.n + 1;
    const char **tables = arena_array(list->arena, n, sizeof(*tables));
    unsigned *events = arena_array(list->arena, n, sizeof(*events));
    AUTO(arena_freep) struct arena *scratch = arena_new();
    char *abbr = settings_string(list->service->settings, scratch, SETTING_IDENTITY_ABBR);

    /* The activities table is implicit; a declared one of that name is the same table. */
    tables[0] = arena_printf(list->arena, "%s_activities", abbr);
    events[0] = actions_mask(app->backend.table_actions, tables[0]);
    to->n_tables = 1;
    for (size_t i = 0; i < app->backend.tables.n; i++) {
        char *name;
        size_t at = to->n_tables;
        int r = backend_table_name(list->arena, app->backend.tables.items[i], &name, e);

        if (r < 0)
            return r;
        if (strcmp(name, tables[0]) == 0)
            at = 0;
        else
            to->n_tables++;
        tables[at] = name;
        events[at] = actions_mask(app->backend.table_actions, name);
    }
    to->tables = tables;
    to->table_events = events;
    return 0;
}

static bool is_custom_table(const struct listener_list *list, const char *table)
{
    for (size_t i = 0; i < list->n_custom; i++)
        if (strcmp(list->custom[i].table, table) == 0)
            return true;
    return false;
}

/* The activities table, which every listener has first, stays the service's. */
static void note_custom_tables(struct listener_list *list, const struct task_listener *of)
{
    for (size_t i = 1; i < of->n_tables; i++)
        if (!is_custom_table(list, of->tables[i]))
            list->custom[list->n_custom++] = (struct custom_table){ of->tables[i], of->app_id, of->table_events[i] };
}

static int copy_handlers(struct listener_list *list, const struct app_config *app, struct task_listener *to,
                         struct err *e)
{
    const struct app_handler *from = app->handlers.items;
    struct task_handler *handlers = arena_array(list->arena, MAX(app->handlers.n, (size_t)1), sizeof(*handlers));

    for (size_t i = 0; i < app->handlers.n; i++) {
        char *table;
        int r = backend_table_name(list->arena, from[i].table_name, &table, e);

        if (r < 0)
            return r;
        handlers[i] = (struct task_handler){
            .table = table,
            .agent_name = from[i].agent_id,
            .workspace_slug = from[i].workspace_slug,
            .thread_slug = from[i].thread_slug,
            .prompt = from[i].prompt,
            .events = events_mask(from[i].event_types.items, from[i].event_types.n),
            .is_review = from[i].is_review,
        };
    }
    to->handlers = handlers;
    to->n_handlers = app->handlers.n;
    return 0;
}

static int add_listener(void *arg, const struct app_config *app, struct err *e)
{
    struct listener_list *list = arg;
    struct task_listener *to = &list->items[list->n];
    struct err why = { 0 };
    int r;

    if (app_schema_declare(list->service->backend, app, &why) < 0)
        log_warn("apps", NULL, "tables of the app %s cannot be made: %s", LOG_Q(app->name), LOG_Q(why.text));

    if (!app->backend.is_enabled || list->n == LIMIT_APPS)
        return 0;
    *to = (struct task_listener){
        .app_id = app->app_id,
        .app_name = app->name,
        .display_name = app->display_name,
        .max_concurrent = app->backend.max_concurrent_tasks,
    };
    r = filter_parse(list->arena, app->backend.filter, &to->filter, e);
    if (r == 0)
        r = copy_tables(list, app, to, e);
    if (r == 0)
        r = copy_handlers(list, app, to, e);
    if (r == 0 && app_config_is_custom(app))
        note_custom_tables(list, to);
    list->n += r == 0;
    return r;
}

int wire_listeners(void *service, struct arena *a, struct task_listeners *ret, struct err *e)
{
    struct service *s = service;
    struct listener_list list = { .service = s, .arena = a };
    int r;

    list.items = arena_array(a, LIMIT_APPS, sizeof(*list.items));
    list.custom = arena_array(a, (size_t)LIMIT_APPS * LIMIT_APP_TABLES, sizeof(*list.custom));
    r = app_each(s->apps, a, add_listener, &list, e);
    if (r < 0)
        return r;
    wire_custom_tables(s, list.custom, list.n_custom);
    *ret = (struct task_listeners){ list.items, list.n };
    return 0;
}

/* ---- changes -> subscribers ---- */

void wire_app_changed(void *service, const char *app_id)
{
    struct service *s = service;

    if (s->tasks)
        tasks_listeners_changed(s->tasks);
    wire_custom_app_changed(s, app_id);
    if (s->events)
        api_events_app(s->events, app_id);
}

void wire_task_changed(void *service, const char *task_uuid, const char *status)
{
    struct service *s = service;

    if (s->events)
        api_events_task(s->events, task_uuid, status);
    mcp_api_task_changed(s->mcp_api, task_uuid, status);
}

void wire_consent_changed(void *service)
{
    struct service *s = service;

    if (s->events)
        api_events_consent(s->events);
    mcp_api_tools_changed(s->mcp_api);
}

void wire_mcp_changed(void *service, const char *server)
{
    struct service *s = service;

    if (s->events)
        api_events_mcp_server(s->events, server);
    mcp_api_tools_changed(s->mcp_api);
}

void wire_approval_changed(void *service)
{
    struct service *s = service;

    if (s->events)
        api_events_approval(s->events);
    if (s->tasks)
        tasks_waits_changed(s->tasks);
}

/* --- the service's port in the network of a child --- */

void wire_child_port(void *service, int fd, uint64_t tag)
{
    struct service *s = service;
    struct err e = { 0 };

    if (http_server_listen_fd(s->server, fd, tag, &e) < 0)
        log_warn("service", NULL, "a child without network cannot reach the service: %s", e.text);
}

void wire_child_ended(void *service, uint64_t tag)
{
    struct service *s = service;

    if (s->server)
        http_server_unlisten(s->server, tag);
}

void wire_provider_found(void *service)
{
    struct service *s = service;

    log_info("service", NULL,
             "a model server was found on this machine and waits for your yes; `hearth provider list` shows it");
    if (s->events)
        api_events_provider(s->events);
}

void wire_contact(void *service, const char *app_id, const char *app_name, const char *program)
{
    struct service *s = service;

    log_warn("identity", NULL, "a program that Hearth did not start, %s, uses the id of %s", LOG_Q(program),
             LOG_Q(app_name));
    if (s->events)
        api_events_contact(s->events, app_id, app_name, program);
}

bool wire_may_use_socket(void *service, pid_t pid)
{
    const struct service *s = service;

    return !s->supervisor || !supervisor_has_in_sandbox(s->supervisor, pid);
}

/* The subscription monitor (specification, "Presence"): machines that are there, and how changes arrive, by app and
 * table. */
#include "api/resources/presence.h"
#include "api/routes.h"
#include "backend/monitor.h"
#include "tasks/tasks.h"

static const struct field subscription_shape[] = {
    SHAPE_STRING("app_id", .flags = FIELD_NULLABLE, .help = "null: no app lists the table"),
    SHAPE_STRING("app_name", .flags = FIELD_NULLABLE),
    SHAPE_STRING("table"),
    SHAPE_STRING("filter", .flags = FIELD_NULLABLE, .help = "of the subscription itself; null: every row"),
    SHAPE_STRING("state", .help = "connecting, joining, live or failed"),
    SHAPE_TIME("last_event_at", .flags = FIELD_NULLABLE, .help = "null: none since the start of the service"),
    SHAPE_INT("lag_ms", .flags = FIELD_NULLABLE,
              .help = "from the commit of the last event that tells it to its arrival"),
    SHAPE_INT("events"),
    SHAPE_INT("gaps", .help = "times after which the rows were read because changes could be missing"),
    SHAPE_INT("retries"),
    SHAPE_STRING("last_error", .flags = FIELD_NULLABLE),
    SHAPE_TIME("last_error_at", .flags = FIELD_NULLABLE),
    FIELD_END,
};

static const struct field monitor_answer[] = {
    SHAPE_STRING("provider", .help = "a value of backend.kind"),
    SHAPE_STRING("way", .help = "how changes arrive"),
    SHAPE_STRING("state", .help = "of the connection that brings changes"),
    SHAPE_INT("connects"),
    SHAPE_INT("ignored", .help = "messages without a meaning for this service"),
    SHAPE_STRING("last_error", .flags = FIELD_NULLABLE),
    SHAPE_TIME("last_error_at", .flags = FIELD_NULLABLE),
    SHAPE_LIST("machines", presence_machine_shape),
    SHAPE_STRING("machines_error", .flags = FIELD_NULLABLE, .help = "why the machines are not known now"),
    SHAPE_LIST("subscriptions", subscription_shape),
    FIELD_END,
};

struct shown {
    const char *app_id, *app_name;
    struct backend_subscription s;
};

static void write_subscription(struct json_writer *w, const struct shown *shown)
{
    const struct backend_subscription *s = &shown->s;

    json_begin_object(w);
    json_add_string(w, "app_id", shown->app_id);
    json_add_string(w, "app_name", shown->app_name);
    json_add_string(w, "table", s->table);
    json_add_string(w, "filter", s->filter);
    json_add_string(w, "state", backend_link_state_name(s->state));
    json_add_string(w, "last_event_at", s->last_event_at);
    if (s->lag_ms >= 0)
        json_add_int(w, "lag_ms", s->lag_ms);
    else
        json_add_null(w, "lag_ms");
    json_add_int(w, "events", s->n_events);
    json_add_int(w, "gaps", s->n_gaps);
    json_add_int(w, "retries", s->n_retries);
    json_add_string(w, "last_error", s->last_error);
    json_add_string(w, "last_error_at", s->last_error_at);
    json_end(w);
}

/* Where one stream brings all tables, its state is that of each. */
static struct backend_subscription as_shown(const struct backend_monitor *m, const struct backend_subscription *s)
{
    struct backend_subscription shown = *s;

    if (!m->is_whole)
        return shown;
    shown.state = m->state;
    shown.n_retries = m->n_connects > 1 ? m->n_connects - 1 : 0;
    shown.last_error = m->last_error;
    shown.last_error_at = m->last_error_at;
    return shown;
}

/* Every subscription of the table; one without a state when the backend has none. */
static void write_table(struct json_writer *w, const struct backend_monitor *m, struct shown shown, const char *table)
{
    const struct backend_subscription none = { .table = table, .lag_ms = -1, .state = BACKEND_LINK_CONNECTING };
    size_t n = 0;

    for (size_t i = 0; i < m->n; i++)
        if (strcmp(m->items[i].table, table) == 0) {
            shown.s = as_shown(m, &m->items[i]);
            write_subscription(w, &shown);
            n++;
        }
    if (n > 0)
        return;
    shown.s = as_shown(m, &none);
    write_subscription(w, &shown);
}

static bool is_listed(const struct task_listener *l, const char *table)
{
    for (size_t i = 0; i < l->n_tables; i++)
        if (strcmp(l->tables[i], table) == 0)
            return true;
    return false;
}

/* Tables that no app lists: those of other programs, and the service's own. */
static void write_others(struct json_writer *w, const struct backend_monitor *m, const struct task_listeners *apps)
{
    for (size_t i = 0; i < m->n; i++) {
        const struct shown shown = { .s = as_shown(m, &m->items[i]) };
        bool is_of_app = false;

        for (size_t k = 0; k < apps->n && !is_of_app; k++)
            is_of_app = is_listed(&apps->items[k], m->items[i].table);
        if (!is_of_app)
            write_subscription(w, &shown);
    }
}

static void write_subscriptions(struct json_writer *w, const struct backend_monitor *m,
                                const struct task_listeners *apps)
{
    json_begin_array_as(w, "subscriptions");
    for (size_t i = 0; i < apps->n; i++) {
        const struct task_listener *l = &apps->items[i];

        for (size_t k = 0; k < l->n_tables; k++)
            write_table(w, m, (struct shown){ .app_id = l->app_id, .app_name = l->app_name }, l->tables[k]);
    }
    write_others(w, m, apps);
    json_end(w);
}

/* The rest is shown although the machines cannot be had now. */
static void write_machines(struct request *req, struct json_writer *w)
{
    struct backend_presences found = { 0 };
    struct err why = { 0 };
    int r = presence_read(req, &found, &why);

    presence_write(w, &found);
    json_add_string(w, "machines_error", r < 0 ? why.text : NULL);
}

static int show_monitor(struct request *req, struct response *res, struct err *e)
{
    struct backend *backend = req->api->backend;
    struct json_writer *w = &res->json;
    struct task_listeners apps = { 0 };
    struct backend_monitor m;
    int r = tasks_read_listeners(req->api->tasks, req->arena, &apps, e);

    if (r < 0)
        return r;
    backend->ops->monitor(backend, req->arena, &m);
    json_add_string(w, "provider", backend->ops->name);
    json_add_string(w, "way", m.way);
    json_add_string(w, "state", backend_link_state_name(m.state));
    json_add_int(w, "connects", m.n_connects);
    json_add_int(w, "ignored", m.n_ignored);
    json_add_string(w, "last_error", m.last_error);
    json_add_string(w, "last_error_at", m.last_error_at);
    write_machines(req, w);
    write_subscriptions(w, &m, &apps);
    return 0;
}

const struct route backend_monitor_routes[] = {
    { .method = HTTP_GET,
      .path = "/api/backend/monitor",
      .permission = PERM_ADMIN,
      .uses_rows = true,
      .answer = monitor_answer,
      .handler = show_monitor,
      .summary = "Machines that listen, and the state of each subscription",
      .tag = "Backend" },
    ROUTE_END,
};

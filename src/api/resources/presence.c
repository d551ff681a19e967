/* Which machines listen now (specification, "Presence record"): the Subscription Monitor's list. */
#include "api/resources/presence.h"
#include "api/routes.h"
#include "tasks/tasks.h"

/* A machine without a heartbeat for three intervals is no longer shown. */
const struct field presence_machine_shape[] = {
    SHAPE_STRING("machine_id"), SHAPE_STRING("user_email", .flags = FIELD_NULLABLE),
    SHAPE_STRING("hostname"),   SHAPE_STRING("app_name", .flags = FIELD_NULLABLE),
    SHAPE_TIME("online_at"),    FIELD_END,
};

static const struct field machines_answer[] = { SHAPE_LIST("machines", presence_machine_shape), FIELD_END };

static void write_machine(struct json_writer *w, const struct backend_presence *p)
{
    json_begin_object(w);
    json_add_string(w, "machine_id", p->machine_id);
    json_add_string(w, "user_email", p->user_email);
    json_add_string(w, "hostname", p->hostname);
    json_add_string(w, "app_name", p->app_name);
    json_add_string(w, "online_at", p->online_at);
    json_end(w);
}

int presence_read(struct request *req, struct backend_presences *ret, struct err *e)
{
    int64_t fresh_ms = TASK_MISSED_SIGNS * settings_ms(req->api->settings, SETTING_TASKS_PRESENCE_S);
    struct backend *backend = req->api->backend;

    return backend->ops->presence_list(backend, fresh_ms, req->arena, ret, e);
}

void presence_write(struct json_writer *w, const struct backend_presences *found)
{
    json_begin_array_as(w, "machines");
    for (size_t i = 0; i < found->n; i++)
        write_machine(w, &found->items[i]);
    json_end(w);
}

static int list_machines(struct request *req, struct response *res, struct err *e)
{
    struct backend_presences found;
    int r = presence_read(req, &found, e);

    if (r == 0)
        presence_write(&res->json, &found);
    return r;
}

const struct route presence_routes[] = {
    { .method = HTTP_GET,
      .path = "/api/presence",
      .permission = PERM_ADMIN,
      .uses_rows = true,
      .answer = machines_answer,
      .handler = list_machines,
      .summary = "Machines that listen now",
      .tag = "Tasks" },
    ROUTE_END,
};

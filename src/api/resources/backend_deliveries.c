/* Ends of tasks on their way to apps in Custom Mode (backend/custom/custom_delivery.h), for the local administrator. */
#include "backend/custom/custom.h"

#include "api/api.h"
#include "api/routes.h"
#include "identity/audit.h"

struct deliveries_query {
    const char *app_id, *state;
    int64_t limit;
};

static const char *const delivery_states[] = { "waiting", "dead", "delivered", "dropped", NULL };

static const struct field deliveries_query_fields[] = {
    FIELD_STRING(struct deliveries_query, app_id, "app_id", .max = LIMIT_NAME_CHARS),
    FIELD_STRING(struct deliveries_query, state, "state", .one_of = delivery_states,
                 .help = "absent: waiting and dead"),
    FIELD_INT(struct deliveries_query, limit, "limit", .min = 1, .max = LIMIT_LIST, .def = LIMIT_LIST_DEFAULT),
    FIELD_END,
};

static const struct field delivery_shape[] = {
    SHAPE_STRING("id", .format = "uuid", .help = "the header x-<abbr>-event-id of each try"),
    SHAPE_STRING("app_id"),
    SHAPE_STRING("table_name"),
    SHAPE_STRING("task_id", .help = "the key of the row"),
    SHAPE_STRING("machine_id"),
    SHAPE_STRING("action", .help = "complete or fail"),
    SHAPE_STRING("state", .help = "waiting, dead (a person must decide), delivered or dropped"),
    SHAPE_INT("tries"),
    SHAPE_INT("bytes", .help = "of the body"),
    SHAPE_INT("status", .flags = FIELD_NULLABLE, .help = "of the app's last answer; null: it gave none"),
    SHAPE_STRING("error", .flags = FIELD_NULLABLE),
    SHAPE_TIME("next_at", .flags = FIELD_NULLABLE, .help = "of a waiting one: the next try"),
    SHAPE_TIME("created_at"),
    SHAPE_TIME("updated_at"),
    FIELD_END,
};

static const struct field deliveries_answer[] = { SHAPE_LIST("deliveries", delivery_shape), FIELD_END };

static void write_delivery(struct json_writer *w, const struct custom_delivery *d)
{
    json_begin_object(w);
    json_add_string(w, "id", d->id);
    json_add_string(w, "app_id", d->app_id);
    json_add_string(w, "table_name", d->table);
    json_add_string(w, "task_id", d->row_id);
    json_add_string(w, "machine_id", d->machine_id);
    json_add_string(w, "action", d->action);
    json_add_string(w, "state", custom_delivery_state_name(d->state));
    json_add_int(w, "tries", d->n_tries);
    json_add_int(w, "bytes", d->n_bytes);
    if (d->status)
        json_add_int(w, "status", d->status);
    else
        json_add_null(w, "status");
    json_add_string(w, "error", d->error);
    json_add_string(w, "next_at", d->next_at);
    json_add_string(w, "created_at", d->created_at);
    json_add_string(w, "updated_at", d->updated_at);
    json_end(w);
}

static int list_deliveries(struct request *req, struct response *res, struct err *e)
{
    const struct deliveries_query *query = req->query;
    struct custom_delivery_list list = { 0 };
    int state = query->state ? custom_delivery_state_of(query->state) : CUSTOM_NONE;
    int r = custom_delivery_all(custom_backend_deliveries(req->api->backend), query->app_id,
                                (enum custom_delivery_state)state, query->limit, req->arena, &list, e);

    if (r < 0)
        return r;
    json_begin_array_as(&res->json, "deliveries");
    for (size_t i = 0; i < list.n; i++)
        write_delivery(&res->json, &list.items[i]);
    json_end(&res->json);
    return 0;
}

static int retry_delivery(struct request *req, struct response *res, struct err *e)
{
    int r = audit_append(req->api->identity, req->caller->actor, "backend.delivery_retry", req->params[0], NULL, e);

    return r < 0 ? r : custom_delivery_retry(custom_backend_deliveries(req->api->backend), req->params[0], e);
}

static int drop_delivery(struct request *req, struct response *res, struct err *e)
{
    int r = audit_append(req->api->identity, req->caller->actor, "backend.delivery_drop", req->params[0], NULL, e);

    return r < 0 ? r : custom_delivery_drop(custom_backend_deliveries(req->api->backend), req->params[0], e);
}

const struct route backend_delivery_routes[] = {
    { .method = HTTP_GET,
      .path = "/api/backend/deliveries",
      .permission = PERM_ADMIN,
      ROUTE_QUERY(deliveries_query_fields, struct deliveries_query),
      .answer = deliveries_answer,
      .handler = list_deliveries,
      .summary = "Ends of tasks that apps in Custom Mode have not accepted, the newest first",
      .tag = "Backend" },
    { .method = HTTP_POST,
      .path = "/api/backend/deliveries/:id/retry",
      .permission = PERM_ADMIN,
      .answer = api_nothing,
      .handler = retry_delivery,
      .summary = "Send the end of a task to its app again, now and as often as a new one",
      .tag = "Backend" },
    { .method = HTTP_DELETE,
      .path = "/api/backend/deliveries/:id",
      .permission = PERM_ADMIN,
      .uses_rows = true,
      .answer = api_nothing,
      .handler = drop_delivery,
      .summary = "Give up the end of a task: its row waits again, and the work will be done anew",
      .tag = "Backend" },
    ROUTE_END,
};

/* Workspaces and threads (specification, "Workspace and thread"; decision D7). */
#include "store/tables/workspaces.h"

#include "api/api.h"
#include "api/routes.h"
#include "api/slug.h"

struct new_workspace {
    const char *slug, *name, *type;
};
struct new_thread {
    const char *slug, *name;
};
struct thread_query {
    int64_t limit, offset;
};

static const struct field new_workspace_fields[] = {
    FIELD_STRING(struct new_workspace, name, "name", .flags = FIELD_REQUIRED, .min = 1, .max = LIMIT_NAME_CHARS),
    FIELD_STRING(struct new_workspace, slug, "slug", .min = 1, .max = SLUG_CHARS,
                 .help = "made from the name when absent"),
    FIELD_STRING(struct new_workspace, type, "type", .min = 1, .max = LIMIT_NAME_CHARS, .def_str = "default"),
    FIELD_END,
};

static const struct field new_thread_fields[] = {
    FIELD_STRING(struct new_thread, name, "name", .flags = FIELD_REQUIRED, .min = 1, .max = LIMIT_NAME_CHARS),
    FIELD_STRING(struct new_thread, slug, "slug", .min = 1, .max = SLUG_CHARS,
                 .help = "made from the name when absent"),
    FIELD_END,
};

static const struct field thread_query_fields[] = {
    FIELD_INT(struct thread_query, limit, "limit", .min = 1, .max = LIMIT_LIST, .def = LIMIT_LIST),
    FIELD_INT(struct thread_query, offset, "offset", .min = 0, .max = INT32_MAX),
    FIELD_END,
};

static const struct field workspace_shape[] = {
    SHAPE_INT("id"),      SHAPE_STRING("slug"),     SHAPE_STRING("name"),
    SHAPE_STRING("type"), SHAPE_TIME("created_at"), FIELD_END,
};

static const struct field workspace_head_shape[] = { SHAPE_INT("id"), SHAPE_STRING("slug"), SHAPE_STRING("name"),
                                                     FIELD_END };

static const struct field thread_shape[] = {
    SHAPE_INT("id"), SHAPE_STRING("slug"), SHAPE_STRING("name"), SHAPE_TIME("created_at"), FIELD_END,
};

static const struct field workspaces_answer[] = { SHAPE_LIST("workspaces", workspace_shape), FIELD_END };
static const struct field workspace_answer[] = { SHAPE_OBJECT("workspace", workspace_shape), FIELD_END };
static const struct field thread_answer[] = { SHAPE_OBJECT("thread", thread_shape), FIELD_END };
static const struct field threads_answer[] = {
    SHAPE_OBJECT("workspace", workspace_head_shape),
    SHAPE_LIST("threads", thread_shape),
    FIELD_END,
};

static void write_workspace(struct json_writer *w, const char *name, const struct workspace_row *row)
{
    json_begin_object_as(w, name);
    json_add_int(w, "id", row->id);
    json_add_string(w, "slug", row->slug);
    json_add_string(w, "name", row->name);
    json_add_string(w, "type", row->type);
    json_add_string(w, "created_at", row->created_at);
    json_end(w);
}

static void write_thread(struct json_writer *w, const char *name, const struct thread_row *row)
{
    json_begin_object_as(w, name);
    json_add_int(w, "id", row->id);
    json_add_string(w, "slug", row->slug);
    json_add_string(w, "name", row->name);
    json_add_string(w, "created_at", row->created_at);
    json_end(w);
}

static int list_workspaces(struct request *req, struct response *res, struct err *e)
{
    struct workspace_row *rows;
    size_t n;
    int r;

    r = store_workspaces_list(req->api->store, req->arena, &rows, &n, e);
    if (r < 0)
        return r;
    json_begin_array_as(&res->json, "workspaces");
    for (size_t i = 0; i < n; i++)
        write_workspace(&res->json, NULL, &rows[i]);
    json_end(&res->json);
    return 0;
}

static int create_workspace(struct request *req, struct response *res, struct err *e)
{
    const struct new_workspace *body = req->body;
    struct workspace_row row = { .name = body->name, .type = body->type };
    int r;

    r = slug_of(req->arena, body->slug, body->name, &row.slug, e);
    if (r == 0)
        r = store_workspaces_insert(req->api->store, &row, NULL, e);
    if (r == 0)
        r = store_workspaces_get(req->api->store, req->arena, row.slug, &row, e);
    if (r < 0)
        return r;
    write_workspace(&res->json, "workspace", &row);
    return 0;
}

static void write_threads(struct json_writer *w, const struct workspace_row *workspace, const struct thread_row *rows,
                          size_t n)
{
    json_begin_object_as(w, "workspace");
    json_add_int(w, "id", workspace->id);
    json_add_string(w, "slug", workspace->slug);
    json_add_string(w, "name", workspace->name);
    json_end(w);
    json_begin_array_as(w, "threads");
    for (size_t i = 0; i < n; i++)
        write_thread(w, NULL, &rows[i]);
    json_end(w);
}

static int list_threads(struct request *req, struct response *res, struct err *e)
{
    const struct thread_query *query = req->query;
    struct workspace_row workspace = { 0 };
    struct thread_row *rows = NULL;
    size_t n = 0;
    int r;

    r = store_workspaces_get(req->api->store, req->arena, req->params[0], &workspace, e);
    if (r == 0)
        r = store_threads_list(req->api->store, req->arena,
                               &(struct threads_list_request){
                                   .workspace_id = workspace.id, .limit = query->limit, .offset = query->offset },
                               &rows, &n, e);
    if (r < 0)
        return r;
    write_threads(&res->json, &workspace, rows, n);
    return 0;
}

static int create_thread(struct request *req, struct response *res, struct err *e)
{
    const struct new_thread *body = req->body;
    struct workspace_row workspace = { 0 };
    struct thread_row row = { .name = body->name };
    int r;

    r = slug_of(req->arena, body->slug, body->name, &row.slug, e);
    if (r == 0)
        r = store_workspaces_get(req->api->store, req->arena, req->params[0], &workspace, e);
    if (r < 0)
        return r;
    row.workspace_id = workspace.id;
    r = store_threads_insert(req->api->store, &row, NULL, e);
    if (r == 0)
        r = store_threads_get(req->api->store, req->arena, workspace.id, row.slug, &row, e);
    if (r < 0)
        return r;
    write_thread(&res->json, "thread", &row);
    return 0;
}

const struct route workspace_routes[] = {
    { .method = HTTP_GET,
      .path = "/workspaces",
      .permission = PERM_WORKSPACES,
      .is_sdk = true,
      .answer = workspaces_answer,
      .handler = list_workspaces,
      .summary = "Workspaces",
      .tag = "Workspaces" },
    { .method = HTTP_GET,
      .path = "/workspaces/:slug/threads",
      .permission = PERM_THREADS,
      .is_sdk = true,
      ROUTE_QUERY(thread_query_fields, struct thread_query),
      .answer = threads_answer,
      .handler = list_threads,
      .summary = "Threads of a workspace, newest first",
      .tag = "Workspaces" },
    { .method = HTTP_POST,
      .path = "/api/workspaces",
      .permission = PERM_ADMIN,
      ROUTE_BODY(new_workspace_fields, struct new_workspace),
      .status = 201,
      .answer = workspace_answer,
      .handler = create_workspace,
      .summary = "Make a workspace",
      .tag = "Workspaces" },
    { .method = HTTP_POST,
      .path = "/api/workspaces/:slug/threads",
      .permission = PERM_ADMIN,
      ROUTE_BODY(new_thread_fields, struct new_thread),
      .status = 201,
      .answer = thread_answer,
      .handler = create_thread,
      .summary = "Make a thread",
      .tag = "Workspaces" },
    ROUTE_END,
};

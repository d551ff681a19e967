/* Vectors of an app's workspaces (specification, "Vector store"; decision D9; docs/vectors.md). */
#include "api/api.h"
#include "api/resources/metered.h"
#include "api/resources/vector_bulk.h"
#include "api/resources/vector_texts.h"
#include "api/routes.h"
#include "base/limits.h"
#include "store/tables/apps.h"
#include "store/tables/keys.h"

enum { ID_CHARS = LIMIT_VECTOR_ID_BYTES, TOP_K_DEFAULT = 5 };

#define NO_MIN_SCORE (-2.0)

struct upsert_body {
    const char *workspace, *model;
    struct field_list vectors;
};
struct query_body {
    struct json_floats vector;
    int64_t top_k;
    struct json_value filter;
    const char *workspace, *model, *text, *app, *key;
    double min_score;
    bool with_vectors, has_min_score, is_embedded, exact;
};
struct delete_body {
    const char *workspace;
    bool is_all;
    struct field_strings ids;
    struct json_value filter;
    bool has_ids, has_filter;
};
struct space_query {
    const char *workspace;
};
struct list_query {
    const char *workspace;
    int64_t limit, offset;
    bool with_vectors;
};

#define HELP_BASE64 "instead of `vector`: base64 of its float32 numbers, little end first"

static const struct field record_fields[] = {
    FIELD_STRING(struct sent_record, id, "id", FIELD_REQUIRED, .min = 1, .max = ID_CHARS),
    FIELD_FLOATS(struct sent_record, vector, "vector", .min = 1, .max = LIMIT_DIMENSIONS,
                 .present_offset = offsetof(struct sent_record, has_array),
                 .help = "required unless `vector_b64` or `text` is given"),
    FIELD_FLOATS_B64(struct sent_record, vector, "vector_b64", .min = 1, .max = LIMIT_DIMENSIONS,
                     .present_offset = offsetof(struct sent_record, has_base64), .help = HELP_BASE64),
    FIELD_STRING(struct sent_record, text, "text", .min = 1, .max = LIMIT_EMBED_TEXT,
                 .help = "embedded when there is no `vector`; kept as metadata.text unless that is given"),
    FIELD_OBJECT(struct sent_record, metadata, "metadata",
                 .help = "any object; `text` and `documentId` have a meaning"),
    FIELD_END,
};

static const struct field upsert_fields[] = {
    FIELD_LIST(struct upsert_body, vectors, "vectors", record_fields, struct sent_record, FIELD_REQUIRED, .min = 1,
               .max = LIMIT_VECTORS_PER_CALL),
    FIELD_WORKSPACE(struct upsert_body),
    FIELD_MODEL(struct upsert_body),
    FIELD_END,
};

static const struct field query_fields[] = {
    FIELD_FLOATS(struct query_body, vector, "vector", .min = 1, .max = LIMIT_DIMENSIONS,
                 .help = "required unless `vector_b64` or `text` is given"),
    FIELD_FLOATS_B64(struct query_body, vector, "vector_b64", .min = 1, .max = LIMIT_DIMENSIONS, .help = HELP_BASE64),
    FIELD_STRING(struct query_body, text, "text", .min = 1, .max = LIMIT_VECTOR_TEXT_BYTES,
                 .help = "hybrid search: words to find in metadata.text"),
    FIELD_BOOL(struct query_body, is_embedded, "embed",
               .help = "true: `text` is also embedded and its vector searched for, instead of `vector`"),
    FIELD_STRING(struct query_body, app, "app", .min = 1, .max = LIMIT_NAME_CHARS,
                 .help = "of the administrator: whose vectors, an app's id or name"),
    FIELD_STRING(struct query_body, key, "key", .min = 1, .max = LIMIT_NAME_CHARS,
                 .help = "the same: a developer key's id, fingerprint or name"),
    FIELD_INT(struct query_body, top_k, "topK", .min = 1, .max = LIMIT_TOP_K, .def = TOP_K_DEFAULT),
    FIELD_OBJECT(struct query_body, filter, "filter",
                 .help = "metadata members and their values, or {$in, $ne, $gt, $gte, $lt, $lte}"),
    FIELD_WORKSPACE(struct query_body),
    FIELD_DOUBLE(struct query_body, min_score, "scoreThreshold", .min = NO_MIN_SCORE, .max = 1, .def = NO_MIN_SCORE,
                 .present_offset = offsetof(struct query_body, has_min_score), .help = "lower scores are left out"),
    FIELD_BOOL(struct query_body, with_vectors, "includeVectors"),
    FIELD_BOOL(struct query_body, exact, "exact",
               .help = "true: every vector is compared, as without lists and sketches (embedded store)"),
    FIELD_MODEL(struct query_body),
    FIELD_END,
};

static const struct field delete_fields[] = {
    FIELD_BOOL(struct delete_body, is_all, "deleteAll"),
    FIELD_STRINGS(struct delete_body, ids, "ids", .present_offset = offsetof(struct delete_body, has_ids), .min = 1,
                  .max = LIMIT_VECTORS_PER_CALL),
    FIELD_OBJECT(struct delete_body, filter, "filter", .present_offset = offsetof(struct delete_body, has_filter)),
    FIELD_WORKSPACE(struct delete_body),
    FIELD_END,
};

static const struct field space_fields[] = { FIELD_WORKSPACE(struct space_query), FIELD_END };

static const struct field list_fields[] = {
    FIELD_WORKSPACE(struct list_query),
    FIELD_INT(struct list_query, limit, "limit", .min = 1, .max = LIMIT_LIST, .def = LIMIT_LIST_DEFAULT),
    FIELD_INT(struct list_query, offset, "offset"),
    FIELD_BOOL(struct list_query, with_vectors, "includeVectors"),
    FIELD_END,
};

static const struct field upsert_answer[] = { SHAPE_INT("upserted"), SHAPE_STRING("namespace"), FIELD_END };
static const struct field delete_answer[] = { SHAPE_INT("deleted"), FIELD_END };
static const struct field workspaces_answer[] = { SHAPE_STRINGS("workspaces"), FIELD_END };
static const struct field count_answer[] = {
    SHAPE_INT("count"),
    SHAPE_INT("dimensions", .help = "0: the namespace is not there"),
    SHAPE_STRING("embeddingModel", FIELD_NULLABLE),
    FIELD_END,
};

static const struct field hit_shape[] = {
    SHAPE_STRING("id"),
    SHAPE_DOUBLE("score", .help = "cosine similarity; of a search by text alone, 61 / (60 + rank)"),
    SHAPE_OBJECT("metadata", NULL),
    SHAPE_FLOATS("vector", FIELD_OPTIONAL),
    FIELD_END,
};

static const struct field record_shape[] = {
    SHAPE_STRING("id"),
    SHAPE_OBJECT("metadata", NULL),
    SHAPE_FLOATS("vector", FIELD_OPTIONAL),
    FIELD_END,
};

static const struct field query_answer[] = { SHAPE_LIST("results", hit_shape, .help = "best first"), FIELD_END };
static const struct field list_answer[] = { SHAPE_LIST("vectors", record_shape, .help = "in order of their ids"),
                                            FIELD_END };

/* ---- upsert ---- */

static int make_batch(struct arena *a, const struct field_list *records, struct vector_batch *ret, struct err *e)
{
    const struct sent_record *from = records->items;
    struct vector_record *items = arena_array(a, records->n, sizeof(*items));
    int r;

    for (size_t i = 0; i < records->n; i++) {
        if (from[i].vector.n != from[0].vector.n)
            return err_set(e, -EINVAL, "DIMENSION_MISMATCH",
                           "`vectors[%zu].vector` has %zu dimensions, the first has %zu; nothing was stored.", i,
                           from[i].vector.n, from[0].vector.n);
        items[i] = (struct vector_record){ .id = from[i].id, .vector = from[i].vector.items };
        r = vector_texts_metadata(a, &from[i], i, &items[i].metadata, e);
        if (r < 0)
            return r;
    }
    *ret = (struct vector_batch){ items, records->n, from[0].vector.n };
    return 0;
}

static int check_upsert(const struct request *req, const void *body, struct err *e)
{
    return vector_texts_check(&((const struct upsert_body *)body)->vectors, e);
}

static void write_upserted(struct response *res, const struct vector_space *space, size_t n)
{
    json_add_int(&res->json, "upserted", (int64_t)n);
    json_add_string(&res->json, "namespace", space->ns);
}

static int upsert_vectors(struct request *req, struct response *res, struct err *e)
{
    const struct upsert_body *body = req->body;
    AUTO(vector_space_clear) struct vector_space space = { 0 };
    struct vector_batch batch = { 0 };
    const char *model = body->model;
    int r;

    r = vector_space_open(metered_call(req), body->workspace, &space, e);
    if (r == 0)
        r = vector_texts_fill(req, &space, &body->vectors, &model, e);
    if (r == 0)
        r = make_batch(req->arena, &body->vectors, &batch, e);
    if (r == 0)
        r = vector_space_upsert(&space, &batch, model, e);
    if (r == 0)
        write_upserted(res, &space, batch.n);
    return r;
}

static int upsert_bulk(struct request *req, struct response *res, struct err *e)
{
    AUTO(vector_space_clear) struct vector_space space = { 0 };
    struct vector_bulk bulk = { 0 };
    int r;

    r = request_check_coding(req, e);
    if (r == 0)
        r = vector_bulk_read(http_exchange_body_arena(req->exchange), req->exchange->request.body, &bulk, e);
    if (r == 0)
        r = vector_space_open(metered_call(req), bulk.workspace, &space, e);
    if (r == 0)
        r = vector_space_upsert(&space, &bulk.batch, bulk.model, e);
    if (r == 0)
        write_upserted(res, &space, bulk.batch.n);
    return r;
}

/* ---- query and list ---- */

static void write_record(struct json_writer *w, const struct vector_hit *hit, bool has_score)
{
    json_begin_object(w);
    json_add_string(w, "id", hit->id);
    if (has_score)
        json_add_double(w, "score", hit->score);
    json_add_raw(w, "metadata", hit->metadata && *hit->metadata ? hit->metadata : "{}");
    if (hit->vector)
        json_add_floats(w, "vector", hit->vector, hit->n_dimensions);
    json_end(w);
}

static void write_records(struct json_writer *w, const char *name, const struct vector_hits *hits, bool has_score)
{
    json_begin_array_as(w, name);
    for (size_t i = 0; i < hits->n; i++)
        write_record(w, &hits->items[i], has_score);
    json_end(w);
}

static int check_query(const struct request *req, const void *body, struct err *e)
{
    const struct query_body *b = body;
    bool has_array = !json_is_absent(json_get(req->body_json, "vector"));
    bool has_base64 = !json_is_absent(json_get(req->body_json, "vector_b64"));

    if (has_array && has_base64)
        return err_add_field(e, "vector", "must not be given together with `vector_b64`");
    if (b->is_embedded && (has_array || has_base64))
        return err_add_field(e, "embed", "makes a vector of `text`: it must be left out beside `%s`",
                             has_array ? "vector" : "vector_b64");
    if (has_array || has_base64)
        return 0;
    if (!b->text)
        return err_add_field(e, "vector", "is required, unless `text` says what to search for");
    return b->has_min_score && !b->is_embedded
               ? err_add_field(e, "scoreThreshold", "needs `vector`: it is compared with cosine similarities")
               : 0;
}

/* The key of this id, fingerprint or name; of several of the same name the newest that is in use. */
static int find_key(const struct request *req, const char *key, struct key_row *ret, struct err *e)
{
    const struct key_row *best = NULL;
    struct key_row *rows;
    size_t n;
    int r = store_keys_list(req->api->store, req->arena, &rows, &n, e);

    if (r < 0)
        return r;
    for (size_t i = 0; i < n; i++) {
        bool is_id = strcmp(rows[i].id, key) == 0 || strcmp(rows[i].fingerprint, key) == 0;

        if (is_id || (strcmp(rows[i].name, key) == 0 && (!best || (best->revoked_at && !rows[i].revoked_at))))
            best = &rows[i];
        if (is_id)
            break;
    }
    if (!best)
        return err_set(e, -ENOENT, "KEY_NOT_FOUND", "There is no developer key %.100s.", key);
    *ret = *best;
    return 0;
}

/* The scope of the app or key whose vectors the administrator searches. */
static int scope_of_query(const struct request *req, const struct query_body *body, const char **ret, struct err *e)
{
    struct app_row app = { 0 };
    struct key_row key = { 0 };
    int r;

    if (body->app && body->key)
        return err_add_field(e, "key", "must not be given together with `app`");
    if (body->app) {
        r = store_apps_find(req->api->store, req->arena, body->app, &app, e);
        if (r == 0)
            *ret = app.app_id;
        return r;
    }
    r = find_key(req, body->key, &key, e);
    if (r == 0)
        *ret = key.app_id ? key.app_id : key.fingerprint;
    return r;
}

/* The administrator has no vectors of its own and names the app or key whose vectors it searches. */
static int call_of_query(struct request *req, const struct query_body *body, struct models_call **ret, struct err *e)
{
    struct models_call *call = metered_call(req);
    struct caller *as = ARENA_NEW(req->arena, struct caller);

    *ret = call;
    if (req->caller->kind != CALLER_ADMIN || (!body->app && !body->key))
        return 0;
    *as = *req->caller;
    call->caller = as;
    return scope_of_query(req, body, &as->scope, e);
}

static int query_vectors(struct request *req, struct response *res, struct err *e)
{
    const struct query_body *body = req->body;
    struct vector_query query = {
        .vector = body->vector.items,
        .n_dimensions = body->vector.n,
        .top_k = body->top_k,
        .filter = body->filter,
        .min_score = body->min_score,
        .with_vectors = body->with_vectors,
        .exact = body->exact,
        .text = body->text,
    };
    AUTO(vector_space_clear) struct vector_space space = { 0 };
    struct models_call *call = NULL;
    struct vector_hits hits = { 0 };
    const char *model = body->model;
    int r;

    r = call_of_query(req, body, &call, e);
    if (r == 0)
        r = vector_space_open(call, body->workspace, &space, e);
    if (r == 0 && body->is_embedded)
        r = vector_texts_query(req, &space, &query, &model, e);
    if (r == 0)
        r = vector_space_query(&space, &query, model, &hits, e);
    if (r < 0)
        return r;
    write_records(&res->json, "results", &hits, true);
    return 0;
}

static int list_vectors(struct request *req, struct response *res, struct err *e)
{
    const struct list_query *query = req->query;
    const struct vector_list_request page = { .limit = query->limit,
                                              .offset = query->offset,
                                              .with_vectors = query->with_vectors };
    AUTO(vector_space_clear) struct vector_space space = { 0 };
    struct vector_hits hits = { 0 };
    int r;

    r = vector_space_open(metered_call(req), query->workspace, &space, e);
    if (r == 0)
        r = vector_space_list(&space, &page, &hits, e);
    if (r < 0)
        return r;
    write_records(&res->json, "vectors", &hits, false);
    return 0;
}

static int count_vectors(struct request *req, struct response *res, struct err *e)
{
    const struct space_query *query = req->query;
    AUTO(vector_space_clear) struct vector_space space = { 0 };
    struct vector_space_counts counts = { 0 };
    int r;

    r = vector_space_open(metered_call(req), query->workspace, &space, e);
    if (r == 0)
        r = vector_space_count(&space, &counts, e);
    if (r < 0)
        return r;
    json_add_int(&res->json, "count", counts.n);
    json_add_int(&res->json, "dimensions", counts.n_dimensions);
    json_add_string(&res->json, "embeddingModel", counts.model);
    return 0;
}

/* ---- delete ---- */

/* The specification's `deleteAll: true`, or one of this service's two finer selections. */
static int check_delete(const struct request *req, const void *body, struct err *e)
{
    const struct delete_body *b = body;

    if (b->is_all + b->has_ids + b->has_filter != 1)
        return err_add_field(
            e, "deleteAll",
            "must be true, or else `ids` or `filter` must say what to delete: exactly one of the three");
    if (b->has_filter && json_length(b->filter) == 0)
        return err_add_field(e, "filter", "must have at least one condition: use `deleteAll` to delete everything");
    return 0;
}

static int delete_vectors(struct request *req, struct response *res, struct err *e)
{
    const struct delete_body *body = req->body;
    const struct vector_removal removal = {
        .all = body->is_all, .ids = body->ids.items, .n_ids = body->ids.n, .filter = body->filter
    };
    AUTO(vector_space_clear) struct vector_space space = { 0 };
    int64_t n = 0;
    int r;

    r = vector_space_open(metered_call(req), body->workspace, &space, e);
    if (r == 0)
        r = vector_space_remove(&space, &removal, &n, e);
    if (r < 0)
        return r;
    json_add_int(&res->json, "deleted", n);
    return 0;
}

/* ---- workspaces ---- */

static int list_workspaces(struct request *req, struct response *res, struct err *e)
{
    AUTO(vector_space_clear) struct vector_space space = { 0 };
    struct field_strings names = { 0 };
    int r;

    r = vector_space_open(metered_call(req), NULL, &space, e);
    if (r == 0)
        r = vector_space_workspaces(&space, &names, e);
    if (r < 0)
        return r;
    json_begin_array_as(&res->json, "workspaces");
    for (size_t i = 0; i < names.n; i++)
        json_add_string(&res->json, NULL, names.items[i]);
    json_end(&res->json);
    return 0;
}

/* The embedded store is short work, and the few threads of its pool bound how much memory large bodies take at one
 * time. A registered store may be slow or far away: it must not hold up the short pool. */
static bool is_far(const struct request *req)
{
    return vector_space_is_far(metered_call(req));
}

/* Texts may be embedded by a provider. */
static bool is_long_upsert(const struct request *req)
{
    return vector_texts_count(&((const struct upsert_body *)req->body)->vectors) > 0 || is_far(req);
}

/* A word search ranks all rows with the words, and the first query of a large namespace loads it. */
static bool is_long_query(const struct request *req)
{
    const struct query_body *body = req->body;

    return body->text || is_far(req) || vector_space_is_slow(metered_call(req), body->workspace);
}

/* A filter is compared with the metadata of all rows. */
static bool is_long_removal(const struct request *req)
{
    return ((const struct delete_body *)req->body)->has_filter || is_far(req);
}

const struct route vector_routes[] = {
    { .method = HTTP_POST,
      .path = "/sdk/llm/vectors/upsert",
      .permission = PERM_VECTORS_WRITE,
      .needs_long = is_long_upsert,
      .is_sdk = true,
      ROUTE_BODY(upsert_fields, struct upsert_body),
      .check_body = check_upsert,
      .max_body = LIMIT_BODY_VECTORS,
      .stores = true,
      .answer = upsert_answer,
      .handler = upsert_vectors,
      .summary = "Store vectors, replacing those of the same ids; all or nothing",
      .tag = "Vectors" },
    { .method = HTTP_POST,
      .path = "/sdk/llm/vectors/bulk",
      .permission = PERM_VECTORS_WRITE,
      .needs_long = is_far,
      .is_sdk = true,
      .own_body = vector_bulk_head,
      .body_type = "application/octet-stream",
      .max_body = LIMIT_BODY_VECTORS,
      .stores = true,
      .answer = upsert_answer,
      .handler = upsert_bulk,
      .summary =
          "Store many vectors: a line of JSON with their ids, a line feed, then their float32 numbers; all or nothing",
      .tag = "Vectors" },
    { .method = HTTP_POST,
      .path = "/sdk/llm/vectors/query",
      .permission = PERM_VECTORS_READ,
      .needs_long = is_long_query,
      .is_sdk = true,
      ROUTE_BODY(query_fields, struct query_body),
      .check_body = check_query,
      .answer = query_answer,
      .handler = query_vectors,
      .summary = "Nearest vectors of a namespace",
      .tag = "Vectors" },
    { .method = HTTP_POST,
      .path = "/sdk/llm/vectors/delete",
      .permission = PERM_VECTORS_WRITE,
      .needs_long = is_long_removal,
      .is_sdk = true,
      ROUTE_BODY(delete_fields, struct delete_body),
      .max_body = LIMIT_BODY_CHAT,
      .check_body = check_delete,
      .answer = delete_answer,
      .handler = delete_vectors,
      .summary = "Delete a namespace, or vectors by id or filter",
      .tag = "Vectors" },
    { .method = HTTP_GET,
      .path = "/sdk/llm/vectors/workspaces",
      .permission = PERM_VECTORS_READ,
      .needs_long = is_far,
      .is_sdk = true,
      .answer = workspaces_answer,
      .handler = list_workspaces,
      .summary = "Workspaces of this app that hold vectors",
      .tag = "Vectors" },
    { .method = HTTP_GET,
      .path = "/sdk/llm/vectors/count",
      .permission = PERM_VECTORS_READ,
      .needs_long = is_far,
      .is_sdk = true,
      ROUTE_QUERY(space_fields, struct space_query),
      .answer = count_answer,
      .handler = count_vectors,
      .summary = "How many vectors a namespace holds",
      .tag = "Vectors" },
    { .method = HTTP_GET,
      .path = "/sdk/llm/vectors/list",
      .permission = PERM_VECTORS_READ,
      .needs_long = is_far,
      .is_sdk = true,
      ROUTE_QUERY(list_fields, struct list_query),
      .answer = list_answer,
      .handler = list_vectors,
      .summary = "Vectors of a namespace, page by page",
      .tag = "Vectors" },
    ROUTE_END,
};

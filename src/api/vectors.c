/* Vectors of an app's workspaces (specification, "Vector store"; decision D9; docs/vectors.md). */
#include "api/vector_space.h"

#include "api/routes.h"
#include "base/budget.h"
#include "base/limits.h"
#include "settings/settings.h"
#include "store/vector_configs.h"
#include "vector/vector_check.h"

enum { WORKSPACE_CHARS = 128, MODEL_CHARS = 200, ID_CHARS = LIMIT_VECTOR_ID_BYTES, TOP_K_DEFAULT = 5 };

#define NO_MIN_SCORE (-2.0)

struct record { const char *id; struct json_floats vector; struct json_value metadata; };
struct upsert_body { const char *workspace, *model; struct field_list vectors; };
struct query_body {
    struct json_floats vector;
    int64_t top_k;
    struct json_value filter;
    const char *workspace, *model, *text;
    double min_score;
    bool with_vectors, has_min_score;
};
struct delete_body { const char *workspace; bool is_all; struct field_strings ids; struct json_value filter; bool has_ids, has_filter; };
struct space_query { const char *workspace; };
struct list_query { const char *workspace; int64_t limit, offset; bool with_vectors; };

#define FIELD_WORKSPACE(type) \
    FIELD_STRING(type, workspace, "workspaceId", .min = 1, .max = WORKSPACE_CHARS, .def_str = VECTOR_WORKSPACE_DEFAULT, .help = "each value is a namespace of its own")
#define FIELD_MODEL(type) \
    FIELD_STRING(type, model, "embeddingModel", .min = 1, .max = MODEL_CHARS, .help = "what made the vector; refused when the namespace holds those of another model")

static const struct field record_fields[] = {
    FIELD_STRING(struct record, id, "id", FIELD_REQUIRED, .min = 1, .max = ID_CHARS),
    FIELD_FLOATS(struct record, vector, "vector", FIELD_REQUIRED, .min = 1, .max = LIMIT_DIMENSIONS),
    FIELD_OBJECT(struct record, metadata, "metadata", .help = "any object; `text` and `documentId` have a meaning"),
    FIELD_END,
};

static const struct field upsert_fields[] = {
    FIELD_LIST(struct upsert_body, vectors, "vectors", record_fields, struct record, FIELD_REQUIRED, .min = 1, .max = LIMIT_VECTORS_PER_CALL),
    FIELD_WORKSPACE(struct upsert_body),
    FIELD_MODEL(struct upsert_body),
    FIELD_END,
};

static const struct field query_fields[] = {
    FIELD_FLOATS(struct query_body, vector, "vector", .min = 1, .max = LIMIT_DIMENSIONS, .help = "required unless `text` is given"),
    FIELD_STRING(struct query_body, text, "text", .min = 1, .max = LIMIT_VECTOR_TEXT_BYTES, .help = "hybrid search: words to find in metadata.text"),
    FIELD_INT(struct query_body, top_k, "topK", .min = 1, .max = LIMIT_TOP_K, .def = TOP_K_DEFAULT),
    FIELD_OBJECT(struct query_body, filter, "filter", .help = "metadata members and their values, or {$in, $ne, $gt, $gte, $lt, $lte}"),
    FIELD_WORKSPACE(struct query_body),
    FIELD_DOUBLE(struct query_body, min_score, "scoreThreshold", .min = NO_MIN_SCORE, .max = 1, .def = NO_MIN_SCORE,
                 .present_offset = offsetof(struct query_body, has_min_score), .help = "lower scores are left out"),
    FIELD_BOOL(struct query_body, with_vectors, "includeVectors"),
    FIELD_MODEL(struct query_body),
    FIELD_END,
};

static const struct field delete_fields[] = {
    FIELD_BOOL(struct delete_body, is_all, "deleteAll"),
    FIELD_STRINGS(struct delete_body, ids, "ids", .present_offset = offsetof(struct delete_body, has_ids), .min = 1, .max = LIMIT_VECTORS_PER_CALL),
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
    SHAPE_INT("count"), SHAPE_INT("dimensions", .help = "0: the namespace is not there"), SHAPE_STRING("embeddingModel", FIELD_NULLABLE), FIELD_END,
};

static const struct field hit_shape[] = {
    SHAPE_STRING("id"), SHAPE_DOUBLE("score", .help = "cosine similarity; of a search by text alone, 61 / (60 + rank)"), SHAPE_OBJECT("metadata", NULL), SHAPE_FLOATS("vector", FIELD_OPTIONAL), FIELD_END,
};

static const struct field record_shape[] = {
    SHAPE_STRING("id"), SHAPE_OBJECT("metadata", NULL), SHAPE_FLOATS("vector", FIELD_OPTIONAL), FIELD_END,
};

static const struct field query_answer[] = { SHAPE_LIST("results", hit_shape, .help = "best first"), FIELD_END };
static const struct field list_answer[] = { SHAPE_LIST("vectors", record_shape, .help = "in order of their ids"), FIELD_END };

/* ---- which namespace ---- */

struct net_wait vector_wait_of(const struct request *req)
{
    struct http_exchange *x = req->exchange;
    struct net_wait wait = net_wait_of(settings_ms(req->api->settings, SETTING_VECTORS_STORE_TIMEOUT_S), x ? &x->is_gone : NULL, &req->api->is_leaving);

    wait.holder = x ? x->purse.holder : NULL;
    return wait;
}

int vector_space_of(const struct request *req, const char *workspace, struct vector_space *ret, struct err *e)
{
    int r = vector_stores_of(req->api->vector_stores, req->caller->scope, &ret->use, e);

    if (r < 0)
        return r;
    ret->vectors = ret->use->vectors;
    ret->wait = vector_wait_of(req);
    ret->ns = workspace ? arena_printf(req->arena, "%s%s", vector_scope_prefix(req->arena, req->caller->scope), workspace) : NULL;
    return 0;
}

void vector_space_clear(struct vector_space *space)
{
    vector_store_unref(space->use);
}

/* Vectors of two models cannot be compared, even when they have as many dimensions. */
static int check_model(const struct vector_space *space, const char *known, const char *given, struct err *e)
{
    if (!known || !given || strcmp(known, given) == 0)
        return 0;
    return err_set(e, -EINVAL, "EMBEDDING_MODEL_MISMATCH",
                   "The namespace %s holds vectors of the model %s; those of %s cannot be compared with them.", space->ns, known, given);
}

/* ---- what they take on the disk ---- */

static struct budget_holder *payer_of(const struct caller *caller)
{
    if (caller->app_id)
        return budget_holder_get(HOLDER_APP, caller->app_id);
    return caller->kind == CALLER_KEY ? budget_holder_get(HOLDER_KEY, caller->key_id) : budget_holder_get(HOLDER_ADMIN, "");
}

/* Are n more bytes within the budget of the scope? 0 just measures. Requests at the same time do not see each other's vectors: all of them may
 * store a body above it, as many as the pool has threads. */
static int check_room(const struct request *req, const struct vector_space *space, int64_t n, struct err *e)
{
    struct budget_holder *payer;
    int64_t held = 0;
    int r;

    if (!space->vectors->ops->bytes)
        return 0;
    r = vector_stores_bytes(req->api->vector_stores, req->caller->scope, &held, e);
    if (r < 0)
        return r;
    payer = payer_of(req->caller);
    budget_measured(payer, BUDGET_VECTORS, held);
    r = n ? budget_check(payer, BUDGET_VECTORS, n, e) : 0;
    budget_holder_unref(payer);
    return r;
}

static int64_t bytes_of(const struct vector_batch *b)
{
    int64_t n = 0;

    for (size_t i = 0; i < b->n; i++)
        n += (int64_t)(strlen(b->items[i].id) + strlen(b->items[i].metadata) + b->n_dimensions * sizeof(float));
    return n;
}

/* ---- upsert ---- */

static int make_batch(struct arena *a, const struct field_list *records, struct vector_batch *ret, struct err *e)
{
    const struct record *from = records->items;
    struct vector_record *items = arena_array(a, records->n, sizeof(*items));

    for (size_t i = 0; i < records->n; i++) {
        if (from[i].vector.n != from[0].vector.n)
            return err_set(e, -EINVAL, "DIMENSION_MISMATCH", "`vectors[%zu].vector` has %zu dimensions, the first has %zu; nothing was stored.",
                           i, from[i].vector.n, from[0].vector.n);
        items[i] = (struct vector_record){ from[i].id, from[i].vector.items, json_is_absent(from[i].metadata) ? "{}" : json_to_str(a, from[i].metadata) };
    }
    *ret = (struct vector_batch){ items, records->n, from[0].vector.n };
    return 0;
}

static int keep_model(const struct request *req, const struct vector_space *space, const char *model, struct err *e)
{
    struct store *store = req->api->store;
    const char *provider = space->use->provider, *known = NULL;
    int64_t n = 0, n_dimensions = 0;
    int r;

    if (!model)
        return 0;
    r = store_vector_models_keep(store, req->arena, provider, space->ns, model, &known, e);
    if (r < 0 || strcmp(known, model) == 0)
        return r;
    r = space->vectors->ops->count(space->vectors, &space->wait, space->ns, &n, &n_dimensions, e);
    if (r == 0 && n > 0)
        return check_model(space, known, model, e);
    if (r == 0)
        r = store_vector_models_forget(store, provider, space->ns, e);      /* what it was told of is gone */
    return r < 0 ? r : store_vector_models_keep(store, req->arena, provider, space->ns, model, &known, e);
}

static int upsert_vectors(struct request *req, struct response *res, struct err *e)
{
    const struct upsert_body *body = req->body;
    AUTO(vector_space_clear) struct vector_space space = { 0 };
    struct vector_batch batch = { 0 };
    int r;

    r = make_batch(req->arena, &body->vectors, &batch, e);
    if (r == 0)
        r = vector_space_of(req, body->workspace, &space, e);
    if (r == 0)
        r = check_room(req, &space, bytes_of(&batch), e);
    if (r == 0)
        r = keep_model(req, &space, body->model, e);
    if (r == 0)
        r = space.vectors->ops->upsert(space.vectors, &space.wait, space.ns, &batch, e);
    if (r == 0)
        r = check_room(req, &space, 0, e);
    if (r < 0)
        return r;
    json_add_int(&res->json, "upserted", (int64_t)batch.n);
    json_add_string(&res->json, "namespace", space.ns);
    return 0;
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

static int check_query_model(const struct request *req, const struct vector_space *space, const char *model, struct err *e)
{
    const char *known = NULL;
    int r = 0;

    if (model)
        r = store_vector_models_get(req->api->store, req->arena, space->use->provider, space->ns, &known, e);
    return r < 0 ? r : check_model(space, known, model, e);
}

static int check_query(const struct request *req, const void *body, struct err *e)
{
    const struct query_body *b = body;

    if (!json_is_absent(json_get(req->body_json, "vector")))
        return 0;
    if (!b->text)
        return err_add_field(e, "vector", "is required, unless `text` says what to search for");
    return b->has_min_score ? err_add_field(e, "scoreThreshold", "needs `vector`: it is compared with cosine similarities") : 0;
}

static int check_text(const struct vector_space *space, const char *text, struct err *e)
{
    if (!text || space->vectors->ops->has_text)
        return 0;
    return err_add_field(e, "text", "cannot be searched in the registered vector store %s, only in %s", space->use->provider, VECTORS_EMBEDDED);
}

static int query_vectors(struct request *req, struct response *res, struct err *e)
{
    const struct query_body *body = req->body;
    const struct vector_query query = {
        .vector = body->vector.items, .n_dimensions = body->vector.n, .top_k = body->top_k, .filter = body->filter,
        .min_score = body->min_score, .with_vectors = body->with_vectors, .text = body->text,
    };
    AUTO(vector_space_clear) struct vector_space space = { 0 };
    struct vector_hits hits = { 0 };
    int r;

    r = vector_space_of(req, body->workspace, &space, e);
    if (r == 0)
        r = check_text(&space, body->text, e);
    if (r == 0)
        r = check_query_model(req, &space, body->model, e);
    if (r == 0)
        r = space.vectors->ops->query(space.vectors, &space.wait, space.ns, &query, req->arena, &hits, e);
    if (r < 0)
        return r;
    write_records(&res->json, "results", &hits, true);
    return 0;
}

static int list_vectors(struct request *req, struct response *res, struct err *e)
{
    const struct list_query *query = req->query;
    AUTO(vector_space_clear) struct vector_space space = { 0 };
    struct vector_hits hits = { 0 };
    int r;

    r = vector_space_of(req, query->workspace, &space, e);
    if (r == 0)
        r = space.vectors->ops->list(space.vectors, &space.wait, space.ns, query->limit, query->offset, query->with_vectors, req->arena, &hits, e);
    if (r < 0)
        return r;
    write_records(&res->json, "vectors", &hits, false);
    return 0;
}

static int count_vectors(struct request *req, struct response *res, struct err *e)
{
    const struct space_query *query = req->query;
    AUTO(vector_space_clear) struct vector_space space = { 0 };
    int64_t n = 0, n_dimensions = 0;
    const char *model = NULL;
    int r;

    r = vector_space_of(req, query->workspace, &space, e);
    if (r == 0)
        r = space.vectors->ops->count(space.vectors, &space.wait, space.ns, &n, &n_dimensions, e);
    if (r == 0)
        r = store_vector_models_get(req->api->store, req->arena, space.use->provider, space.ns, &model, e);
    if (r < 0)
        return r;
    json_add_int(&res->json, "count", n);
    json_add_int(&res->json, "dimensions", n_dimensions);
    json_add_string(&res->json, "embeddingModel", model);
    return 0;
}

/* ---- delete ---- */

/* The specification's `deleteAll: true`, or one of the two finer ways of ours. */
static int check_delete(const struct request *req, const void *body, struct err *e)
{
    const struct delete_body *b = body;

    if (b->is_all + b->has_ids + b->has_filter != 1)
        return err_add_field(e, "deleteAll", "must be true, or else `ids` or `filter` must say what to delete: exactly one of the three");
    if (b->has_filter && json_length(b->filter) == 0)
        return err_add_field(e, "filter", "must have at least one condition: use `deleteAll` to delete everything");
    return 0;
}

/* As of the dimensions: who empties a namespace frees the choice of its model. */
static int forget_model_of_nothing(const struct request *req, const struct vector_space *space, struct err *e)
{
    int64_t n = 0, n_dimensions = 0;
    int r = space->vectors->ops->count(space->vectors, &space->wait, space->ns, &n, &n_dimensions, e);

    return r < 0 || n > 0 ? r : store_vector_models_forget(req->api->store, space->use->provider, space->ns, e);
}

static int delete_vectors(struct request *req, struct response *res, struct err *e)
{
    const struct delete_body *body = req->body;
    const struct vector_removal removal = { .all = body->is_all, .ids = body->ids.items, .n_ids = body->ids.n, .filter = body->filter };
    AUTO(vector_space_clear) struct vector_space space = { 0 };
    int64_t n = 0;
    int r;

    r = vector_space_of(req, body->workspace, &space, e);
    if (r == 0)
        r = space.vectors->ops->remove(space.vectors, &space.wait, space.ns, &removal, &n, e);
    if (r == 0 && (body->is_all || n > 0))
        r = forget_model_of_nothing(req, &space, e);
    if (r == 0)
        r = check_room(req, &space, 0, e);
    if (r < 0)
        return r;
    json_add_int(&res->json, "deleted", n);
    return 0;
}

/* ---- workspaces ---- */

/* What follows the prefix is printed. */
static int check_names(const struct vector_space *space, const char *prefix, const struct field_strings *names, struct err *e)
{
    for (size_t i = 0; i < names->n; i++)
        if (!vector_check_prefix(names->items[i], prefix))
            return err_set(e, -EIO, "VECTOR_STORE_FAILED", "The vector store %s named a namespace that does not begin with %s.", space->use->provider, prefix);
    return 0;
}

static int list_workspaces(struct request *req, struct response *res, struct err *e)
{
    const char *prefix = vector_scope_prefix(req->arena, req->caller->scope);
    AUTO(vector_space_clear) struct vector_space space = { 0 };
    struct field_strings names = { 0 };
    int r;

    r = vector_space_of(req, NULL, &space, e);
    if (r == 0)
        r = space.vectors->ops->namespaces(space.vectors, &space.wait, prefix, req->arena, &names, e);
    if (r == 0)
        r = check_names(&space, prefix, &names, e);
    if (r < 0)
        return r;
    json_begin_array_as(&res->json, "workspaces");
    for (size_t i = 0; i < names.n; i++)
        json_add_string(&res->json, NULL, names.items[i] + strlen(prefix));
    json_end(&res->json);
    return 0;
}

/* The embedded store is short work, and the few threads of its pool bound how much memory large bodies take at one time. A registered store
 * may be slow or far away: it must not hold up the short pool. */
static bool is_far(const struct request *req)
{
    return vector_stores_is_registered(req->api->vector_stores, req->arena, req->caller->scope);
}

/* Words are ranked over all rows that have them, and a large namespace is loaded by the first who asks. */
static bool is_long_query(const struct request *req)
{
    const struct query_body *body = req->body;
    AUTO(vector_space_clear) struct vector_space space = { 0 };

    if (body->text || is_far(req))
        return true;
    return vector_space_of(req, body->workspace, &space, NULL) == 0 && space.vectors->ops->is_slow && space.vectors->ops->is_slow(space.vectors, space.ns);
}

/* A filter is compared with the metadata of all rows in the file. */
static bool is_long_removal(const struct request *req)
{
    return ((const struct delete_body *)req->body)->has_filter || is_far(req);
}

const struct route vector_routes[] = {
    { .method = HTTP_POST, .path = "/sdk/llm/vectors/upsert", .permission = PERM_VECTORS_WRITE, .needs_long = is_far, .is_sdk = true,
      ROUTE_BODY(upsert_fields, struct upsert_body), .max_body = LIMIT_BODY_VECTORS, .stores = true, .answer = upsert_answer, .handler = upsert_vectors,
      .summary = "Store vectors, replacing those of the same ids; all or nothing", .tag = "Vectors" },
    { .method = HTTP_POST, .path = "/sdk/llm/vectors/query", .permission = PERM_VECTORS_READ, .needs_long = is_long_query, .is_sdk = true,
      ROUTE_BODY(query_fields, struct query_body), .check_body = check_query, .answer = query_answer, .handler = query_vectors,
      .summary = "Nearest vectors of a namespace", .tag = "Vectors" },
    { .method = HTTP_POST, .path = "/sdk/llm/vectors/delete", .permission = PERM_VECTORS_WRITE, .needs_long = is_long_removal, .is_sdk = true,
      ROUTE_BODY(delete_fields, struct delete_body), .max_body = LIMIT_BODY_CHAT, .check_body = check_delete, .answer = delete_answer,
      .handler = delete_vectors, .summary = "Delete a namespace, or vectors by id or filter", .tag = "Vectors" },
    { .method = HTTP_GET, .path = "/sdk/llm/vectors/workspaces", .permission = PERM_VECTORS_READ, .needs_long = is_far, .is_sdk = true,
      .answer = workspaces_answer, .handler = list_workspaces, .summary = "Workspaces of this app that hold vectors", .tag = "Vectors" },
    { .method = HTTP_GET, .path = "/sdk/llm/vectors/count", .permission = PERM_VECTORS_READ, .needs_long = is_far, .is_sdk = true,
      ROUTE_QUERY(space_fields, struct space_query), .answer = count_answer, .handler = count_vectors,
      .summary = "How many vectors a namespace holds", .tag = "Vectors" },
    { .method = HTTP_GET, .path = "/sdk/llm/vectors/list", .permission = PERM_VECTORS_READ, .needs_long = is_far, .is_sdk = true,
      ROUTE_QUERY(list_fields, struct list_query), .answer = list_answer, .handler = list_vectors,
      .summary = "Vectors of a namespace, page by page", .tag = "Vectors" },
    ROUTE_END,
};

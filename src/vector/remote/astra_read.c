/* Commands of the Data API, and what is read with them: nearest vectors, pages, ids and counts. */
#include "vector/remote/astra.h"

#include "base/uuid.h"
#include "vector/remote/remote_record.h"

enum { CHOICES_MAX = 30 };

#define MEMBERS "\"" REMOTE_ID "\":1,\"" REMOTE_JSON "\":1,\"" REMOTE_LENGTH "\":1"

/* ---- commands ---- */

void astra_begin(struct remote_body *b, const char *command)
{
    remote_begin(b);
    json_begin_object_as(&b->w, command);
}

int astra_call(const struct remote_op *op, struct arena *a, const char *collection, struct remote_body *b,
               struct remote_reply *ret, struct err *e)
{
    const char *path = arena_printf(a, "api/json/v1/%s%s%s", remote_store_of(op)->space, collection ? "/" : "",
                                    collection ? collection : "");

    return remote_send(op, a, "POST", path, b, ret, e);
}

const char *astra_code(const struct remote_reply *reply)
{
    const char *code = json_cstr(json_get(remote_first(json_get(reply->body, "errors")), "errorCode"));

    return code ? code : "";
}

int astra_command(const struct remote_op *op, struct arena *a, const char *collection, struct remote_body *b,
                  struct remote_reply *ret, struct err *e)
{
    int r = astra_call(op, a, collection, b, ret, e);

    return r == 0 && json_length(json_get(ret->body, "errors")) > 0 ? remote_refused(op, ret, e) : r;
}

const char *astra_key(struct arena *a, const char *ns, const char *id)
{
    char uuid[UUID_SIZE];

    uuid_of_text(slice_of(arena_printf(a, "%zu %s %s", strlen(ns), ns, id)), uuid);
    return arena_strdup(a, uuid);
}

/* ---- finding ---- */

void astra_begin_filter(struct json_writer *w, const struct remote_collection *col)
{
    json_begin_object_as(w, "filter");
    json_begin_array_as(w, "$and");
    json_begin_object(w);
    json_add_string(w, REMOTE_NAMESPACE, col->id);
    json_end(w);
}

void astra_end_filter(struct json_writer *w)
{
    json_end(w);
    json_end(w);
}

bool astra_can_express(const struct vector_condition *c)
{
    return remote_has_tokens(c) && (c->op == VECTOR_EQ || json_length(c->value) <= CHOICES_MAX);
}

static void add_condition(struct json_writer *w, const struct vector_condition *c)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct field_strings tokens = remote_tokens_of(a, c);

    json_begin_object(w);
    json_begin_array_as(w, "$or");
    for (size_t i = 0; i < tokens.n; i++)
        json_add_raw(w, NULL, arena_printf(a, "{\"" REMOTE_TOKENS "\":{\"$all\":[\"%s\"]}}", tokens.items[i]));
    json_end(w);
    json_end(w);
}

void astra_add_keys(struct json_writer *w, struct arena *a, const struct remote_collection *col, const char *const *ids,
                    size_t n)
{
    json_begin_object(w);
    json_begin_object_as(w, "_id");
    json_begin_array_as(w, "$in");
    for (size_t i = 0; i < n; i++)
        json_add_string(w, NULL, astra_key(a, col->id, ids[i]));
    json_end(w);
    json_end(w);
    json_end(w);
}

static int read_documents(const struct remote_op *op, struct arena *a, struct json_value documents, size_t n_most,
                          size_t n_dimensions, struct vector_hits *ret, struct err *e)
{
    struct vector_hits hits = { 0 };
    struct json_iter it = json_iter(documents);
    struct json_value document;
    int r = remote_read_list(op, "documents", documents, n_most, &hits.n, e);

    if (r == 0)
        hits.items = arena_array(a, hits.n + 1, sizeof(*hits.items));
    for (size_t i = 0; r == 0 && i < hits.n && json_next(&it, NULL, &document); i++) {
        const struct remote_raw raw = { .score = json_get(document, "$similarity"),
                                        .scale = REMOTE_HALVED,
                                        .unit = json_get(document, "$vector") };

        r = remote_read_members(op, a, document, &raw, n_dimensions, &hits.items[i], e);
    }
    if (r == 0)
        *ret = hits;
    return r;
}

int astra_nearest(const struct remote_op *op, const struct remote_collection *col, const struct remote_search *s,
                  int64_t n, struct arena *a, struct vector_hits *ret, struct err *e)
{
    const struct vector_query *q = s->query;
    struct remote_reply reply = { 0 };
    struct remote_body b;
    int r;

    astra_begin(&b, "find");
    astra_begin_filter(&b.w, col);
    if (s->among.n > 0)
        astra_add_keys(&b.w, a, col, s->among.items, s->among.n);
    for (size_t i = 0; s->among.n == 0 && i < s->filter->n; i++)
        if (astra_can_express(&s->filter->items[i]))
            add_condition(&b.w, &s->filter->items[i]);
    astra_end_filter(&b.w);
    json_begin_object_as(&b.w, "sort");
    json_add_floats(&b.w, "$vector", remote_direction(a, q->vector, q->n_dimensions), q->n_dimensions);
    json_end(&b.w);
    json_add_raw(&b.w, "projection", q->with_vectors ? "{" MEMBERS ",\"$vector\":1}" : "{" MEMBERS "}");
    json_begin_object_as(&b.w, "options");
    json_add_int(&b.w, "limit", n);
    json_add_bool(&b.w, "includeSimilarity", true);
    json_end(&b.w);
    json_end(&b.w);
    r = astra_command(op, a, col->name, &b, &reply, e);
    return r < 0 ? r
                 : read_documents(op, a, json_get(json_get(reply.body, "data"), "documents"), (size_t)n,
                                  q->with_vectors ? q->n_dimensions : 0, ret, e);
}

int astra_read_state(const struct remote_op *op, struct json_value data, size_t n_read, struct astra_reading *ret,
                     struct err *e)
{
    struct json_value given = json_get(data, "nextPageState");
    const char *state = json_cstr(given);

    if (!json_is_absent(given) &&
        (!state || strlen(state) >= ASTRA_STATE_CHARS || n_read == 0 || strcmp(state, ret->state) == 0))
        return remote_fault(
            op, e,
            "a page is empty, or leads to itself, or has a nextPageState that is no string of less than %d bytes",
            ASTRA_STATE_CHARS);
    snprintf(ret->state, sizeof(ret->state), "%s", state ? state : "");
    return 0;
}

void astra_write_reading(struct remote_body *b, struct arena *a, const struct astra_reading *what)
{
    astra_begin(b, "find");
    if (what->col) {
        astra_begin_filter(&b->w, what->col);
        if (what->ids)
            astra_add_keys(&b->w, a, what->col, what->ids, what->n_ids);
        astra_end_filter(&b->w);
    }
    json_add_raw(&b->w, "projection", what->projection);
    json_begin_object_as(&b->w, "options");
    if (what->state[0])
        json_add_string(&b->w, "pageState", what->state);
    json_end(&b->w);
    json_end(&b->w);
}

static int read_page(const struct remote_op *op, struct arena *a, struct astra_reading *what, struct vector_hits *ret,
                     struct err *e)
{
    struct remote_reply reply = { 0 };
    struct json_value data;
    struct remote_body b;
    int r;

    astra_write_reading(&b, a, what);
    r = astra_command(op, a, what->col->name, &b, &reply, e);
    data = json_get(reply.body, "data");
    if (r == 0)
        r = read_documents(op, a, json_get(data, "documents"), ASTRA_DOCUMENTS_A_PAGE, what->n_dimensions, ret, e);
    return r < 0 ? r : astra_read_state(op, data, ret->n, what, e);
}

/* Reads all pages for at most ASTRA_IDS_A_FILTER ids; ret->items has room for n_most hits. */
static int read_some(const struct remote_op *op, struct arena *a, struct astra_reading *what, size_t n_most,
                     struct vector_hits *ret, struct err *e)
{
    int r;

    do {
        struct vector_hits hits = { 0 };

        r = read_page(op, a, what, &hits, e);
        if (r == 0 && ret->n + hits.n > n_most)
            r = remote_fault(op, e, "it has more documents than the %zu that were asked for", n_most);
        for (size_t i = 0; r == 0 && i < hits.n; i++)
            ret->items[ret->n++] = hits.items[i];
    } while (r == 0 && what->state[0]);
    return r;
}

int astra_read(const struct remote_op *op, const struct remote_collection *col,
               const struct remote_read_request *request, struct arena *a, struct vector_hits *ret, struct err *e)
{
    static const char *const projections[] = { [REMOTE_IDS] = "{\"" REMOTE_ID "\":1}",
                                               [REMOTE_METADATA] = "{" MEMBERS "}",
                                               [REMOTE_VECTORS] = "{" MEMBERS ",\"$vector\":1}" };
    struct vector_hits hits = { arena_array(a, request->n + 1, sizeof(*hits.items)), 0 };
    int r = 0;

    for (size_t i = 0; r == 0 && i < request->n; i += ASTRA_IDS_A_FILTER) {
        struct astra_reading what = { col,
                                      request->ids + i,
                                      MIN(request->n - i, (size_t)ASTRA_IDS_A_FILTER),
                                      projections[request->parts],
                                      request->parts == REMOTE_VECTORS ? (size_t)col->n_dimensions : 0,
                                      "" };

        r = read_some(op, a, &what, request->n, &hits, e);
    }
    if (r == 0)
        *ret = hits;
    return r;
}

int astra_collect_ids(const struct remote_op *op, const struct remote_collection *col,
                      const struct vector_filter *filter, struct remote_ids *ids, struct err *e)
{
    struct astra_reading what = { .col = col, .projection = filter ? "{" MEMBERS "}" : "{\"" REMOTE_ID "\":1}" };
    size_t n_pages = 0;
    int r;

    do {
        AUTO(arena_freep) struct arena *a = arena_new();
        struct vector_hits hits = { 0 };

        r = remote_count_page(op, &n_pages, e);
        if (r == 0)
            r = read_page(op, a, &what, &hits, e);
        if (r == 0)
            r = remote_ids_add_hits(ids, &hits, filter, a, e);
    } while (r == 0 && what.state[0]);
    return r;
}

/* Counts up to 1,000 documents; ret_more: there are more. */
static int count_some(const struct remote_op *op, struct arena *a, const struct remote_collection *col, int64_t *ret,
                      bool *ret_more, struct err *e)
{
    struct remote_reply reply = { 0 };
    struct remote_body b;
    int r;

    astra_begin(&b, "countDocuments");
    astra_begin_filter(&b.w, col);
    astra_end_filter(&b.w);
    json_end(&b.w);
    r = astra_command(op, a, col->name, &b, &reply, e);
    *ret_more = json_bool(json_get(json_get(reply.body, "status"), "moreData"));
    return r < 0 ? r : remote_read_count(op, json_get(json_get(reply.body, "status"), "count"), ret, e);
}

int astra_probe(const struct remote_op *op, struct arena *a, const struct remote_collection *col, int64_t *ret,
                struct err *e)
{
    bool has_more;

    return count_some(op, a, col, ret, &has_more, e);
}

int astra_count(const struct remote_op *op, struct arena *a, const struct remote_collection *col, int64_t *ret,
                struct err *e)
{
    AUTO(arena_freep) struct arena *all = arena_new();
    struct remote_ids ids = { .arena = all };
    bool has_more;
    int r = count_some(op, a, col, ret, &has_more, e);

    if (r < 0 || !has_more)
        return r;
    r = astra_collect_ids(op, col, NULL, &ids, e);
    *ret = (int64_t)ids.n;
    return r;
}

#include "vector/vector_check.h"

#include "base/floats.h"
#include "base/memory.h"

int vector_check_namespace(const char *ns, struct err *e)
{
    if (!ns || !*ns || strlen(ns) > LIMIT_VECTOR_NAMESPACE_BYTES)
        return err_add_field(e, "workspaceId", "must make a namespace of 1 to %d bytes", LIMIT_VECTOR_NAMESPACE_BYTES);
    return 0;
}

static int check_count(size_t n_dimensions, const char *field, struct err *e)
{
    if (n_dimensions < 1 || n_dimensions > LIMIT_DIMENSIONS)
        return err_add_field(e, field, "must have 1 to %d numbers", LIMIT_DIMENSIONS);
    return 0;
}

static int check_metadata(const char *metadata, const char *field, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct json_value value = { 0 };
    int r;

    if (!metadata)
        return 0;
    if (strlen(metadata) > LIMIT_VECTOR_METADATA)
        return err_add_field(e, field, "must be at most %d bytes of JSON", LIMIT_VECTOR_METADATA);
    r = json_parse(a, slice_of(metadata), &value, NULL);
    if (r == -ENOMEM)
        return memory_refuse(e);
    if (r < 0 || json_type(value) != JSON_OBJECT)
        return err_add_field(e, field, "must be an object");
    return 0;
}

static int check_record(const struct vector_record *record, size_t n_dimensions, size_t i, struct err *e)
{
    char field[48];

    snprintf(field, sizeof(field), "vectors[%zu].id", i);
    if (!record->id || !*record->id || strlen(record->id) > LIMIT_VECTOR_ID_BYTES)
        return err_add_field(e, field, "must be a string of 1 to %d bytes", LIMIT_VECTOR_ID_BYTES);
    snprintf(field, sizeof(field), "vectors[%zu].vector", i);
    if (floats_count_finite(record->vector, n_dimensions) < n_dimensions)
        return err_add_field(e, field, "must hold finite numbers only");
    snprintf(field, sizeof(field), "vectors[%zu].metadata", i);
    return check_metadata(record->metadata, field, e);
}

int vector_check_batch(const struct vector_batch *b, struct err *e)
{
    int r;

    if (b->n > LIMIT_VECTORS_PER_CALL)
        return err_add_field(e, "vectors", "must be at most %d in one call", LIMIT_VECTORS_PER_CALL);
    r = b->n > 0 ? check_count(b->n_dimensions, "vectors[0].vector", e) : 0;
    for (size_t i = 0; r == 0 && i < b->n; i++)
        r = check_record(&b->items[i], b->n_dimensions, i, e);
    return r;
}

/* Also for a namespace without rows. */
static int check_filter(struct json_value filter, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct vector_filter parsed;

    return vector_filter_parse(a, filter, &parsed, e);
}

int vector_check_query(const struct vector_query *q, struct err *e)
{
    int r = q->text && q->n_dimensions == 0 ? 0 : check_count(q->n_dimensions, "vector", e);

    if (r < 0)
        return r;
    if (floats_count_finite(q->vector, q->n_dimensions) < q->n_dimensions)
        return err_add_field(e, "vector", "must hold finite numbers only");
    if (q->top_k < 1 || q->top_k > LIMIT_TOP_K)
        return err_add_field(e, "topK", "must be 1 to %d", LIMIT_TOP_K);
    if (q->text && strlen(q->text) > LIMIT_VECTOR_TEXT_BYTES)
        return err_add_field(e, "text", "must be at most %d bytes", LIMIT_VECTOR_TEXT_BYTES);
    return check_filter(q->filter, e);
}

/* Hybrid search needs a store with a full-text index. */
static int refuse_text(const struct vector_query *q, struct err *e)
{
    return q->text
               ? err_add_field(e, "text", "can be searched for in the embedded store only: this one keeps no full text")
               : 0;
}

int vector_check_search(const char *ns, const struct vector_query *q, struct arena *a, struct vector_filter *ret,
                        struct err *e)
{
    int r = vector_check_namespace(ns, e);

    if (r == 0)
        r = vector_check_query(q, e);
    if (r == 0)
        r = refuse_text(q, e);
    return r < 0 ? r : vector_filter_parse(a, q->filter, ret, e);
}

int vector_check_removal(const struct vector_removal *r, struct err *e)
{
    bool has_filter = !json_is_absent(r->filter);

    if ((r->all ? 1 : 0) + (r->ids ? 1 : 0) + (has_filter ? 1 : 0) != 1)
        return err_add_field(e, "deleteAll",
                             "must be true, unless ids or filter say what to delete (one of the three)");
    if (r->n_ids > LIMIT_VECTORS_PER_CALL)
        return err_add_field(e, "ids", "must be at most %d in one call", LIMIT_VECTORS_PER_CALL);
    return check_filter(r->filter, e);
}

int vector_check_page(int64_t limit, int64_t offset, struct err *e)
{
    if (limit < 1 || limit > LIMIT_VECTOR_LIST)
        return err_add_field(e, "limit", "must be 1 to %d", LIMIT_VECTOR_LIST);
    if (offset < 0)
        return err_add_field(e, "offset", "must not be negative");
    return 0;
}

int vector_check_dimensions(const char *ns, int64_t n_held, size_t n_given, struct err *e)
{
    if (n_held == (int64_t)n_given)
        return 0;
    return err_set(e, -EINVAL, "DIMENSION_MISMATCH",
                   "The namespace %s holds vectors of %lld dimensions; this one has %zu.", ns, (long long)n_held,
                   n_given);
}

bool vector_check_prefix(const char *name, const char *prefix)
{
    size_t n = name ? strlen(name) : 0;

    return n > strlen(prefix) && n <= LIMIT_VECTOR_NAMESPACE_BYTES && strncmp(name, prefix, strlen(prefix)) == 0;
}

int vector_check_metadata(struct arena *a, struct slice text, const char **ret)
{
    AUTO(arena_freep) struct arena *scratch = arena_new();
    struct json_value metadata = { 0 };

    if (json_parse(scratch, text, &metadata, NULL) < 0 || json_type(metadata) != JSON_OBJECT)
        return -EINVAL;
    *ret = json_to_str(a, metadata);
    return 0;
}

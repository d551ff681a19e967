/* Reads a peer's answers about collections and records: every count, dimension, length and type is checked here. */
#include "vector/remote/remote.h"

#include "vector/vector_check.h"

#include <math.h>

int remote_fault(const struct remote_op *op, struct err *e, const char *fmt, ...)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    va_list ap;
    const char *text;

    va_start(ap, fmt);
    text = arena_vprintf(a, fmt, ap);
    va_end(ap);
    return err_set(e, -EIO, "VECTOR_STORE_FAILED", "%s: its answer is wrong: %s", op->remote->label, text);
}

int remote_read_count(const struct remote_op *op, struct json_value v, int64_t *ret, struct err *e)
{
    if (json_type(v) != JSON_INT || json_int(v) < 0)
        return remote_fault(op, e, "the count of records must be a number that is not negative");
    *ret = json_int(v);
    return 0;
}

int remote_read_dimensions(const struct remote_op *op, struct json_value v, int64_t *ret, struct err *e)
{
    if (json_type(v) != JSON_INT || json_int(v) < 1 || json_int(v) > LIMIT_DIMENSIONS)
        return remote_fault(op, e, "the number of dimensions must be from 1 to %d", LIMIT_DIMENSIONS);
    *ret = json_int(v);
    return 0;
}

int remote_read_list(const struct remote_op *op, const char *name, struct json_value v, size_t n_most, size_t *ret,
                     struct err *e)
{
    size_t n = json_length(v);

    if (json_type(v) != JSON_ARRAY)
        return remote_fault(op, e, "`%s` must be a list", name);
    if (n > n_most)
        return remote_fault(op, e, "`%s` has %zu elements, more than the %zu that were asked for", name, n, n_most);
    *ret = n;
    return 0;
}

/* ---- records ---- */

/* Reserves a quarter of the arena for later steps. */
static int check_room(const struct remote_op *op, const struct arena *a, size_t n, struct err *e)
{
    return arena_has_room(a, LIMIT_ARENA_BYTES / 4 + n)
               ? 0
               : remote_fault(op, e, "its records have more bytes than one request may hold");
}

static int read_id(const struct remote_op *op, const struct remote_raw *raw, struct vector_hit *ret, struct err *e)
{
    ret->id = json_cstr(raw->id);
    if (!ret->id || !*ret->id || strlen(ret->id) > LIMIT_VECTOR_ID_BYTES)
        return remote_fault(op, e, "a record's id (%s) must be a string of 1 to %d bytes", raw->id_name,
                            LIMIT_VECTOR_ID_BYTES);
    return 0;
}

static double similarity_of(enum remote_scale scale, double score)
{
    switch (scale) {
    case REMOTE_DISTANCE:
        return 1 - score;
    case REMOTE_NEGATIVE:
        return -score;
    case REMOTE_HALVED:
        return 2 * score - 1;
    default:
        return score;
    }
}

static int read_score(const struct remote_op *op, const struct remote_raw *raw, struct vector_hit *ret, struct err *e)
{
    enum json_type type = json_type(raw->score);

    if (json_is_absent(raw->score))
        return 0;
    if (type != JSON_INT && type != JSON_DOUBLE)
        return remote_fault(op, e, "a record's score must be a number");
    ret->score = fmax(-1, fmin(1, similarity_of(raw->scale, json_double(raw->score))));
    return 0;
}

static int read_metadata(const struct remote_op *op, struct arena *a, const struct remote_raw *raw,
                         struct vector_hit *ret, struct err *e)
{
    enum json_type type = json_type(raw->metadata);
    struct slice text = json_string(raw->metadata);
    int r = check_room(op, a, 2 * text.n, e);

    if (r < 0 || json_is_absent(raw->metadata))
        return r;
    if (type == JSON_OBJECT)
        ret->metadata = json_to_str(a, raw->metadata);
    else if (type != JSON_STRING || vector_check_metadata(a, text, &ret->metadata) < 0)
        r = remote_fault(op, e, "a record's metadata must be a JSON object");
    return r;
}

/* Restores the vector's original length, except for rounding. */
static int read_vector(const struct remote_op *op, struct arena *a, const struct remote_raw *raw, size_t n,
                       struct vector_hit *ret, struct err *e)
{
    size_t n_given = json_length(raw->unit);
    double length = json_double(raw->length);
    float *vector;
    int r;

    if (json_type(raw->unit) != JSON_ARRAY || n_given != n)
        return remote_fault(op, e, "a record's vector has %zu dimensions where the collection has %zu", n_given, n);
    r = check_room(op, a, n * sizeof(*vector), e);
    if (r < 0)
        return r;
    vector = arena_array(a, n, sizeof(*vector));
    if (json_read_floats(raw->unit, vector, n) < n)
        return remote_fault(op, e, "a record's vector must be of numbers");
    for (size_t i = 0; i < n; i++) {
        vector[i] = (float)((double)vector[i] * length);
        if (!isfinite(vector[i]))
            return remote_fault(op, e, "a record's vector of length %g has numbers beyond 32 bits", length);
    }
    ret->vector = vector;
    ret->n_dimensions = n;
    return 0;
}

int remote_read_record(const struct remote_op *op, struct arena *a, const struct remote_raw *raw, size_t n_dimensions,
                       struct vector_hit *ret, struct err *e)
{
    int r;

    *ret = (struct vector_hit){ .metadata = "{}" };
    r = read_id(op, raw, ret, e);
    if (r == 0)
        r = read_score(op, raw, ret, e);
    if (r == 0)
        r = read_metadata(op, a, raw, ret, e);
    return r < 0 || n_dimensions == 0 ? r : read_vector(op, a, raw, n_dimensions, ret, e);
}

/* ---- pages ---- */

int remote_count_page(const struct remote_op *op, size_t *n_pages, struct err *e)
{
    if (++*n_pages > LIMIT_STORE_PAGES)
        return remote_fault(op, e, "it has more than %d pages", LIMIT_STORE_PAGES);
    return 0;
}

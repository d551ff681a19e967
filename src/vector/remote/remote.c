#include "vector/remote/remote.h"

#include "base/hash.h"
#include "base/memory.h"
#include "base/uuid.h"
#include "net/http_client.h"
#include "net/url.h"

#include <math.h>
#include <stdlib.h>

enum { SILENCE_MS = 60000, NAME_CHARS = 63, REASON_CHARS = 300, HASH_CHARS = 40 };

int remote_init(struct remote *r, const char *url, const char *header, const char *key, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct url parts = { 0 };
    struct err why = { 0 };

    r->url = xstrdup(url ? url : "");
    r->header = xstrdup(header);
    r->key = key && *key ? xstrdup(key) : NULL;
    if (url_parse(a, r->url, &parts, &why) < 0)
        return err_set(e, -EINVAL, "VALIDATION_ERROR", "url: %s", why.text);
    return 0;
}

void remote_clear(struct remote *r)
{
    free(r->url);
    free(r->header);
    free(r->key);
}

/* ---- calls ---- */

static int failed(const struct remote *r, struct err *e, const char *text)
{
    return err_set(e, -EIO, "VECTOR_STORE_FAILED", "%s: %.*s", r->label, REASON_CHARS, text);
}

static const char *reason_of(struct json_value body)
{
    struct json_value places[] = {
        json_get(body, "message"),
        json_get(json_get(body, "status"), "error"),
        json_get(body, "error"),
        json_get(body, "detail"),
        json_get(json_get(body, "error"), "message"),
        json_get(remote_first(json_get(body, "error")), "message"),
        json_get(remote_first(json_get(body, "errors")), "message"),
    };

    for (size_t i = 0; i < ARRAY_SIZE(places); i++)
        if (json_cstr(places[i]))
            return json_cstr(places[i]);
    return "it gives no reason";
}

int remote_refused(const struct remote_op *op, const struct remote_reply *reply, struct err *e)
{
    const char *reason = reason_of(reply->body), *label = op->remote->label;

    if (reply->status == 401 || reply->status == 403)
        return err_set(e, -EIO, "VECTOR_STORE_FAILED", "%s takes no request without a valid API key (status %d): %.*s",
                       label, reply->status, REASON_CHARS, reason);
    return err_set(e, -EIO, "VECTOR_STORE_FAILED", "%s refused with status %d: %.*s", label, reply->status,
                   REASON_CHARS, reason);
}

static int read_reply(const struct remote_op *op, struct arena *a, const struct http_answer *answer,
                      struct remote_reply *ret, struct err *e)
{
    const char *location = http_answer_header(answer, "location");
    int r;

    ret->status = answer->status;
    ret->body = (struct json_value){ 0 };
    if (answer->status >= 300 && answer->status < 400)
        return failed(op->remote, e,
                      arena_printf(a, "it points to %s, and redirects are not followed: register the address it has",
                                   location ? location : "somewhere else"));
    r = answer->body.n > 0 ? json_parse(a, answer->body, &ret->body, NULL) : 0;
    if (r == -ENOMEM)
        return memory_refuse(e);
    if (r < 0 && answer->status < 300)
        return failed(op->remote, e, "what answers there is no JSON; is the address right?");
    return answer->status >= 500 ? remote_refused(op, ret, e) : 0;
}

/* The deadline is that of the whole operation: a request that fails after the deadline reports the operation's timeout.
 */
static int send_request(const struct remote_op *op, struct arena *a, const struct http_call_request *request,
                        struct http_answer *ret, struct err *e)
{
    struct http_call_request timed = *request;
    struct err why = { 0 }, over = { 0 };
    int64_t left_ms = net_wait_left(op->wait, &why);
    int r = (int)MIN(left_ms, 0);

    timed.total_ms = left_ms;
    if (r == 0)
        r = http_call(&timed, a, op->wait->is_gone, ret, &why);
    if (r < 0 && left_ms > 0 && net_wait_left(op->wait, &over) == -ETIMEDOUT) {
        why = over; /* not the last request's own timeout, which may have been very short */
        r = -ETIMEDOUT;
    }
    if (r == -ECANCELED || r == -EBUSY || r == -EAGAIN)
        return err_set(e, r, why.code, "%s", why.text);
    if (r == -ECONNREFUSED || r == -EHOSTUNREACH)
        return err_set(e, -EAGAIN, "VECTOR_STORE_UNAVAILABLE", "%s: %.*s", op->remote->label, REASON_CHARS, why.text);
    return r < 0 ? failed(op->remote, e, why.text) : 0;
}

static size_t add_headers(const struct remote *r, struct http_call_header *ret)
{
    size_t n = 0;

    ret[n++] = (struct http_call_header){ "content-type", "application/json" };
    if (r->key)
        ret[n++] = (struct http_call_header){ r->header, r->key };
    if (r->version)
        ret[n++] = (struct http_call_header){ r->version_header, r->version };
    return n;
}

/* The parts of a request that differ from call to call; body NULL: none. */
struct call_parts {
    const char *method, *path;
    const struct buf *body;
    size_t max_reply;
};

static int call(const struct remote_op *op, struct arena *a, const struct call_parts *parts, struct remote_reply *ret,
                struct err *e)
{
    struct http_call_header headers[3];
    struct http_call_request request = {
        .method = parts->method,
        .headers = headers,
        .n_headers = add_headers(op->remote, headers),
        .connect_ms = LIMIT_STORE_CONNECT_MS,
        .first_byte_ms = SILENCE_MS,
        .idle_ms = SILENCE_MS,
        .max_reply = parts->max_reply,
        .guard = op->remote->guard,
        .is_moot = op->wait->is_leaving,
        .holder = op->wait->holder,
    };
    struct http_answer answer = { 0 };
    char *url = NULL;
    int result = parts->body ? buf_check(parts->body, e) : 0;

    if (result == 0)
        result = url_join(a, op->remote->url, parts->path, &url, e);
    if (result < 0)
        return result;
    request.url = url;
    if (parts->body)
        request.body = buf_slice(parts->body);
    result = send_request(op, a, &request, &answer, e);
    return result < 0 ? result : read_reply(op, a, &answer, ret, e);
}

static int refuse_failure(const struct remote_op *op, int result, const struct remote_reply *reply, struct err *e)
{
    return result == 0 && reply->status >= 300 ? remote_refused(op, reply, e) : result;
}

int remote_call(const struct remote_op *op, struct arena *a, const char *method, const char *path,
                const struct buf *body, struct remote_reply *ret, struct err *e)
{
    const struct call_parts parts = { method, path, body, body ? LIMIT_STORE_REPLY : LIMIT_STORE_SMALL_REPLY };

    return call(op, a, &parts, ret, e);
}

int remote_request(const struct remote_op *op, struct arena *a, const char *method, const char *path,
                   const struct buf *body, struct remote_reply *ret, struct err *e)
{
    return refuse_failure(op, remote_call(op, a, method, path, body, ret, e), ret, e);
}

int remote_request_records(const struct remote_op *op, struct arena *a, const char *path, struct remote_reply *ret,
                           struct err *e)
{
    const struct call_parts parts = { "GET", path, NULL, LIMIT_STORE_REPLY };

    return refuse_failure(op, call(op, a, &parts, ret, e), ret, e);
}

/* ---- vectors ---- */

double remote_unit(const float *vector, size_t n, float *ret)
{
    double sum = 0, length;

    for (size_t i = 0; i < n; i++)
        sum += (double)vector[i] * (double)vector[i];
    length = sqrt(sum);
    for (size_t i = 0; i < n; i++)
        ret[i] = length > 0 ? (float)((double)vector[i] / length) : 0;
    return length;
}

static int by_id_then_place(const void *one, const void *other)
{
    const struct vector_record *a = *(const struct vector_record *const *)one,
                               *b = *(const struct vector_record *const *)other;
    int order = strcmp(a->id, b->id);

    return order ? order : (a > b) - (a < b);
}

size_t remote_last_of_each(struct arena *a, const struct vector_batch *b, const struct vector_record **ret)
{
    const struct vector_record **sorted = arena_array(a, b->n, sizeof(struct vector_record *));
    struct vector_record *kept = arena_array(a, b->n, sizeof(*kept));
    size_t n = 0;

    for (size_t i = 0; i < b->n; i++)
        sorted[i] = &b->items[i];
    qsort(sorted, b->n, sizeof(struct vector_record *), by_id_then_place);
    for (size_t i = 0; i < b->n; i++)
        if (i + 1 == b->n || strcmp(sorted[i]->id, sorted[i + 1]->id) != 0)
            kept[n++] = *sorted[i];
    *ret = kept;
    return n;
}

bool remote_is_zero(const float *vector, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (vector[i] != 0)
            return false;
    return true;
}

const float *remote_direction(struct arena *a, const float *vector, size_t n)
{
    float *unit = arena_array(a, n, sizeof(*unit));

    if (remote_unit(vector, n, unit) == 0)
        unit[0] = 1;
    return unit;
}

size_t remote_chunk(const struct vector_record *items, size_t n, size_t n_dimensions, size_t n_most, size_t n_bytes)
{
    size_t bytes = 0, i = 0;

    while (i < n && i < n_most && (i == 0 || bytes < n_bytes)) {
        bytes +=
            12 * n_dimensions + 2 * strlen(items[i].id) + 3 * (items[i].metadata ? strlen(items[i].metadata) : 0) + 200;
        i++;
    }
    return i;
}

/* ---- filters ---- */

bool remote_is_void(const struct vector_filter *f)
{
    for (size_t i = 0; i < f->n; i++)
        if (f->items[i].op == VECTOR_IN && json_length(f->items[i].value) == 0)
            return true;
    return false;
}

struct remote_number remote_number(struct json_value v)
{
    double d = json_double(v);

    if (json_type(v) == JSON_INT)
        return (struct remote_number){ d, json_int(v), true };
    if (d >= -9223372036854775808.0 && d < 9223372036854775808.0)
        return (struct remote_number){ d, (int64_t)floor(d), floor(d) == d };
    return (struct remote_number){ d, d < 0 ? INT64_MIN : INT64_MAX, false };
}

bool remote_is_exact(struct json_value v)
{
    return json_type(v) != JSON_INT || (json_int(v) < (INT64_C(1) << 53) && json_int(v) > -(INT64_C(1) << 53));
}

const char *remote_double_text(double d, char *out)
{
    size_t n = json_format_double(out, d);

    out[n] = '\0';
    if (!strpbrk(out, ".eE"))
        memcpy(out + n, ".0", 3);
    return out;
}

bool remote_is_reported(const struct remote_dialect *d, const struct vector_filter *f)
{
    for (size_t i = 0; i < f->n; i++)
        if (!d->can_express(&f->items[i]))
            return false;
    return true;
}

static bool can_express_any(const struct remote_dialect *d, const struct vector_filter *f)
{
    for (size_t i = 0; i < f->n; i++)
        if (d->can_express(&f->items[i]))
            return true;
    return false;
}

void remote_add_filter(const struct remote_dialect *d, struct json_writer *w, const struct vector_filter *f)
{
    if (!can_express_any(d, f))
        return;
    json_begin_object_as(w, d->member);
    json_begin_array_as(w, d->all);
    for (size_t i = 0; i < f->n; i++)
        if (d->can_express(&f->items[i]))
            d->add(w, &f->items[i]);
    json_end(w);
    json_end(w);
}

/* ---- answers ---- */

bool remote_is_match(const struct vector_filter *f, const char *metadata, struct arena *a)
{
    struct json_value value = { 0 };

    if (f->n == 0)
        return true;
    return json_parse(a, slice_of(metadata), &value, NULL) == 0 && vector_filter_matches(f, value);
}

static void keep(struct vector_hits *kept, const struct vector_hit *hit, struct arena *a)
{
    struct vector_hit own = { arena_strdup(a, hit->id), hit->score, arena_strdup(a, hit->metadata), NULL,
                              hit->n_dimensions };
    float *vector;

    if (hit->vector) {
        vector = arena_array(a, hit->n_dimensions, sizeof(*vector));
        memcpy(vector, hit->vector, hit->n_dimensions * sizeof(*vector));
        own.vector = vector;
    }
    kept->items[kept->n++] = own;
}

static bool has_room(const struct arena *a, const struct vector_hit *hit)
{
    return arena_has_room(a, LIMIT_ARENA_BYTES / 8 + strlen(hit->id) + strlen(hit->metadata) +
                                 hit->n_dimensions * sizeof(float));
}

/* Keeps the hits that match, top_k at most. */
static int keep_matches(const struct vector_query *q, const struct vector_filter *f, const struct vector_hits *hits,
                        struct arena *scratch, struct arena *a, struct vector_hits *kept, struct err *e)
{
    kept->n = 0;
    for (size_t i = 0; i < hits->n && kept->n < (size_t)q->top_k; i++) {
        const struct vector_hit *hit = &hits->items[i];

        if (hit->score < q->min_score || !remote_is_match(f, hit->metadata, scratch))
            continue;
        if (!has_room(a, hit))
            return err_set(e, -EMSGSIZE, "VECTOR_STORE_FAILED",
                           "The nearest vectors are larger than an answer may be: ask for fewer.");
        keep(kept, hit, a);
    }
    return 0;
}

/* Is the last hit below min_score? Further hits would have even lower scores. */
static bool is_below(const struct vector_hits *hits, double min_score)
{
    return hits->n > 0 && hits->items[hits->n - 1].score < min_score;
}

static int look(const struct remote_looking *l, int64_t n, struct arena *a, struct vector_hits *kept, bool *ret_enough,
                struct err *e)
{
    AUTO(arena_freep) struct arena *scratch = arena_new();
    const struct vector_query *q = l->query;
    struct vector_hits hits = { 0 };
    int r = l->request(l->arg, n, scratch, &hits, e);

    if (r == 0)
        r = keep_matches(q, l->filter, &hits, scratch, a, kept, e);
    *ret_enough = kept->n == (size_t)q->top_k || hits.n < (size_t)n || is_below(&hits, q->min_score);
    return r;
}

int remote_nearest(const struct remote_looking *l, struct arena *a, struct vector_hits *ret, struct err *e)
{
    int64_t top_k = l->query->top_k, n = MIN(l->is_decided ? top_k : 4 * top_k + 64, l->n_most);
    struct vector_hits kept = { arena_array(a, (size_t)top_k, sizeof(*kept.items)), 0 };
    bool is_enough = remote_is_void(l->filter);
    int r = 0;

    while (r == 0 && !is_enough) {
        r = look(l, n, a, &kept, &is_enough, e);
        if (r == 0 && !is_enough && n == l->n_most)
            return -ERANGE;
        n = MIN(8 * n, l->n_most);
    }
    if (r == 0)
        *ret = kept;
    return r;
}

int remote_undecided(struct err *e)
{
    return err_set(
        e, -EIO, "VECTOR_STORE_FAILED",
        "Too few of the %d nearest vectors match the filter, and this store cannot decide it by itself: use conditions of "
        "equality, or numbers.",
        REMOTE_CANDIDATES);
}

static void grow_ids(struct remote_ids *ids, size_t cap)
{
    const char **more = arena_array(ids->arena, cap, sizeof(char *));

    if (ids->n > 0)
        memcpy(more, ids->items, ids->n * sizeof(char *));
    ids->items = more;
    ids->cap = cap;
}

int remote_ids_add(struct remote_ids *ids, const char *id, struct err *e)
{
    size_t n_id = strlen(id) + 1, cap = ids->n == ids->cap ? 2 * ids->cap + 64 : 0;

    /* half of the arena is reserved for the work with the ids */
    if (!arena_has_room(ids->arena, LIMIT_ARENA_BYTES / 2 + n_id + cap * sizeof(char *)))
        return err_set(e, -EMSGSIZE, "VECTOR_STORE_FAILED",
                       "The namespace has more vectors than can be gone through in one request: above %zu ids.",
                       ids->n);
    if (cap)
        grow_ids(ids, cap);
    ids->items[ids->n++] = arena_strdup(ids->arena, id);
    return 0;
}

int remote_ids_add_hits(struct remote_ids *ids, const struct vector_hits *hits, const struct vector_filter *filter,
                        struct arena *scratch, struct err *e)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < hits->n; i++)
        if (!filter || remote_is_match(filter, hits->items[i].metadata, scratch))
            r = remote_ids_add(ids, hits->items[i].id, e);
    return r;
}

static int by_text(const void *one, const void *other)
{
    return strcmp(*(const char *const *)one, *(const char *const *)other);
}

void remote_ids_sort(struct remote_ids *ids)
{
    if (ids->n > 0)
        qsort(ids->items, ids->n, sizeof(char *), by_text);
}

void remote_ids_unique(struct remote_ids *ids)
{
    size_t n = 0;

    remote_ids_sort(ids);
    for (size_t i = 0; i < ids->n; i++)
        if (n == 0 || strcmp(ids->items[n - 1], ids->items[i]) != 0)
            ids->items[n++] = ids->items[i];
    ids->n = n;
}

static int by_id(const void *one, const void *other)
{
    return strcmp(((const struct vector_hit *)one)->id, ((const struct vector_hit *)other)->id);
}

void remote_hits_sort(struct vector_hits *hits)
{
    if (hits->n > 0)
        qsort(hits->items, hits->n, sizeof(*hits->items), by_id);
}

/* Peers make folders or keys from the name: it is lower case only, so that two names stay distinct on a file system
 * that ignores case. Namespaces begin with `sdk_`. */
const char *remote_collection_name(struct arena *a, const char *ns)
{
    size_t n = strlen(ns);

    if (strncmp(ns, "sdk_", 4) == 0 && n <= NAME_CHARS && strspn(ns, "abcdefghijklmnopqrstuvwxyz0123456789_-") == n &&
        ns[n - 1] != '_' && ns[n - 1] != '-')
        return ns;
    return remote_hashed_name(a, ns, "hearth_");
}

const char *remote_hashed_name(struct arena *a, const char *ns, const char *prefix)
{
    char hex[HASH_HEX_SIZE];

    hash_text_hex(slice_of(ns), hex);
    return arena_printf(a, "%s%.*s", prefix, HASH_CHARS, hex);
}

bool remote_is_hashed_name(const char *name, const char *prefix)
{
    size_t n = strlen(prefix);

    return name && strncmp(name, prefix, n) == 0 && strlen(name + n) == HASH_CHARS &&
           name[n + strspn(name + n, "0123456789abcdef")] == '\0';
}

bool remote_is_uuid(const char *text)
{
    return text && strlen(text) == UUID_SIZE - 1 && text[strspn(text, "0123456789abcdefABCDEF-")] == '\0';
}

struct json_value remote_first(struct json_value list)
{
    struct json_iter it = json_iter(list);
    struct json_value first = { 0 };

    return json_type(list) == JSON_ARRAY && json_next(&it, NULL, &first) ? first : (struct json_value){ 0 };
}

#include "embed/embed.h"

#include "base/clock.h"
#include "base/limits.h"
#include "base/memory.h"
#include "base/thread.h"
#include "base/utf8.h"
#include "net/url.h"

#include <stdlib.h>
#include <unistd.h>

#define API_VERSION "2024-10-21" /* of Azure's deployments: the latest version that is no preview */
#define DEPLOYMENT_CHARS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_."

enum { CHARS_PER_TOKEN = 6, GONE_POLL_US = 20000, FIRST_PAUSE_MS = 250, MAX_PARALLEL = 8 };

/* One running call; helper threads take batches from it until none are left. */
struct call {
    const struct embed_account *acc;
    const struct embed_request *request;
    const char *url;
    int64_t deadline_ms;
    size_t max_batch; /* 1 once the provider has proved to take only one text at a time */

    pthread_mutex_t lock; /* guards the members below */
    size_t n_taken;       /* texts */
    struct arena *arena;  /* the caller's, of the result */
    float *items;         /* NULL until the first answer determines the dimensions */
    size_t n_dimensions;
    const char *model;
    int64_t n_tokens, retry_after_ms, upstream_us;
    int r;               /* the first failure */
    atomic_bool is_over; /* the call has failed: running batches are useless */
    struct err why;
};

static bool is_in_vain(const struct call *c)
{
    return atomic_load(&c->is_over) || (c->request->is_gone && atomic_load(c->request->is_gone));
}

/* ---- one request ---- */

static int make_request(const struct call *c, const struct embed_batch *batch, struct arena *a, struct buf *body,
                        struct http_call_request *ret, struct err *e)
{
    const struct embed_protocol *protocol = c->acc->service->protocol;
    struct json_writer w;

    json_write_init(&w, body);
    json_begin_object(&w);
    json_add_string(&w, "model", c->request->model);
    json_begin_array_as(&w, "input");
    for (size_t i = 0; i < batch->n; i++)
        json_add_slice(&w, NULL, batch->texts[i]);
    json_end(&w);
    protocol->write(&w, c->acc->service, c->request);
    json_end(&w);
    *ret = (struct http_call_request){
        .method = "POST",
        .url = c->url,
        .headers = c->acc->headers,
        .n_headers = c->acc->n_headers,
        .body = buf_slice(body),
        .connect_ms = c->acc->connect_ms,
        .first_byte_ms = c->acc->first_byte_ms,
        .idle_ms = c->acc->idle_ms,
        .total_ms = c->deadline_ms - clock_mono_ms(),
        .max_reply = LIMIT_REPLY,
        .is_moot = &c->is_over,
        .inside = protocol->answer ? protocol->answer(c->request, batch, a) : NULL,
    };
    if (ret->total_ms <= 0)
        return err_set(e, -ETIMEDOUT, "UPSTREAM_TIMEOUT", "it took too long.");
    return buf_check(body, e);
}

static bool may_help_to_retry(int r)
{
    return r == -EAGAIN || r == -EBUSY || r == -ECONNRESET || r == -ECONNREFUSED;
}

/* -ECANCELED when the client disconnects during the pause; r when no retry follows or the pause would be too long. */
static int pause_before_retry(const struct call *c, int r, unsigned n_tries, int64_t requested_ms)
{
    int64_t pause_ms = requested_ms > 0 ? requested_ms : (int64_t)FIRST_PAUSE_MS << n_tries,
            until_ms = clock_mono_ms() + pause_ms;

    if (!may_help_to_retry(r) || n_tries >= c->acc->n_retries || requested_ms > c->acc->retry_after_max_ms ||
        until_ms >= c->deadline_ms)
        return r;
    while (clock_mono_ms() < until_ms) {
        if (is_in_vain(c))
            return -ECANCELED;
        usleep(GONE_POLL_US);
    }
    return 0;
}

static int request_once(const struct call *c, const struct http_call_request *http, struct arena *a,
                        struct http_answer *ret, struct err *e)
{
    int r = http_call(http, a, c->request->is_gone, ret, e);

    if (r < 0 || (ret->status >= 200 && ret->status < 300))
        return r;
    return c->acc->refuse(c->acc->arg, ret->status, ret->body, e);
}

static void note_retry_after(struct call *c, int64_t retry_after)
{
    pthread_mutex_lock(&c->lock);
    c->retry_after_ms = MAX(c->retry_after_ms, retry_after);
    pthread_mutex_unlock(&c->lock);
}

/* When there are several texts, names those that a refusal may concern. */
static void err_with_place(const struct call *c, const struct embed_batch *batch, int status, const struct err *why,
                           struct err *e)
{
    size_t first = (size_t)(batch->texts - c->request->texts);
    bool is_about_texts = status == 400 || status == 413 || status == 422;

    *e = *why;
    if (is_about_texts && c->request->n > 1 && batch->n == 1)
        snprintf(e->text, sizeof(e->text), "`input[%zu]`: %s", first, why->text);
    else if (is_about_texts && c->request->n > 1)
        snprintf(e->text, sizeof(e->text), "One of `input[%zu]` to `input[%zu]`: %s", first, first + batch->n - 1,
                 why->text);
}

static int request_with_retries(struct call *c, struct embed_batch *batch, struct arena *a, struct slice *ret,
                                struct err *e)
{
    struct http_answer answer;
    struct http_call_request http;
    struct buf body;
    int64_t requested_ms, began_us;
    int r, again;

    buf_init(&body, LIMIT_BODY_CHAT);
    for (unsigned n_tries = 0;; n_tries++) {
        struct err why = { 0 };

        answer = (struct http_answer){ 0 };
        buf_reset(&body);
        r = make_request(c, batch, a, &body, &http, &why);
        began_us = clock_mono_us();
        if (r == 0)
            r = request_once(c, &http, a, &answer, &why);
        batch->waited_us += clock_mono_us() - began_us;
        if (r == 0)
            break;
        requested_ms = c->acc->retry_after_ms(&answer);
        again = pause_before_retry(c, r, n_tries, requested_ms);
        if (again < 0) {
            r = again;
            note_retry_after(c, requested_ms);
            err_with_place(c, batch, answer.status, &why, e);
            break;
        }
    }
    buf_clear(&body);
    *ret = answer.body;
    return r;
}

/* ---- storing the vectors of a batch ---- */

/* The first vector determines the number of dimensions of the call. */
static int agree_on_dimensions(struct call *c, size_t n_dimensions, struct err *e)
{
    int r = 0;

    if (n_dimensions < 1 || n_dimensions > LIMIT_DIMENSIONS)
        return err_set(e, -EBADMSG, "UPSTREAM_INVALID", "it answered with a vector of %zu dimensions.", n_dimensions);
    pthread_mutex_lock(&c->lock);
    if (c->n_dimensions == 0) {
        c->n_dimensions = n_dimensions;
        c->items = arena_array(c->arena, c->request->n * n_dimensions, sizeof(*c->items));
    }
    if (n_dimensions != c->n_dimensions)
        r = err_set(e, -EBADMSG, "UPSTREAM_INVALID", "it answered with vectors of %zu and %zu dimensions.",
                    c->n_dimensions, n_dimensions);
    pthread_mutex_unlock(&c->lock);
    return r;
}

static int keep_vectors(struct call *c, const struct embed_reply *reply, size_t first, struct err *e)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < reply->n; i++) {
        size_t n = embed_vector_length(reply->vectors[i]);

        r = agree_on_dimensions(c, n, e);
        if (r == 0 && !embed_vector_read(reply->vectors[i], c->items + (first + i) * n, n))
            r = err_set(e, -EBADMSG, "UPSTREAM_INVALID", "it answered with a vector that does not consist of numbers.");
    }
    if (r < 0)
        return r;
    pthread_mutex_lock(&c->lock);
    c->n_tokens += MAX(MIN(reply->n_tokens, (int64_t)LIMIT_TOKENS), (int64_t)0);
    if (!c->model && reply->model && *reply->model && strlen(reply->model) <= LIMIT_MODEL_BYTES)
        c->model = arena_strdup(c->arena, reply->model);
    pthread_mutex_unlock(&c->lock);
    return 0;
}

static int embed_batch(struct call *c, size_t first, size_t n, int64_t *waited_us, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct embed_batch batch = { c->request->texts + first, n, 0 };
    struct embed_reply reply = { 0 };
    struct json_value root = { 0 };
    struct slice text = { 0 };
    int r = request_with_retries(c, &batch, a, &text, e);

    *waited_us += batch.waited_us;
    if (r < 0)
        return r;
    r = json_parse(a, text, &root, NULL);
    if (r == -ENOMEM)
        return memory_refuse(e);
    if (r < 0)
        return err_set(e, -EBADMSG, "UPSTREAM_INVALID", "it answered with something that is no JSON.");
    r = c->acc->service->protocol->read(root, &batch, a, &reply, e);
    if (r == 0)
        r = keep_vectors(c, &reply, first, e);
    return r;
}

/* ---- all batches ---- */

static bool take_batch(struct call *c, size_t *ret_first, size_t *ret_n)
{
    bool is_taken;

    pthread_mutex_lock(&c->lock);
    is_taken = c->r == 0 && c->n_taken < c->request->n;
    *ret_first = c->n_taken;
    *ret_n = MIN(c->max_batch, c->request->n - c->n_taken);
    if (is_taken)
        c->n_taken += *ret_n;
    pthread_mutex_unlock(&c->lock);
    return is_taken;
}

static void end_batch(struct call *c, int r, const struct err *why)
{
    pthread_mutex_lock(&c->lock);
    if (r < 0 && c->r == 0) {
        c->r = r;
        c->why = *why;
        atomic_store(&c->is_over, true);
    }
    pthread_mutex_unlock(&c->lock);
}

/* The provider takes one text at a time: sends these texts one by one, and all later ones too. */
static int embed_one_by_one(struct call *c, size_t first, size_t n, int64_t *waited_us, struct err *e)
{
    int r = 0;

    pthread_mutex_lock(&c->lock);
    c->max_batch = 1;
    pthread_mutex_unlock(&c->lock);
    for (size_t i = 0; r == 0 && i < n; i++)
        r = embed_batch(c, first + i, 1, waited_us, e);
    return r;
}

static void *work(void *arg)
{
    struct call *c = arg;
    int64_t waited_us = 0;
    size_t first, n;

    while (take_batch(c, &first, &n)) {
        struct err why = { 0 };
        int r = embed_batch(c, first, n, &waited_us, &why);

        if (r == -E2BIG && n > 1) {
            why = (struct err){ 0 };
            r = embed_one_by_one(c, first, n, &waited_us, &why);
        }
        end_batch(c, r, &why);
    }
    pthread_mutex_lock(&c->lock);
    c->upstream_us = MAX(c->upstream_us, waited_us);
    pthread_mutex_unlock(&c->lock);
    return NULL;
}

/* The caller's own thread works too. If fewer helpers start than wanted, the work only takes longer. */
static void work_in_parallel(struct call *c)
{
    size_t n_batches = (c->request->n + c->max_batch - 1) / c->max_batch, n_helpers = 0;
    size_t n_wanted = MIN(MIN(n_batches, (size_t)c->acc->service->n_parallel), (size_t)MAX_PARALLEL) - 1;
    pthread_t helpers[MAX_PARALLEL];

    while (n_helpers < n_wanted && thread_start(&helpers[n_helpers], "embed", work, c) == 0)
        n_helpers++;
    work(c);
    for (size_t i = 0; i < n_helpers; i++)
        pthread_join(helpers[i], NULL);
}

static int check_lengths(const struct embed_account *acc, const struct embed_request *request, struct err *e)
{
    size_t max = acc->service->max_tokens * CHARS_PER_TOKEN;

    for (size_t i = 0; max > 0 && i < request->n; i++)
        if (request->texts[i].n > max && utf8_length(request->texts[i]) > max)
            return err_set(e, -EINVAL, "INPUT_TOO_LONG",
                           "`input[%zu]` is too long for %s, which takes %zu tokens a text: split it.", i, acc->name,
                           acc->service->max_tokens);
    return 0;
}

/* A deployment's address may lack the deployment's name: then the model's name is used. */
static int make_url(const struct embed_account *acc, const struct embed_request *request, struct arena *a, char **ret,
                    struct err *e)
{
    const char *path = acc->service->protocol->path, *deployments;

    if (acc->service->protocol->answer) /* nothing is called */
        return 0;
    deployments = strstr(acc->base_url, "/openai/deployments");
    if (!embed_is_deployment(acc->service, acc->base_url))
        return url_join(a, acc->base_url, path, ret, e);
    deployments += strlen("/openai/deployments");
    if (strspn(request->model, DEPLOYMENT_CHARS) != strlen(request->model))
        return err_set(e, -EINVAL, "INVALID_MODEL",
                       "The model must be the name of a deployment: letters, digits, dots, hyphens and underscores.");
    if (deployments[strspn(deployments, "/")] == '\0' || deployments[strspn(deployments, "/")] == '?')
        path = arena_printf(a, "%s/%s", request->model, path);
    if (!strstr(acc->base_url, "api-version="))
        path = arena_printf(a, "%s?api-version=" API_VERSION, path);
    return url_join(a, acc->base_url, path, ret, e);
}

int embed_remote(const struct embed_account *acc, const struct embed_request *request, struct arena *a,
                 struct embed_vectors *ret, struct err *e)
{
    struct call c = { .acc = acc,
                      .request = request,
                      .arena = a,
                      .max_batch = acc->service->max_batch,
                      .lock = PTHREAD_MUTEX_INITIALIZER };
    char *url = NULL;
    int r = check_lengths(acc, request, e);

    if (r == 0)
        r = make_url(acc, request, a, &url, e);
    if (r < 0)
        return r;
    c.url = url;
    c.deadline_ms = clock_mono_ms() + acc->total_ms;
    work_in_parallel(&c);
    pthread_mutex_destroy(&c.lock);
    ret->retry_after_ms = c.retry_after_ms;
    if (c.r < 0) {
        if (e)
            *e = c.why;
        return c.r;
    }
    *ret = (struct embed_vectors){
        c.items, request->n, c.n_dimensions, c.model ? c.model : request->model, c.n_tokens, c.upstream_us, 0
    };
    return 0;
}

#include "api/dispatch.h"

#include "api/admission.h"
#include "api/answer.h"
#include "api/api.h"
#include "api/resources/face_form.h"
#include "api/resources/foreign_clients.h"
#include "api/host.h"
#include "api/request.h"
#include "api/router.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/stall.h"
#include "http/sse.h"
#include "identity/claim.h"
#include "identity/sessions.h"

#define CORS_HEADERS                                                                                                         \
    "content-type, authorization, x-app-id, x-api-key, accept, mcp-session-id, mcp-protocol-version, mcp-method, mcp-name, " \
    "apikey, x-client-info, x-supabase-api-version, prefer, accept-profile, content-profile, range, range-unit"
#define CORS_HEADERS_OWN CORS_HEADERS ", " SESSION_PROOF_HEADER /* only the service's own pages may send a proof */
#define CORS_METHODS "GET, POST, PUT, PATCH, DELETE"

struct dispatch {
    struct dispatch_config config;
    struct router *router;           /* owned */
    struct host_rules *hosts;        /* owned */
    struct tally other;              /* requests that matched no route */
    struct foreign_clients *foreign; /* owned */
    struct admission *admission;     /* owned; NULL without a service */
};

/* What a worker has read of a request; on the worker's stack, because the exchange may be gone when a stream has begun.
 */
struct work {
    struct request req;
    struct caller caller;
    struct trace trace;
    bool is_read; /* caller, query and body are read */
};

/* One request in progress; in the exchange's arena, so the job is gone once the answer is sent or streamed. */
struct job {
    struct dispatch *d;
    struct http_exchange *x;
    struct route_entry *entry;
    struct http_match match;
    size_t max_body;
    bool is_preflight, is_urgent; /* urgent: a request of the administrator */
    bool is_on_loop, is_long;     /* where it runs; neither: in the short pool */
    size_t n_headers;             /* of the response, before the loop tried the request */
    struct claim claim;
    struct budget_holder *waiter; /* owned while the job runs in the long pool: the payer of its place there */
    struct work work;             /* what a worker of the short pool has read, for the long pool; else empty */
};

/* ---- open and close ---- */

int dispatch_open(const struct dispatch_config *c, struct dispatch **ret, struct err *e)
{
    struct dispatch *d = xcalloc(1, sizeof(*d));
    int r;

    d->config = *c;
    tally_init(&d->other, "other", "other");
    d->hosts = host_rules_new(c->settings);
    d->foreign = foreign_clients_new(c->settings);
    d->admission = c->loop ? admission_new(c->loop) : NULL;
    r = router_new(c->tables, c->settings, &d->router, e);
    if (r < 0) {
        dispatch_close(d);
        return r;
    }
    *ret = d;
    return 0;
}

struct dispatch *dispatch_close(struct dispatch *d)
{
    if (!d)
        return NULL;
    admission_free(d->admission);
    router_free(d->router);
    host_rules_free(d->hosts);
    foreign_clients_free(d->foreign);
    free(d);
    return NULL;
}

void dispatch_add_address(struct dispatch *d, const char *address, uint16_t port)
{
    host_rules_add_address(d->hosts, address, port);
}

struct foreign_clients *dispatch_foreign_clients(const struct dispatch *d)
{
    return d->foreign;
}

void dispatch_each_route(const struct dispatch *d, void (*fn)(const struct route *r, const char *path, void *arg),
                         void *arg)
{
    for (size_t i = 0; i < router_count(d->router); i++)
        fn(router_entry(d->router, i)->route, router_entry(d->router, i)->path, arg);
}

static size_t body_limit_of(const struct route *route)
{
    return route && route->max_body ? route->max_body : LIMIT_BODY_DEFAULT;
}

static int body_too_large(size_t limit, struct err *e)
{
    return err_set(e, -E2BIG, "BODY_TOO_LARGE", "The body must be at most %zu bytes.", limit);
}

/* ---- the end of a request: envelope, metrics, one log line ---- */

static void begin_trace(struct trace *t, struct dispatch *d, const struct http_exchange *x, struct route_entry *entry)
{
    *t = (struct trace){
        .method = http_method_name(x->request.method),
        .path = entry ? entry->path : "other",
        .arrived_us = x->request.arrived_us,
        .is_quiet = entry && entry->route->kind == ROUTE_INLINE,
        .error_form = router_error_form(d->router, entry, &x->request),
        .tally = entry ? &entry->tally : &d->other,
    };
    memcpy(t->request_id, x->request.id, sizeof(t->request_id));
}

void dispatch_refused(struct dispatch *d, const char *request_id, int status, const char *code)
{
    tally_add(&d->other, status, 0);
    log_info("api", request_id, "refused before routing: %d %s", status, code);
}

void dispatch_write_refusal(struct dispatch *d, struct http_exchange *x, const struct err *why, int status,
                            struct buf *out)
{
    struct job *job = x->owner_data;
    const struct error_form *form = router_error_form(d->router, job ? job->entry : NULL, &x->request);
    struct json_writer w;
    struct err e = { 0 };

    if (job && job->entry && strcmp(why->code, "BODY_TOO_LARGE") == 0)
        body_too_large(job->max_body, &e);
    else
        e = *why;
    json_write_init(&w, out);
    json_begin_object(&w);
    form->write(&w, x, status, &e);
    json_end(&w);
}

/* ---- on a worker (or on the loop for ROUTE_INLINE): the handler ---- */

/* Refuses a request that has waited too long or whose client has left: its answer is of no use any more. */
static int check_alive(const struct http_exchange *x, struct err *e)
{
    if (atomic_load(&x->is_gone))
        return err_set(e, -ECANCELED, "SHUTTING_DOWN", "The client has left or the service is stopping.");
    if (x->deadline_ms && clock_mono_ms() > x->deadline_ms)
        return err_set(e, -EAGAIN, "OVERLOADED", "The request waited too long for a worker; try again in a second.");
    return 0;
}

static int read_request(struct dispatch *d, struct work *work, struct err *e)
{
    int r = request_read_caller(d->config.identity, &work->req, &work->caller, e);

    if (r == 0)
        r = request_read_query(&work->req, e);
    if (r == 0)
        r = request_read_body(&work->req, e);
    work->is_read = r == 0;
    work->trace.caller = work->caller.kind;
    return r;
}

static int handle(struct dispatch *d, struct work *work, struct response *res, struct err *e)
{
    struct request *req = &work->req;
    int r = request_take_permission(d->config.identity, req, &work->caller, e);

    if (r < 0)
        return r;
    answer_begin(req->route, res);
    r = req->route->handler(req, res, e);
    return r < 0 || res->is_streamed ? r : answer_end(res, e);
}

static int submit(struct job *job, bool is_long, struct err *e);

/* Does this request of a ROUTE_SHORT have to wait for a provider or another service? */
static bool belongs_to_long_pool(const struct job *job, const struct work *work)
{
    const struct route *route = work->req.route;

    return !job->is_long && !job->is_on_loop && job->d->config.long_pool && route->needs_long &&
           route->needs_long(&work->req);
}

static void give_back(struct budget_holder *waiter)
{
    if (waiter)
        budget_give(waiter, BUDGET_LONG_REQUESTS, 1);
    budget_holder_unref(waiter);
}

/* A caller that the body names pays from here on, as one that the head names does. The routes of the loop hold nothing
 * (see admit()). */
static int charge_named(struct job *job, const struct work *work, struct budget_holder **waiter, struct err *e)
{
    struct budget_purse *purse = &job->x->purse;
    const struct caller *caller = &work->caller;
    enum holder_kind before = purse->holder ? budget_holder_kind(purse->holder) : HOLDER_ADMIN;
    struct budget_holder *named;
    int r = 0;

    if (job->entry->route->kind == ROUTE_INLINE)
        return 0;
    if ((before != HOLDER_NOBODY && before != HOLDER_ADDRESS) ||
        (caller->kind != CALLER_APP && caller->kind != CALLER_KEY))
        return 0;
    named = caller->kind == CALLER_APP ? budget_holder_get(HOLDER_APP, caller->app_id)
                                       : budget_holder_get(HOLDER_KEY, caller->key_id);
    if (*waiter)
        r = budget_take(named, BUDGET_LONG_REQUESTS, 1, e);
    if (r == 0)
        purse_open(purse, named);
    if (r == 0 && *waiter) {
        give_back(*waiter);
        *waiter = budget_holder_ref(named);
    }
    budget_holder_unref(named);
    return r;
}

/* 1: a worker of the long pool continues, and the job may be gone already. */
static int do_work(struct job *job, struct work *work, struct budget_holder **waiter, struct response *res,
                   struct err *e)
{
    int r = check_alive(job->x, e);

    if (r == 0 && !work->is_read)
        r = read_request(job->d, work, e);
    if (r == 0)
        r = charge_named(job, work, waiter, e);
    if (r < 0)
        return r;
    if (!belongs_to_long_pool(job, work))
        return handle(job->d, work, res, e);
    job->work = *work;
    r = submit(job, true, e);
    return r < 0 ? r : 1;
}

/* A key that was revoked since the head is judged by a worker as well, which looks at the other credentials. */
static bool needs_worker(const struct job *job, const struct work *work, int r)
{
    return job->is_on_loop && (r == -ENEEDSWORKER || (r == -EACCES && !work->is_read));
}

/* The worker begins again with the request as it arrived. */
static int move_to_worker(struct job *job, struct err *e)
{
    int r;

    err_init(e);
    buf_reset(&job->x->response.body);
    job->x->response.n_headers = job->n_headers;
    job->is_on_loop = false;
    r = submit(job, false, e);
    return r < 0 ? r : 1;
}

static void begin_work(struct job *job, struct work *work)
{
    *work = job->work;
    if (!work->is_read) {
        work->caller = (struct caller){ .kind = CALLER_NOBODY };
        work->req = (struct request){
            .api = job->d->config.api, .arena = job->x->arena, .route = job->entry->route, .exchange = job->x
        };
        work->req.key_hash = job->claim.kind == HOLDER_KEY ? job->claim.key_hash : NULL;
        work->req.is_by_key_alone = job->is_on_loop;
        for (size_t i = 0; i < job->match.n_params; i++)
            work->req.params[i] = arena_slicedup(job->x->arena, job->match.params[i]);
    }
    work->req.caller = &work->caller;
    work->req.trace = &work->trace;
}

static void answer_job(struct job *job, struct budget_holder **waiter)
{
    struct http_exchange *x = job->x;
    struct response res = { .exchange = x };
    struct work work;
    struct err e;
    int r;

    err_init(&e);
    stall_set_label(job->entry->path);
    begin_work(job, &work);
    r = do_work(job, &work, waiter, &res, &e);
    if (r < 0 && needs_worker(job, &work, r))
        r = move_to_worker(job, &e);
    if (r > 0 || res.is_deferred)
        return;
    if (res.is_streamed) {
        trace_end(&work.trace, r < 0 ? 500 : 200, &e);
        return;
    }
    if (r < 0) {
        answer_send_error(x, &work.trace, r, &e);
        return;
    }
    answer_add_safety_headers(x, &work.trace);
    answer_send(x, &work.trace, x->response.status, &e);
}

/* The job ends with its exchange, which may be before answer_job() returns. */
static void run_job(void *arg)
{
    struct job *job = arg;
    struct budget_holder *waiter = TAKE(job->waiter);

    answer_job(job, &waiter);
    give_back(waiter);
}

/* ---- what a handler may do instead of writing JSON ---- */

struct buf *response_start_raw(struct response *res, const char *content_type)
{
    buf_reset(&res->exchange->response.body);
    res->exchange->response.content_type = content_type;
    res->is_raw = true;
    return &res->exchange->response.body;
}

struct http_stream *request_take_stream(struct request *req, struct response *res, const char *content_type)
{
    buf_reset(&req->exchange->response.body);
    res->is_streamed = true;
    return stream_start_as(req->exchange, content_type);
}

struct http_stream *request_take_events(struct request *req, struct response *res)
{
    return request_take_stream(req, res, "text/event-stream");
}

/* ---- on the loop: Host and Origin, the route, where its handler runs ---- */

static bool is_preflight(const struct http_request *req)
{
    return req->method == HTTP_OPTIONS && http_header(req, "origin") != NULL;
}

static void write_preflight(struct dispatch *d, struct http_exchange *x)
{
    http_response_header(x, "access-control-allow-methods", CORS_METHODS);
    http_response_header(x, "access-control-allow-headers",
                         origin_is_own(d->hosts, &x->request) ? CORS_HEADERS_OWN : CORS_HEADERS);
    http_response_header(x, "access-control-max-age", "600");
    buf_add_str(&x->response.body, "{\"success\":true}");
}

static int refuse_unmatched(struct dispatch *d, struct http_exchange *x, const struct http_match *match, struct err *e)
{
    char allow[80] = "";
    int r = match->is_path_known ? 0 : foreign_clients_refuse_path(d->foreign, x->request.path, x->request.id, e);

    if (r == 0 && !match->is_path_known)
        r = face_refuse_path(x->request.path, e);
    if (r < 0)
        return r;
    if (!match->is_path_known)
        return err_set(e, -ENOENT, "NOT_FOUND", "Not Found");
    for (int method = 0; method < HTTP_METHODS; method++)
        if (match->allowed & 1u << method)
            snprintf(allow + strlen(allow), sizeof(allow) - strlen(allow), "%s%s", *allow ? ", " : "",
                     http_method_name(method));
    http_response_header(x, "allow", allow);
    return err_set(e, -EINVAL, "METHOD_NOT_ALLOWED", "This path answers %s only.", allow);
}

/* The sender of an escaped slash means no separator: only routes that join their parameters again may accept one. */
static int check_slashes(const struct http_request *req, const struct route_entry *entry, struct err *e)
{
    if (!req->escaped_slash_at ||
        (entry && entry->route->takes_escaped_slash && req->escaped_slash_at > strcspn(entry->path, ":")))
        return 0;
    return err_set(e, -EINVAL, "BAD_PATH", "The path must not have encoded slashes (%%2F).");
}

static int check_request(struct job *job, struct err *e)
{
    struct http_exchange *x = job->x;
    int r;

    r = host_check(job->d->hosts, &x->request, e);
    if (r < 0)
        return r;
    host_add_cors(x);
    job->is_preflight = is_preflight(&x->request);
    if (job->is_preflight)
        return 0;
    job->entry = router_find(job->d->router, x->request.method, x->request.path, &job->match);
    r = check_slashes(&x->request, job->entry, e);
    return r < 0 || job->entry ? r : refuse_unmatched(job->d, x, &job->match, e);
}

static bool may_stream(const struct route *route)
{
    return route->kind == ROUTE_RELAY || route->may_stream ||
           (route->answer_type && strcmp(route->answer_type, "text/event-stream") == 0);
}

/* Counts one more request of its payer. */
static int count_request(struct job *job, struct budget_holder *holder, struct err *e)
{
    struct http_exchange *x = job->x;
    int r = http_exchange_charge(x, holder, e);

    if (r == 0 && may_stream(job->entry->route))
        r = budget_check(holder, BUDGET_STREAMS, 1, e);
    if (r == 0 && job->entry->route->stores)
        r = budget_check(holder, BUDGET_DISK, 1, e);
    return r < 0 ? r : purse_take(&x->purse, BUDGET_REQUESTS, 1, e);
}

/* Mostly the holder of the connection's last request. */
static struct budget_holder *holder_of(const struct http_exchange *x, const struct claim *claim)
{
    struct budget_holder *last = x->purse.holder;

    if (claim->kind == HOLDER_NOBODY)
        return http_peer_holder(x->request.connection);
    if (last && budget_holder_is(last, claim->kind, claim->id))
        return budget_holder_ref(last);
    return budget_holder_get(claim->kind, claim->id);
}

/* The routes of the loop are answered immediately and hold nothing. */
static int admit(struct job *job, struct err *e)
{
    const struct route *route = job->entry->route;
    struct claim *claim = &job->claim;
    struct budget_holder *holder;
    int r;

    job->max_body = body_limit_of(route);
    if (route->kind == ROUTE_INLINE)
        return 0;
    r = request_read_claim(job->d->config.identity, route, job->x, claim, e);
    if (r < 0)
        return r;
    if (claim->is_open)
        job->max_body = MIN(job->max_body, (size_t)LIMIT_BODY_DEFAULT);
    job->is_urgent = claim->kind == HOLDER_ADMIN;
    if (claim->kind == HOLDER_NOBODY && !job->x->request.connection)
        return 0;
    holder = holder_of(job->x, claim);
    r = count_request(job, holder, e);
    budget_holder_unref(holder);
    return r;
}

static struct job *job_of(struct dispatch *d, struct http_exchange *x)
{
    struct job *job = ARENA_NEW(x->arena, struct job);

    job->d = d;
    job->x = x;
    x->owner_data = job;
    return job;
}

/* 0: the request continues. 1 or an error: x->response is the answer. */
static int decide(struct job *job)
{
    struct http_exchange *x = job->x;
    struct err e;
    int r, status = 200;

    err_init(&e);
    r = check_request(job, &e);
    if (r == 0 && job->entry)
        r = admit(job, &e);
    begin_trace(&job->work.trace, job->d, x, job->entry);
    if (r == 0 && job->entry)
        return 0;
    if (r == 0)
        write_preflight(job->d, x);
    else
        status = answer_write_error(x, &job->work.trace, r, &e);
    if (r < 0)
        answer_add_safety_headers(x, &job->work.trace);
    trace_end(&job->work.trace, status, &e);
    return r < 0 ? r : 1;
}

bool dispatch_head(struct dispatch *d, struct http_exchange *x, size_t *ret_max_body)
{
    struct job *job = job_of(d, x);
    bool goes_on = decide(job) == 0;

    *ret_max_body = job->max_body;
    return goes_on;
}

/* Each caller has a share of the long pool. */
static int take_share(struct job *job, struct err *e)
{
    struct budget_holder *holder = job->x->purse.holder;
    int r = holder ? budget_take(holder, BUDGET_LONG_REQUESTS, 1, e) : 0;

    if (r == 0 && holder)
        job->waiter = budget_holder_ref(holder);
    return r;
}

static int submit(struct job *job, bool is_long, struct err *e)
{
    struct pool *pool = is_long ? job->d->config.long_pool : job->d->config.short_pool;
    int r = is_long ? take_share(job, e) : 0;

    if (r < 0)
        return r;
    job->is_long = is_long;
    job->x->deadline_ms = clock_mono_ms() + (is_long ? LIMIT_LONG_DEADLINE_MS : LIMIT_SHORT_DEADLINE_MS);
    r = job->is_urgent ? pool_submit_urgent(pool, run_job, job) : pool_submit(pool, run_job, job);
    if (r < 0)
        give_back(TAKE(job->waiter));
    if (r == -EAGAIN)
        return err_set(e, r, "OVERLOADED", "Too many requests wait already; try again in a second.");
    if (r < 0)
        return err_set(e, r, "SHUTTING_DOWN", "The service is stopping.");
    return 0;
}

/* Known without the body. */
static bool is_long_route(const struct dispatch *d, const struct route *route)
{
    return route->kind == ROUTE_LONG || (route->uses_rows && d->config.api->has_remote_rows);
}

static int start(struct job *job, struct err *e)
{
    bool is_long = is_long_route(job->d, job->entry->route);
    struct pool *pool = is_long ? job->d->config.long_pool : job->d->config.short_pool;

    job->n_headers = job->x->response.n_headers;
    job->is_on_loop = pool && request_suits_loop(job->entry->route, job->x, &job->claim);
    if (pool && !job->is_on_loop &&
        (job->entry->route->kind != ROUTE_INLINE || request_has_to_wait(job->d->config.identity, job->x)))
        return submit(job, is_long, e);
    run_job(job);
    return 0;
}

static void start_or_refuse(void *arg, int r, struct err *e)
{
    struct job *job = arg;
    struct http_exchange *x = job->x;
    struct trace trace = job->work.trace;

    if (r == 0)
        r = start(job, e); /* on success the exchange may be gone already */
    if (r < 0)
        answer_send_error(x, &trace, r, e);
}

void dispatch_request(struct dispatch *d, struct http_exchange *x)
{
    struct job *job = x->owner_data;
    struct err e;
    int r = 0;

    err_init(&e);
    if (!job) {
        job = job_of(d, x);
        if (decide(job) != 0) {
            http_exchange_send(x);
            return;
        }
    }
    if (x->request.body.n > job->max_body)
        r = body_too_large(job->max_body, &e);
    if (r == 0 && d->admission && x->request.body.n > LIMIT_LARGE_BODY)
        admission_enter(d->admission, x, start_or_refuse, job);
    else
        start_or_refuse(job, r, &e);
}

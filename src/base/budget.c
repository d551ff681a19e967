#include "base/budget.h"
#include "base/clock.h"
#include "base/limits.h"
#include "base/metrics.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MB(n) ((int64_t)(n) << 20)
#define LIMITS(caller, address, nobody)                                                                                \
    {                                                                                                                  \
        [HOLDER_ADMIN] = BUDGET_UNLIMITED, [HOLDER_APP] = (caller), [HOLDER_KEY] = (caller),                           \
        [HOLDER_ADDRESS] = (address), [HOLDER_NOBODY] = (nobody)                                                       \
    }

/* HOLDER_NOBODY stands for all programs of this machine that have not authenticated. The setting http.max_connections
 * bounds all connections; idle ones are closed to make room for new ones (http/crowd.h). */
const struct budget_rule budget_rules[N_BUDGETS] = {
    [BUDGET_CONNECTIONS] = { "connections", "open connections", .limits = LIMITS(1024, 256, BUDGET_UNLIMITED),
                             .total = BUDGET_UNLIMITED, .setting = "limits.connections" },
    [BUDGET_REQUESTS] = { "requests", "unanswered requests", .limits = LIMITS(1024, 128, 512),
                          .total = LIMIT_SHORT_WAITING, .setting = "limits.open_requests" },
    [BUDGET_LONG_REQUESTS] = { "long_requests", "requests that wait", .limits = LIMITS(128, 16, 64),
                               .total = LIMIT_LONG_THREADS + LIMIT_LONG_WAITING, .setting = "limits.long_requests" },
    [BUDGET_STREAMS] = { "streams", "open streams", .limits = LIMITS(1024, 16, 64), .total = LIMIT_EVENT_STREAMS,
                         .setting = "limits.streams" },
    [BUDGET_SOCKETS] = { "sockets", "open WebSockets", .limits = LIMITS(1024, 64, 1024), .total = LIMIT_SOCKETS,
                         .setting = "limits.sockets" },
    [BUDGET_SUBSCRIPTIONS] = { "subscriptions", "channels and subscriptions of WebSockets",
                               .limits = LIMITS(16384, 1024, 16384), .total = LIMIT_SUBSCRIPTIONS,
                               .setting = "limits.subscriptions" },
    [BUDGET_BODY] = { "body", "bytes of unread bodies", .is_bytes = true, .limits = LIMITS(MB(256), MB(4), MB(32)),
                      .total = MB(1024), .setting = "limits.body_mb" },
    [BUDGET_REPLIES] = { "replies", "bytes of unread answers", .is_bytes = true,
                         .limits = LIMITS(MB(256), MB(16), MB(64)), .total = MB(1024), .setting = "limits.replies_mb" },
    [BUDGET_MEMORY] = { "memory", "bytes of requests at work", .is_bytes = true, .takes_one = true,
                        .limits = LIMITS(MB(512), MB(16), MB(64)), .total = MB(2048),
                        .setting = "limits.request_memory_mb" },
    [BUDGET_CHILDREN] = { "children", "running processes", .limits = LIMITS(96, 0, 0), .total = LIMIT_CHILDREN,
                          .setting = "limits.children" },
    [BUDGET_DISK] = { "disk", "bytes in the data folder", .is_bytes = true,
                      .limits = LIMITS(
                          MB(10240), BUDGET_UNLIMITED,
                          BUDGET_UNLIMITED), /* a caller that the body identifies is unknown until the body is read */
                      .total = BUDGET_UNLIMITED, .setting = "limits.disk_mb" },
    [BUDGET_VECTORS] = { "vectors", "bytes of stored vectors", .is_bytes = true,
                         .limits = LIMITS(MB(2048), BUDGET_UNLIMITED, BUDGET_UNLIMITED), .total = BUDGET_UNLIMITED,
                         .setting = "limits.vectors_mb" },
};

enum { BUCKETS = 1024 }; /* a power of two */

struct budget_holder {
    struct budget_holder *next; /* in the same bucket */
    atomic_uint n_refs;
    enum holder_kind kind;
    char id[BUDGET_ID_SIZE];
    _Atomic int64_t held[N_BUDGETS], n_refused[N_BUDGETS], refused_ms[N_BUDGETS];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards the buckets */
static struct budget_holder *buckets[BUCKETS];
static _Atomic int64_t totals[N_BUDGETS];
static _Atomic int64_t own_limits[N_BUDGETS],
    total_limits[N_BUDGETS]; /* from the settings; 0: the table's limit applies */
static struct metric *_Atomic refused_metrics[N_BUDGETS][2];

static const char *const kind_names[N_HOLDER_KINDS] = {
    [HOLDER_ADMIN] = "administrator", [HOLDER_APP] = "app",       [HOLDER_KEY] = "key",
    [HOLDER_ADDRESS] = "address",     [HOLDER_NOBODY] = "nobody",
};

const char *holder_kind_name(enum holder_kind kind)
{
    assert(kind >= 0 && kind < N_HOLDER_KINDS);
    return kind_names[kind];
}

enum holder_kind budget_holder_kind(const struct budget_holder *h)
{
    return h->kind;
}

bool budget_holder_is(const struct budget_holder *h, enum holder_kind kind, const char *id)
{
    return h->kind == kind && strcmp(h->id, id) == 0;
}

/* FNV-1a. The ids are those of registered apps and keys and of addresses with an open connection: the number of each is
 * bounded. */
static struct budget_holder **bucket_of(enum holder_kind kind, const char *id)
{
    uint64_t hash = 14695981039346656037u + (uint64_t)kind;

    for (; *id; id++)
        hash = (hash ^ (unsigned char)*id) * 1099511628211u;
    return &buckets[(hash ^ hash >> 32) % BUCKETS];
}

static struct budget_holder *make_holder(struct budget_holder **bucket, enum holder_kind kind, const char *id)
{
    struct budget_holder *h = xcalloc(1, sizeof(*h));

    h->kind = kind;
    snprintf(h->id, sizeof(h->id), "%s", id);
    h->next = *bucket;
    *bucket = h;
    return h;
}

struct budget_holder *budget_holder_get(enum holder_kind kind, const char *id)
{
    struct budget_holder **bucket = bucket_of(kind, id), *h;

    pthread_mutex_lock(&lock);
    for (h = *bucket; h && !budget_holder_is(h, kind, id); h = h->next)
        ;
    if (!h)
        h = make_holder(bucket, kind, id);
    atomic_fetch_add(&h->n_refs, 1);
    pthread_mutex_unlock(&lock);
    return h;
}

struct budget_holder *budget_holder_ref(struct budget_holder *h)
{
    atomic_fetch_add(&h->n_refs, 1);
    return h;
}

/* Accounts of apps and keys are kept: there are few, and their refusals are shown later. */
static bool is_passing(const struct budget_holder *h)
{
    return h->kind == HOLDER_ADDRESS;
}

static void remove_holder(struct budget_holder *gone)
{
    struct budget_holder **at = bucket_of(gone->kind, gone->id);

    while (*at != gone)
        at = &(*at)->next;
    *at = gone->next;
    free(gone);
}

struct budget_holder *budget_holder_unref(struct budget_holder *h)
{
    if (!h)
        return NULL;
    if (!is_passing(h)) {
        atomic_fetch_sub(&h->n_refs, 1);
        return NULL;
    }
    pthread_mutex_lock(&lock); /* no other thread may find the account between the last unref and its removal */
    if (atomic_fetch_sub(&h->n_refs, 1) == 1)
        remove_holder(h);
    pthread_mutex_unlock(&lock);
    return NULL;
}

/* ---- limits ---- */

static bool has_name(enum holder_kind kind)
{
    return kind == HOLDER_APP || kind == HOLDER_KEY;
}

int64_t budget_limit(enum budget b, enum holder_kind kind)
{
    int64_t limit = atomic_load_explicit(&own_limits[b], memory_order_relaxed), standard = budget_rules[b].limits[kind];

    if (standard == BUDGET_UNLIMITED || limit == 0)
        return standard;
    return has_name(kind) ? limit : MIN(limit, standard);
}

int64_t budget_total_limit(enum budget b)
{
    int64_t limit = atomic_load_explicit(&total_limits[b], memory_order_relaxed);

    return limit ? limit : budget_rules[b].total;
}

void budget_set_limit(enum budget b, int64_t limit)
{
    atomic_store(&own_limits[b], limit);
}

void budget_set_total(enum budget b, int64_t total)
{
    atomic_store(&total_limits[b], total);
}

/* ---- taking and giving ---- */

static void note_refusal(struct budget_holder *h, enum budget b, bool is_own)
{
    struct metric *count = atomic_load(&refused_metrics[b][is_own]);

    atomic_fetch_add(&h->n_refused[b], 1);
    atomic_store(&h->refused_ms[b], clock_mono_ms());
    if (count)
        metric_add(count, 1);
}

static void say_limit(const struct budget_rule *rule, int64_t limit, char *out, size_t size)
{
    if (rule->is_bytes)
        snprintf(out, size, "%.1f MiB (%s)", (double)limit / (double)MIB(1), rule->holds);
    else
        snprintf(out, size, "%lld %s", (long long)limit, rule->holds);
}

int budget_refuse(struct budget_holder *h, enum budget b, bool is_own, struct err *e)
{
    const struct budget_rule *rule = &budget_rules[b];
    char limit[80];
    int r;

    note_refusal(h, b, is_own);
    say_limit(rule, is_own ? budget_limit(b, h->kind) : budget_total_limit(b), limit, sizeof(limit));
    if (is_own)
        r = err_set(e, -EBUSY, "BUDGET_EXCEEDED", "The budget `%s` of this caller is used up: %s%s%s.", rule->name,
                    limit, rule->setting ? "; the setting is " : "", rule->setting ? rule->setting : "");
    else
        r = err_set(e, -EAGAIN, "OVERLOADED",
                    "The budget `%s` of the service is used up: %s of all callers; try again soon.", rule->name, limit);
    err_add_extra(e, "budget", rule->name);
    if (e)
        e->retry_after_ms = 1000;
    return r;
}

static bool fits(enum budget b, int64_t before, int64_t n, int64_t limit)
{
    return n <= limit - MIN(before, limit) || (budget_rules[b].takes_one && before <= 0);
}

int budget_take(struct budget_holder *h, enum budget b, int64_t n, struct err *e)
{
    int64_t before = atomic_fetch_add(&h->held[b], n);

    if (h->kind == HOLDER_ADMIN)
        return 0;
    if (!fits(b, before, n, budget_limit(b, h->kind))) {
        atomic_fetch_sub(&h->held[b], n);
        return budget_refuse(h, b, true, e);
    }
    before = atomic_fetch_add(&totals[b], n);
    if (!fits(b, before, n, budget_total_limit(b))) {
        atomic_fetch_sub(&totals[b], n);
        atomic_fetch_sub(&h->held[b], n);
        return budget_refuse(h, b, false, e);
    }
    return 0;
}

void budget_give(struct budget_holder *h, enum budget b, int64_t n)
{
    if (n == 0)
        return;
    atomic_fetch_sub(&h->held[b], n);
    if (h->kind != HOLDER_ADMIN)
        atomic_fetch_sub(&totals[b], n);
}

void budget_force(struct budget_holder *h, enum budget b, int64_t n)
{
    atomic_fetch_add(&h->held[b], n);
    if (h->kind != HOLDER_ADMIN)
        atomic_fetch_add(&totals[b], n);
}

void budget_measured(struct budget_holder *h, enum budget b, int64_t n)
{
    int64_t before = atomic_exchange(&h->held[b], n);

    if (h->kind != HOLDER_ADMIN)
        atomic_fetch_add(&totals[b], n - before);
}

bool budget_has_room(const struct budget_holder *h, enum budget b, int64_t n, bool *ret_is_own)
{
    *ret_is_own = h->kind != HOLDER_ADMIN && !fits(b, budget_held(h, b), n, budget_limit(b, h->kind));
    return h->kind == HOLDER_ADMIN || (!*ret_is_own && fits(b, budget_total(b), n, budget_total_limit(b)));
}

int budget_check(struct budget_holder *h, enum budget b, int64_t n, struct err *e)
{
    bool is_own;

    return budget_has_room(h, b, n, &is_own) ? 0 : budget_refuse(h, b, is_own, e);
}

int64_t budget_held(const struct budget_holder *h, enum budget b)
{
    return atomic_load(&h->held[b]);
}

int64_t budget_total(enum budget b)
{
    return atomic_load(&totals[b]);
}

/* ---- what one request holds ---- */

void purse_open(struct budget_purse *p, struct budget_holder *h)
{
    struct budget_holder *before = p->holder;

    if (!h || h == before)
        return;
    p->holder = budget_holder_ref(h);
    for (enum budget b = 0; b < N_BUDGETS; b++) {
        if (p->held[b] == 0)
            continue;
        if (before)
            budget_give(before, b, p->held[b]);
        budget_force(h, b, p->held[b]);
    }
    budget_holder_unref(before);
}

int purse_take(struct budget_purse *p, enum budget b, int64_t n, struct err *e)
{
    int r = p->holder ? budget_take(p->holder, b, n, e) : 0;

    if (r == 0)
        p->held[b] += n;
    return r;
}

void purse_force(struct budget_purse *p, enum budget b, int64_t n)
{
    if (p->holder)
        budget_force(p->holder, b, n);
    p->held[b] += n;
}

void purse_give(struct budget_purse *p, enum budget b)
{
    if (p->holder)
        budget_give(p->holder, b, p->held[b]);
    p->held[b] = 0;
}

void purse_close(struct budget_purse *p)
{
    for (enum budget b = 0; b < N_BUDGETS; b++)
        if (p->held[b])
            purse_give(p, b);
    p->holder = budget_holder_unref(p->holder);
}

/* ---- display ---- */

static double read_total(void *total)
{
    return (double)atomic_load((_Atomic int64_t *)total);
}

void budget_show_metrics(void)
{
    static const char *const scopes[] = { "service", "caller" };
    char labels[80];

    for (enum budget b = 0; b < N_BUDGETS; b++) {
        snprintf(labels, sizeof(labels), "budget=\"%s\"", budget_rules[b].name);
        metric_gauge_fn_forget(&totals[b]);
        metric_gauge_fn("hearth_budget_held", "What all callers but the administrator hold.", labels, read_total,
                        &totals[b]);
        for (size_t is_own = 0; is_own < ARRAY_SIZE(scopes); is_own++) {
            snprintf(labels, sizeof(labels), "budget=\"%s\",limit=\"%s\"", budget_rules[b].name, scopes[is_own]);
            atomic_store(&refused_metrics[b][is_own],
                         metric_counter("hearth_budget_refused_total", "Requests refused because a budget was used up.",
                                        labels));
        }
    }
}

static bool state_of(const struct budget_holder *h, enum budget b, struct budget_state *ret)
{
    int64_t held = budget_held(h, b), n_refused = atomic_load(&h->n_refused[b]);

    if (held <= 0 && n_refused == 0)
        return false;
    *ret = (struct budget_state){
        .kind = h->kind,
        .held = held,
        .limit = budget_limit(b, h->kind),
        .n_refused = n_refused,
        .refused_ago_ms = n_refused ? clock_mono_ms() - atomic_load(&h->refused_ms[b]) : BUDGET_NEVER_REFUSED,
    };
    memcpy(ret->id, h->id, sizeof(ret->id));
    return true;
}

static size_t collect(enum budget b, struct budget_state **ret)
{
    size_t n = 0, cap = 0;

    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < BUCKETS; i++) {
        for (const struct budget_holder *h = buckets[i]; h; h = h->next) {
            if (n == cap)
                *ret = xrealloc(*ret, (cap = cap ? 2 * cap : 16) * sizeof(**ret));
            n += state_of(h, b, &(*ret)[n]);
        }
    }
    pthread_mutex_unlock(&lock);
    return n;
}

void budget_each(enum budget b, void (*fn)(void *arg, const struct budget_state *s), void *arg)
{
    AUTO(freep) struct budget_state *states = NULL;
    size_t n = collect(b, &states);

    for (size_t i = 0; i < n; i++)
        fn(arg, &states[i]);
}

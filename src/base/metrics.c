#include "base/metrics.h"

#include <assert.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum metric_type { METRIC_COUNTER, METRIC_GAUGE, METRIC_HISTOGRAM };

static const char *const type_names[] = {
    [METRIC_COUNTER] = "counter", [METRIC_GAUGE] = "gauge", [METRIC_HISTOGRAM] = "histogram"
};

static const double seconds_bounds[] = { 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1,
                                         0.25,   0.5,   1,      2.5,   5,    10,    30,   60 };

struct metric {
    struct metric *next; /* owned; in order of making */
    enum metric_type type;
    char *labels;               /* owned */
    atomic_int_least64_t count; /* of a counter */
    _Atomic double value;       /* of a gauge; sum of a histogram */
    double (*fn)(void *arg);    /* of a gauge whose value is computed by fn */
    void *arg;
    size_t n_bounds;
    double *bounds;                /* owned */
    atomic_int_least64_t *buckets; /* owned; n_bounds + 1, the last without bound; not cumulative */
};

struct family {
    struct family *next; /* owned */
    char *name, *help;   /* owned */
    enum metric_type type;
    struct metric *metrics; /* owned */
};

static pthread_mutex_t registry_lock = PTHREAD_MUTEX_INITIALIZER;
static struct family *registry; /* owned; under registry_lock */
/* Held during calls of the gauges' fn, so that no gauge is forgotten meanwhile; taken before registry_lock. An fn may
 * take locks of its own and make metrics under them: registry_lock is not held during the call. */
static pthread_mutex_t reading_lock = PTHREAD_MUTEX_INITIALIZER;

static struct family *find_family(const char *name, const char *help, enum metric_type type)
{
    struct family **at = &registry;

    while (*at && strcmp((*at)->name, name) != 0)
        at = &(*at)->next;
    if (!*at) {
        *at = xcalloc(1, sizeof(**at));
        **at = (struct family){ .name = xstrdup(name), .help = xstrdup(help), .type = type };
    }
    assert((*at)->type == type);
    return *at;
}

static struct metric *find_metric(struct family *family, const char *labels)
{
    struct metric **at = &family->metrics;

    while (*at && strcmp((*at)->labels, labels) != 0)
        at = &(*at)->next;
    if (!*at) {
        *at = xcalloc(1, sizeof(**at));
        (*at)->type = family->type;
        (*at)->labels = xstrdup(labels);
    }
    return *at;
}

static struct metric *register_simple(const char *name, const char *help, const char *labels, enum metric_type type)
{
    struct metric *m;

    pthread_mutex_lock(&registry_lock);
    m = find_metric(find_family(name, help, type), labels);
    pthread_mutex_unlock(&registry_lock);
    return m;
}

struct metric *metric_counter(const char *name, const char *help, const char *labels)
{
    return register_simple(name, help, labels, METRIC_COUNTER);
}

struct metric *metric_gauge(const char *name, const char *help, const char *labels)
{
    return register_simple(name, help, labels, METRIC_GAUGE);
}

struct metric *metric_histogram(const char *name, const char *help, const char *labels)
{
    return metric_histogram_of(name, help, labels, seconds_bounds, ARRAY_SIZE(seconds_bounds));
}

struct metric *metric_histogram_of(const char *name, const char *help, const char *labels, const double *bounds,
                                   size_t n)
{
    struct metric *m;

    pthread_mutex_lock(&registry_lock);
    m = find_metric(find_family(name, help, METRIC_HISTOGRAM), labels);
    if (!m->buckets) {
        m->n_bounds = n;
        m->bounds = memcpy(xcalloc(n, sizeof(*bounds)), bounds, n * sizeof(*bounds));
        m->buckets = xcalloc(n + 1, sizeof(*m->buckets));
    }
    pthread_mutex_unlock(&registry_lock);
    return m;
}

void metric_gauge_fn(const char *name, const char *help, const char *labels, double (*fn)(void *arg), void *arg)
{
    struct metric *m;

    pthread_mutex_lock(&reading_lock);
    pthread_mutex_lock(&registry_lock);
    m = find_metric(find_family(name, help, METRIC_GAUGE), labels);
    m->fn = fn;
    m->arg = arg;
    pthread_mutex_unlock(&registry_lock);
    pthread_mutex_unlock(&reading_lock);
}

static void forget_in_family(struct family *family, const void *arg)
{
    struct metric **at = &family->metrics;

    while (*at) {
        struct metric *m = *at;

        if (!m->fn || m->arg != arg) {
            at = &m->next;
            continue;
        }
        *at = m->next;
        free(m->labels);
        free(m);
    }
}

void metric_gauge_fn_forget(void *arg)
{
    pthread_mutex_lock(&reading_lock);
    pthread_mutex_lock(&registry_lock);
    for (struct family *family = registry; family; family = family->next)
        forget_in_family(family, arg);
    pthread_mutex_unlock(&registry_lock);
    pthread_mutex_unlock(&reading_lock);
}

static void add_double(_Atomic double *to, double value)
{
    double old = atomic_load_explicit(to, memory_order_relaxed);

    while (!atomic_compare_exchange_weak_explicit(to, &old, old + value, memory_order_relaxed, memory_order_relaxed)) {
    }
}

void metric_add(struct metric *m, int64_t n)
{
    assert(m->type != METRIC_HISTOGRAM && (m->type == METRIC_GAUGE || n >= 0));
    if (m->type == METRIC_COUNTER)
        atomic_fetch_add_explicit(&m->count, n, memory_order_relaxed);
    else
        add_double(&m->value, (double)n);
}

void metric_set(struct metric *m, double value)
{
    assert(m->type == METRIC_GAUGE);
    atomic_store_explicit(&m->value, value, memory_order_relaxed);
}

void metric_observe(struct metric *m, double value)
{
    size_t i = 0;

    assert(m->type == METRIC_HISTOGRAM);
    while (i < m->n_bounds && !(value <= m->bounds[i]))
        i++;
    atomic_fetch_add_explicit(&m->buckets[i], 1, memory_order_relaxed);
    add_double(&m->value, value);
}

/* Prints the part of a sample before its value: `name{labels,more} `. */
static void print_series(struct buf *out, const char *name, const char *suffix, const char *labels, const char *more)
{
    bool has_both = *labels && *more;

    buf_printf(out, "%s%s", name, suffix);
    if (*labels || *more)
        buf_printf(out, "{%s%s%s}", labels, has_both ? "," : "", more);
    buf_add_char(out, ' ');
}

static void print_number(struct buf *out, double value)
{
    if (isfinite(value))
        buf_printf(out, "%.15g\n", value);
    else
        buf_add_str(out, isnan(value) ? "NaN\n" : value > 0 ? "+Inf\n" : "-Inf\n");
}

static void print_histogram(struct buf *out, const char *name, struct metric *m)
{
    int64_t total = 0;

    for (size_t i = 0; i < m->n_bounds; i++) {
        char le[48];

        snprintf(le, sizeof(le), "le=\"%.15g\"", m->bounds[i]);
        total += atomic_load_explicit(&m->buckets[i], memory_order_relaxed);
        print_series(out, name, "_bucket", m->labels, le);
        buf_printf(out, "%lld\n", (long long)total);
    }
    total += atomic_load_explicit(&m->buckets[m->n_bounds], memory_order_relaxed);
    print_series(out, name, "_bucket", m->labels, "le=\"+Inf\"");
    buf_printf(out, "%lld\n", (long long)total);
    print_series(out, name, "_sum", m->labels, "");
    print_number(out, atomic_load_explicit(&m->value, memory_order_relaxed));
    print_series(out, name, "_count", m->labels, "");
    buf_printf(out, "%lld\n", (long long)total);
}

static void print_metric(struct buf *out, const char *name, struct metric *m)
{
    if (m->type == METRIC_HISTOGRAM) {
        print_histogram(out, name, m);
        return;
    }
    print_series(out, name, "", m->labels, "");
    if (m->type == METRIC_COUNTER)
        buf_printf(out, "%lld\n", (long long)atomic_load_explicit(&m->count, memory_order_relaxed));
    else
        print_number(out, atomic_load_explicit(&m->value, memory_order_relaxed));
}

static size_t list_read(struct metric ***ret)
{
    size_t n = 0, cap = 0;

    *ret = NULL;
    pthread_mutex_lock(&registry_lock);
    for (struct family *family = registry; family; family = family->next)
        for (struct metric *m = family->metrics; m; m = m->next) {
            if (!m->fn)
                continue;
            if (n == cap) {
                cap = cap ? 2 * cap : 32;
                *ret = xrealloc(*ret, cap * sizeof(struct metric *));
            }
            (*ret)[n++] = m;
        }
    pthread_mutex_unlock(&registry_lock);
    return n;
}

static void read_gauges(void)
{
    struct metric **read;
    size_t n;

    pthread_mutex_lock(&reading_lock);
    n = list_read(&read);
    for (size_t i = 0; i < n; i++)
        atomic_store_explicit(&read[i]->value, read[i]->fn(read[i]->arg), memory_order_relaxed);
    pthread_mutex_unlock(&reading_lock);
    free(read);
}

void metrics_print(struct buf *out)
{
    read_gauges();
    pthread_mutex_lock(&registry_lock);
    for (struct family *family = registry; family; family = family->next) {
        if (!family->metrics)
            continue;
        buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n", family->name, family->help, family->name,
                   type_names[family->type]);
        for (struct metric *m = family->metrics; m; m = m->next)
            print_metric(out, family->name, m);
    }
    pthread_mutex_unlock(&registry_lock);
}

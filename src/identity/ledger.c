#include "identity/ledger.h"

#include "base/clock.h"
#include "base/cond.h"
#include "base/hash.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/thread.h"
#include "identity/window.h"
#include <stdlib.h>

enum { N_BUCKETS = 1024, CELL_TEXT_SIZE = 2 * LIMIT_USAGE_NAME_BYTES + 256 };

static const char *const work_names[N_METER_WORKS] = {
    [METER_CHAT] = "chat", [METER_EMBED] = "embed", [METER_SPEECH] = "speech", [METER_HEARING] = "hearing"
};

struct provider_metrics {
    char *provider;                            /* owned */
    struct metric *requests[N_METER_WORKS][2]; /* whole, failed */
    struct metric *tokens[N_METER_WORKS][2];   /* prompt, completion */
};

struct cell {
    struct cell *next, *next_dirty;
    struct usage_counts pending;      /* not yet handed to the store */
    struct usage_row row;             /* texts point into `text`; counts: being written */
    struct provider_metrics *metrics; /* borrowed from the ledger */
    bool is_dirty;                    /* in the list of cells with pending counts */
    size_t n_text;
    char text[]; /* the dimensions, each with its NUL: the search key of cells */
};

struct ledger {
    struct store *store; /* borrowed */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    pthread_t thread;
    bool has_thread, is_stopping;
    struct cell *buckets[N_BUCKETS]; /* owned */
    struct cell *dirty;
    size_t n_cells;
    int64_t day_number; /* of the newest count */
    char day[USAGE_DAY_SIZE];
    bool has_old_cells;                                        /* cells of other days */
    struct provider_metrics *providers[LIMIT_USAGE_PROVIDERS]; /* owned */
    size_t n_providers;
    pthread_mutex_t flushing; /* one at a time; taken before lock; only its holder frees cells */
};

/* ---- metrics ---- */

/* Account names are free text of the person; a label must not end early. */
static void plain_label(const char *name, char *out, size_t size)
{
    snprintf(out, size, "%.100s", name);
    for (; *out; out++)
        if (*out == '"' || *out == '\\' || (unsigned char)*out < ' ')
            *out = '_';
}

static struct provider_metrics *make_metrics(const char *provider)
{
    static const char *const results[] = { "whole", "failed" }, *const directions[] = { "prompt", "completion" };
    struct provider_metrics *m = xcalloc(1, sizeof(*m));
    char name[128], labels[256];

    m->provider = xstrdup(provider);
    plain_label(provider, name, sizeof(name));
    for (int work = 0; work < N_METER_WORKS; work++) {
        for (int i = 0; i < 2; i++) {
            snprintf(labels, sizeof(labels), "provider=\"%s\",kind=\"%s\",result=\"%s\"", name, work_names[work],
                     results[i]);
            m->requests[work][i] =
                metric_counter("hearth_model_requests_total", "Requests to models, by provider", labels);
            snprintf(labels, sizeof(labels), "provider=\"%s\",kind=\"%s\",direction=\"%s\"", name, work_names[work],
                     directions[i]);
            m->tokens[work][i] = metric_counter("hearth_model_tokens_total", "Tokens of models, by provider", labels);
        }
    }
    return m;
}

static struct provider_metrics *metrics_of(struct ledger *l, const char *provider)
{
    for (size_t i = 0; i < l->n_providers; i++)
        if (strcmp(l->providers[i]->provider, provider) == 0)
            return l->providers[i];
    if (l->n_providers >= LIMIT_USAGE_PROVIDERS - 1 && strcmp(provider, "other") != 0)
        return metrics_of(l, "other");
    return l->providers[l->n_providers++] = make_metrics(provider);
}

static void count_metrics(const struct provider_metrics *m, const struct meter_use *use)
{
    metric_add(m->requests[use->work][use->is_failed], 1);
    metric_add(m->tokens[use->work][0], use->prompt_tokens);
    metric_add(m->tokens[use->work][1], use->completion_tokens);
}

/* ---- cells ---- */

struct cell_text {
    char bytes[CELL_TEXT_SIZE];
    size_t n;
};

static void write_text(struct cell_text *t, const char *const of[N_USAGE_DIMENSIONS])
{
    t->n = 0;
    for (int i = 0; i < N_USAGE_DIMENSIONS; i++) {
        size_t n = strnlen(of[i], LIMIT_USAGE_NAME_BYTES),
               room = sizeof(t->bytes) - t->n - (N_USAGE_DIMENSIONS - (size_t)i);

        n = MIN(n, room);
        memcpy(t->bytes + t->n, of[i], n);
        t->bytes[t->n + n] = '\0';
        t->n += n + 1;
    }
}

static struct cell **bucket_of(struct ledger *l, const struct cell_text *t)
{
    return &l->buckets[hash_fast((struct slice){ t->bytes, t->n }) % N_BUCKETS];
}

static struct cell *find_cell(struct ledger *l, const struct cell_text *t)
{
    struct cell *c = *bucket_of(l, t);

    while (c && !(c->n_text == t->n && memcmp(c->text, t->bytes, t->n) == 0))
        c = c->next;
    return c;
}

static struct cell *make_cell(struct ledger *l, const struct cell_text *t)
{
    struct cell *c = xcalloc(1, sizeof(*c) + t->n), **bucket = bucket_of(l, t);
    const char *text = c->text;

    memcpy(c->text, t->bytes, t->n);
    c->n_text = t->n;
    for (int i = 0; i < N_USAGE_DIMENSIONS; i++, text += strlen(text) + 1)
        c->row.of[i] = text;
    c->metrics = metrics_of(l, c->row.of[USAGE_PROVIDER]);
    c->next = *bucket;
    *bucket = c;
    l->n_cells++;
    return c;
}

static struct cell *cell_of(struct ledger *l, const char *of[N_USAGE_DIMENSIONS])
{
    struct cell_text t;
    struct cell *c;

    write_text(&t, of);
    c = find_cell(l, &t);
    if (!c && l->n_cells >= LIMIT_USAGE_ROWS) {
        of[USAGE_MODEL] = "other";
        write_text(&t, of);
        c = find_cell(l, &t);
    }
    return c ? c : make_cell(l, &t);
}

static void add_counts(struct usage_counts *to, const struct usage_counts *from)
{
    to->requests += from->requests;
    to->failed += from->failed;
    to->estimated += from->estimated;
    to->prompt_tokens += from->prompt_tokens;
    to->completion_tokens += from->completion_tokens;
    to->characters += from->characters;
    to->audio_ms += from->audio_ms;
}

static void add_pending(struct ledger *l, struct cell *c, const struct usage_counts *counts)
{
    add_counts(&c->pending, counts);
    if (c->is_dirty)
        return;
    c->is_dirty = true;
    c->next_dirty = l->dirty;
    l->dirty = c;
}

static void turn_to_day(struct ledger *l, int64_t wall_ms)
{
    int64_t number = window_day_of(wall_ms);

    if (number == l->day_number)
        return;
    l->day_number = number;
    usage_day_text(wall_ms, l->day);
    l->has_old_cells = l->n_cells > 0;
}

void ledger_add(struct ledger *l, int64_t wall_ms, const char *app_id, const char *key_id, const struct meter_use *use)
{
    const struct usage_counts counts = { .requests = 1,
                                         .failed = use->is_failed,
                                         .estimated = use->is_estimated,
                                         .prompt_tokens = use->prompt_tokens,
                                         .completion_tokens = use->completion_tokens,
                                         .characters = use->characters,
                                         .audio_ms = use->audio_ms };
    const char *of[N_USAGE_DIMENSIONS] = { [USAGE_APP] = app_id ? app_id : "",
                                           [USAGE_KEY] = key_id ? key_id : "",
                                           [USAGE_PROVIDER] = use->provider ? use->provider : "",
                                           [USAGE_MODEL] = use->model ? use->model : "",
                                           [USAGE_KIND] = work_names[use->work] };
    const struct provider_metrics *metrics;
    struct cell *c;

    pthread_mutex_lock(&l->lock);
    if (!l->dirty)
        pthread_cond_signal(&l->changed);
    turn_to_day(l, wall_ms);
    of[USAGE_DAY] = l->day;
    c = cell_of(l, of);
    add_pending(l, c, &counts);
    metrics = c->metrics;
    pthread_mutex_unlock(&l->lock);
    count_metrics(metrics, use);
}

/* ---- writing ---- */

/* Takes the pending counts out of the cells; the rows borrow the cells' texts. */
static struct usage_row *take_pending(struct ledger *l, struct cell ***ret_cells, size_t *ret_n)
{
    struct usage_row *rows;
    size_t n = 0;

    pthread_mutex_lock(&l->lock);
    for (struct cell *c = l->dirty; c; c = c->next_dirty)
        n++;
    rows = xcalloc(n + 1, sizeof(*rows));
    *ret_cells = xcalloc(n + 1, sizeof(**ret_cells));
    *ret_n = n;
    for (struct cell *c = l->dirty; c; c = c->next_dirty) {
        rows[--n] = c->row;
        rows[n].counts = c->pending;
        (*ret_cells)[n] = c;
        c->pending = (struct usage_counts){ 0 };
        c->is_dirty = false;
    }
    l->dirty = NULL;
    pthread_mutex_unlock(&l->lock);
    return rows;
}

static void put_back(struct ledger *l, const struct usage_row *rows, struct cell *const *cells, size_t n)
{
    pthread_mutex_lock(&l->lock);
    for (size_t i = 0; i < n; i++)
        add_pending(l, cells[i], &rows[i].counts);
    pthread_mutex_unlock(&l->lock);
}

/* Frees cells of days other than that of the newest count: no count is added to them any more. */
static void drop_old_cells(struct ledger *l)
{
    pthread_mutex_lock(&l->lock);
    for (size_t i = 0; l->has_old_cells && i < N_BUCKETS; i++) {
        for (struct cell **at = &l->buckets[i], *c; (c = *at);) {
            if (c->is_dirty || strcmp(c->row.of[USAGE_DAY], l->day) == 0) {
                at = &c->next;
                continue;
            }
            *at = c->next;
            free(c);
            l->n_cells--;
        }
    }
    l->has_old_cells = false;
    pthread_mutex_unlock(&l->lock);
}

int ledger_flush(struct ledger *l, struct err *e)
{
    AUTO(freep) struct usage_row *rows = NULL;
    AUTO(freep) struct cell **cells = NULL;
    size_t n = 0;
    int r;

    pthread_mutex_lock(&l->flushing);
    rows = take_pending(l, &cells, &n);
    r = store_usage_add(l->store, rows, n, e);
    if (r < 0)
        put_back(l, rows, cells, n);
    else
        drop_old_cells(l);
    pthread_mutex_unlock(&l->flushing);
    return r;
}

/* ---- the thread ---- */

/* Waits for a change, then METER_FLUSH_MS longer to collect more. False when the ledger ends. */
static bool wait_for_counts(struct ledger *l)
{
    int64_t until_us;
    bool goes_on;

    pthread_mutex_lock(&l->lock);
    while (!l->dirty && !l->is_stopping)
        pthread_cond_wait(&l->changed, &l->lock);
    until_us = clock_mono_us() + METER_FLUSH_MS * 1000;
    while (!l->is_stopping && cond_wait_until(&l->changed, &l->lock, until_us))
        ;
    goes_on = !l->is_stopping;
    pthread_mutex_unlock(&l->lock);
    return goes_on;
}

static void *write_counts(void *arg)
{
    struct ledger *l = arg;
    struct err e = { 0 };

    while (wait_for_counts(l))
        if (ledger_flush(l, &e) < 0)
            log_debug("identity", NULL, "usage is not stored yet: %s", e.text);
    store_thread_end(l->store);
    return NULL;
}

static void free_ledger(struct ledger *l)
{
    for (size_t i = 0; i < N_BUCKETS; i++) {
        for (struct cell *c = l->buckets[i], *next; c; c = next) {
            next = c->next;
            free(c);
        }
    }
    for (size_t i = 0; i < l->n_providers; i++) {
        free(l->providers[i]->provider);
        free(l->providers[i]);
    }
    pthread_cond_destroy(&l->changed);
    pthread_mutex_destroy(&l->lock);
    pthread_mutex_destroy(&l->flushing);
    free(l);
}

struct ledger *ledger_start(struct store *s, bool is_serving)
{
    struct ledger *l = xcalloc(1, sizeof(*l));

    l->store = s;
    l->day_number = -2; /* none */
    pthread_mutex_init(&l->lock, NULL);
    pthread_mutex_init(&l->flushing, NULL);
    cond_init(&l->changed);
    l->has_thread = is_serving && thread_start(&l->thread, "usage", write_counts, l) == 0;
    if (l->has_thread || !is_serving)
        return l;
    free_ledger(l);
    return NULL;
}

struct ledger *ledger_stop(struct ledger *l)
{
    struct err e = { 0 };

    if (!l)
        return NULL;
    pthread_mutex_lock(&l->lock);
    l->is_stopping = true;
    pthread_cond_signal(&l->changed);
    pthread_mutex_unlock(&l->lock);
    if (l->has_thread)
        pthread_join(l->thread, NULL);
    if (ledger_flush(l, &e) < 0)
        log_debug("identity", NULL, "usage could not be stored: %s", e.text);
    free_ledger(l);
    return NULL;
}

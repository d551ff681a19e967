#include "identity/consent_queue.h"

#include "base/cond.h"
#include "base/limits.h"
#include "identity/permissions.h"

void consent_queue_init(struct queue *b)
{

    *b = (struct queue){ .last = NULL };
    b->last = &b->questions;
    pthread_mutex_init(&b->lock, NULL);
    cond_init(&b->changed);
}

/* Removes the question at *at from the list and frees it. */
static void drop(struct queue *b, struct queued_question **at)
{
    struct queued_question *q = *at;

    *at = q->next;
    if (b->last == &q->next)
        b->last = at;
    b->n_questions--;
    free(q->app_id);
    free(q->app_name);
    free(q->permission);
    free(q);
}

void consent_queue_clear(struct queue *b)
{
    while (b->questions)
        drop(b, &b->questions);
    pthread_cond_destroy(&b->changed);
    pthread_mutex_destroy(&b->lock);
}

static struct queued_question **find(struct queue *b, const char *app_id, const char *permission)
{
    struct queued_question **at = &b->questions;

    while (*at && (strcmp((*at)->app_id, app_id) != 0 || strcmp((*at)->permission, permission) != 0))
        at = &(*at)->next;
    return at;
}

static bool is_open(const struct consent_answer *answer)
{
    return !answer->is_granted && !answer->is_denied;
}

static size_t count_new(struct queue *b, const struct consent_waiter *w)
{
    size_t n = 0;

    for (size_t i = 0; i < w->n; i++)
        n += is_open(&w->answers[i]) && !*find(b, w->app_id, w->answers[i].permission);
    return n;
}

static void add_question(struct queue *b, const char *prompt_id, const struct consent_waiter *w, const char *app_name,
                         const char *permission)
{
    struct queued_question *q = xcalloc(1, sizeof(*q));

    snprintf(q->prompt_id, sizeof(q->prompt_id), "%s", prompt_id);
    q->app_id = xstrdup(w->app_id);
    q->app_name = xstrdup(app_name);
    q->permission = xstrdup(permission);
    clock_now_text(q->requested_at);
    *b->last = q;
    b->last = &q->next;
    b->n_questions++;
}

static void add_questions(struct queue *b, const struct consent_waiter *w, const char *app_name)
{
    char prompt_id[UUID_SIZE];

    uuid_v4(prompt_id);
    for (size_t i = 0; i < w->n; i++)
        if (is_open(&w->answers[i]) && !*find(b, w->app_id, w->answers[i].permission))
            add_question(b, prompt_id, w, app_name, w->answers[i].permission);
}

static size_t count_questions(const struct queue *b, const char *app_id)
{
    size_t n = 0;

    for (const struct queued_question *q = b->questions; q; q = q->next)
        n += strcmp(q->app_id, app_id) == 0;
    return n;
}

static size_t count_patient(const struct queue *b, const char *app_id)
{
    size_t n = 0;

    for (const struct consent_waiter *w = b->waiters; w; w = w->next)
        n += w->is_patient && strcmp(w->app_id, app_id) == 0;
    return n;
}

/* Keeps one app from filling the list or occupying every worker. */
static int check_room(const struct queue *b, const struct consent_waiter *w, size_t n_new, struct err *e)
{
    if (b->n_questions + n_new > LIMIT_PENDING_CONSENTS)
        return err_set(e, -EAGAIN, "TOO_MANY_QUESTIONS",
                       "%d permission requests wait for an answer already; answer some of them first.",
                       LIMIT_PENDING_CONSENTS);
    if (n_new && count_questions(b, w->app_id) + n_new > LIMIT_PERMISSIONS_PER_APP)
        return err_set(e, -EAGAIN, "TOO_MANY_QUESTIONS",
                       "%d permission requests of this app wait for an answer already; answer some of them first.",
                       LIMIT_PERMISSIONS_PER_APP);
    if (w->is_patient && count_patient(b, w->app_id) >= LIMIT_CONSENT_WAITS_PER_APP)
        return err_set(e, -EAGAIN, "TOO_MANY_QUESTIONS",
                       "%d requests of this app wait for the person already; try again later.",
                       LIMIT_CONSENT_WAITS_PER_APP);
    return 0;
}

int consent_queue_request(struct queue *b, struct consent_waiter *w, const char *app_name, bool *ret_is_new,
                          struct err *e)
{
    size_t n_new;
    int r;

    pthread_mutex_lock(&b->lock);
    n_new = count_new(b, w);
    r = w->seen_changes == b->n_changes ? check_room(b, w, n_new, e) : -ESTALE;
    if (r == 0) {
        add_questions(b, w, app_name);
        w->next = b->waiters;
        b->waiters = w;
        *ret_is_new = n_new > 0;
    }
    pthread_mutex_unlock(&b->lock);
    return r;
}

uint64_t consent_queue_changes(struct queue *b)
{
    uint64_t n;

    pthread_mutex_lock(&b->lock);
    n = b->n_changes;
    pthread_mutex_unlock(&b->lock);
    return n;
}

static bool has_open(const struct consent_waiter *w)
{
    for (size_t i = 0; i < w->n; i++)
        if (is_open(&w->answers[i]) && !w->answers[i].is_withdrawn)
            return !w->is_over;
    return false;
}

static void take_off(struct queue *b, struct consent_waiter *w)
{
    struct consent_waiter **at = &b->waiters;

    while (*at != w)
        at = &(*at)->next;
    *at = w->next;
}

void consent_queue_wait(struct queue *b, struct consent_waiter *w, int64_t wait_ms, const atomic_bool *is_gone)
{
    int64_t until_us = clock_mono_us() + wait_ms * 1000;

    pthread_mutex_lock(&b->lock);
    while (has_open(w) && !b->is_closing && clock_mono_us() < until_us && !(is_gone && atomic_load(is_gone)))
        cond_wait_until(&b->changed, &b->lock, until_us);
    take_off(b, w);
    pthread_mutex_unlock(&b->lock);
}

static void answer(struct consent_waiter *w, const char *permission, bool is_allowed)
{
    for (size_t i = 0; i < w->n; i++) {
        if (!is_open(&w->answers[i]) || strcmp(w->answers[i].permission, permission) != 0)
            continue;
        w->answers[i].is_granted = is_allowed;
        w->answers[i].is_denied = !is_allowed;
    }
}

bool consent_queue_resolve(struct queue *b, const char *app_id, const char *permission, bool is_allowed)
{
    struct queued_question **at;
    bool was_requested;

    pthread_mutex_lock(&b->lock);
    b->n_changes++;
    at = find(b, app_id, permission);
    was_requested = *at != NULL;
    if (was_requested)
        drop(b, at);
    for (struct consent_waiter *w = b->waiters; w; w = w->next)
        if (strcmp(w->app_id, app_id) == 0)
            answer(w, permission, is_allowed);
    pthread_cond_broadcast(&b->changed);
    pthread_mutex_unlock(&b->lock);
    return was_requested;
}

bool consent_queue_has(struct queue *b, const char *app_id, const char *permission)
{
    bool has;

    pthread_mutex_lock(&b->lock);
    has = *find(b, app_id, permission) != NULL;
    pthread_mutex_unlock(&b->lock);
    return has;
}

/* Withdraws answers already given for this permission, or for all permissions with NULL. */
static void withdraw(struct consent_waiter *w, const char *permission)
{
    for (size_t i = 0; i < w->n; i++)
        if (!is_open(&w->answers[i]) && (!permission || strcmp(w->answers[i].permission, permission) == 0))
            w->answers[i] = (struct consent_answer){ .permission = w->answers[i].permission, .is_withdrawn = true };
}

void consent_queue_withdraw(struct queue *b, const char *app_id, const char *permission)
{
    pthread_mutex_lock(&b->lock);
    b->n_changes++;
    for (struct consent_waiter *w = b->waiters; w; w = w->next)
        if (strcmp(w->app_id, app_id) == 0)
            withdraw(w, permission);
    pthread_cond_broadcast(&b->changed);
    pthread_mutex_unlock(&b->lock);
}

void consent_queue_remove_app(struct queue *b, const char *app_id)
{
    struct queued_question **at = &b->questions;

    pthread_mutex_lock(&b->lock);
    b->n_changes++;
    while (*at) {
        if (strcmp((*at)->app_id, app_id) == 0)
            drop(b, at);
        else
            at = &(*at)->next;
    }
    for (struct consent_waiter *w = b->waiters; w; w = w->next) {
        if (strcmp(w->app_id, app_id) != 0)
            continue;
        withdraw(w, NULL);
        w->is_over = true;
    }
    pthread_cond_broadcast(&b->changed);
    pthread_mutex_unlock(&b->lock);
}

static struct consent_question describe(const struct queued_question *q, struct arena *a)
{
    const struct permission *known = permission_find(q->permission);

    return (struct consent_question){
        .id = arena_strdup(a, q->prompt_id),
        .app_id = arena_strdup(a, q->app_id),
        .app_name = arena_strdup(a, q->app_name),
        .permission = arena_strdup(a, q->permission),
        .requests = permission_requests(a, q->permission),
        .is_known = known != NULL,
        .is_dangerous = known && known->is_dangerous,
        .requested_at = arena_strdup(a, q->requested_at),
    };
}

void consent_queue_list(struct queue *b, struct arena *a, struct consent_questions *ret)
{
    pthread_mutex_lock(&b->lock);
    ret->items = arena_array(a, b->n_questions + 1, sizeof(*ret->items));
    ret->n = 0;
    for (const struct queued_question *q = b->questions; q; q = q->next)
        ret->items[ret->n++] = describe(q, a);
    pthread_mutex_unlock(&b->lock);
}

void consent_queue_poke(struct queue *b)
{
    pthread_mutex_lock(&b->lock);
    pthread_cond_broadcast(&b->changed);
    pthread_mutex_unlock(&b->lock);
}

void consent_queue_end_waits(struct queue *b)
{
    pthread_mutex_lock(&b->lock);
    b->is_closing = true;
    pthread_cond_broadcast(&b->changed);
    pthread_mutex_unlock(&b->lock);
}

void consent_queue_notify(struct queue *b)
{
    void (*fn)(void *arg);
    void *arg;

    pthread_mutex_lock(&b->lock);
    fn = b->on_change;
    arg = b->on_change_arg;
    pthread_mutex_unlock(&b->lock);
    if (fn)
        fn(arg);
}

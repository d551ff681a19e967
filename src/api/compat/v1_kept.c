#include "api/compat/v1_kept.h"

#include "base/clock.h"
#include "base/hash.h"
#include "base/limits.h"
#include "base/metrics.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { BUCKETS = 4096, LOOK_EVERY_MS = 30000, BYTES_A_TURN = sizeof(struct v1_kept_turn) + 64 };

struct v1_kept_owner {
    struct v1_kept_owner *next;
    char *caller;                         /* owned */
    struct v1_kept_turn *oldest, *newest; /* listed turns */
    size_t n_listed, n_turns, n_bytes;    /* turns and bytes: including turns that only a later turn refers to */
};

struct v1_kept {
    struct settings *settings;            /* borrowed */
    struct loop_timer *timer;             /* owned; NULL without a loop */
    pthread_mutex_t lock;                 /* guards what follows */
    struct v1_kept_owner *owners;         /* owned */
    struct v1_kept_turn *oldest, *newest; /* listed turns of all owners */
    struct v1_kept_turn *buckets[BUCKETS];
    size_t n_listed, n_bytes;
};

/* ---- one turn ---- */

size_t v1_kept_values(struct slice json)
{
    size_t n = 1;

    for (size_t i = 0; i < json.n; i++)
        n += json.p[i] == ',' || json.p[i] == ':' || json.p[i] == '[' || json.p[i] == '{';
    return n;
}

static struct v1_kept_turn *new_turn(const struct v1_kept_new *what)
{
    struct v1_kept_turn *turn = xcalloc(1, sizeof(*turn));

    snprintf(turn->id, sizeof(turn->id), "%s", what->id);
    turn->input = what->input;
    turn->response = what->response;
    turn->n_input = what->n_input;
    turn->n_response = strlen(what->response);
    turn->n_values = what->n_values + v1_kept_values((struct slice){ turn->response, turn->n_response });
    turn->n_bytes = turn->n_input + turn->n_response + BYTES_A_TURN;
    turn->previous = what->previous;
    turn->made_ms = clock_mono_ms();
    turn->n_refs = 1;
    return turn;
}

static void free_turn(struct v1_kept_turn *turn)
{
    free(turn->input);
    free(turn->response);
    free(turn);
}

static void free_turns(struct v1_kept_turn *first)
{
    for (struct v1_kept_turn *next; first; first = next) {
        next = first->next_in_bucket;
        free_turn(first);
    }
}

/* ---- under the lock ---- */

static struct v1_kept_owner *owner_of(struct v1_kept *k, const char *caller)
{
    struct v1_kept_owner *owner = k->owners;

    while (owner && strcmp(owner->caller, caller) != 0)
        owner = owner->next;
    if (owner)
        return owner;
    owner = xcalloc(1, sizeof(*owner));
    owner->caller = xstrdup(caller);
    owner->next = k->owners;
    k->owners = owner;
    return owner;
}

static void forget_owner(struct v1_kept *k, struct v1_kept_owner *owner)
{
    struct v1_kept_owner **at = &k->owners;

    while (*at != owner)
        at = &(*at)->next;
    *at = owner->next;
    free(owner->caller);
    free(owner);
}

/* Turns without references are put in front of *gone, through next_in_bucket, to be freed outside the lock. */
static void drop(struct v1_kept *k, struct v1_kept_turn *turn, struct v1_kept_turn **gone)
{
    while (turn && --turn->n_refs == 0) {
        struct v1_kept_turn *previous = (struct v1_kept_turn *)(uintptr_t)turn->previous;
        struct v1_kept_owner *owner = turn->owner;

        k->n_bytes -= turn->n_bytes;
        owner->n_bytes -= turn->n_bytes;
        if (--owner->n_turns == 0)
            forget_owner(k, owner);
        turn->next_in_bucket = *gone;
        *gone = turn;
        turn = previous;
    }
}

static struct v1_kept_turn **bucket_of(struct v1_kept *k, const char *id)
{
    return &k->buckets[hash_fast(slice_of(id)) % BUCKETS];
}

static void enlist(struct v1_kept *k, struct v1_kept_turn *turn, struct v1_kept_owner *owner)
{
    struct v1_kept_turn **bucket = bucket_of(k, turn->id);

    turn->owner = owner;
    turn->is_listed = true;
    turn->next_in_bucket = *bucket;
    *bucket = turn;
    turn->previous_of_owner = owner->newest;
    *(owner->newest ? &owner->newest->next_of_owner : &owner->oldest) = turn;
    owner->newest = turn;
    turn->previous_of_all = k->newest;
    *(k->newest ? &k->newest->next_of_all : &k->oldest) = turn;
    k->newest = turn;
    owner->n_listed++;
    owner->n_turns++;
    owner->n_bytes += turn->n_bytes;
    k->n_listed++;
    k->n_bytes += turn->n_bytes;
}

/* Makes the turn's id unknown. */
static void delist(struct v1_kept *k, struct v1_kept_turn *turn, struct v1_kept_turn **gone)
{
    struct v1_kept_turn **at = bucket_of(k, turn->id);
    struct v1_kept_owner *owner = turn->owner;

    while (*at != turn)
        at = &(*at)->next_in_bucket;
    *at = turn->next_in_bucket;
    *(turn->previous_of_owner ? &turn->previous_of_owner->next_of_owner : &owner->oldest) = turn->next_of_owner;
    *(turn->next_of_owner ? &turn->next_of_owner->previous_of_owner : &owner->newest) = turn->previous_of_owner;
    *(turn->previous_of_all ? &turn->previous_of_all->next_of_all : &k->oldest) = turn->next_of_all;
    *(turn->next_of_all ? &turn->next_of_all->previous_of_all : &k->newest) = turn->previous_of_all;
    turn->is_listed = false;
    owner->n_listed--;
    k->n_listed--;
    drop(k, turn, gone);
}

static bool is_too_old(const struct v1_kept *k, const struct v1_kept_turn *turn)
{
    return clock_mono_ms() - turn->made_ms >= settings_ms(k->settings, SETTING_LLM_RESPONSES_KEEP_S);
}

static void delist_old(struct v1_kept *k, struct v1_kept_turn **gone)
{
    while (k->oldest && is_too_old(k, k->oldest))
        delist(k, k->oldest, gone);
}

static struct v1_kept_turn *oldest_of_largest(struct v1_kept *k)
{
    struct v1_kept_owner *largest = NULL;

    for (struct v1_kept_owner *owner = k->owners; owner; owner = owner->next)
        if (owner->n_listed > 0 && (!largest || owner->n_bytes > largest->n_bytes))
            largest = owner;
    return largest ? largest->oldest : NULL;
}

/* Called after an addition; the new turn is its owner's newest, so it is removed last. */
static void keep_to_limits(struct v1_kept *k, struct v1_kept_owner *owner, struct v1_kept_turn **gone)
{
    while (owner->n_listed > LIMIT_CALLER_RESPONSES ||
           (owner->n_bytes > LIMIT_CALLER_RESPONSE_BYTES && owner->n_listed > 1))
        delist(k, owner->oldest, gone);
    if (owner->n_bytes > LIMIT_CALLER_RESPONSE_BYTES) {
        delist(k, owner->oldest, gone);
        return;
    }
    while (k->n_listed > LIMIT_KEPT_RESPONSES)
        delist(k, k->oldest, gone);
    while (k->n_bytes > LIMIT_KEPT_RESPONSE_BYTES && k->oldest)
        delist(k, oldest_of_largest(k), gone);
}

static struct v1_kept_turn *find(struct v1_kept *k, const char *caller, struct slice id)
{
    struct v1_kept_turn *turn = k->buckets[hash_fast(id) % BUCKETS];

    while (turn && !slice_eq_str(id, turn->id))
        turn = turn->next_in_bucket;
    return turn && strcmp(turn->owner->caller, caller) == 0 && !is_too_old(k, turn) ? turn : NULL;
}

/* ---- public ---- */

static void look(void *arg)
{
    struct v1_kept *k = arg;
    struct v1_kept_turn *gone = NULL;

    pthread_mutex_lock(&k->lock);
    delist_old(k, &gone);
    pthread_mutex_unlock(&k->lock);
    free_turns(gone);
}

static double gauge_of(struct v1_kept *k, const size_t *n)
{
    size_t value;

    pthread_mutex_lock(&k->lock);
    value = *n;
    pthread_mutex_unlock(&k->lock);
    return (double)value;
}

static double count_gauge(void *arg)
{
    struct v1_kept *k = arg;

    return gauge_of(k, &k->n_listed);
}

static double bytes_gauge(void *arg)
{
    struct v1_kept *k = arg;

    return gauge_of(k, &k->n_bytes);
}

struct v1_kept *v1_kept_open(struct loop *l, struct settings *settings)
{
    struct v1_kept *k = xcalloc(1, sizeof(*k));

    k->settings = settings;
    pthread_mutex_init(&k->lock, NULL);
    k->timer = l ? loop_timer_new(l, look, k) : NULL;
    if (k->timer)
        loop_timer_every(k->timer, LOOK_EVERY_MS);
    metric_gauge_fn("hearth_kept_responses", "Answers of /v1/responses that a client may continue.", "", count_gauge,
                    k);
    metric_gauge_fn("hearth_kept_response_bytes", "Memory of these answers.", "", bytes_gauge, k);
    return k;
}

struct v1_kept *v1_kept_close(struct v1_kept *k)
{
    struct v1_kept_turn *gone = NULL;

    if (!k)
        return NULL;
    metric_gauge_fn_forget(k);
    loop_timer_free(k->timer);
    while (k->oldest)
        delist(k, k->oldest, &gone);
    free_turns(gone);
    pthread_mutex_destroy(&k->lock);
    free(k);
    return NULL;
}

bool v1_kept_add(struct v1_kept *k, const struct v1_kept_new *what)
{
    struct v1_kept_turn *turn = new_turn(what), *gone = NULL;
    struct v1_kept_owner *owner;
    bool is_kept;

    pthread_mutex_lock(&k->lock);
    delist_old(k, &gone);
    owner = owner_of(k, what->caller);
    enlist(k, turn, owner);
    turn->n_refs++;          /* until the answer is known */
    if (is_too_old(k, turn)) /* the setting keeps nothing */
        delist(k, turn, &gone);
    else
        keep_to_limits(k, owner, &gone);
    is_kept = turn->is_listed;
    drop(k, turn, &gone);
    pthread_mutex_unlock(&k->lock);
    free_turns(gone);
    return is_kept;
}

const struct v1_kept_turn *v1_kept_find(struct v1_kept *k, const char *caller, struct slice id)
{
    struct v1_kept_turn *turn;

    pthread_mutex_lock(&k->lock);
    turn = find(k, caller, id);
    if (turn)
        turn->n_refs++;
    pthread_mutex_unlock(&k->lock);
    return turn;
}

const struct v1_kept_turn *v1_kept_unref(struct v1_kept *k, const struct v1_kept_turn *turn)
{
    struct v1_kept_turn *gone = NULL;

    if (!turn)
        return NULL;
    pthread_mutex_lock(&k->lock);
    drop(k, (struct v1_kept_turn *)(uintptr_t)turn, &gone);
    pthread_mutex_unlock(&k->lock);
    free_turns(gone);
    return NULL;
}

bool v1_kept_remove(struct v1_kept *k, const char *caller, struct slice id)
{
    struct v1_kept_turn *turn, *gone = NULL;

    pthread_mutex_lock(&k->lock);
    turn = find(k, caller, id);
    if (turn)
        delist(k, turn, &gone);
    pthread_mutex_unlock(&k->lock);
    free_turns(gone);
    return turn != NULL;
}

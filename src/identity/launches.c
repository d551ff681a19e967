#include "identity/launches.h"

#include "base/clock.h"
#include "base/cond.h"
#include "identity/launch_list.h"
#include "identity/state.h"
#include "os/child.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SECRET_BYTES = 32, STARTING_WAIT_MS = 2000 };

void launches_init(struct launch_list *l)
{
    *l = (struct launch_list){ .first = NULL };
    pthread_mutex_init(&l->lock, NULL);
    cond_init(&l->changed);
}

void launches_clear(struct launch_list *l)
{
    while (l->first) {
        struct launch *gone = l->first;

        l->first = gone->next;
        free(gone);
    }
    pthread_cond_destroy(&l->changed);
    pthread_mutex_destroy(&l->lock);
}

/* ---- begin and end ---- */

void launches_begin(struct identity *id, const struct launch_what *what, char ret_secret[LAUNCH_SECRET_SIZE],
                    uint64_t *ret_serial)
{
    struct launch_list *l = &id->launches;
    struct launch *fresh = xcalloc(1, sizeof(*fresh));

    snprintf(ret_secret, LAUNCH_SECRET_SIZE, "%s", what->task_uuid ? LAUNCH_TASK_PREFIX : LAUNCH_APP_PREFIX);
    random_token(ret_secret + strlen(ret_secret), SECRET_BYTES);
    identity_hash(id, ret_secret, fresh->hash);
    snprintf(fresh->app_id, sizeof(fresh->app_id), "%s", what->app_id ? what->app_id : "");
    snprintf(fresh->task_uuid, sizeof(fresh->task_uuid), "%s", what->task_uuid ? what->task_uuid : "");
    fresh->attempt = what->attempt;
    pthread_mutex_lock(&l->lock);
    fresh->serial = *ret_serial = child_tag_new();
    fresh->next = l->first;
    l->first = fresh;
    pthread_mutex_unlock(&l->lock);
}

static struct launch **place_of(struct launch_list *l, uint64_t serial)
{
    struct launch **at = &l->first;

    while (*at && (*at)->serial != serial)
        at = &(*at)->next;
    return at;
}

void launches_started(struct identity *id, uint64_t serial, pid_t pid)
{
    struct launch_list *l = &id->launches;
    struct launch *started;

    pthread_mutex_lock(&l->lock);
    started = *place_of(l, serial);
    if (started)
        started->pid = pid;
    pthread_cond_broadcast(&l->changed);
    pthread_mutex_unlock(&l->lock);
}

void launches_end(struct identity *id, uint64_t serial)
{
    struct launch_list *l = &id->launches;
    struct launch **at, *gone;

    pthread_mutex_lock(&l->lock);
    at = place_of(l, serial);
    gone = *at;
    if (gone)
        *at = gone->next;
    pthread_cond_broadcast(&l->changed);
    pthread_mutex_unlock(&l->lock);
    free(gone);
}

/* ---- lookup ---- */

static bool is_of(const struct launch *launch, const struct launch_what *what)
{
    return what->task_uuid ? strcmp(launch->task_uuid, what->task_uuid) == 0
                           : strcmp(launch->app_id, what->app_id) == 0;
}

bool launches_find_secret(struct identity *id, const char *secret, struct launch *ret)
{
    struct launch_list *l = &id->launches;
    unsigned char hash[HASH_BYTES];
    bool is_found = false;

    identity_hash(id, secret, hash);
    pthread_mutex_lock(&l->lock);
    for (const struct launch *launch = l->first; launch && !is_found; launch = launch->next) {
        is_found = hash_equal(launch->hash, hash, HASH_BYTES);
        if (is_found)
            *ret = *launch;
    }
    pthread_mutex_unlock(&l->lock);
    return is_found;
}

bool launches_runs(struct identity *id, const struct launch_what *what, uint64_t serial)
{
    struct launch_list *l = &id->launches;
    bool is_found = false;

    pthread_mutex_lock(&l->lock);
    for (const struct launch *launch = l->first; launch && !is_found; launch = launch->next)
        is_found = is_of(launch, what) && (!serial || launch->serial == serial);
    pthread_mutex_unlock(&l->lock);
    return is_found;
}

/* Called with the lock held. False: one of the programs has no process yet. */
static bool collect(const struct launch_list *l, const struct launch_what *what, struct launch_pids *ret)
{
    bool is_whole = true;

    ret->n = 0;
    for (const struct launch *launch = l->first; launch; launch = launch->next) {
        if (!is_of(launch, what) || ret->n == ARRAY_SIZE(ret->pids))
            continue;
        is_whole = is_whole && launch->pid > 0;
        ret->serials[ret->n] = launch->serial;
        ret->pids[ret->n++] = launch->pid;
    }
    return is_whole;
}

void launches_find_pids(struct identity *id, const struct launch_what *what, bool may_wait, struct launch_pids *ret)
{
    struct launch_list *l = &id->launches;
    int64_t until_us = clock_mono_us() + (may_wait ? STARTING_WAIT_MS * 1000 : 0);

    pthread_mutex_lock(&l->lock);
    while (!collect(l, what, ret) && cond_wait_until(&l->changed, &l->lock, until_us))
        ;
    pthread_mutex_unlock(&l->lock);
}

static size_t collect_all(const struct launch_list *l, pid_t *pids, size_t n_most, bool *ret_is_whole)
{
    size_t n = 0;

    *ret_is_whole = true;
    for (const struct launch *launch = l->first; launch && n < n_most; launch = launch->next) {
        *ret_is_whole = *ret_is_whole && launch->pid > 0;
        pids[n++] = launch->pid;
    }
    return n;
}

size_t launches_all_pids(struct identity *id, pid_t *pids, size_t n_most)
{
    int64_t until_us = clock_mono_us() + STARTING_WAIT_MS * 1000;
    struct launch_list *l = &id->launches;
    bool is_whole;
    size_t n;

    pthread_mutex_lock(&l->lock);
    n = collect_all(l, pids, n_most, &is_whole);
    while (!is_whole && cond_wait_until(&l->changed, &l->lock, until_us))
        n = collect_all(l, pids, n_most, &is_whole);
    pthread_mutex_unlock(&l->lock);
    return n;
}

/* An app that does not answer must not hold the threads that claim for other apps: after a failure it rests, longer
 * each time, and then one claim tries. */
#include "backend/custom/custom_private.h"
#include "base/clock.h"

#include <stdlib.h>

enum { FIRST_MS = 1000, LONGEST_MS = 60000 };

struct rest {
    struct rest *next;
    char *app_id; /* owned */
    int64_t until_ms, delay_ms;
    bool is_tried; /* somebody tries now */
};

struct custom_rests {
    pthread_mutex_t lock;
    struct rest *first; /* apps that did not answer the last time */
};

struct custom_rests *custom_rests_new(void)
{
    struct custom_rests *rs = xcalloc(1, sizeof(*rs));

    pthread_mutex_init(&rs->lock, NULL);
    return rs;
}

static void drop(struct rest **at)
{
    struct rest *rest = *at;

    *at = rest->next;
    free(rest->app_id);
    free(rest);
}

void custom_rests_clear(struct custom_rests *rs)
{
    pthread_mutex_lock(&rs->lock);
    while (rs->first)
        drop(&rs->first);
    pthread_mutex_unlock(&rs->lock);
}

struct custom_rests *custom_rests_free(struct custom_rests *rs)
{
    if (!rs)
        return NULL;
    custom_rests_clear(rs);
    pthread_mutex_destroy(&rs->lock);
    free(rs);
    return NULL;
}

static struct rest **find_locked(struct custom_rests *rs, const char *app_id)
{
    struct rest **at = &rs->first;

    while (*at && strcmp((*at)->app_id, app_id) != 0)
        at = &(*at)->next;
    return at;
}

int custom_rests_enter(struct custom_rests *rs, const char *app_id, struct err *e)
{
    int64_t left_ms = 0;
    struct rest *rest;

    pthread_mutex_lock(&rs->lock);
    rest = *find_locked(rs, app_id);
    if (rest)
        left_ms = rest->is_tried ? 1 : rest->until_ms - clock_mono_ms();
    if (rest && left_ms <= 0)
        rest->is_tried = true;
    pthread_mutex_unlock(&rs->lock);
    return left_ms <= 0 ? 0
                        : err_set(e, -EHOSTUNREACH, "APP_UNREACHABLE",
                                  "The app did not answer a moment ago, and is tried again soon.");
}

void custom_rests_leave(struct custom_rests *rs, const char *app_id, bool has_answered)
{
    struct rest **at;

    pthread_mutex_lock(&rs->lock);
    at = find_locked(rs, app_id);
    if (*at && has_answered) {
        drop(at);
    } else if (!has_answered) {
        if (!*at) {
            *at = xcalloc(1, sizeof(**at));
            (*at)->app_id = xstrdup(app_id);
        }
        (*at)->delay_ms = (*at)->delay_ms ? MIN(2 * (*at)->delay_ms, (int64_t)LONGEST_MS) : FIRST_MS;
        (*at)->until_ms = clock_mono_ms() + (*at)->delay_ms;
        (*at)->is_tried = false;
    }
    pthread_mutex_unlock(&rs->lock);
}

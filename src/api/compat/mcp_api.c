#include "api/compat/mcp_api_private.h"

#include "base/cond.h"

#include <inttypes.h>
#include <stdlib.h>

/* ---- running calls ---- */

/* Which conditions are to be signalled: a bit for each. They are signalled after the lock was released, because the
 * loop takes it. */
void mcp_api_wake(struct mcp_api *m, uint64_t places)
{
    for (unsigned i = 0; i < MCP_API_WAKES; i++)
        if (places >> i & 1)
            pthread_cond_broadcast(&m->wakes[i]);
}

uint64_t mcp_api_set_woken(struct mcp_api_running *r)
{
    atomic_store(&r->is_woken, true);
    return UINT64_C(1) << r->place;
}

static uint64_t set_cancelled(struct mcp_api_running *r)
{
    atomic_bool *also;

    atomic_store(&r->is_cancelled, true);
    also = atomic_load(&r->also); /* mcp_api_running_attach() stores first and looks then: one of both sees the other */
    if (also)
        atomic_store(also, true);
    return mcp_api_set_woken(r);
}

void mcp_api_running_begin(struct mcp_api *m, struct mcp_api_running *r)
{
    pthread_mutex_lock(&m->lock);
    r->number = m->n_begun++;
    r->place = r->number % MCP_API_WAKES;
    r->next = m->running;
    m->running = r;
    pthread_mutex_unlock(&m->lock);
}

void mcp_api_running_attach(struct mcp_api *m, struct mcp_api_running *r, atomic_bool *also)
{
    pthread_mutex_lock(&m->lock); /* mcp_api_cancel() does not use a flag that is taken away meanwhile */
    atomic_store(&r->also, also);
    if (also && atomic_load(&r->is_cancelled))
        atomic_store(also, true);
    pthread_mutex_unlock(&m->lock);
}

static void wait_for_users(struct mcp_api *m, struct mcp_api_running *r)
{
    mcp_api_wake(m, UINT64_C(1) << r->place);
    pthread_mutex_lock(&m->lock);
    while (r->n_users > 0)
        pthread_cond_wait(&m->wakes[r->place], &m->lock);
    pthread_mutex_unlock(&m->lock);
}

void mcp_api_running_end(struct mcp_api *m, struct mcp_api_running *r)
{
    struct mcp_api_running **at;
    bool is_used;

    pthread_mutex_lock(&m->lock);
    for (at = &m->running; *at != r; at = &(*at)->next)
        ;
    *at = r->next;
    r->is_ending = true;
    is_used = r->n_users > 0;
    pthread_mutex_unlock(&m->lock);
    if (is_used)
        wait_for_users(m, r);
}

void mcp_api_running_name(const struct mcp_api_running *r, char ret[RUNNING_NAME_SIZE])
{
    snprintf(ret, RUNNING_NAME_SIZE, "mcp call %" PRIu64, r->number);
}

void mcp_api_running_expect(struct mcp_api *m, struct mcp_api_running *r, const char *task_uuid)
{
    pthread_mutex_lock(&m->lock);
    r->task = task_uuid;
    pthread_mutex_unlock(&m->lock);
}

void mcp_api_running_wait(struct mcp_api *m, struct mcp_api_running *r, int64_t until_us)
{
    pthread_mutex_lock(&m->lock);
    while (!atomic_load(&r->is_woken) && cond_wait_until(&m->wakes[r->place], &m->lock, until_us))
        ;
    atomic_store(&r->is_woken, false);
    pthread_mutex_unlock(&m->lock);
}

void mcp_api_cancel(struct mcp_api *m, const char *owner, const char *session_id, const struct json_rpc_id *id)
{
    uint64_t places = 0;

    pthread_mutex_lock(&m->lock);
    for (struct mcp_api_running *r = m->running; r; r = r->next)
        if (strcmp(r->owner, owner) == 0 && strcmp(r->session_id, session_id) == 0 && json_rpc_id_eq(r->id, id))
            places |= set_cancelled(r);
    pthread_mutex_unlock(&m->lock);
    mcp_api_wake(m, places);
}

void mcp_api_cancel_running(struct mcp_api *m, struct mcp_api_running *r)
{
    mcp_api_wake(m, set_cancelled(r));
}

/* ---- changes ---- */

void mcp_api_task_changed(struct mcp_api *m, const char *task_uuid, const char *status)
{
    uint64_t places = 0;

    if (!m)
        return;
    pthread_mutex_lock(&m->lock);
    for (struct mcp_api_running *r = m->running; r; r = r->next)
        if (r->task && strcmp(r->task, task_uuid) == 0)
            places |= mcp_api_set_woken(r);
    pthread_mutex_unlock(&m->lock);
    mcp_api_wake(m, places);
    mcp_api_publish(m, task_uuid, status);
}

void mcp_api_tools_changed(struct mcp_api *m)
{
    if (m)
        mcp_api_publish(m, "", "");
}

/* ---- open and close ---- */

struct mcp_api *mcp_api_open(struct api *api)
{
    struct mcp_api *m = xcalloc(1, sizeof(*m));

    m->api = api;
    pthread_mutex_init(&m->lock, NULL);
    for (size_t i = 0; i < ARRAY_SIZE(m->wakes); i++)
        cond_init(&m->wakes[i]);
    return m;
}

struct mcp_api *mcp_api_close(struct mcp_api *m)
{
    if (!m)
        return NULL;
    while (m->sessions)
        mcp_api_remove_session(m, m->sessions);
    for (size_t i = 0; i < ARRAY_SIZE(m->wakes); i++)
        pthread_cond_destroy(&m->wakes[i]);
    pthread_mutex_destroy(&m->lock);
    free(m);
    return NULL;
}

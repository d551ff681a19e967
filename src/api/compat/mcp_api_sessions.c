/* Sessions of the handshake era. */
#include "api/compat/mcp_api_private.h"
#include "base/clock.h"

#include <stdlib.h>

enum { LEVEL_INFO = 1 };

/* ---- under the lock ---- */

static struct mcp_api_session *free_session(struct mcp_api_session *s)
{
    for (size_t i = 0; i < s->n_followed; i++)
        free(s->followed[i]);
    free(s->watched);
    free(s->owner);
    free(s);
    return NULL;
}

static bool is_idle(const struct mcp_api *m, const struct mcp_api_session *s, int64_t now_ms)
{
    return !s->has_stream && now_ms - s->used_ms > settings_ms(m->api->settings, SETTING_MCP_SESSION_IDLE_S);
}

struct mcp_api_session *mcp_api_find_session(struct mcp_api *m, const char *id)
{
    struct mcp_api_session *s = m->sessions;

    while (s && strcmp(s->id, id) != 0)
        s = s->next;
    return s;
}

void mcp_api_remove_session(struct mcp_api *m, struct mcp_api_session *s)
{
    struct mcp_api_session **at = &m->sessions;

    while (*at != s)
        at = &(*at)->next;
    *at = s->next;
    m->n_sessions--;
    free_session(s);
}

static void remove_idle(struct mcp_api *m)
{
    int64_t now_ms = clock_mono_ms();

    for (struct mcp_api_session *s = m->sessions, *next; s; s = next) {
        next = s->next;
        if (is_idle(m, s, now_ms))
            mcp_api_remove_session(m, s);
    }
}

/* The caller's session that was unused for longest makes room; one with an open stream only when all have one. */
static void make_room(struct mcp_api *m, const char *owner)
{
    struct mcp_api_session *oldest = NULL;
    size_t n = 0;

    for (struct mcp_api_session *s = m->sessions; s; s = s->next) {
        if (strcmp(s->owner, owner) != 0)
            continue;
        n++;
        if (!oldest || s->has_stream < oldest->has_stream ||
            (s->has_stream == oldest->has_stream && s->used_ms < oldest->used_ms))
            oldest = s;
    }
    if (n >= LIMIT_MCP_CALLER_SESSIONS)
        mcp_api_remove_session(m, oldest);
}

static struct mcp_api_session *usable_session(struct mcp_api *m, const char *owner, const char *id)
{
    struct mcp_api_session *s = mcp_api_find_session(m, id);

    return s && strcmp(s->owner, owner) == 0 && !is_idle(m, s, clock_mono_ms()) ? s : NULL;
}

static size_t find_followed(const struct mcp_api_session *s, const char *uri)
{
    size_t i = 0;

    while (i < s->n_followed && strcmp(s->followed[i], uri) != 0)
        i++;
    return i;
}

bool mcp_api_is_followed(const struct mcp_api_session *s, const char *uri)
{
    return find_followed(s, uri) < s->n_followed;
}

/* ---- for the methods ---- */

const char *mcp_api_owner(struct arena *a, const struct caller *caller)
{
    return arena_printf(a, "%d:%s", caller->kind, caller->scope);
}

int mcp_api_session_new(struct mcp_api *m, const char *owner, enum mcp_api_version version, char ret_id[UUID_SIZE],
                        struct err *e)
{
    struct mcp_api_session *s = xcalloc(1, sizeof(*s));
    bool is_full;

    uuid_v4(s->id);
    s->owner = xstrdup(owner);
    s->version = version;
    s->level = LEVEL_INFO;
    s->used_ms = clock_mono_ms();
    memcpy(ret_id, s->id, UUID_SIZE);
    pthread_mutex_lock(&m->lock);
    remove_idle(m);
    make_room(m, owner);
    is_full = m->n_sessions >= LIMIT_MCP_SESSIONS;
    if (!is_full) {
        s->next = m->sessions;
        m->sessions = s;
        m->n_sessions++;
    }
    pthread_mutex_unlock(&m->lock);
    if (!is_full)
        return 0;
    free_session(s);
    return err_set(e, -EAGAIN, "OVERLOADED", "%d sessions of MCP clients are open already; end one first.",
                   LIMIT_MCP_SESSIONS);
}

bool mcp_api_session_use(struct mcp_api *m, const char *owner, const char *id, enum mcp_api_version *ret_version)
{
    struct mcp_api_session *s;

    pthread_mutex_lock(&m->lock);
    s = usable_session(m, owner, id);
    if (s) {
        s->used_ms = clock_mono_ms();
        *ret_version = s->version;
    }
    pthread_mutex_unlock(&m->lock);
    return s != NULL;
}

void mcp_api_session_set_level(struct mcp_api *m, const char *id, int level)
{
    struct mcp_api_session *s;

    pthread_mutex_lock(&m->lock);
    s = mcp_api_find_session(m, id);
    if (s)
        s->level = level;
    pthread_mutex_unlock(&m->lock);
}

void mcp_api_session_set_abilities(struct mcp_api *m, const char *id, unsigned abilities)
{
    struct mcp_api_session *s;

    pthread_mutex_lock(&m->lock);
    s = mcp_api_find_session(m, id);
    if (s)
        s->abilities = abilities;
    pthread_mutex_unlock(&m->lock);
}

unsigned mcp_api_session_abilities(struct mcp_api *m, const char *id)
{
    struct mcp_api_session *s;
    unsigned abilities;

    pthread_mutex_lock(&m->lock);
    s = mcp_api_find_session(m, id);
    abilities = s ? s->abilities : 0;
    pthread_mutex_unlock(&m->lock);
    return abilities;
}

static size_t find_watched(const struct mcp_api_session *s, const char *uuid)
{
    size_t i = 0;

    while (i < s->n_watched && strcmp(s->watched[i].uuid, uuid) != 0)
        i++;
    return i;
}

static void remove_watched(struct mcp_api_session *s, size_t at)
{
    s->n_watched--;
    memmove(&s->watched[at], &s->watched[at + 1], (s->n_watched - at) * sizeof(*s->watched));
}

bool mcp_api_is_watched(struct mcp_api_session *s, const char *task_uuid, bool ends, struct mcp_api_watched *ret)
{
    size_t at = find_watched(s, task_uuid);

    if (at == s->n_watched)
        return false;
    *ret = s->watched[at];
    if (ends)
        remove_watched(s, at);
    return true;
}

static void watch(struct mcp_api_session *s, const char *uuid, const char *created_at)
{
    struct mcp_api_watched *at;

    if (!s->watched)
        s->watched = xcalloc(LIMIT_MCP_SUBSCRIPTIONS, sizeof(*s->watched));
    if (s->n_watched == LIMIT_MCP_SUBSCRIPTIONS)
        remove_watched(s, 0);
    at = &s->watched[s->n_watched++];
    snprintf(at->uuid, sizeof(at->uuid), "%s", uuid);
    snprintf(at->created_at, sizeof(at->created_at), "%s", created_at);
}

void mcp_api_session_watch_task(struct mcp_api *m, const char *id, const char *task_uuid, const char *created_at)
{
    struct mcp_api_session *s;

    pthread_mutex_lock(&m->lock);
    s = mcp_api_find_session(m, id);
    if (s)
        watch(s, task_uuid, created_at);
    pthread_mutex_unlock(&m->lock);
}

static bool follow(struct mcp_api_session *s, const char *uri, bool is_on)
{
    size_t at = find_followed(s, uri);

    if (!is_on && at < s->n_followed) {
        free(s->followed[at]);
        s->followed[at] = s->followed[--s->n_followed];
    }
    if (!is_on || at < s->n_followed)
        return true;
    if (at == LIMIT_MCP_SUBSCRIPTIONS)
        return false;
    s->followed[s->n_followed++] = xstrdup(uri);
    return true;
}

int mcp_api_session_follow(struct mcp_api *m, const char *id, const char *uri, bool is_on, struct err *e)
{
    struct mcp_api_session *s;
    bool has_room;

    pthread_mutex_lock(&m->lock);
    s = mcp_api_find_session(m, id);
    has_room = !s || follow(s, uri, is_on);
    pthread_mutex_unlock(&m->lock);
    return has_room ? 0
                    : err_set(e, -E2BIG, "TOO_MANY_SUBSCRIPTIONS", "A session follows at most %d resources.",
                              LIMIT_MCP_SUBSCRIPTIONS);
}

bool mcp_api_session_end(struct mcp_api *m, const char *owner, const char *id)
{
    struct mcp_api_session *s;

    pthread_mutex_lock(&m->lock);
    s = usable_session(m, owner, id);
    if (s)
        mcp_api_remove_session(m, s);
    pthread_mutex_unlock(&m->lock);
    if (s)
        mcp_api_end_stream_of(m, id);
    return s != NULL;
}

bool mcp_api_session_take_stream(struct mcp_api *m, const char *id)
{
    struct mcp_api_session *s;
    bool is_free;

    pthread_mutex_lock(&m->lock);
    s = mcp_api_find_session(m, id);
    is_free = s && !s->has_stream;
    if (is_free)
        s->has_stream = true;
    pthread_mutex_unlock(&m->lock);
    return is_free;
}

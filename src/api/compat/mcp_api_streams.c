/* Streams of notifications: the GET of a session, and subscriptions/listen. */
#include "api/compat/mcp_api_private.h"
#include "api/compat/mcp_api_turn.h"
#include "http/sse.h"

#include <stdlib.h>

enum { LEVEL_INFO = 1, NOTIFICATION_BYTES = 4096 };

#define SUBSCRIPTION_ID "io.modelcontextprotocol/subscriptionId"

/* ---- on the loop ---- */

static void free_listener(struct mcp_api_listener *l)
{
    for (size_t i = 0; i < l->n_uris; i++)
        free(l->uris[i]);
    free(l->uris);
    arena_free(l->arena);
    free(l);
}

static void leave_session(struct mcp_api *m, const char *id)
{
    struct mcp_api_session *s;

    pthread_mutex_lock(&m->lock);
    s = mcp_api_find_session(m, id);
    if (s) {
        s->has_stream = false;
        s->used_ms = clock_mono_ms();
    }
    pthread_mutex_unlock(&m->lock);
}

static void remove_listener(struct mcp_api *m, struct mcp_api_listener *gone)
{
    struct mcp_api_listener **at = &m->listeners;

    while (*at != gone)
        at = &(*at)->next;
    *at = gone->next;
    http_stream_on_change(gone->stream, NULL, NULL);
    http_stream_end(gone->stream);
    leave_session(m, gone->session_id);
    free_listener(gone);
    atomic_fetch_sub(&m->n_listeners, 1);
}

static void stream_changed(struct http_stream *stream, void *arg)
{
    struct mcp_api_listener *l = arg;

    if (http_stream_is_gone(stream))
        remove_listener(l->mcp, l);
}

static void add_listener(void *arg)
{
    struct mcp_api_listener *l = arg;

    l->next = l->mcp->listeners;
    l->mcp->listeners = l;
    http_stream_on_change(l->stream, stream_changed, l); /* also reports a client that has left already */
}

/* Notifications are hints: a stream whose buffer is full misses some. */
static void send_frame(struct mcp_api_listener *l, struct buf *frame)
{
    (void)!sse_push(l->stream, "message", NULL, buf_slice(frame));
    buf_clear(frame);
}

static void add_subscription(struct json_writer *w, const struct mcp_api_listener *l)
{
    if (*l->session_id)
        return;
    json_begin_object_as(w, "_meta");
    json_rpc_add_id(w, SUBSCRIPTION_ID, &l->id);
    json_end(w);
}

static void begin_notification(struct json_writer *w, struct buf *out, const char *method,
                               const struct mcp_api_listener *l)
{
    buf_init(out, NOTIFICATION_BYTES);
    json_rpc_begin_notification(w, out, method);
    json_begin_object_as(w, "params");
    add_subscription(w, l);
}

static void end_notification(struct json_writer *w, struct mcp_api_listener *l)
{
    json_end(w);
    json_end(w);
    send_frame(l, w->out);
}

static void send_acknowledged(struct mcp_api_listener *l)
{
    struct json_writer w;
    struct buf out;

    begin_notification(&w, &out, "notifications/subscriptions/acknowledged", l);
    json_begin_object_as(&w, "notifications");
    if (l->has_tools)
        json_add_bool(&w, "toolsListChanged", true);
    if (l->n_uris > 0)
        json_add_strings(&w, "resourceSubscriptions", (const char *const *)l->uris, l->n_uris);
    json_end(&w);
    end_notification(&w, l);
}

/* The answer to subscriptions/listen, when the service ends the stream. */
static void send_end(struct mcp_api_listener *l)
{
    struct json_writer w;
    struct buf out;

    if (*l->session_id)
        return;
    buf_init(&out, NOTIFICATION_BYTES);
    json_rpc_begin(&w, &out, &l->id);
    json_begin_object_as(&w, "result");
    json_add_string(&w, "resultType", "complete");
    add_subscription(&w, l);
    end_notification(&w, l);
}

void mcp_api_end_streams(struct mcp_api *m)
{
    while (m && m->listeners) {
        send_end(m->listeners);
        remove_listener(m, m->listeners);
    }
}

struct ended_session {
    struct mcp_api *mcp;
    char id[UUID_SIZE];
};

static void end_stream_of(void *arg)
{
    struct ended_session *ended = arg;

    for (struct mcp_api_listener *l = ended->mcp->listeners, *next; l; l = next) {
        next = l->next;
        if (strcmp(l->session_id, ended->id) == 0)
            remove_listener(ended->mcp, l);
    }
    free(ended);
}

void mcp_api_end_stream_of(struct mcp_api *m, const char *session_id)
{
    struct ended_session *ended = xcalloc(1, sizeof(*ended));

    ended->mcp = m;
    snprintf(ended->id, sizeof(ended->id), "%s", session_id);
    loop_post(m->api->loop, end_stream_of, ended);
}

void mcp_api_add_stream(struct mcp_api *m, struct http_stream *stream, const char *session_id,
                        const struct json_rpc_id *id, const struct mcp_api_filter *filter)
{
    struct mcp_api_listener *l = xcalloc(1, sizeof(*l));

    l->mcp = m;
    l->stream = stream;
    l->arena = arena_new_sized(KIB(1));
    if (session_id)
        snprintf(l->session_id, sizeof(l->session_id), "%s", session_id);
    if (id)
        l->id = json_rpc_id_copy(l->arena, id);
    if (filter) {
        l->has_tools = filter->has_tools;
        l->uris = xcalloc(filter->n_uris + 1, sizeof(*l->uris));
        while (l->n_uris < filter->n_uris) {
            l->uris[l->n_uris] = xstrdup(filter->uris[l->n_uris]);
            l->n_uris++;
        }
        send_acknowledged(l);
    }
    atomic_fetch_add(&m->n_listeners, 1);
    loop_post(m->api->loop, add_listener, l);
}

/* ---- changes ---- */

struct change {
    struct mcp_api *mcp;
    char uri[sizeof(MCP_API_TASK_URI) + UUID_SIZE]; /* "": the tools */
    char status[32], at[TIME_TEXT_SIZE];
};

/* What a stream is sent about a task. */
struct interest {
    bool is_followed, wants_log, is_watched;
    struct mcp_api_watched watched;
};

static const char *uuid_of(const struct change *c)
{
    return c->uri + strlen(MCP_API_TASK_URI);
}

static void read_session(struct mcp_api_session *s, const struct change *c, struct interest *ret)
{
    ret->is_followed = mcp_api_is_followed(s, c->uri);
    ret->wants_log = ret->is_followed && s->level <= LEVEL_INFO;
    ret->is_watched = mcp_api_is_watched(s, uuid_of(c), mcp_api_task_is_final(c->status), &ret->watched);
}

static struct interest interest_of(struct mcp_api *m, const struct mcp_api_listener *l, const struct change *c)
{
    struct interest interest = { 0 };
    struct mcp_api_session *s;

    for (size_t i = 0; !*l->session_id && i < l->n_uris; i++)
        interest.is_followed = interest.is_followed || strcmp(l->uris[i], c->uri) == 0;
    if (!*l->session_id)
        return interest;
    pthread_mutex_lock(&m->lock);
    s = mcp_api_find_session(m, l->session_id);
    if (s)
        read_session(s, c, &interest);
    pthread_mutex_unlock(&m->lock);
    return interest;
}

static void send_updated(struct mcp_api_listener *l, const char *uri)
{
    struct json_writer w;
    struct buf out;

    begin_notification(&w, &out, "notifications/resources/updated", l);
    json_add_string(&w, "uri", uri);
    end_notification(&w, l);
}

static void send_log(struct mcp_api_listener *l, const struct change *c)
{
    struct json_writer w;
    struct buf out;

    begin_notification(&w, &out, "notifications/message", l);
    json_add_string(&w, "level", "info");
    json_add_string(&w, "logger", "tasks");
    json_begin_object_as(&w, "data");
    json_add_string(&w, "uri", c->uri);
    json_add_string(&w, "status", c->status);
    json_end(&w);
    end_notification(&w, l);
}

/* Revision 2025-11-25, "Tasks", "Task status notification": the whole task. */
static void send_task_status(struct mcp_api_listener *l, const struct change *c, const struct mcp_api_watched *task)
{
    struct json_writer w;
    struct buf out;

    begin_notification(&w, &out, "notifications/tasks/status", l);
    mcp_api_write_task(&w, &(struct mcp_api_task){ .uuid = task->uuid,
                                                   .status = mcp_api_task_status(c->status, NULL),
                                                   .created_at = task->created_at,
                                                   .updated_at = c->at });
    end_notification(&w, l);
}

static void send_tools_changed(struct mcp_api_listener *l)
{
    struct json_writer w;
    struct buf out;

    if (!*l->session_id && !l->has_tools)
        return;
    begin_notification(&w, &out, "notifications/tools/list_changed", l);
    end_notification(&w, l);
}

static void send_task_changed(struct mcp_api_listener *l, const struct change *c)
{
    struct interest interest = interest_of(l->mcp, l, c);

    if (interest.is_followed)
        send_updated(l, c->uri);
    if (interest.wants_log)
        send_log(l, c);
    if (interest.is_watched)
        send_task_status(l, c, &interest.watched);
}

static void publish_on_loop(void *arg)
{
    struct change *c = arg;

    for (struct mcp_api_listener *l = c->mcp->listeners; l; l = l->next)
        if (*c->uri)
            send_task_changed(l, c);
        else
            send_tools_changed(l);
    free(c);
}

void mcp_api_publish(struct mcp_api *m, const char *task_uuid, const char *status)
{
    struct change *c;

    if (atomic_load(&m->n_listeners) == 0)
        return;
    c = xcalloc(1, sizeof(*c));
    c->mcp = m;
    if (*task_uuid)
        snprintf(c->uri, sizeof(c->uri), MCP_API_TASK_URI "%s", task_uuid);
    snprintf(c->status, sizeof(c->status), "%s", status);
    clock_now_text(c->at);
    loop_post(m->api->loop, publish_on_loop, c);
}

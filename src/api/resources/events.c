/* The stream of changes. Only the loop thread uses the list of listeners; publishers only post to the loop. */
#include "api/resources/events.h"

#include "agents/approvals.h"
#include "apps/apps.h"
#include "api/routes.h"
#include "base/limits.h"
#include "identity/consent.h"
#include "mcp/host.h"

#include <stdatomic.h>

struct listener {
    struct listener *next;
    struct http_stream *stream; /* owned reference */
    struct api_events *events;
    bool is_after; /* missed a change: `resync` is sent when there is room */
};

struct api_events {
    struct api *api;        /* borrowed */
    struct listener *first; /* loop thread */
    size_t n;
    atomic_size_t n_taken; /* reserved places, including those of streams not yet in the list */
};

struct publication {
    struct api_events *events;
    const char *event;
    char *data;
};

struct api_events *api_events_new(struct api *api)
{
    struct api_events *ev = xcalloc(1, sizeof(*ev));

    ev->api = api;
    return ev;
}

static void remove_listener(struct api_events *ev, struct listener *gone)
{
    struct listener **at = &ev->first;

    while (*at != gone)
        at = &(*at)->next;
    *at = gone->next;
    http_stream_on_change(gone->stream, NULL, NULL);
    http_stream_end(gone->stream);
    free(gone);
    atomic_fetch_sub(&ev->n_taken, 1);
}

void api_events_end_streams(struct api_events *ev)
{
    while (ev->first)
        remove_listener(ev, ev->first);
}

struct api_events *api_events_free(struct api_events *ev)
{
    free(ev);
    return NULL;
}

static void stream_changed(struct http_stream *stream, void *arg)
{
    struct listener *l = arg;

    if (http_stream_is_gone(stream)) {
        remove_listener(l->events, l);
        return;
    }
    if (l->is_after && sse_push(stream, "resync", NULL, SLICE_LIT("{}")) == 0)
        l->is_after = false;
}

static void add_listener(void *arg)
{
    struct listener *l = arg;

    l->next = l->events->first;
    l->events->first = l;
    http_stream_on_change(l->stream, stream_changed, l); /* also reports a client that has already left */
}

static int take_place(struct api_events *ev, struct err *e)
{
    if (atomic_fetch_add(&ev->n_taken, 1) < LIMIT_EVENT_STREAMS)
        return 0;
    atomic_fetch_sub(&ev->n_taken, 1);
    return err_set(e, -EAGAIN, "TOO_MANY_STREAMS", "%d streams of changes are open already; close one first",
                   LIMIT_EVENT_STREAMS);
}

/* ---- publishing ---- */

static void publish_on_loop(void *arg)
{
    struct publication *p = arg;

    for (struct listener *l = p->events->first, *next; l; l = next) {
        next = l->next;
        if (!l->is_after && sse_push(l->stream, p->event, NULL, slice_of(p->data)) == -EAGAIN)
            l->is_after = true;
    }
    free(p->data);
    free(p);
}

static void publish(struct api_events *ev, const char *event, struct buf *data)
{
    struct publication *p;

    if (!ev->api->is_serving || atomic_load(&ev->n_taken) == 0) {
        buf_clear(data);
        return;
    }
    p = xcalloc(1, sizeof(*p));
    *p = (struct publication){ .events = ev, .event = event, .data = buf_take(data) };
    loop_post(ev->api->loop, publish_on_loop, p);
}

static void publish_pair(struct api_events *ev, const char *event, const char *key, const char *id, const char *status)
{
    struct json_writer w;
    struct buf data;

    buf_init(&data, KIB(4));
    json_write_init(&w, &data);
    json_begin_object(&w);
    json_add_string(&w, key, id);
    json_add_string(&w, "status", status);
    json_end(&w);
    publish(ev, event, &data);
}

void api_events_task(struct api_events *ev, const char *task_uuid, const char *status)
{
    publish_pair(ev, "task", "uuid", task_uuid, status);
}

void api_events_app(struct api_events *ev, const char *app_id)
{
    AUTO(arena_freep) struct arena *arena = arena_new();
    struct app_state state;
    bool is_there =
        identity_knows_app(ev->api->identity, app_id) && app_state(ev->api->apps, app_id, arena, &state, NULL) == 0;

    publish_pair(ev, "app", "app_id", app_id, is_there ? app_status_name(state.status) : "removed");
}

void api_events_consent(struct api_events *ev)
{
    AUTO(arena_freep) struct arena *arena = arena_new();
    struct consent_questions questions = { 0 };
    struct buf data;

    if (consent_pending(ev->api->identity, arena, &questions, NULL) < 0)
        return;
    buf_init(&data, KIB(1));
    buf_printf(&data, "{\"pending\":%zu}", questions.n);
    publish(ev, "permission", &data);
}

void api_events_approval(struct api_events *ev)
{
    struct buf data;

    buf_init(&data, KIB(1));
    buf_printf(&data, "{\"pending\":%zu}", approvals_n_pending(ev->api->approvals));
    publish(ev, "approval", &data);
}

void api_events_provider(struct api_events *ev)
{
    struct buf data;

    buf_init(&data, KIB(1));
    buf_add_str(&data, "{\"status\":\"found\"}");
    publish(ev, "provider", &data);
}

void api_events_mcp_server(struct api_events *ev, const char *name)
{
    AUTO(arena_freep) struct arena *arena = arena_new();
    struct mcp_server_info info;
    bool is_there = mcp_host_server(ev->api->mcp_host, name, arena, &info, NULL) == 0;

    publish_pair(ev, "mcp_server", "name", name, is_there ? mcp_status_name(info.status) : "removed");
}

void api_events_contact(struct api_events *ev, const char *app_id, const char *app_name, const char *program)
{
    struct json_writer w;
    struct buf data;

    buf_init(&data, KIB(32));
    json_write_init(&w, &data);
    json_begin_object(&w);
    json_add_string(&w, "app_id", app_id);
    json_add_string(&w, "app_name", app_name);
    json_add_string(&w, "program", program);
    json_end(&w);
    publish(ev, "contact", &data);
}

void api_events_microphone(struct api_events *ev, const char *caller, const char *app_id, const char *app_name,
                           bool is_open)
{
    struct json_writer w;
    struct buf data;

    buf_init(&data, KIB(8));
    json_write_init(&w, &data);
    json_begin_object(&w);
    json_add_string(&w, "status", is_open ? "open" : "closed");
    json_add_string(&w, "caller", caller);
    json_add_string(&w, "app_id", app_id);
    json_add_string(&w, "app_name", app_name);
    json_end(&w);
    publish(ev, "microphone", &data);
}

/* ---- the route ---- */

static int stream_events(struct request *req, struct response *res, struct err *e)
{
    struct api_events *ev = req->api->events;
    struct listener *l;
    int r;

    if (!req->api->is_serving)
        return err_set(e, -ENOTSUP, "NOT_SERVING",
                       "Changes can be followed only while the service runs; start it with `hearth serve`");
    r = take_place(ev, e);
    if (r < 0)
        return r;
    l = xcalloc(1, sizeof(*l));
    l->events = ev;
    l->stream = request_take_events(req, res);
    /* The reader learns from the first event that the stream has begun. */
    (void)!sse_push(l->stream, "hello", NULL, SLICE_LIT("{}"));
    loop_post(ev->api->loop, add_listener, l);
    return 0;
}

const struct route event_routes[] = {
    { .method = HTTP_GET,
      .path = "/api/events",
      .permission = PERM_ADMIN,
      .answer_type = "text/event-stream",
      .handler = stream_events,
      .summary = "Changes as they happen: permission, approval, task, app, microphone",
      .tag = "Events" },
    ROUTE_END,
};

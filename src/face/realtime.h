/* The hosted service's realtime protocol over any backend: channels with changes of rows, broadcast and presence
 * (docs/offline-face.md).
 *
 * One thread owns all channels and handles everything in order of arrival; another reads rows from the backend, so that
 * a slow database delays changes only. Sockets are served by the loop (http/websocket.h); nothing here waits for a
 * client. Nothing is kept: a client that is away misses what happens.
 *
 *     r = realtime_start(&config, &rt, e);
 *     r = realtime_connect(rt, x, apikey, vsn, e);          a worker; x is taken on success
 *     realtime_end(rt);                                     the service is stopping: clients are told
 *     realtime_stop(rt); ... the loop ends ...; rt = realtime_free(rt);
 */
#pragma once

#include "backend/backend.h"
#include "face/caller.h"
#include "http/http.h"

struct realtime;

struct realtime_config {
    struct backend *backend;         /* borrowed */
    struct store *store;             /* borrowed */
    const struct identity *identity; /* borrowed */
    int64_t presence_ms;             /* a machine that reported itself before that is not there */
};

int realtime_start(const struct realtime_config *c, struct realtime **ret, struct err *e) MUST_CHECK;
/* Sends every client away; no new ones are taken. Any thread. */
void realtime_end(struct realtime *rt);
/* Joins the threads; while the loop still exists. */
void realtime_stop(struct realtime *rt);
struct realtime *realtime_free(struct realtime *rt); /* after the loop has ended */

/* The keys of this machine, made at the first use; valid until realtime_free(). */
int realtime_keys(struct realtime *rt, const struct face_keys **ret, struct err *e) MUST_CHECK;
/* Upgrades the request. vsn NULL: 1.0.0. -EINVAL UNKNOWN_VSN and as http_websocket_check(), face_caller_of_key(). */
int realtime_connect(struct realtime *rt, struct http_exchange *x, const char *apikey, const char *vsn,
                     struct err *e) MUST_CHECK;

struct realtime_broadcast {
    struct slice topic, event; /* topic without "realtime:" */
    struct slice payload;      /* JSON, or bytes */
    bool is_bytes, is_private;
};
/* To every member of the channel. -EBUSY BUDGET_EXCEEDED while too many wait. */
int realtime_broadcast(struct realtime *rt, const struct realtime_broadcast *b, struct err *e) MUST_CHECK;

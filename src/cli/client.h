/* Management requests of the command line: over <data>/hearth.sock when a service runs, else through the same handlers
 * in this process.
 *
 * One thread. Opened by the first request; waits for a folder that another short command holds for a moment.
 *
 *     r = client_open(data_dir, false, &client, e);
 *     r = client_send(client, arena, &(struct client_request){ HTTP_GET, "/api/keys" }, &reply, e);
 */
#pragma once

#include "base/arena.h"
#include "base/json.h"
#include "http/http.h"

#include <signal.h>

struct client;

struct client_request {
    enum http_method method;
    const char *path;                         /* segments percent-encoded */
    const char *query;                        /* "a=b", or NULL */
    struct slice body;                        /* JSON, or empty */
    bool wants_events;                        /* of a route that answers in events only when it is asked to */
    int64_t timeout_ms;                       /* of a running service's answer; 0: none */
    const volatile sig_atomic_t *is_canceled; /* of client_listen() only; NULL: never */
};

struct client_reply {
    int status;
    struct slice text;      /* in the arena */
    struct json_value json; /* absent when the answer is no JSON object */
};

/* is_repair: opens the folder in spite of unusable stored settings, and reports them on standard error. */
int client_open(const char *data_dir, bool is_repair, struct client **ret, struct err *e) MUST_CHECK;
struct client *client_close(struct client *c);
bool client_is_online(const struct client *c); /* a running service answers */

/* 0 for a 2xx answer. For any other: -EREMOTEIO with the answer's code, text and fields in e; reply is filled too. */
int client_send(struct client *c, struct arena *a, const struct client_request *request, struct client_reply *ret,
                struct err *e) MUST_CHECK;

/* The same from a running service only and without waiting for one: opens no data folder. -EIO NOT_RUNNING when none
 * answers within timeout_ms. */
int client_send_running(const char *data_dir, struct arena *a, const struct client_request *request,
                        struct client_reply *ret, struct err *e) MUST_CHECK;

/* Reads an event stream until the stream ends or on_event returns non-zero, which is then returned. -ENOTCONN when no
 * service runs, -ETIMEDOUT, -ECANCELED; a refusal as client_send(). */
struct client_event {
    const char *name;
    struct json_value data;
};
int client_listen(struct client *c, const struct client_request *request,
                  int (*on_event)(void *arg, const struct client_event *event), void *arg, struct err *e) MUST_CHECK;

/* Management requests of the command line: over <data>/hearth.sock when a service runs, else through the same handlers in this process.
 *
 * One thread. Opened by the first request; a folder that another short command holds for a moment is waited for.
 *
 *     r = client_open(data_dir, false, &client, e);
 *     r = client_ask(client, arena, &(struct client_request){ HTTP_GET, "/api/keys" }, &reply, e);
 */
#pragma once

#include "base/arena.h"
#include "base/json.h"
#include "http/http.h"

struct client;

struct client_request {
    enum http_method method;
    const char *path;                   /* segments percent-encoded */
    const char *query;                  /* "a=b", or NULL */
    struct slice body;                  /* JSON, or empty */
};

struct client_reply {
    int status;
    struct slice text;                  /* in the arena */
    struct json_value json;             /* absent when the answer is no JSON object */
};

/* is_repair: opens the folder in spite of stored settings that cannot be used, and names them on standard error. */
int client_open(const char *data_dir, bool is_repair, struct client **ret, struct err *e) MUST_CHECK;
struct client *client_close(struct client *c);
bool client_is_online(const struct client *c);          /* a service answers */

/* 0 for a 2xx answer. Any other is -EREMOTEIO with the answer's code, text and fields in e; reply is filled all the same. */
int client_ask(struct client *c, struct arena *a, const struct client_request *ask, struct client_reply *ret, struct err *e) MUST_CHECK;

/* Reads an event stream until it ends or on_event returns non-zero, which is then returned. -ENOTCONN when no service runs. */
struct client_event { const char *name; struct json_value data; };
int client_listen(struct client *c, const char *path, int (*on_event)(void *arg, const struct client_event *event), void *arg,
                  struct err *e) MUST_CHECK;

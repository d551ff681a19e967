#include "cli/client.h"

#include "base/clock.h"
#include "base/percent.h"
#include "cli/client_curl.h"
#include "cli/out.h"
#include "http/local.h"
#include "os/lockfile.h"
#include "service/service.h"

#include <unistd.h>

enum {
    CLIENT_PATIENCE_MS = 10000, /* while a service is starting or another command works */
    CLIENT_RETRY_MS = 20,
};

struct client {
    char *socket;            /* owned */
    struct service *service; /* owned; NULL when a running service answers */
};

/* --- open --- */

static int open_offline(struct client *c, const char *data_dir, bool is_repair, struct err *e)
{
    const struct service_config config = { .data_dir = data_dir, .is_repair = is_repair };
    const char *fault;
    int r = service_open_offline(&config, &c->service, e);

    for (size_t i = 0; r == 0 && (fault = service_fault(c->service, i)); i++)
        out_complain("hearth: %s\n", fault);
    return r;
}

static int open_once(struct client *c, const char *data_dir, bool is_repair, struct err *e)
{
    if (lockfile_owner(data_dir) == 0)
        return open_offline(c, data_dir, is_repair, e);
    if (curl_can_connect(c->socket))
        return 0;
    return err_set(e, -EBUSY, "ALREADY_RUNNING",
                   "Another Hearth (pid %d) uses the data folder %.300s and does not answer on its socket",
                   (int)lockfile_owner(data_dir), data_dir);
}

int client_open(const char *data_dir, bool is_repair, struct client **ret, struct err *e)
{
    struct client *c = xcalloc(1, sizeof(*c));
    int64_t deadline_ms = clock_mono_ms() + CLIENT_PATIENCE_MS;
    size_t n = strlen(data_dir) + sizeof("/hearth.sock");
    int r;

    c->socket = xcalloc(1, n);
    snprintf(c->socket, n, "%s/hearth.sock", data_dir);
    while ((r = open_once(c, data_dir, is_repair, e)) == -EBUSY && clock_mono_ms() < deadline_ms) {
        *e = (struct err){ 0 };
        usleep(CLIENT_RETRY_MS * 1000);
    }
    if (r < 0) {
        client_close(c);
        return r;
    }
    *ret = c;
    return 0;
}

struct client *client_close(struct client *c)
{
    if (!c)
        return NULL;
    service_close(c->service);
    free(c->socket);
    free(c);
    return NULL;
}

bool client_is_online(const struct client *c)
{
    return !c->service;
}

/* --- requests --- */

static int send_offline(struct client *c, struct arena *a, const struct client_request *request,
                        struct client_reply *ret, struct err *e)
{
    struct http_exchange *x;
    struct slice reply;
    char *path;
    int r = percent_decode(a, slice_of(request->path), false, &path, e);

    if (r < 0)
        return r;
    x = http_local_new(request->method, path, request->query ? request->query : "", request->body);
    service_request(c->service, x);
    http_local_wait(x, &ret->status, &reply);
    ret->text = (struct slice){ arena_slicedup(a, reply), reply.n };
    http_local_free(x);
    return 0;
}

/* Converts a failure's envelope back to the error that the service had. */
static int take_failure(const struct client_reply *reply, struct err *e)
{
    const char *code = json_cstr(json_get(reply->json, "code")), *text = json_cstr(json_get(reply->json, "error"));
    struct json_value violation;

    for (struct json_iter it = json_iter(json_get(reply->json, "errors")); json_next(&it, NULL, &violation);) {
        const char *field = json_cstr(json_get(violation, "field")), *rule = json_cstr(json_get(violation, "rule"));

        err_add_field(e, field ? field : "", "%s", rule ? rule : "");
    }
    if (!text)
        return err_set(e, -EREMOTEIO, "INTERNAL_ERROR", "The service answered with status %d", reply->status);
    return err_set(e, -EREMOTEIO, code ? code : "INTERNAL_ERROR", "%s", text);
}

static void read_json(struct arena *a, struct client_reply *reply)
{
    if (json_parse(a, reply->text, &reply->json, NULL) < 0 || json_type(reply->json) != JSON_OBJECT)
        reply->json = (struct json_value){ 0 };
}

/* Reads the text of an answer; a failure's becomes e. */
static int read_reply(struct arena *a, struct client_reply *reply, struct err *e)
{
    read_json(a, reply);
    return reply->status / 100 == 2 ? 0 : take_failure(reply, e);
}

int client_send(struct client *c, struct arena *a, const struct client_request *request, struct client_reply *ret,
                struct err *e)
{
    int r = c->service ? send_offline(c, a, request, ret, e) : curl_send(c->socket, a, request, ret, e);

    return r < 0 ? r : read_reply(a, ret, e);
}

int client_send_running(const char *data_dir, struct arena *a, const struct client_request *request,
                        struct client_reply *ret, struct err *e)
{
    int r = curl_send(arena_printf(a, "%s/hearth.sock", data_dir), a, request, ret, e);

    return r < 0 ? r : read_reply(a, ret, e);
}

int client_listen(struct client *c, const struct client_request *request,
                  int (*on_event)(void *arg, const struct client_event *event), void *arg, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct client_reply refusal = { 0 };
    int r;

    if (c->service)
        return err_set(e, -ENOTCONN, "NOT_RUNNING",
                       "No service runs on this data folder; start one with `hearth serve`");
    r = curl_listen(c->socket, a, request, on_event, arg, &refusal, e);
    if (r < 0 || refusal.status == 0)
        return r;
    read_json(a, &refusal);
    return take_failure(&refusal, e);
}

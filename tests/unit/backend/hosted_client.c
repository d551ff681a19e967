/* The realtime client of the hosted backend as a program: a line of standard input is a command, a line of standard
 * output is what the client reports, as JSON. For the tests against our own face and against a server that means harm
 * (tests/peers/hosted_realtime.test.mjs, tests/hostile/hosted_realtime.test.mjs).
 *
 *     hosted_client URL KEY VSN [fast]
 *     watch TABLE [FILTER] | unwatch TABLE | listen TOPIC | private TOPIC | unlisten TOPIC | say TOPIC EVENT JSON
 *     track MACHINE HOST | untrack | list | monitor | settle | token TEXT | signout | quit
 */
#include "backend/hosted/hosted_realtime.h"
#include "backend/hosted/hosted_session.h"
#include "base/hash.h"
#include "base/json_write.h"
#include "base/limits.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { SETTLE_MS = 60000 };

static const struct hosted_times fast = {
    .heartbeat_ms = 300, .reply_ms = 4000, .confirm_ms = 4000, .step_ms = 20, .track_ms = 20
};

struct client {
    struct hosted_realtime *rt;
    pthread_mutex_t lock; /* guards token and the output */
    char *token;          /* owned; NULL: none */
};

static void print_line(struct client *c, struct buf *out)
{
    pthread_mutex_lock(&c->lock);
    printf("%s\n", buf_str(out));
    fflush(stdout);
    pthread_mutex_unlock(&c->lock);
    buf_clear(out);
}

static void begin(struct json_writer *w, struct buf *out, const char *what)
{
    buf_init(out, MIB(16));
    json_write_init(w, out);
    json_begin_object(w);
    json_add_string(w, "is", what);
}

static void on_change(void *arg, const struct hosted_change *change)
{
    struct json_writer w;
    struct buf out;

    begin(&w, &out, "change");
    json_add_string(&w, "table", change->table);
    json_add_string(&w, "op", backend_op_name(change->op));
    json_add_value(&w, "record", change->record);
    json_add_value(&w, "old", change->old_record);
    json_add_string(&w, "at", change->commit_at);
    json_add_int(&w, "ms", change->commit_ms);
    json_add_bool(&w, "cut", change->is_cut);
    json_end(&w);
    print_line(arg, &out);
}

static void on_gap(void *arg, const char *table)
{
    struct json_writer w;
    struct buf out;

    begin(&w, &out, "gap");
    json_add_string(&w, "table", table);
    json_end(&w);
    print_line(arg, &out);
}

static void on_broadcast(void *arg, const char *topic, const char *event, const char *payload_json)
{
    struct json_writer w;
    struct buf out;

    begin(&w, &out, "broadcast");
    json_add_string(&w, "topic", topic);
    json_add_string(&w, "event", event);
    json_add_raw(&w, "payload", payload_json);
    json_end(&w);
    print_line(arg, &out);
}

static void on_presence(void *arg)
{
    struct json_writer w;
    struct buf out;

    begin(&w, &out, "presence");
    json_end(&w);
    print_line(arg, &out);
}

static int give_token(void *arg, const struct net_wait *wait, struct arena *a, struct hosted_token *ret, struct err *e)
{
    struct client *c = arg;

    pthread_mutex_lock(&c->lock);
    ret->text = arena_strdup(a, c->token);
    pthread_mutex_unlock(&c->lock);
    return 0;
}

/* ---- commands ---- */

static void report(struct client *c, const char *what, int r, const struct err *e)
{
    struct json_writer w;
    struct buf out;

    begin(&w, &out, what);
    json_add_int(&w, "r", r);
    json_add_string(&w, "code", r < 0 ? e->code : NULL);
    json_add_string(&w, "text", r < 0 ? e->text : NULL);
    json_end(&w);
    print_line(c, &out);
}

static void show_monitor(struct client *c)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct backend_monitor m;
    struct json_writer w;
    struct buf out;

    hosted_realtime_monitor(c->rt, a, &m);
    begin(&w, &out, "monitor");
    json_add_string(&w, "state", backend_link_state_name(m.state));
    json_add_int(&w, "connects", m.n_connects);
    json_add_int(&w, "ignored", m.n_ignored);
    json_add_string(&w, "error", m.last_error);
    json_begin_array_as(&w, "tables");
    for (size_t i = 0; i < m.n; i++) {
        json_begin_object(&w);
        json_add_string(&w, "table", m.items[i].table);
        json_add_string(&w, "state", backend_link_state_name(m.items[i].state));
        json_add_int(&w, "events", m.items[i].n_events);
        json_add_int(&w, "gaps", m.items[i].n_gaps);
        json_add_int(&w, "retries", m.items[i].n_retries);
        json_add_int(&w, "lag", m.items[i].lag_ms);
        json_add_string(&w, "error", m.items[i].last_error);
        json_end(&w);
    }
    json_end(&w);
    json_end(&w);
    print_line(c, &out);
}

static void show_list(struct client *c)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct backend_presences list = { 0 };
    struct err e = { 0 };
    struct json_writer w;
    struct buf out;
    int r = hosted_realtime_presences(c->rt, a, &list, &e);

    begin(&w, &out, "list");
    json_add_string(&w, "code", r < 0 ? e.code : NULL);
    json_begin_array_as(&w, "machines");
    for (size_t i = 0; i < list.n; i++) {
        json_begin_object(&w);
        json_add_string(&w, "machine_id", list.items[i].machine_id);
        json_add_string(&w, "hostname", list.items[i].hostname);
        json_add_string(&w, "instance", list.items[i].instance);
        json_end(&w);
    }
    json_end(&w);
    json_end(&w);
    print_line(c, &out);
}

static void set_token(struct client *c, const char *text)
{
    pthread_mutex_lock(&c->lock);
    free(c->token);
    c->token = text ? xstrdup(text) : NULL;
    pthread_mutex_unlock(&c->lock);
    hosted_realtime_renew(c->rt);
}

static int want(struct client *c, const char *verb, const char *what, char *rest, struct err *e)
{
    const struct net_wait wait = net_wait_of(SETTLE_MS, NULL, NULL);
    char *event = rest ? strsep(&rest, " ") : NULL;

    if (strcmp(verb, "watch") == 0)
        return hosted_realtime_watch(c->rt, what, event, e);
    if (strcmp(verb, "listen") == 0 || strcmp(verb, "private") == 0)
        return hosted_realtime_listen(c->rt, what, *verb == 'p', e);
    if (strcmp(verb, "say") == 0)
        return hosted_realtime_broadcast(
            c->rt, &(struct hosted_broadcast){ .topic = what, .event = event, .payload_json = rest }, e);
    if (strcmp(verb, "track") == 0)
        return hosted_realtime_track(
            c->rt, &(struct backend_presence){ .machine_id = what, .hostname = event, .instance = "one" }, e);
    if (strcmp(verb, "settle") == 0)
        return hosted_realtime_settle(c->rt, &wait, e);
    return 0;
}

static void obey(struct client *c, char *line)
{
    const char *verb = strsep(&line, " "), *what = line ? strsep(&line, " ") : "";
    struct err e = { 0 };
    int r = want(c, verb, what, line, &e);

    if (strcmp(verb, "unwatch") == 0)
        hosted_realtime_unwatch(c->rt, what, NULL);
    else if (strcmp(verb, "unlisten") == 0)
        hosted_realtime_unlisten(c->rt, what);
    else if (strcmp(verb, "untrack") == 0)
        hosted_realtime_untrack(c->rt);
    else if (strcmp(verb, "token") == 0)
        set_token(c, what);
    else if (strcmp(verb, "signout") == 0)
        set_token(c, NULL);
    if (strcmp(verb, "monitor") == 0)
        show_monitor(c);
    else if (strcmp(verb, "list") == 0)
        show_list(c);
    else
        report(c, verb, r, &e);
}

static int serve(struct client *c)
{
    char *line = NULL;
    size_t size = 0;
    ssize_t n;

    while ((n = getline(&line, &size, stdin)) > 0) {
        line[n - 1] = '\0';
        if (strcmp(line, "quit") == 0)
            break;
        obey(c, line);
    }
    free(line);
    return 0;
}

int main(int argc, char **argv)
{
    struct client c = { .lock = PTHREAD_MUTEX_INITIALIZER };
    struct hosted_realtime_config config = {
        .abbr = "svc",
        .token = give_token,
        .on_change = on_change,
        .on_gap = on_gap,
        .on_broadcast = on_broadcast,
        .on_presence = on_presence,
        .arg = &c,
    };
    struct err e = { 0 };

    if (argc < 4 || hash_init(&e) < 0)
        return 2;
    config.url = argv[1];
    config.key = argv[2];
    config.is_v1 = strcmp(argv[3], "1.0.0") == 0;
    config.times = argc > 4 ? &fast : NULL;
    if (hosted_realtime_open(&config, &c.rt, &e) < 0) {
        fprintf(stderr, "%s\n", e.text);
        return 1;
    }
    serve(&c);
    hosted_realtime_close(c.rt);
    free(c.token);
    return 0;
}

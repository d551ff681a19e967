/* hearth mcp serve: MCP over standard input and output for programs that start their servers. Each line is one request
 * to /mcp of the running service, over its Unix socket; the frames of the answers are lines of standard output.
 *
 * The main thread reads lines. A request has a thread of its own, so that a long one holds up no other; notifications
 * are sent in their order. After `initialize` one more thread reads the session's notifications. A service that was
 * started anew has forgotten the session: it is made again, and the request is sent once more. */
#include "base/base64.h"
#include "base/cond.h"
#include "base/clock.h"
#include "base/json_rpc.h"
#include "base/limits.h"
#include "base/thread.h"
#include "cli/client_curl.h"
#include "cli/key_input.h"
#include "cli/out.h"
#include "cli/request.h"
#include "cli/special.h"

#include <openssl/crypto.h>
#include <stdlib.h>

const struct cli_option mcp_serve_options[] = {
    { "--app", .value = "APP", .help = "as this app, with its grants; otherwise as you, who may do everything" },
    { "--key-file", .value = "FILE", .help = "with the developer key in this file" },
    { .name = NULL },
};

#define META_VERSION "io.modelcontextprotocol/protocolVersion"

enum { MAX_HEADERS = 10, LAST_ANSWERS_US = 1500000, STREAM_RETRY_US = 1000000, NOT_RUNNING = -32000 };

struct bridge;

/* One request under way, in a list of its bridge. */
struct under_way {
    struct under_way *next;
    struct bridge *bridge;
    struct arena *arena; /* owned; of the line and the frame */
    struct slice line;
    struct json_rpc_frame frame;
    bool is_batch, is_answered;
    atomic_bool is_canceled;
};

struct bridge {
    const char *socket, *app; /* app NULL: the administrator */
    const char *key;          /* NULL: none */
    pthread_mutex_t output;   /* one frame at a time */
    pthread_mutex_t lock;     /* guards what follows */
    pthread_cond_t changed;
    struct under_way *first;
    size_t n_under_way;
    char session_id[64];
    char *handshake; /* owned; the line with `initialize`; NULL: none yet */
    bool has_stream;
    atomic_bool is_ending; /* also cancels the stream of notifications */
};

/* --- output --- */

static void write_frame(struct bridge *b, struct slice frame)
{
    pthread_mutex_lock(&b->output);
    out_json(frame);
    out_lines(stdout, SLICE_LIT("\n"));
    fflush(stdout);
    pthread_mutex_unlock(&b->output);
}

static void write_error(struct bridge *b, const struct json_rpc_id *id, int code, const char *text,
                        struct json_value data)
{
    struct buf out;

    buf_init(&out, LIMIT_REPLY);
    json_rpc_write_error(&out, id, code, text, data);
    write_frame(b, buf_slice(&out));
    buf_clear(&out);
}

/* --- headers --- */

struct headers {
    const char *items[MAX_HEADERS];
    size_t n;
};

static void add_header(struct headers *h, struct arena *a, const char *name, const char *value)
{
    if (value && *value)
        h->items[h->n++] = arena_printf(a, "%s: %s", name, value);
}

/* Text that is no plain ASCII is sent as base64 (revision 2026-07-28, "Transports"). */
static const char *header_value(struct arena *a, struct slice text)
{
    bool is_plain = text.n > 0 && text.p[0] != ' ' && text.p[text.n - 1] != ' ';
    struct buf out;

    for (size_t i = 0; i < text.n; i++)
        is_plain = is_plain && text.p[i] >= ' ' && text.p[i] <= '~';
    if (is_plain)
        return arena_slicedup(a, text);
    buf_init(&out, LIMIT_HEADER_BYTES);
    buf_add_str(&out, "=?base64?");
    base64_encode(&out, text);
    buf_add_str(&out, "?=");
    return buf_to_arena(&out, a);
}

static struct headers caller_headers(const struct bridge *b, struct arena *a)
{
    struct headers h = { .n = 0 };

    add_header(&h, a, "accept", "application/json, text/event-stream");
    add_header(&h, a, "x-app-id", b->app);
    add_header(&h, a, "x-api-key", b->key);
    return h;
}

/* A string in a frame of the stateless era. */
static struct json_value claimed_version(const struct json_rpc_frame *frame)
{
    return frame ? json_get(json_get(frame->params, "_meta"), META_VERSION) : (struct json_value){ 0 };
}

/* Those of the stateless era repeat the frame. */
static void add_frame_headers(struct headers *h, struct arena *a, const struct json_rpc_frame *frame)
{
    const char *claim = json_cstr(claimed_version(frame));
    struct json_value name = json_get(frame->params, "name"), uri = json_get(frame->params, "uri");

    if (!claim || !frame->method)
        return;
    add_header(h, a, "mcp-protocol-version", header_value(a, slice_of(claim)));
    add_header(h, a, "mcp-method", header_value(a, slice_of(frame->method)));
    if (json_type(name) == JSON_STRING || json_type(uri) == JSON_STRING)
        add_header(h, a, "mcp-name", header_value(a, json_string(json_type(name) == JSON_STRING ? name : uri)));
}

static struct headers headers_of(struct bridge *b, struct arena *a, const struct json_rpc_frame *frame)
{
    struct headers h = caller_headers(b, a);

    if (frame)
        add_frame_headers(&h, a, frame);
    if (json_type(claimed_version(frame)) == JSON_STRING)
        return h;
    pthread_mutex_lock(&b->lock);
    add_header(&h, a, "mcp-session-id", b->session_id);
    pthread_mutex_unlock(&b->lock);
    return h;
}

/* --- one request --- */

static void drop_frame(void *arg, struct slice frame)
{
    /* What answers a handshake that is repeated is known already. */
}

static int send_line(struct bridge *b, struct slice line, struct curl_frames *frames, struct err *e)
{
    const struct client_request request = { .method = HTTP_POST, .path = "/mcp", .body = line };

    return curl_read_frames(b->socket, &request, frames, e);
}

/* Makes the session again: the service was started anew, or the session was idle for too long. */
static int renew_session(struct bridge *b, const char *lost)
{
    struct curl_frames frames = { .on_frame = drop_frame, .is_canceled = &b->is_ending };
    AUTO(arena_freep) struct arena *a = arena_new();
    struct headers h = caller_headers(b, a);
    const char *line;
    bool is_lost;
    int r = 0;

    pthread_mutex_lock(&b->lock);
    is_lost = strcmp(b->session_id, lost) == 0;
    line = b->handshake ? arena_strdup(a, b->handshake) : NULL;
    pthread_mutex_unlock(&b->lock);
    if (!line)
        return -ENOENT;
    if (!is_lost)
        return 0; /* another thread was faster */
    frames.headers = h.items;
    frames.n_headers = h.n;
    r = send_line(b, slice_of(line), &frames, NULL);
    if (r < 0 || frames.status != 200 || !*frames.session_id)
        return -ENOENT;
    pthread_mutex_lock(&b->lock);
    snprintf(b->session_id, sizeof(b->session_id), "%s", frames.session_id);
    pthread_mutex_unlock(&b->lock);
    return 0;
}

struct answer {
    struct under_way *u;
    struct buf refusal; /* an answer that names no id: a refusal before the frame was read */
};

static void take_answer(void *arg, struct slice frame)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct answer *answer = arg;
    struct json_rpc_frame read;

    if (!answer->u->is_batch && json_rpc_read(a, frame, LIMIT_REPLY, &read, NULL) == 0 && read.kind == JSON_RPC_ERROR &&
        read.id.kind == JSON_RPC_ID_ABSENT) {
        buf_reset(&answer->refusal);
        buf_add_slice(&answer->refusal, frame);
        return;
    }
    write_frame(answer->u->bridge, frame);
    answer->u->is_answered = true;
}

static bool expects_answer(const struct under_way *u)
{
    return !u->is_batch && u->frame.kind == JSON_RPC_REQUEST && !u->is_answered;
}

/* Gives a refusal the id of its request. */
static void write_refusal(struct under_way *u, const struct answer *answer, const struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct json_rpc_frame refusal;

    if (!expects_answer(u) || atomic_load(&u->is_canceled))
        return;
    if (answer->refusal.n > 0 && json_rpc_read(a, buf_slice(&answer->refusal), LIMIT_REPLY, &refusal, NULL) == 0)
        write_error(u->bridge, &u->frame.id, (int)refusal.error.code, arena_slicedup(a, refusal.error.message),
                    refusal.error.data);
    else
        write_error(u->bridge, &u->frame.id, NOT_RUNNING, *e->text ? e->text : "The service gave no answer",
                    (struct json_value){ 0 });
}

static int send_once(struct under_way *u, struct answer *answer, char used_session[64], struct curl_frames *frames,
                     struct err *e)
{
    struct bridge *b = u->bridge;
    struct headers h = headers_of(b, u->arena, u->is_batch ? NULL : &u->frame);

    pthread_mutex_lock(&b->lock);
    memcpy(used_session, b->session_id, sizeof(b->session_id));
    pthread_mutex_unlock(&b->lock);
    *frames = (struct curl_frames){
        .headers = h.items, .n_headers = h.n, .on_frame = take_answer, .arg = answer, .is_canceled = &u->is_canceled
    };
    return send_line(b, u->line, frames, e);
}

static void send_request(struct under_way *u, struct curl_frames *ret_frames)
{
    struct answer answer = { .u = u };
    struct err e = { 0 };
    char session_id[64];
    int r;

    buf_init(&answer.refusal, LIMIT_REPLY);
    r = send_once(u, &answer, session_id, ret_frames, &e);
    if (r == 0 && ret_frames->status == 404 && *session_id && answer.refusal.n > 0 &&
        renew_session(u->bridge, session_id) == 0) {
        buf_reset(&answer.refusal);
        (void)!send_once(u, &answer, session_id, ret_frames, &e);
    }
    write_refusal(u, &answer, &e);
    buf_clear(&answer.refusal);
}

/* --- requests under way --- */

static void free_under_way(struct under_way *u)
{
    arena_free(u->arena);
    free(u);
}

static void leave(struct under_way *u)
{
    struct bridge *b = u->bridge;
    struct under_way **at = &b->first;

    pthread_mutex_lock(&b->lock);
    while (*at != u)
        at = &(*at)->next;
    *at = u->next;
    b->n_under_way--;
    pthread_cond_signal(&b->changed);
    pthread_mutex_unlock(&b->lock);
    free_under_way(u);
}

static void *request_main(void *arg)
{
    struct curl_frames frames;

    send_request(arg, &frames);
    OPENSSL_thread_stop(); /* what libcurl left for this thread: after leave() the program may end first */
    leave(arg);
    return NULL;
}

static bool enter(struct under_way *u)
{
    struct bridge *b = u->bridge;
    bool has_room;

    pthread_mutex_lock(&b->lock);
    has_room = b->n_under_way < LIMIT_MCP_BRIDGE_CALLS;
    if (has_room) {
        u->next = b->first;
        b->first = u;
        b->n_under_way++;
    }
    pthread_mutex_unlock(&b->lock);
    return has_room;
}

static void start_request(struct under_way *u)
{
    pthread_t thread;

    if (!enter(u)) {
        write_error(u->bridge, &u->frame.id, NOT_RUNNING, "Too many requests wait for their answers",
                    (struct json_value){ 0 });
        free_under_way(u);
        return;
    }
    if (thread_start(&thread, "mcp request", request_main, u) == 0)
        pthread_detach(thread);
    else
        request_main(u);
}

/* In the stateless era a request is cancelled by ending its transfer; in a session the service is told as well. */
static void cancel(struct bridge *b, const struct json_rpc_frame *frame)
{
    struct json_rpc_id id = json_rpc_id_from(json_get(frame->params, "requestId"));

    pthread_mutex_lock(&b->lock);
    for (struct under_way *u = b->first; u; u = u->next)
        if (!u->is_batch && json_rpc_id_eq(&u->frame.id, &id) && !*b->session_id)
            atomic_store(&u->is_canceled, true);
    pthread_mutex_unlock(&b->lock);
}

/* --- the session --- */

static void write_notification(void *arg, struct slice frame)
{
    write_frame(arg, frame);
}

/* Reads the session's notifications until the end; tries again while the service is away. */
static void *stream_main(void *arg)
{
    const struct client_request request = { .method = HTTP_GET, .path = "/mcp" };
    struct bridge *b = arg;

    while (!atomic_load(&b->is_ending)) {
        AUTO(arena_freep) struct arena *a = arena_new();
        struct headers h = headers_of(b, a, NULL);
        struct curl_frames frames = {
            .headers = h.items, .n_headers = h.n, .on_frame = write_notification, .arg = b, .is_canceled = &b->is_ending
        };

        (void)!curl_read_frames(b->socket, &request, &frames, NULL);
        pthread_mutex_lock(&b->lock);
        if (!atomic_load(&b->is_ending))
            cond_wait_until(&b->changed, &b->lock, clock_mono_us() + STREAM_RETRY_US);
        pthread_mutex_unlock(&b->lock);
    }
    OPENSSL_thread_stop();
    pthread_mutex_lock(&b->lock);
    b->has_stream = false;
    pthread_cond_signal(&b->changed);
    pthread_mutex_unlock(&b->lock);
    return NULL;
}

static void start_stream(struct bridge *b)
{
    pthread_t thread;

    if (b->has_stream)
        return;
    b->has_stream = true;
    if (thread_start(&thread, "mcp stream", stream_main, b) == 0)
        pthread_detach(thread);
    else
        b->has_stream = false;
}

/* `initialize` is answered before the next line is read: what follows needs its session. */
static void begin_session(struct under_way *u)
{
    struct bridge *b = u->bridge;
    struct curl_frames frames;

    pthread_mutex_lock(&b->lock);
    b->session_id[0] = '\0';
    free(b->handshake);
    b->handshake = xstrdup(u->line.p);
    pthread_mutex_unlock(&b->lock);
    send_request(u, &frames);
    pthread_mutex_lock(&b->lock);
    snprintf(b->session_id, sizeof(b->session_id), "%s", frames.session_id);
    pthread_mutex_unlock(&b->lock);
    if (*frames.session_id)
        start_stream(b);
}

static void end_session(struct bridge *b)
{
    const struct client_request request = { .method = HTTP_DELETE, .path = "/mcp", .timeout_ms = 1000 };
    AUTO(arena_freep) struct arena *a = arena_new();
    static const atomic_bool never;
    struct headers h = headers_of(b, a, NULL);
    struct curl_frames frames = { .headers = h.items, .n_headers = h.n, .on_frame = drop_frame, .is_canceled = &never };

    if (*b->session_id)
        (void)!curl_read_frames(b->socket, &request, &frames, NULL);
}

/* --- lines --- */

static void take_single(struct under_way *u)
{
    struct curl_frames frames;

    if (u->frame.kind == JSON_RPC_REQUEST && strcmp(u->frame.method, "initialize") == 0) {
        begin_session(u);
        free_under_way(u);
    } else if (u->frame.kind == JSON_RPC_REQUEST) {
        start_request(u);
    } else {
        if (u->frame.kind == JSON_RPC_NOTIFICATION && strcmp(u->frame.method, "notifications/cancelled") == 0)
            cancel(u->bridge, &u->frame);
        send_request(u, &frames);
        free_under_way(u);
    }
}

static void take_line(struct bridge *b, struct slice line)
{
    struct under_way *u = xcalloc(1, sizeof(*u));
    struct json_value v;
    struct json_rpc_id id;
    struct err e = { 0 };
    int r;

    u->bridge = b;
    u->arena = arena_new();
    u->line = (struct slice){ arena_slicedup(u->arena, line), line.n };
    r = json_parse(u->arena, u->line, &v, &e);
    u->is_batch = r == 0 && json_type(v) == JSON_ARRAY;
    if (r == 0 && !u->is_batch)
        r = json_rpc_read_value(v, &u->frame, &e);
    if (r == 0) {
        if (u->is_batch)
            start_request(u);
        else
            take_single(u);
        return;
    }
    id = json_rpc_code(&e) == JSON_RPC_INVALID_REQUEST ? json_rpc_id_of(v) : (struct json_rpc_id){ 0 };
    write_error(b, &id, json_rpc_code(&e), e.text, (struct json_value){ 0 });
    free_under_way(u);
}

/* Reads lines until the end of standard input. A line above LIMIT_MCP_BRIDGE_FRAME is dropped and told so. */
static void read_lines(struct bridge *b)
{
    struct buf line;
    int c;

    buf_init(&line, LIMIT_MCP_BRIDGE_FRAME);
    while ((c = getc_unlocked(stdin)) != EOF) {
        if (c != '\n') {
            buf_add_char(&line, (char)c);
            continue;
        }
        if (line.overflowed)
            write_error(b, &(struct json_rpc_id){ 0 }, JSON_RPC_PARSE_ERROR, "The line is too long",
                        (struct json_value){ 0 });
        else if (line.n > 0 && !(line.n == 1 && line.p[0] == '\r'))
            take_line(b, buf_slice(&line));
        buf_reset(&line);
    }
    buf_clear(&line);
}

/* The answers of requests that were sent may still come; then what is left ends. */
static void finish(struct bridge *b)
{
    int64_t until_us = clock_mono_us() + LAST_ANSWERS_US;

    pthread_mutex_lock(&b->lock);
    while (b->first && cond_wait_until(&b->changed, &b->lock, until_us))
        ;
    for (struct under_way *u = b->first; u; u = u->next)
        atomic_store(&u->is_canceled, true);
    pthread_mutex_unlock(&b->lock);
    end_session(b); /* which ends its stream as well */
    pthread_mutex_lock(&b->lock);
    atomic_store(&b->is_ending, true);
    pthread_cond_broadcast(&b->changed);
    while (b->first || b->has_stream)
        cond_wait_until(&b->changed, &b->lock, clock_mono_us() + LAST_ANSWERS_US);
    pthread_mutex_unlock(&b->lock);
}

static int read_key_file(struct cli *cli, const char **ret, struct err *e)
{
    const char *path = cli_value(cli, "--key-file");
    struct slice text;
    int r = path ? cli_read_file(cli, path, LIMIT_KEY_IMPORT_MAX + 2, &text, e) : 0;

    if (r == 0 && path)
        *ret = cli_trimmed(cli->arena, text);
    return r;
}

static int read_who(struct cli *cli, struct bridge *b, struct err *e)
{
    const char *app = cli_value(cli, "--app");
    struct client *client;
    int r = cli_client(cli, &client, e); /* refuses when no service runs */

    if (r == 0 && app)
        r = cli_app_id(cli, app, &b->app, e);
    return r < 0 ? r : read_key_file(cli, &b->key, e);
}

int run_mcp_serve(struct cli *cli, struct err *e)
{
    struct bridge b = { .socket = arena_printf(cli->arena, "%s/hearth.sock", cli->data_dir) };
    int r = read_who(cli, &b, e);

    if (r < 0)
        return r;
    pthread_mutex_init(&b.output, NULL);
    pthread_mutex_init(&b.lock, NULL);
    cond_init(&b.changed);
    read_lines(&b);
    finish(&b);
    free(b.handshake);
    pthread_cond_destroy(&b.changed);
    pthread_mutex_destroy(&b.lock);
    pthread_mutex_destroy(&b.output);
    return 0;
}

#include "net/websocket.h"

#include "base/clock.h"
#include "base/limits.h"
#include "base/utf8.h"
#include "base/websocket_frames.h"
#include "base/websocket_key.h"
#include "net/plain.h"
#include "net/transfer.h"
#include "net/url.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum {
    READ_BYTES = 16 << 10,
    STEP_READS = 64, /* of one step: a server that never pauses does not keep its caller from other work */
    CONNECT_BUFFER = 1 << 10,
    FLAG_POLL_MS = 50, /* interval at which the flags of the wait are checked */
    REFUSAL_BYTES = 2 << 10,
    REFUSAL_SHOWN = 200,
    OK_STATUS = 101,
    HTTP_PORT = 80,
    HTTPS_PORT = 443,
};

struct net_websocket {
    struct transfer transfer; /* of the connection and the head of its answer */
    CURLM *multi;             /* owned; for the whole life, because others wake it */
    net_websocket_fn *on_message;
    void *arg;
    struct websocket_reader *reader; /* owned; NULL: not open */
    struct buf out;                  /* bytes not yet sent */
    struct buf refusal;              /* the body of an answer that is no upgrade */
    bool is_attached;                /* the handle belongs to multi */
    bool has_more;                   /* the last step did not read all that has come */
};

struct net_websocket *net_websocket_new(net_websocket_fn *on_message, void *arg)
{
    struct net_websocket *w = xcalloc(1, sizeof(*w));

    transfer_setup();
    w->multi = curl_multi_init();
    w->on_message = on_message;
    w->arg = arg;
    buf_init(&w->out, LIMIT_SOCKET_WAITING);
    buf_init(&w->refusal, REFUSAL_BYTES);
    return w;
}

struct net_websocket *net_websocket_free(struct net_websocket *w)
{
    if (!w)
        return NULL;
    net_websocket_drop(w);
    curl_multi_cleanup(w->multi);
    free(w);
    return NULL;
}

void net_websocket_drop(struct net_websocket *w)
{
    if (w->is_attached)
        curl_multi_remove_handle(w->multi, w->transfer.easy); /* closes the connection */
    transfer_clear(&w->transfer);
    w->transfer = (struct transfer){ 0 };
    w->reader = websocket_reader_free(w->reader);
    w->is_attached = w->has_more = false;
    buf_clear(&w->out);
    buf_clear(&w->refusal);
}

void net_websocket_wake(struct net_websocket *w)
{
    curl_multi_wakeup(w->multi);
}

/* ---- the connection ---- */

static int poll_ms(const struct net_wait *wait, int64_t left_ms)
{
    return (int)(wait->is_gone || wait->is_leaving ? MIN(left_ms, (int64_t)FLAG_POLL_MS) : left_ms);
}

static int connect_to(struct net_websocket *w, const struct net_wait *wait, struct err *e)
{
    int n_running = 1;
    int64_t left_ms;

    for (;;) {
        if (curl_multi_perform(w->multi, &n_running) != CURLM_OK)
            return err_set(e, -EIO, "INTERNAL_ERROR", "libcurl could not go on with a connection.");
        if (n_running == 0)
            return transfer_result(&w->transfer, transfer_code_of(w->multi), e);
        left_ms = net_wait_left(wait, e);
        if (left_ms < 0)
            return (int)left_ms;
        curl_multi_poll(w->multi, NULL, 0, poll_ms(wait, left_ms), NULL);
    }
}

/* Ready to be read, or to be written while bytes wait to be sent. Ended by net_websocket_wake(). */
static void wait_for_socket(struct net_websocket *w, int64_t wait_ms)
{
    struct curl_waitfd on = { .events = CURL_WAIT_POLLIN };

    if (curl_easy_getinfo(w->transfer.easy, CURLINFO_ACTIVESOCKET, &on.fd) != CURLE_OK || on.fd == CURL_SOCKET_BAD)
        return;
    if (w->out.n > 0)
        on.events |= CURL_WAIT_POLLOUT;
    curl_multi_poll(w->multi, &on, 1, (int)MIN(wait_ms, (int64_t)INT32_MAX), NULL);
}

static int err_closed(struct net_websocket *w, struct err *e)
{
    return err_set(e, -ECONNRESET, "UPSTREAM_CLOSED", "%s closed the connection.", w->transfer.peer);
}

/* Sends as much as the socket takes. */
static int flush(struct net_websocket *w, struct err *e)
{
    size_t n = 0;

    while (w->out.n > 0) {
        CURLcode code = curl_easy_send(w->transfer.easy, w->out.p, w->out.n, &n);

        if (code == CURLE_AGAIN)
            return 0;
        if (code != CURLE_OK)
            return err_closed(w, e);
        buf_consume(&w->out, n);
    }
    return 0;
}

/* *ret_n 0: nothing has come. */
static int receive(struct net_websocket *w, char *to, size_t *ret_n, struct err *e)
{
    CURLcode code = curl_easy_recv(w->transfer.easy, to, READ_BYTES, ret_n);

    if (code == CURLE_AGAIN) {
        *ret_n = 0;
        return 0;
    }
    return code != CURLE_OK || *ret_n == 0 ? err_closed(w, e) : 0;
}

/* ---- the handshake (RFC 6455 section 4.1) ---- */

static size_t take_refusal(struct transfer *t, struct slice bytes)
{
    struct net_websocket *w = CONTAINER_OF(t, struct net_websocket, transfer);

    buf_add(&w->refusal, bytes.p, MIN(bytes.n, (size_t)REFUSAL_BYTES - w->refusal.n));
    return bytes.n;
}

static char *after_method(struct arena *a, const char *url, struct err *e)
{
    struct url to;
    char *target;
    bool is_v6;

    if (url_parse(a, url, &to, e) < 0 || url_target(a, url, &target, e) < 0)
        return NULL;
    is_v6 = strchr(to.host, ':');
    if (to.port == (to.is_tls ? HTTPS_PORT : HTTP_PORT))
        return arena_printf(a, " %s HTTP/1.1\r\nHost: %s%s%s\r\n", target, is_v6 ? "[" : "", to.host, is_v6 ? "]" : "");
    return arena_printf(a, " %s HTTP/1.1\r\nHost: %s%s%s:%u\r\n", target, is_v6 ? "[" : "", to.host, is_v6 ? "]" : "",
                        to.port);
}

static int write_request(struct net_websocket *w, const struct http_call_request *request, const char *key,
                         struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    const struct http_call_header own[] = { { "Connection", "Upgrade" },
                                            { "Upgrade", "websocket" },
                                            { "Sec-WebSocket-Version", "13" },
                                            { "Sec-WebSocket-Key", key } };
    struct http_call_header *headers = arena_array(a, request->n_headers + ARRAY_SIZE(own), sizeof(*headers));
    struct http_call_request upgrade = { .method = "GET", .headers = headers };
    const char *line = after_method(a, request->url, e);
    struct buf head;
    int r;

    if (!line)
        return -EINVAL;
    memcpy(headers, own, sizeof(own));
    if (request->n_headers > 0)
        memcpy(headers + ARRAY_SIZE(own), request->headers, request->n_headers * sizeof(*headers));
    upgrade.n_headers = request->n_headers + ARRAY_SIZE(own);
    r = plain_write_head(&head, &upgrade, line, e);
    buf_add_slice(&w->out, buf_slice(&head));
    buf_clear(&head);
    return r;
}

/* Waits for the head; the bytes after it are left in `rest`. */
static int read_head(struct net_websocket *w, struct plain_reader *reader, const struct net_wait *wait,
                     struct buf *rest, struct err *e)
{
    char bytes[READ_BYTES];
    int r = 0;

    while (r == 0 && !reader->is_complete && w->transfer.stop == 0) {
        int64_t left_ms = net_wait_left(wait, e);
        size_t n = 0, used;

        if (left_ms < 0)
            return (int)left_ms;
        r = flush(w, e);
        if (r == 0)
            r = receive(w, bytes, &n, e);
        if (r == 0 && n == 0)
            wait_for_socket(w, poll_ms(wait, left_ms));
        used = n > 0 ? plain_reader_feed(reader, (struct slice){ bytes, n }) : 0;
        buf_add(rest, bytes + used, n - used);
    }
    if (r < 0 && w->transfer.is_answered) /* a body that the end of the connection delimits */
        return 0;
    return r < 0 ? r : transfer_result(&w->transfer, CURLE_OK, e);
}

/* Is `wanted` one of the names that the header lists? */
static bool lists(const struct http_answer *head, const char *name, const char *wanted)
{
    const char *value = http_answer_header(head, name);
    size_t n;

    for (; value && *value; value += n + (value[n] == ',')) {
        value += strspn(value, " \t");
        n = strcspn(value, ",");
        if (strncasecmp(value, wanted, strlen(wanted)) == 0 &&
            value[strlen(wanted) + strspn(value + strlen(wanted), " \t")] == value[n])
            return true;
    }
    return false;
}

/* A person reads the text: control characters become spaces. */
static const char *shown_body(struct arena *a, const struct buf *body)
{
    struct slice text = buf_slice(body);
    char *shown;

    if (text.n == 0 || !utf8_is_valid(text))
        return "";
    text = utf8_head(text, REFUSAL_SHOWN);
    shown = arena_slicedup(a, text);
    for (char *c = shown; *c; c++)
        if ((unsigned char)*c < ' ')
            *c = ' ';
    return shown;
}

static int check_head(struct net_websocket *w, const char *key, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    const struct http_answer *head = &w->transfer.head;
    const char *accept = http_answer_header(head, "sec-websocket-accept");
    struct buf wanted;
    bool is_right;
    int r;

    if (head->status != OK_STATUS)
        return err_set(e, -EBADMSG, "UPSTREAM_INVALID", "%s refused the WebSocket with the status %d. %s",
                       w->transfer.peer, head->status, shown_body(a, &w->refusal));
    buf_init(&wanted, KIB(1));
    r = websocket_accept(&wanted, key, e);
    is_right = accept && strcmp(accept, buf_str(&wanted)) == 0 && lists(head, "upgrade", "websocket") &&
               lists(head, "connection", "upgrade") && !http_answer_header(head, "sec-websocket-extensions") &&
               !http_answer_header(head, "sec-websocket-protocol");
    buf_clear(&wanted);
    if (r < 0 || is_right)
        return r;
    return err_set(e, -EBADMSG, "UPSTREAM_INVALID",
                   "%s did not answer the WebSocket handshake as RFC 6455 section 4.2.2 asks.", w->transfer.peer);
}

static int take_bytes(struct net_websocket *w, struct slice bytes, struct err *e);

static int shake_hands(struct net_websocket *w, const struct http_call_request *request, const struct net_wait *wait,
                       struct err *e)
{
    struct plain_reader reader = { 0 };
    struct buf key, rest;
    int r;

    buf_init(&key, KIB(1));
    buf_init(&rest, READ_BYTES);
    websocket_key(&key);
    plain_reader_init(&reader, &w->transfer);
    reader.takes_switch = true;
    r = write_request(w, request, buf_str(&key), e);
    if (r == 0)
        r = read_head(w, &reader, wait, &rest, e);
    if (r == 0)
        r = check_head(w, buf_str(&key), e);
    if (r == 0 && rest.n > 0)
        r = take_bytes(w, buf_slice(&rest), e);
    plain_reader_clear(&reader);
    buf_clear(&key);
    buf_clear(&rest);
    return r;
}

/* ---- open ---- */

static bool deliver(void *arg, bool is_binary, struct slice message)
{
    struct net_websocket *w = arg;

    w->on_message(w->arg, is_binary, message);
    return true;
}

static int prepare(struct net_websocket *w, const struct http_call_request *request, struct err *e)
{
    const struct http_call_request connection = {
        .method = "GET", .url = request->url, .connect_ms = request->connect_ms, .guard = request->guard
    };
    const struct websocket_reader_config config = { .side = WEBSOCKET_CLIENT, .on_message = deliver, .arg = w };
    int r = transfer_init(&w->transfer, curl_easy_init(), &connection, CONNECT_BUFFER, e);

    if (r < 0)
        return r;
    w->transfer.on_bytes = take_refusal;
    curl_easy_setopt(w->transfer.easy, CURLOPT_CONNECT_ONLY, 1L);
    curl_easy_setopt(w->transfer.easy, CURLOPT_HTTPPROXYTUNNEL, 1L);
    curl_easy_setopt(w->transfer.easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
    w->is_attached = curl_multi_add_handle(w->multi, w->transfer.easy) == CURLM_OK;
    w->reader = websocket_reader_new(&config);
    return w->is_attached && w->reader
               ? 0
               : err_set(e, -ENOMEM, "OUT_OF_MEMORY", "There is no memory for another WebSocket now.");
}

int net_websocket_open(struct net_websocket *w, const struct http_call_request *request, const struct net_wait *wait,
                       struct err *e)
{
    int r;

    net_websocket_drop(w);
    r = prepare(w, request, e);
    if (r == 0)
        r = connect_to(w, wait, e);
    if (r == 0)
        r = shake_hands(w, request, wait, e);
    if (r < 0)
        net_websocket_drop(w);
    return r;
}

/* ---- messages ---- */

int net_websocket_send(struct net_websocket *w, bool is_binary, struct slice message, struct err *e)
{
    struct buf frame;
    int r = 0;

    buf_init(&frame, LIMIT_SOCKET_WAITING);
    websocket_write_message(&frame, WEBSOCKET_CLIENT, is_binary, message);
    if (!w->reader)
        r = err_set(e, -ECONNRESET, "UPSTREAM_CLOSED", "The connection is closed.");
    else if (frame.overflowed || w->out.n + frame.n > LIMIT_SOCKET_WAITING)
        r = err_set(e, -EAGAIN, "OVERLOADED", "%s has left too much unread; try again later.", w->transfer.peer);
    else
        buf_add_slice(&w->out, buf_slice(&frame));
    buf_clear(&frame);
    return r;
}

/* Frames that answer the server's (pongs, a close) are queued; more of them than may wait end the connection. */
static int take_bytes(struct net_websocket *w, struct slice bytes, struct err *e)
{
    unsigned code;

    websocket_reader_feed(w->reader, bytes, &w->out);
    if (w->out.overflowed)
        return err_closed(w, e);
    if (!websocket_reader_is_over(w->reader))
        return 0;
    (void)!flush(w, NULL);
    code = websocket_reader_peer_code(w->reader);
    if (code == 0)
        return err_set(e, -ECONNRESET, "UPSTREAM_CLOSED", "%s broke a rule of RFC 6455 or a limit of this service.",
                       w->transfer.peer);
    return err_set(e, -ECONNRESET, "UPSTREAM_CLOSED", "%s closed the WebSocket with the code %u.", w->transfer.peer,
                   code);
}

static int read_some(struct net_websocket *w, bool *ret_has_read, struct err *e)
{
    char bytes[READ_BYTES];
    size_t n = 1;
    int r = 0;

    for (int i = 0; r == 0 && n > 0 && i < STEP_READS; i++) {
        r = receive(w, bytes, &n, e);
        if (r == 0 && n > 0)
            r = take_bytes(w, (struct slice){ bytes, n }, e);
        *ret_has_read = *ret_has_read || n > 0;
    }
    w->has_more = n > 0;
    return r;
}

int net_websocket_step(struct net_websocket *w, int64_t wait_ms, struct err *e)
{
    bool has_read = false;
    int r;

    if (!w->reader)
        return err_set(e, -ECONNRESET, "UPSTREAM_CLOSED", "The connection is closed.");
    r = flush(w, e);
    if (r == 0)
        r = read_some(w, &has_read, e);
    if (r < 0 || has_read)
        return r;
    wait_for_socket(w, wait_ms);
    r = flush(w, e);
    return r < 0 ? r : read_some(w, &has_read, e);
}

void net_websocket_shut(struct net_websocket *w, int64_t wait_ms)
{
    int64_t until_ms = clock_mono_ms() + wait_ms, left_ms = wait_ms;

    if (!w->reader)
        return;
    websocket_write_close(&w->out, WEBSOCKET_CLIENT, WEBSOCKET_NORMAL, "");
    while (left_ms > 0 && net_websocket_step(w, left_ms, NULL) == 0)
        left_ms = until_ms - clock_mono_ms();
    net_websocket_drop(w);
}

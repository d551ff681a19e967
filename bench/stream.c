/* Both ends of streamed chats, for bench/relay.mjs: a provider that sends stamped events at a steady rate, and clients
 * that read the stamps.
 *
 *     bench_stream [-r RATE] [-n EVENTS] provide
 *         prints its port; answers every request with one stream of chat completion chunks
 *     bench_stream [-r RATE] [-n EVENTS] [-c STREAMS] [-H 'name: value']... read PORT PATH BODY
 *         prints one line of JSON when all streams have ended
 *
 * -r RATE (events per second and stream) and -n EVENTS (per stream) are given to both ends. A stamp is '@' and 16
 * digits: the microseconds of CLOCK_MONOTONIC when the event was written. Streams begin at random parts of their
 * period, as those of people do. The first second of a stream is not counted: connections are being made. Threads: one,
 * an event loop.
 */
#include "base/json_write.h"

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/listener.h>
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { STAMP_DIGITS = 16, MAX_HEADERS = 16 };

static struct event_base *base;
static long n_streams = 200, rate = 100, n_events = 500;

static _Noreturn void die(const char *what)
{
    fprintf(stderr, "bench_stream: %s\n", what);
    exit(1);
}

static int64_t now_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

/* ---- provide ---- */

struct sending {
    evutil_socket_t fd;
    struct evbuffer *in, *out;
    struct event *readable, *writable, *due;
    long n_sent;
    int64_t next_us;
};

static void stop_sending(struct sending *s)
{
    event_free(s->readable);
    event_free(s->writable);
    event_free(s->due);
    evbuffer_free(s->in);
    evbuffer_free(s->out);
    close(s->fd);
    free(s);
}

/* Written immediately as far as the socket accepts: one system call per event. */
static void flush(struct sending *s)
{
    evbuffer_write(s->out, s->fd);
    if (evbuffer_get_length(s->out) > 0)
        event_add(s->writable, NULL);
}

static void on_writable(evutil_socket_t fd, short what, void *arg)
{
    flush(arg);
}

static void add_chunk(struct sending *s, const char *delta, const char *finish)
{
    char text[512];
    int n = snprintf(
        text, sizeof(text),
        "data: {\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"created\":1700000000,\"model\":\"bench\","
        "\"choices\":[{\"index\":0,\"delta\":{%s},\"finish_reason\":%s}]}\n\n",
        delta, finish);

    evbuffer_add_printf(s->out, "%x\r\n%s\r\n", (unsigned)n, text);
}

static void wait_for_next(struct sending *s)
{
    int64_t wait_us = MAX(s->next_us - now_us(), INT64_C(0));

    event_add(s->due, &(struct timeval){ wait_us / 1000000, wait_us % 1000000 });
}

static void send_next(evutil_socket_t fd, short what, void *arg)
{
    struct sending *s = arg;
    char delta[64];

    if (s->n_sent++ < n_events) {
        snprintf(delta, sizeof(delta), "\"content\":\"@%016lld\"", (long long)now_us());
        add_chunk(s, delta, "null");
        s->next_us += 1000000 / rate;
        wait_for_next(s);
    } else {
        add_chunk(s, "", "\"stop\"");
        evbuffer_add_printf(s->out, "e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n");
    }
    flush(s);
}

static bool has_request(struct sending *s)
{
    size_t n = evbuffer_get_length(s->in);
    struct slice head = { (const char *)evbuffer_pullup(s->in, -1), n };
    const char *body = memmem(head.p, n, "\r\n\r\n", 4);
    long n_body = 0;

    if (!body)
        return false;
    for (const char *line = head.p; line < body; line++)
        if (strncasecmp(line, "\ncontent-length:", 16) == 0)
            n_body = strtol(line + 16, NULL, 10);
    return n >= (size_t)(body + 4 - head.p) + (size_t)n_body;
}

static void on_request(evutil_socket_t fd, short what, void *arg)
{
    struct sending *s = arg;

    if (evbuffer_read(s->in, fd, 65536) <= 0) {
        stop_sending(s);
        return;
    }
    if (!has_request(s))
        return;
    evbuffer_drain(s->in, evbuffer_get_length(s->in));
    evbuffer_add_printf(s->out,
                        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n");
    flush(s);
    s->n_sent = 0;
    s->next_us = now_us() + rand() % (1000000 / rate);
    wait_for_next(s);
}

static void on_accept(struct evconnlistener *listener, evutil_socket_t fd, struct sockaddr *from, int size, void *arg)
{
    struct sending *s = xcalloc(1, sizeof(*s));
    int on = 1;

    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    s->fd = fd;
    s->in = evbuffer_new();
    s->out = evbuffer_new();
    s->readable = event_new(base, fd, EV_READ | EV_PERSIST, on_request, s);
    s->writable = event_new(base, fd, EV_WRITE, on_writable, s);
    s->due = evtimer_new(base, send_next, s);
    event_add(s->readable, NULL);
}

static int provide(void)
{
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t size = sizeof(address);
    struct evconnlistener *listener = evconnlistener_new_bind(base, on_accept, NULL, LEV_OPT_CLOSE_ON_FREE, 4096,
                                                              (struct sockaddr *)&address, sizeof(address));

    if (!listener || getsockname(evconnlistener_get_fd(listener), (struct sockaddr *)&address, &size) < 0)
        die("cannot listen");
    printf("%d\n", ntohs(address.sin_port));
    fflush(stdout);
    event_base_dispatch(base);
    return 0;
}

/* ---- read ---- */

static struct {
    int32_t *late_us;
    size_t n;
    long n_open, n_whole;
    int64_t ended_us;
} seen;

struct reading {
    struct bufferevent *socket;
    long n_stamps;
    char tail[STAMP_DIGITS + 1];
    size_t n_tail;
    bool is_done;
};

static void take_stamp(struct reading *r, const char *digits)
{
    int64_t late_us = now_us() - strtoll(digits, NULL, 10);

    if (++r->n_stamps > rate && seen.n < (size_t)(n_streams * n_events))
        seen.late_us[seen.n++] = (int32_t)late_us;
}

/* A stamp of 16 digits may be cut between two readings. */
static void take_bytes(struct reading *r, const char *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (bytes[i] == '@') {
            r->n_tail = 1;
        } else if (r->n_tail > 0 && bytes[i] >= '0' && bytes[i] <= '9') {
            r->tail[r->n_tail++ - 1] = bytes[i];
            if (r->n_tail == STAMP_DIGITS + 1) {
                take_stamp(r, r->tail);
                r->n_tail = 0;
            }
        } else {
            r->n_tail = 0;
        }
        r->is_done |= bytes[i] == 'O' && n - i > 3 && memcmp(bytes + i, "ONE]", 4) == 0;
    }
}

static void end_reading(struct reading *r)
{
    seen.n_whole += r->n_stamps == n_events;
    seen.ended_us = now_us();
    bufferevent_free(r->socket);
    free(r);
    if (--seen.n_open == 0)
        event_base_loopbreak(base);
}

static void on_readable(struct bufferevent *socket, void *arg)
{
    char bytes[16384];
    struct reading *r = arg;
    size_t n;

    while ((n = bufferevent_read(socket, bytes, sizeof(bytes))) > 0)
        take_bytes(r, bytes, n);
    if (r->is_done)
        end_reading(r);
}

static void on_socket_event(struct bufferevent *socket, short what, void *arg)
{
    if (what & (BEV_EVENT_EOF | BEV_EVENT_ERROR))
        end_reading(arg);
}

static void begin_reading(const struct sockaddr_in *address, struct slice request)
{
    struct reading *r = xcalloc(1, sizeof(*r));

    r->socket = bufferevent_socket_new(base, -1, BEV_OPT_CLOSE_ON_FREE);
    bufferevent_setcb(r->socket, on_readable, NULL, on_socket_event, r);
    bufferevent_enable(r->socket, EV_READ | EV_WRITE);
    bufferevent_write(r->socket, request.p, request.n);
    if (bufferevent_socket_connect(r->socket, (const struct sockaddr *)address, sizeof(*address)) < 0)
        die("cannot connect");
    seen.n_open++;
}

static int by_size(const void *a, const void *b)
{
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;

    return (x > y) - (x < y);
}

static void print_seen(void)
{
    struct json_writer w;
    struct buf out;

    qsort(seen.late_us, seen.n, sizeof(int32_t), by_size);
    buf_init(&out, 4096);
    json_write_init(&w, &out);
    json_begin_object(&w);
    json_add_int(&w, "streams", n_streams);
    json_add_int(&w, "whole", seen.n_whole);
    json_add_int(&w, "stamps", (int64_t)seen.n);
    json_add_int(&w, "p50_us", seen.n ? seen.late_us[seen.n / 2] : -1);
    json_add_int(&w, "p99_us", seen.n ? seen.late_us[seen.n - 1 - seen.n / 100] : -1);
    json_end(&w);
    puts(buf_str(&out));
    buf_clear(&out);
}

static int read_streams(const char *port, const char *path, const char *body, const char *const *headers,
                        size_t n_headers)
{
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                                   .sin_port = htons((uint16_t)strtol(port, NULL, 10)) };
    struct buf request;

    buf_init(&request, 64 << 10);
    buf_printf(&request,
               "POST %s HTTP/1.1\r\nHost: 127.0.0.1:%s\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n",
               path, port, strlen(body));
    for (size_t i = 0; i < n_headers; i++)
        buf_printf(&request, "%s\r\n", headers[i]);
    buf_printf(&request, "\r\n%s", body);
    seen.late_us = xcalloc((size_t)(n_streams * n_events), sizeof(int32_t));
    for (long i = 0; i < n_streams; i++)
        begin_reading(&address, buf_slice(&request));
    event_base_dispatch(base);
    buf_clear(&request);
    print_seen();
    return seen.n_whole == n_streams ? 0 : 2;
}

int main(int argc, char **argv)
{
    const char *headers[MAX_HEADERS];
    size_t n_headers = 0;
    int option;

    while ((option = getopt(argc, argv, "c:r:n:H:")) != -1)
        switch (option) {
        case 'c':
            n_streams = strtol(optarg, NULL, 10);
            break;
        case 'r':
            rate = strtol(optarg, NULL, 10);
            break;
        case 'n':
            n_events = strtol(optarg, NULL, 10);
            break;
        case 'H':
            headers[n_headers < MAX_HEADERS ? n_headers++ : n_headers - 1] = optarg;
            break;
        default:
            return 64;
        }
    signal(SIGPIPE, SIG_IGN);
    base = event_base_new();
    if (optind + 1 == argc && strcmp(argv[optind], "provide") == 0)
        return provide();
    if (optind + 4 == argc && strcmp(argv[optind], "read") == 0)
        return read_streams(argv[optind + 1], argv[optind + 2], argv[optind + 3], headers, n_headers);
    die("say provide, or read PORT PATH BODY");
}

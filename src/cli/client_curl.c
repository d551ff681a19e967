#include "cli/client_curl.h"

#include "base/limits.h"
#include "net/sse_reader.h"

#include <curl/curl.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* --- the socket's name --- */

/* A socket's address holds about a hundred bytes: a longer path is reached through the descriptor of its folder. */
struct short_path {
    char text[sizeof(((struct sockaddr_un *)0)->sun_path)];
    int folder_fd;
};

static int short_path_open(struct short_path *s, const char *path)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    const char *slash = strrchr(path, '/');

    s->folder_fd = -1;
    if (strlen(path) < sizeof(s->text)) {
        snprintf(s->text, sizeof(s->text), "%s", path);
        return 0;
    }
    s->folder_fd = open(arena_strndup(a, path, (size_t)(slash - path)), O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (s->folder_fd < 0)
        return -errno;
    snprintf(s->text, sizeof(s->text), "/proc/self/fd/%d%s", s->folder_fd, slash);
    return 0;
}

static void short_path_close(struct short_path *s)
{
    if (s->folder_fd >= 0)
        close(s->folder_fd);
}

/* -1 when nothing accepts connections there. */
static int connect_to(const char *socket_path)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct short_path s;
    bool can = false;

    if (fd >= 0 && short_path_open(&s, socket_path) == 0) {
        memcpy(address.sun_path, s.text, sizeof(address.sun_path));
        can = connect(fd, (const struct sockaddr *)&address, sizeof(address)) == 0;
        short_path_close(&s);
    }
    if (fd >= 0 && !can)
        close(fd);
    return can ? fd : -1;
}

bool curl_can_connect(const char *socket_path)
{
    int fd = connect_to(socket_path);

    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

pid_t curl_listener(const char *socket_path)
{
    int fd = connect_to(socket_path);
    struct ucred peer = { 0 };
    socklen_t n = sizeof(peer);

    if (fd < 0)
        return 0;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &n) < 0)
        peer.pid = 0;
    close(fd);
    return peer.pid;
}

/* --- one transfer --- */

struct transfer {
    CURL *easy;                 /* owned */
    struct curl_slist *headers; /* owned */
    struct short_path socket;
    char why[CURL_ERROR_SIZE];
};

static int transfer_open(struct transfer *t, const char *socket_path, const struct client_request *request,
                         struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    const char *url = arena_printf(a, "http://localhost%s%s%s", request->path, request->query ? "?" : "",
                                   request->query ? request->query : "");
    int r = short_path_open(&t->socket, socket_path);

    if (r < 0)
        return err_errno(e, -r, "The socket %s", socket_path);
    t->easy = curl_easy_init();
    t->headers = curl_slist_append(NULL, "content-type: application/json");
    if (t->headers && request->wants_events)
        t->headers = curl_slist_append(t->headers, "accept: text/event-stream");
    if (!t->easy || !t->headers)
        return err_set(e, -ENOMEM, "INTERNAL_ERROR", "libcurl did not start");
    curl_easy_setopt(t->easy, CURLOPT_UNIX_SOCKET_PATH, t->socket.text);
    curl_easy_setopt(t->easy, CURLOPT_URL, url);
    curl_easy_setopt(t->easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(t->easy, CURLOPT_NOPROXY, "*");
    curl_easy_setopt(t->easy, CURLOPT_ERRORBUFFER, t->why);
    curl_easy_setopt(t->easy, CURLOPT_HTTPHEADER, t->headers);
    if (request->timeout_ms > 0)
        curl_easy_setopt(t->easy, CURLOPT_TIMEOUT_MS, (long)request->timeout_ms);
    curl_easy_setopt(t->easy, CURLOPT_CUSTOMREQUEST, http_method_name(request->method));
    if (request->body.n || request->method == HTTP_POST || request->method == HTTP_PUT ||
        request->method == HTTP_PATCH) {
        curl_easy_setopt(t->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)request->body.n);
        curl_easy_setopt(t->easy, CURLOPT_COPYPOSTFIELDS, request->body.n ? request->body.p : "");
    }
    return 0;
}

static void transfer_close(struct transfer *t)
{
    curl_easy_cleanup(t->easy);
    curl_slist_free_all(t->headers);
    short_path_close(&t->socket);
}

static int transfer_fail(const struct transfer *t, CURLcode code, struct err *e)
{
    return err_set(e, -EIO, "NOT_RUNNING", "The service did not answer: %s",
                   t->why[0] ? t->why : curl_easy_strerror(code));
}

static size_t collect(char *bytes, size_t size, size_t n, void *arg)
{
    struct buf *body = arg;

    buf_add(body, bytes, size * n);
    return body->overflowed ? 0 : size * n;
}

int curl_send(const char *socket_path, struct arena *a, const struct client_request *request, struct client_reply *ret,
              struct err *e)
{
    struct transfer t = { 0 };
    struct buf body;
    long status = 0;
    CURLcode code = CURLE_OK;
    int r = transfer_open(&t, socket_path, request, e);

    buf_init(&body, LIMIT_REPLY);
    if (r == 0) {
        curl_easy_setopt(t.easy, CURLOPT_WRITEFUNCTION, collect);
        curl_easy_setopt(t.easy, CURLOPT_WRITEDATA, &body);
        code = curl_easy_perform(t.easy);
        curl_easy_getinfo(t.easy, CURLINFO_RESPONSE_CODE, &status);
        ret->status = (int)status;
        ret->text = (struct slice){ arena_slicedup(a, buf_slice(&body)), body.n };
    }
    if (r == 0 && code != CURLE_OK)
        r = transfer_fail(&t, code, e);
    buf_clear(&body);
    transfer_close(&t);
    return r;
}

/* --- event streams (HTML standard, section 9.2): the service sends one event line and one data line --- */

struct listening {
    struct transfer transfer;
    struct buf rest; /* the received part of an incomplete line */
    char name[64];
    int (*on_event)(void *arg, const struct client_event *event);
    void *arg;
    const volatile sig_atomic_t *is_canceled; /* NULL: never */
    int r;
};

static void take_line(struct listening *l, char *line)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct client_event event = { .name = l->name };

    if (strncmp(line, "event: ", 7) == 0) {
        snprintf(l->name, sizeof(l->name), "%s", line + 7);
    } else if (strncmp(line, "data: ", 6) == 0) {
        if (json_parse(a, slice_of(line + 6), &event.data, NULL) == 0)
            l->r = l->on_event(l->arg, &event);
    } else if (*line == '\0') {
        l->name[0] = '\0';
    }
}

static size_t take_bytes(char *bytes, size_t size, size_t n, void *arg)
{
    struct listening *l = arg;
    long status = 0;

    curl_easy_getinfo(l->transfer.easy, CURLINFO_RESPONSE_CODE, &status);
    buf_add(&l->rest, bytes, size * n);
    while (status == 200 && l->r == 0 && l->rest.n) {
        char *end = memchr(l->rest.p, '\n', l->rest.n);

        if (!end)
            break;
        *end = '\0';
        take_line(l, l->rest.p);
        buf_consume(&l->rest, (size_t)(end - l->rest.p) + 1);
    }
    return l->r != 0 || l->rest.overflowed ? 0 : size * n;
}

static int on_progress(void *arg, curl_off_t total, curl_off_t now, curl_off_t up_total, curl_off_t up_now)
{
    const struct listening *l = arg;

    return *l->is_canceled;
}

static int listening_end(struct listening *l, CURLcode code, struct arena *a, struct client_reply *ret_refusal,
                         struct err *e)
{
    long status = 0;

    if (l->r != 0)
        return l->r;
    if (code == CURLE_ABORTED_BY_CALLBACK)
        return err_set(e, -ECANCELED, "CANCELED", "Canceled");
    if (code == CURLE_OPERATION_TIMEDOUT)
        return err_set(e, -ETIMEDOUT, "TIMED_OUT", "The time is over");
    if (code != CURLE_OK)
        return transfer_fail(&l->transfer, code, e);
    curl_easy_getinfo(l->transfer.easy, CURLINFO_RESPONSE_CODE, &status);
    if (status != 200)
        *ret_refusal = (struct client_reply){ .status = (int)status,
                                              .text = { arena_slicedup(a, buf_slice(&l->rest)), l->rest.n } };
    return 0;
}

static void listening_prepare(struct listening *l, const struct client_request *request)
{
    CURL *easy = l->transfer.easy;

    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, take_bytes);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, l);
    if (!request->is_canceled)
        return;
    curl_easy_setopt(easy, CURLOPT_NOPROGRESS, 0L);
    curl_easy_setopt(easy, CURLOPT_XFERINFOFUNCTION, on_progress);
    curl_easy_setopt(easy, CURLOPT_XFERINFODATA, l);
}

int curl_listen(const char *socket_path, struct arena *a, const struct client_request *request,
                int (*on_event)(void *arg, const struct client_event *event), void *arg,
                struct client_reply *ret_refusal, struct err *e)
{
    struct listening l = { .on_event = on_event, .arg = arg, .is_canceled = request->is_canceled };
    int r = transfer_open(&l.transfer, socket_path, request, e);

    buf_init(&l.rest, MIB(4));
    if (r == 0) {
        listening_prepare(&l, request);
        r = listening_end(&l, curl_easy_perform(l.transfer.easy), a, ret_refusal, e);
    }
    buf_clear(&l.rest);
    transfer_close(&l.transfer);
    return r;
}

/* --- frames --- */

struct frames_transfer {
    struct transfer transfer;
    struct curl_frames *frames;
    struct sse_reader reader;
    struct buf body; /* of an answer that is no stream */
    bool is_stream, is_known;
};

static size_t take_header(char *line, size_t size, size_t n, void *arg)
{
    static const char name[] = "mcp-session-id:";
    struct frames_transfer *f = arg;
    struct slice value = { line + sizeof(name) - 1, 0 };

    if (size * n < sizeof(name) || strncasecmp(line, name, sizeof(name) - 1) != 0)
        return size * n;
    value.n = size * n - (sizeof(name) - 1);
    while (value.n > 0 && *value.p == ' ') {
        value.p++;
        value.n--;
    }
    while (value.n > 0 && (unsigned char)value.p[value.n - 1] <= ' ')
        value.n--;
    snprintf(f->frames->session_id, sizeof(f->frames->session_id), "%.*s", (int)value.n, value.p);
    return size * n;
}

static int take_frame(void *arg, const struct sse_event *event)
{
    struct frames_transfer *f = arg;

    if (event->data.n > 0)
        f->frames->on_frame(f->frames->arg, event->data);
    return 0;
}

static size_t take_frames(char *bytes, size_t size, size_t n, void *arg)
{
    struct frames_transfer *f = arg;
    const char *type = NULL;

    if (!f->is_known) {
        curl_easy_getinfo(f->transfer.easy, CURLINFO_CONTENT_TYPE, &type);
        f->is_stream = type && strncasecmp(type, "text/event-stream", 17) == 0;
        f->is_known = true;
    }
    if (f->is_stream)
        return sse_reader_feed(&f->reader, (struct slice){ bytes, size * n }, NULL) < 0 ? 0 : size * n;
    buf_add(&f->body, bytes, size * n);
    return f->body.overflowed ? 0 : size * n;
}

static int look_at_cancel(void *arg, curl_off_t total, curl_off_t now, curl_off_t up_total, curl_off_t up_now)
{
    const struct frames_transfer *f = arg;

    return atomic_load(f->frames->is_canceled);
}

static void frames_prepare(struct frames_transfer *f)
{
    CURL *easy = f->transfer.easy;

    for (size_t i = 0; i < f->frames->n_headers; i++)
        f->transfer.headers = curl_slist_append(f->transfer.headers, f->frames->headers[i]);
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, f->transfer.headers);
    curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, take_header);
    curl_easy_setopt(easy, CURLOPT_HEADERDATA, f);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, take_frames);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, f);
    curl_easy_setopt(easy, CURLOPT_NOPROGRESS, 0L);
    curl_easy_setopt(easy, CURLOPT_XFERINFOFUNCTION, look_at_cancel);
    curl_easy_setopt(easy, CURLOPT_XFERINFODATA, f);
}

static int frames_end(struct frames_transfer *f, CURLcode code, struct err *e)
{
    long status = 0;

    if (code == CURLE_ABORTED_BY_CALLBACK)
        return err_set(e, -ECANCELED, "CANCELED", "Canceled");
    if (code != CURLE_OK)
        return transfer_fail(&f->transfer, code, e);
    curl_easy_getinfo(f->transfer.easy, CURLINFO_RESPONSE_CODE, &status);
    f->frames->status = (int)status;
    if (!f->is_stream && f->body.n > 0)
        f->frames->on_frame(f->frames->arg, buf_slice(&f->body));
    return 0;
}

int curl_read_frames(const char *socket_path, const struct client_request *request, struct curl_frames *frames,
                     struct err *e)
{
    struct frames_transfer f = { .frames = frames };
    int r = transfer_open(&f.transfer, socket_path, request, e);

    sse_reader_init(&f.reader, take_frame, &f);
    buf_init(&f.body, LIMIT_REPLY);
    if (r == 0) {
        frames_prepare(&f);
        r = frames_end(&f, curl_easy_perform(f.transfer.easy), e);
    }
    buf_clear(&f.body);
    sse_reader_clear(&f.reader);
    transfer_close(&f.transfer);
    return r;
}

#include "net/transfer.h"

#include "base/clock.h"
#include "base/limits.h"
#include "base/stall.h"
#include "net/trust.h"
#include "net/url.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

enum {
    LONG_BODY = 256 << 10 /* libcurl announces bodies of a megabyte and more */
};

static const long UPLOAD_BUFFER_BYTES = 16 << 10; /* libcurl's minimum; allocated for the life of the handle */

static void setup_once(void)
{
    curl_global_init(CURL_GLOBAL_DEFAULT);
}

void transfer_setup(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, setup_once);
}

static bool is_tls(const char *url)
{
    return url && strncasecmp(url, "https:", 6) == 0;
}

void http_call_prepare(const struct http_call_request *request)
{
    if (is_tls(request->url))
        trust_load();
}

bool http_call_is_prepared(const char *url)
{
    return !is_tls(url) || trust_is_loaded();
}

const char *http_answer_header(const struct http_answer *a, const char *name)
{
    for (size_t i = 0; i < a->n_headers; i++)
        if (strcmp(a->headers[i].name, name) == 0)
            return a->headers[i].value;
    return NULL;
}

/* ---- the head of the answer ---- */

static int stop(struct transfer *t, int r)
{
    t->stop = r;
    return r;
}

/* RFC 9112 section 4: the status has three digits. 0: anything else. */
static int status_of(struct slice line)
{
    const char *space = memchr(line.p, ' ', line.n);
    size_t n = space ? line.n - (size_t)(space + 1 - line.p) : 0;
    int status = 0;

    if (n < 3 || (n > 3 && space[4] >= '0' && space[4] <= '9'))
        return 0;
    for (size_t i = 1; i <= 3; i++) {
        if (space[i] < '0' || space[i] > '9')
            return 0;
        status = 10 * status + space[i] - '0';
    }
    return status >= 100 ? status : 0;
}

int transfer_begin_head(struct transfer *t, int status)
{
    t->arena = arena_free(t->arena);
    t->arena = arena_new();
    t->head = (struct http_answer){ .status = status };
    t->n_head_bytes = t->cap_headers = 0;
    if (status == 0)
        return stop(t, err_set(err_place(&t->why), -EBADMSG, "UPSTREAM_INVALID", "%s sent no status that HTTP knows.",
                               t->peer));
    return 0;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == '\0';
}

static struct slice trim(struct slice s)
{
    while (s.n > 0 && is_blank(s.p[0])) {
        s.p++;
        s.n--;
    }
    while (s.n > 0 && is_blank(s.p[s.n - 1]))
        s.n--;
    return s;
}

static char *lower(char *text)
{
    for (char *c = text; *c; c++)
        if (*c >= 'A' && *c <= 'Z')
            *c = (char)(*c - 'A' + 'a');
    return text;
}

int transfer_refuse_head(struct transfer *t)
{
    return stop(t, err_set(err_place(&t->why), -EMSGSIZE, "UPSTREAM_TOO_LARGE", "%s sent too many headers.", t->peer));
}

/* Also of lines that are no header. */
static int count_line(struct transfer *t, size_t n_bytes)
{
    t->n_head_bytes += n_bytes;
    if (t->head.n_headers == LIMIT_UPSTREAM_HEADERS || t->n_head_bytes > LIMIT_UPSTREAM_HEAD)
        return transfer_refuse_head(t);
    return 0;
}

int transfer_add_header(struct transfer *t, struct slice name, struct slice value, size_t line_bytes)
{
    struct http_answer *head = &t->head;

    if (count_line(t, line_bytes) < 0)
        return t->stop;
    if (head->n_headers == t->cap_headers) {
        struct http_call_header *more = arena_array(t->arena, 2 * t->cap_headers + 16, sizeof(*more));

        if (head->n_headers > 0)
            memcpy(more, head->headers, head->n_headers * sizeof(*more));
        t->cap_headers = 2 * t->cap_headers + 16;
        head->headers = more;
    }
    head->headers[head->n_headers++] = (struct http_call_header){
        lower(arena_slicedup(t->arena, name)),
        arena_slicedup(t->arena, trim(value)),
    };
    return 0;
}

void transfer_end_head(struct transfer *t)
{
    t->is_answered = true;
    if (t->on_head)
        t->on_head(t);
}

static int add_line(struct transfer *t, struct slice line)
{
    const char *colon = memchr(line.p, ':', line.n);

    if (!colon)
        return count_line(t, line.n);
    return transfer_add_header(t, (struct slice){ line.p, (size_t)(colon - line.p) },
                               (struct slice){ colon + 1, line.n - (size_t)(colon - line.p) - 1 }, line.n);
}

/* libcurl calls this with one complete line. */
static size_t on_header(char *bytes, size_t size, size_t count, void *arg)
{
    struct transfer *t = arg;
    struct slice line = { bytes, size * count };

    t->heard_ms = clock_mono_ms();
    if (t->is_answered) /* trailers */
        return line.n;
    if (line.n > 5 && memcmp(line.p, "HTTP/", 5) == 0)
        return transfer_begin_head(t, status_of(line)) < 0 ? 0 : line.n;
    if (trim(line).n > 0)
        return t->arena && add_line(t, line) < 0 ? 0 : line.n;
    else if (t->head.status >= 200)
        transfer_end_head(t);
    return t->stop < 0 ? 0 : line.n;
}

static size_t on_body(char *bytes, size_t size, size_t count, void *arg)
{
    struct transfer *t = arg;

    t->heard_ms = clock_mono_ms();
    stall_set_label(t->peer);
    return t->on_bytes(t, (struct slice){ bytes, size * count });
}

/* ---- the request ---- */

int64_t transfer_connect_ms(const struct http_call_request *request)
{
    static const int64_t usual_ms = 10000;

    return request->connect_ms ? request->connect_ms : usual_ms;
}

/* Makes the socket close-on-exec: children do not inherit it. */
static int on_socket(void *arg, curl_socket_t fd, curlsocktype purpose)
{
    fcntl(fd, F_SETFD, FD_CLOEXEC);
    return CURL_SOCKOPT_OK;
}

/* Called with each address before the connection. After a refusal libcurl tries the next address of the name. */
static curl_socket_t open_checked(void *arg, curlsocktype purpose, struct curl_sockaddr *to)
{
    struct transfer *t = arg;
    struct err why;
    int r;

    err_init(&why);
    r = t->guard ? guard_check(t->guard, t->peer, &to->addr, &why) : guard_check_self(t->peer, &to->addr, &why);
    if (r < 0) {
        *err_place(&t->refusal) = why;
        return CURL_SOCKET_BAD;
    }
    return socket(to->family, to->socktype | SOCK_CLOEXEC, to->protocol);
}

/* No proxy: the guard could not see the address to which a proxy connects. */
static void set_guard(struct transfer *t, const struct guard *guard)
{
    t->guard = guard;
    curl_easy_setopt(t->easy, CURLOPT_PROXY, "");
}

static bool is_token(const char *name)
{
    return *name && name[strcspn(name, "\r\n\t :,;\"()<>@[]{}?=\\/")] == '\0';
}

int transfer_check_header(const struct http_call_header *h, struct err *e)
{
    if (is_token(h->name) && !strpbrk(h->value, "\r\n"))
        return 0;
    return err_set(e, -EINVAL, "BAD_HEADER",
                   "The header %.60s must be a name of letters, digits and - with a value on one line.",
                   is_token(h->name) ? h->name : "given");
}

static int add_request_headers(struct transfer *t, const struct http_call_request *request, struct err *e)
{
    if (request->body.n >= LONG_BODY) /* the upload does not wait for "100 Continue" */
        t->headers = curl_slist_append(NULL, "Expect:");
    for (size_t i = 0; i < request->n_headers; i++) {
        const struct http_call_header *h = &request->headers[i];
        char *line;
        int r = transfer_check_header(h, e);

        if (r < 0)
            return r;
        if (asprintf(&line, *h->value ? "%s: %s" : "%s;", h->name, h->value) < 0)
            return err_errno(e, ENOMEM, "The request could not be made");
        t->headers = curl_slist_append(t->headers, line);
        free(line);
    }
    curl_easy_setopt(t->easy, CURLOPT_HTTPHEADER, t->headers);
    return 0;
}

static void set_body(CURL *easy, struct slice body)
{
    curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)body.n);
    curl_easy_setopt(easy, CURLOPT_POSTFIELDS, body.n > 0 ? body.p : "");
}

static void set_method(CURL *easy, const struct http_call_request *request)
{
    if (request->body.n > 0 || strcmp(request->method, "POST") == 0) {
        curl_easy_setopt(easy, CURLOPT_POST, 1L);
        set_body(easy, request->body);
    }
    curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, request->method);
}

static void set_times(CURL *easy, const struct http_call_request *request)
{
    curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)transfer_connect_ms(request));
    curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)request->total_ms);
}

static void set_rules(CURL *easy, const struct http_call_request *request, const struct url *to)
{
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L); /* a cancel does not wait for the look-up of a name */
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(easy, CURLOPT_USERAGENT, "hearth/" HEARTH_VERSION);
    set_times(easy, request);
    curl_easy_setopt(easy, CURLOPT_SOCKOPTFUNCTION, on_socket);
    if (strcmp(to->scheme, "https") == 0)
        trust_use(easy);
    if (to->is_loopback)
        curl_easy_setopt(easy, CURLOPT_PROXY, "");
}

static void set_callbacks(CURL *easy, long buffer_bytes)
{
    curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, buffer_bytes);
    curl_easy_setopt(easy, CURLOPT_UPLOAD_BUFFERSIZE, UPLOAD_BUFFER_BYTES);
    curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, open_checked);
}

/* What differs between two requests of one handle. */
static void set_owner(CURL *easy, struct transfer *t)
{
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, t ? t->detail : NULL);
    curl_easy_setopt(easy, CURLOPT_HEADERDATA, t);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, t);
    curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, t);
    curl_easy_setopt(easy, CURLOPT_PRIVATE, t);
}

void transfer_begin(struct transfer *t, const struct http_call_request *request)
{
    t->first_byte_ms = request->first_byte_ms;
    t->idle_ms = request->idle_ms;
    t->began_ms = clock_mono_ms();
}

static void begin(struct transfer *t, const struct http_call_request *request)
{
    transfer_begin(t, request);
    set_owner(t->easy, t);
}

/* Chats only: POST, with a body, to an address of the administrator. */
static bool may_keep(const struct http_call_request *request)
{
    return !request->guard && request->body.n > 0 && strcmp(request->method, "POST") == 0;
}

int transfer_init(struct transfer *t, CURL *easy, const struct http_call_request *request, long buffer_bytes,
                  struct err *e)
{
    AUTO(arena_freep) struct arena *scratch = arena_new();
    struct url to = { 0 };
    int r = url_parse(scratch, request->url, &to, e);

    t->easy = easy;
    if (r < 0)
        return r;
    t->peer = xstrdup(arena_printf(scratch, "%s:%u", to.host, to.port));
    t->kit =
        (struct transfer_kit){ .url = may_keep(request) ? xstrdup(request->url) : NULL, .buffer_bytes = buffer_bytes };
    begin(t, request);
    set_rules(easy, request, &to);
    set_method(easy, request);
    set_callbacks(easy, buffer_bytes);
    if (request->guard)
        set_guard(t, request->guard);
    r = add_request_headers(t, request, e);
    if (r == 0 && curl_easy_setopt(easy, CURLOPT_URL, request->url) != CURLE_OK)
        r = err_set(e, -EINVAL, "BAD_URL", "The address is no URL that can be called.");
    return r;
}

void transfer_init_inside(struct transfer *t, const struct http_call_request *request)
{
    t->peer = xstrdup(request->inside->peer);
    t->first_byte_ms = request->first_byte_ms;
    t->idle_ms = request->idle_ms;
    t->began_ms = clock_mono_ms();
    t->until_ms = request->total_ms ? t->began_ms + request->total_ms : 0;
}

/* ---- handles that are used again ---- */

bool transfer_kit_fits(const struct transfer_kit *kit, const struct http_call_request *request, long buffer_bytes)
{
    return may_keep(request) && kit->buffer_bytes == buffer_bytes && strcmp(kit->url, request->url) == 0;
}

int transfer_init_again(struct transfer *t, struct transfer_kit *kit, const struct http_call_request *request,
                        struct err *e)
{
    t->kit = *kit;
    t->easy = TAKE(t->kit.easy);
    t->peer = TAKE(t->kit.peer);
    *kit = (struct transfer_kit){ 0 };
    begin(t, request);
    set_times(t->easy, request);
    set_body(t->easy, request->body);
    return add_request_headers(t, request, e);
}

/* With a parsed address, libcurl does not parse the text for each request. */
static bool set_address(struct transfer_kit *kit)
{
    kit->address = curl_url();
    return kit->address && curl_url_set(kit->address, CURLUPART_URL, kit->url, CURLU_NON_SUPPORT_SCHEME) == CURLUE_OK &&
           curl_easy_setopt(kit->easy, CURLOPT_CURLU, kit->address) == CURLE_OK;
}

bool transfer_keep(struct transfer *t, struct transfer_kit *ret)
{
    struct transfer_kit kit = t->kit;

    if (!kit.url)
        return false;
    t->kit = (struct transfer_kit){ 0 };
    kit.easy = TAKE(t->easy);
    kit.peer = TAKE(t->peer);
    set_owner(kit.easy, NULL);
    curl_easy_setopt(kit.easy, CURLOPT_HTTPHEADER, NULL);
    curl_easy_setopt(kit.easy, CURLOPT_POSTFIELDS, NULL);
    if (!kit.address && !set_address(&kit)) {
        transfer_kit_clear(&kit);
        return false;
    }
    *ret = kit;
    return true;
}

void transfer_kit_clear(struct transfer_kit *kit)
{
    curl_easy_cleanup(kit->easy);
    curl_url_cleanup(kit->address);
    free(kit->url);
    free(kit->peer);
    *kit = (struct transfer_kit){ 0 };
}

void transfer_clear(struct transfer *t)
{
    curl_easy_cleanup(t->easy);
    transfer_kit_clear(&t->kit);
    curl_slist_free_all(t->headers);
    arena_free(t->arena);
    free(t->peer);
    free(t->why);
    free(t->refusal);
    t->easy = NULL;
    t->headers = NULL;
    t->arena = NULL;
    t->peer = NULL;
    t->why = t->refusal = NULL;
}

/* ---- the end ---- */

static int64_t silence_due_ms(const struct transfer *t)
{
    if (!t->is_answered)
        return t->first_byte_ms ? t->began_ms + t->first_byte_ms : 0;
    return t->idle_ms ? t->heard_ms + t->idle_ms : 0;
}

int64_t transfer_due_ms(const struct transfer *t)
{
    int64_t due_ms = silence_due_ms(t);

    return t->until_ms && (!due_ms || t->until_ms < due_ms) ? t->until_ms : due_ms;
}

static int err_not_finished(const struct transfer *t, struct err *e)
{
    return err_set(e, -ETIMEDOUT, "UPSTREAM_TIMEOUT", "%s did not finish its answer in time.", t->peer);
}

int transfer_expire(struct transfer *t, struct err *e)
{
    double limit_s = (double)(t->is_answered ? t->idle_ms : t->first_byte_ms) / 1e3;

    if (t->until_ms && clock_mono_ms() >= t->until_ms)
        return err_not_finished(t, e);
    return err_set(e, -ETIMEDOUT, "UPSTREAM_TIMEOUT",
                   t->is_answered ? "%s sent nothing more for %g seconds."
                                  : "%s did not begin its answer within %g seconds.",
                   t->peer, limit_s);
}

static bool has_connected(const struct transfer *t)
{
    curl_off_t connected_us = 0; /* stays 0 on a connection that an earlier request opened */
    long n_sent = 0;             /* bytes of the request */

    if (!t->easy)
        return t->is_connected;
    curl_easy_getinfo(t->easy, CURLINFO_CONNECT_TIME_T, &connected_us);
    curl_easy_getinfo(t->easy, CURLINFO_REQUEST_SIZE, &n_sent);
    return connected_us > 0 || n_sent > 0;
}

static int err_timeout(struct transfer *t, struct err *e)
{
    if (!has_connected(t))
        return err_set(
            e, -ECONNREFUSED, "CONNECT_FAILED",
            "%s does not answer: no connection came about in time. Is the address right, and can this machine "
            "reach it?",
            t->peer);
    return err_not_finished(t, e);
}

/* Translates OpenSSL's message into plain words. */
static const char *tls_reason(const char *detail)
{
    static const struct {
        const char *words, *reason;
    } reasons[] = {
        { "has expired", "its certificate has expired." },
        { "not yet valid", "its certificate is not valid yet; is this machine's clock right?" },
        { "match", "its certificate is for another host name; is the address right?" },
        { "self-signed",
          "its certificate is not trusted here: it signed itself. Add it to this machine's authorities, or name a file of them in SSL_CERT_FILE." },
        { "issuer",
          "its certificate is not trusted here: this machine does not know who signed it. Add that authority to this machine's, or name a file of "
          "them in SSL_CERT_FILE." },
        { "wrong version number", "it does not speak TLS there; should the address begin with http://?" },
    };

    for (size_t i = 0; i < ARRAY_SIZE(reasons); i++)
        if (strstr(detail, reasons[i].words))
            return reasons[i].reason;
    return NULL;
}

static int err_tls(struct transfer *t, struct err *e)
{
    const char *reason = tls_reason(t->detail);

    return err_set(e, -EPROTO, "TLS_FAILED", "No trusted TLS connection to %s came about: %.300s", t->peer,
                   reason ? reason : t->detail);
}

static bool lacks_files(const struct transfer *t)
{
    long error = 0;

    return t->easy && curl_easy_getinfo(t->easy, CURLINFO_OS_ERRNO, &error) == CURLE_OK &&
           (error == EMFILE || error == ENFILE);
}

CURLcode transfer_code_of(CURLM *multi)
{
    CURLMsg *message;
    int n_left;

    while ((message = curl_multi_info_read(multi, &n_left)))
        if (message->msg == CURLMSG_DONE)
            return message->data.result;
    return CURLE_GOT_NOTHING;
}

int transfer_result(struct transfer *t, CURLcode code, struct err *e)
{
    if (t->stop < 0 && t->why)
        return err_set(e, t->stop, t->why->code, "%s", t->why->text);
    if (t->stop < 0)
        return t->stop;
    switch (code) {
    case CURLE_OK:
        return 0;
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
        return err_set(e, -EHOSTUNREACH, "DNS_FAILED",
                       "The name of %s is not known here: check the address and this machine's network.", t->peer);
    case CURLE_COULDNT_CONNECT:
        if (t->refusal)
            return err_set(e, -EPERM, t->refusal->code, "%s", t->refusal->text);
        if (lacks_files(t))
            return err_errno(e, EMFILE, "%s cannot be connected to now", t->peer);
        return err_set(e, -ECONNREFUSED, "CONNECT_FAILED",
                       "%s takes no connection: is the server there running, and is the address right?", t->peer);
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CIPHER:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_ISSUER_ERROR:
        return err_tls(t, e);
    case CURLE_OPERATION_TIMEDOUT:
        return err_timeout(t, e);
    case CURLE_GOT_NOTHING:
    case CURLE_RECV_ERROR:
    case CURLE_SEND_ERROR:
    case CURLE_PARTIAL_FILE:
        return err_set(e, -ECONNRESET, "UPSTREAM_CLOSED", "%s closed the connection %s.", t->peer,
                       t->is_answered ? "before its answer was complete" : "without an answer");
    default:
        return err_set(e, -EBADMSG, "UPSTREAM_INVALID", "%s does not speak HTTP as it should: %.160s", t->peer,
                       *t->detail ? t->detail : curl_easy_strerror(code));
    }
}

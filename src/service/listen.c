/* The addresses of the service: the setting http.listen or --listen, and the Unix socket of the data folder. */
#include "service/private.h"

#include "base/log.h"
#include "net/guard.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

struct address {
    char host[64];
    uint16_t port;
};

/* "127.0.0.1:3001", "[::1]:3001" or "::1:3001": the port follows the last colon. */
static int parse_address(const char *text, struct address *ret, struct err *e)
{
    const char *colon = strrchr(text, ':');
    size_t n = colon ? (size_t)(colon - text) : 0;
    char *end = NULL;
    long port = colon ? strtol(colon + 1, &end, 10) : -1;

    if (n == 0 || n >= sizeof(ret->host) || !end || *end != '\0' || end == colon + 1 || port < 0 || port > 65535)
        return err_set(e, -EINVAL, "BAD_SETTING",
                       "`http.listen` must be ADDRESS:PORT with a port from 0 to 65535, not \"%s\"", text);
    if (text[0] == '[' && text[n - 1] == ']') {
        text++;
        n -= 2;
    }
    memcpy(ret->host, text, n);
    ret->host[n] = '\0';
    ret->port = (uint16_t)port;
    return 0;
}

static bool is_loopback(const char *host)
{
    return strncmp(host, "127.", 4) == 0 || strcmp(host, "::1") == 0;
}

static int check_address(struct service *s, const struct address *at, struct err *e)
{
    if (is_loopback(at->host) || settings_bool(s->settings, SETTING_HTTP_ALLOW_REMOTE))
        return 0;
    return err_set(
        e, -EINVAL, "BAD_SETTING",
        "`http.listen` names %s, which other machines can reach; set http.allow_remote=true if that is meant",
        at->host);
}

/* The address at which this machine's own programs reach the service. */
static void name_service(struct service *s, const struct address *first)
{
    bool is_v6 = strchr(first->host, ':') != NULL;
    const char *host = strcmp(first->host, "0.0.0.0") == 0 ? "127.0.0.1"
                       : strcmp(first->host, "::") == 0    ? "::1"
                                                           : first->host;

    snprintf(s->api.base_url, sizeof(s->api.base_url), is_v6 ? "http://[%.45s]:%u" : "http://%.45s:%u", host,
             first->port);
}

/* The first address determines the port of later addresses with port 0. A missing IPv6 is no failure when IPv4 works.
 */
static int listen_one(struct service *s, const char *text, bool is_first, uint16_t *port, struct err *e)
{
    struct address at = { .host = "" };
    struct err why = { 0 };
    int r = parse_address(text, &at, e);

    if (r == 0)
        r = check_address(s, &at, e);
    if (r < 0)
        return r;
    if (at.port == 0 && !is_first)
        at.port = *port;
    r = http_server_listen(s->server, at.host, at.port, &at.port, &why);
    if (r < 0 && !is_first && strcmp(at.host, "::1") == 0 && r != -EADDRINUSE) {
        log_warn("service", NULL, "not listening on ::1: %s", why.text);
        return 0;
    }
    if (r == -EADDRINUSE)
        return err_set(e, r, "ADDRESS_IN_USE", "%s Choose another with --listen ADDR:PORT; port 0 picks a free one.",
                       why.text);
    if (r < 0)
        return err_set(e, r, *why.code ? why.code : "LISTEN_FAILED", "%s", why.text);
    guard_add_own_port(s->guard, at.port);
    guard_add_own_port(s->file_guard, at.port);
    dispatch_add_address(s->dispatch, at.host, at.port);
    if (is_first) {
        *port = at.port;
        sandbox_set_port(s->sandbox, at.port);
        name_service(s, &at);
    }
    return 0;
}

static bool on_head(void *arg, struct http_exchange *x, size_t *ret_max_body)
{
    struct service *s = arg;

    return dispatch_head(s->dispatch, x, ret_max_body);
}

static void on_request(void *arg, struct http_exchange *x)
{
    struct service *s = arg;

    dispatch_request(s->dispatch, x);
}

static void on_refused(void *arg, const char *request_id, int status, const char *code)
{
    struct service *s = arg;

    dispatch_refused(s->dispatch, request_id, status, code);
}

static void write_refusal(void *arg, struct http_exchange *x, const struct err *why, int status, struct buf *out)
{
    struct service *s = arg;

    dispatch_write_refusal(s->dispatch, x, why, status, out);
}

static int start_server(struct service *s, struct err *e)
{
    const struct http_server_config c = {
        .head_timeout_ms = (int)settings_ms(s->settings, SETTING_HTTP_HEADER_TIMEOUT_S),
        .body_timeout_ms = (int)settings_ms(s->settings, SETTING_HTTP_BODY_TIMEOUT_S),
        .idle_timeout_ms = (int)settings_ms(s->settings, SETTING_HTTP_IDLE_TIMEOUT_S),
        .max_connections = (size_t)settings_int(s->settings, SETTING_HTTP_MAX_CONNECTIONS),
        .on_head = on_head,
        .on_request = on_request,
        .on_refused = on_refused,
        .write_refusal = write_refusal,
        .may_use_socket = wire_may_use_socket,
        .arg = s,
    };

    return http_server_start(s->loop, &c, &s->server, e);
}

/* A socket's address holds about a hundred bytes: a longer path is reached through the descriptor of its folder
 * (unix(7)). */
static int listen_unix(struct service *s, struct err *e)
{
    const char *path = arena_printf(s->arena, "%s/hearth.sock", s->config.data_dir);

    if (strlen(path) >= sizeof(((struct sockaddr_un *)0)->sun_path)) {
        s->folder_fd = open(s->config.data_dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (s->folder_fd < 0)
            return err_errno(e, errno, "The data folder %s", s->config.data_dir);
        path = arena_printf(s->arena, "/proc/self/fd/%d/hearth.sock", s->folder_fd);
    }
    return http_server_listen_unix(s->server, path, e);
}

static const char *const *addresses_of(struct service *s, size_t *ret_n)
{
    *ret_n = s->config.n_listens;
    return *ret_n ? s->config.listens : settings_list(s->settings, s->arena, SETTING_HTTP_LISTEN, ret_n);
}

int service_check_addresses(struct service *s, struct err *e)
{
    size_t n;
    const char *const *listens = addresses_of(s, &n);
    int r = 0;

    for (size_t i = 0; r == 0 && i < n; i++) {
        struct address at = { .host = "" };

        r = parse_address(listens[i], &at, e);
        if (r == 0)
            r = check_address(s, &at, e);
    }
    return r;
}

int service_listen(struct service *s, struct err *e)
{
    size_t n;
    const char *const *listens = addresses_of(s, &n);
    uint16_t port = 0;
    int r = start_server(s, e);

    for (size_t i = 0; r == 0 && i < n; i++)
        r = listen_one(s, listens[i], i == 0, &port, e);
    if (r == 0)
        r = listen_unix(s, e);
    if (r < 0)
        return r;
    guard_set_own(s->guard);
    service_print_listening(s);
    return 0;
}

void service_unlisten(struct service *s)
{
    http_server_drain(s->server);
    unlink(arena_printf(s->arena, "%s/hearth.sock", s->config.data_dir));
}

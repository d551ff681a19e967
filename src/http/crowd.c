#include "http/crowd.h"
#include "base/limits.h"
#include "http/connection.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

/* With few descriptors: what the service has open itself, with few threads (os/few_files.h). */
enum { OWN_FILES = 52 };

static bool is_admin(const struct http_connection *c)
{
    return budget_holder_kind(c->purse.holder) == HOLDER_ADMIN;
}

/* Sends with a single write: bytes that do not fit the client's window are lost, without waiting. */
static void notify_and_close(struct http_connection *c)
{
    struct http_reply reply;
    char id[sizeof(((struct http_request *)0)->id)];

    http_connection_make_id(c->server, id);
    http_reply_init(&reply);
    http_refusal_write(http_refusal_row(REFUSE_CONNECTIONS), id, false, &reply);
    buf_add_slice(&reply.head, buf_slice(&reply.body));
    (void)!send(c->fd, reply.head.p, reply.head.n, MSG_NOSIGNAL | MSG_DONTWAIT);
    http_reply_clear(&reply);
    http_connection_close(c);
}

static struct http_connection *oldest_of(struct http_server *s, enum http_wait wait, bool is_unix)
{
    for (struct http_deadline *d = TAILQ_FIRST(&s->deadlines.lists[wait]); d; d = TAILQ_NEXT(d, links)) {
        struct http_connection *c = CONTAINER_OF(d, struct http_connection, deadline);

        if (c->is_unix == is_unix && (is_unix || !is_admin(c)))
            return c;
    }
    return NULL;
}

bool http_crowd_give_way(struct http_server *s, bool is_unix)
{
    static const struct {
        enum http_wait wait;
        bool is_reported;
    } order[] = {
        { WAIT_LINGER, false },
        { WAIT_FIRST, true },
        { WAIT_HEAD, true },
        { WAIT_IDLE, false },
    };

    for (size_t i = 0; i < ARRAY_SIZE(order); i++) {
        struct http_connection *c = oldest_of(s, order[i].wait, is_unix);

        if (!c)
            continue;
        budget_refuse(c->purse.holder, BUDGET_CONNECTIONS, false, NULL);
        if (order[i].is_reported)
            notify_and_close(c);
        else
            http_connection_close(c);
        return true;
    }
    return false;
}

static bool enter_unix(struct http_server *s)
{
    if (s->n_unix >= LIMIT_UNIX_CONNECTIONS && !http_crowd_give_way(s, true))
        return false;
    s->n_unix++;
    return true;
}

bool http_crowd_enter(struct http_server *s, struct http_connection *c)
{
    bool has_room = s->n_tcp - s->n_reserve < s->config.max_connections;

    if (c->is_unix)
        return enter_unix(s);
    has_room = has_room || http_crowd_give_way(s, false);
    if (!has_room && s->n_reserve >= LIMIT_RESERVED_CONNECTIONS)
        return false;
    c->is_reserve = !has_room;
    s->n_reserve += c->is_reserve;
    s->n_tcp++;
    return true;
}

void http_crowd_leave(struct http_server *s, struct http_connection *c)
{
    s->n_reserve -= c->is_reserve;
    *(c->is_unix ? &s->n_unix : &s->n_tcp) -= 1;
}

size_t http_crowd_maximum(size_t wanted)
{
    struct rlimit files = { 0 };
    size_t kept;

    if (getrlimit(RLIMIT_NOFILE, &files) < 0 || files.rlim_cur == RLIM_INFINITY)
        return wanted;
    kept = MIN(MAX((size_t)files.rlim_cur / 4, (size_t)OWN_FILES), (size_t)LIMIT_RESERVED_FILES);
    return files.rlim_cur <= kept ? 1 : MIN(wanted, (size_t)files.rlim_cur - kept);
}

void http_spare_keep(struct http_server *s)
{
    if (s->spare_fd < 0)
        s->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

bool http_spare_give_up(struct http_server *s)
{
    if (s->spare_fd < 0)
        return false;
    close(s->spare_fd);
    s->spare_fd = -1;
    return true;
}

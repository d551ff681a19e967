#include "mcp/stdio.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/cond.h"
#include "base/limits.h"
#include "base/thread.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum {
    STDIO_READ_BYTES = 65536,
    STDIO_KEPT_BYTES = 1 << 20, /* a larger buffer is freed after its line */
    STDIO_LOOK_MS = 50,         /* interval at which a sender looks at its flags */
    STDIO_END_MS = 2000,        /* how long the report of the server's end may come after the end of its output */
    STDIO_READS_AFTER_END = 64, /* another process may hold the output open and go on writing */
};

/* Bytes that a sender could not write at once. */
struct stdio_item {
    struct stdio_item *next;
    char *bytes; /* owned */
    size_t n, n_written;
    bool is_done; /* it has left the queue, written as far as n_written says */
    bool is_left; /* its sender has gone: the item is freed when it is done */
};

struct stdio_link {
    struct mcp_link link;
    struct mcp_link_events on;
    struct child *child;    /* one reference */
    struct child_ends ends; /* stdin_fd: guarded by lock, -1 after the end */
    struct child_log *log;  /* one reference */
    int wake_fd;            /* owned */
    pthread_t thread;
    bool has_thread;
    struct buf line; /* of the thread */

    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct stdio_item *first, **last;
    size_t n_waiting; /* bytes of all items */
    bool is_closing;  /* close() was called */
    bool has_closed;  /* on_closed is due or has come: no frame can be sent */
    bool has_exited;  /* the child has ended; `how` is set */
    struct child_exit how;
};

static struct stdio_link *stdio_of(const struct mcp_link *l)
{
    return CONTAINER_OF(l, struct stdio_link, link);
}

static void stdio_wake(struct stdio_link *l)
{
    const uint64_t one = 1;

    if (write(l->wake_fd, &one, sizeof(one)) < 0)
        return; /* the counter is full: the thread is awake */
}

/* ---- writing ---- */

/* The caller holds the lock. Returns the number of bytes taken, 0 when the pipe is full, or a negative errno. */
static ssize_t stdio_write(struct stdio_link *l, const char *bytes, size_t n)
{
    ssize_t n_written;

    if (l->ends.stdin_fd < 0)
        return -EPIPE;
    do
        n_written = write(l->ends.stdin_fd, bytes, n);
    while (n_written < 0 && errno == EINTR);
    if (n_written < 0)
        return errno == EAGAIN ? 0 : -errno;
    return n_written;
}

static struct stdio_item *stdio_item_free(struct stdio_item *item)
{
    free(item->bytes);
    free(item);
    return NULL;
}

/* The caller holds the lock. The first item leaves the queue. */
static void stdio_pop(struct stdio_link *l)
{
    struct stdio_item *item = l->first;

    l->first = item->next;
    if (!l->first)
        l->last = &l->first;
    l->n_waiting -= item->n;
    item->is_done = true;
    if (item->is_left)
        stdio_item_free(item);
}

/* Writes what the pipe takes; the lock is held. A server that has closed its standard input may still write answers, so
 * the connection goes on. */
static void stdio_flush(struct stdio_link *l)
{
    while (l->first) {
        struct stdio_item *item = l->first;
        ssize_t n = stdio_write(l, item->bytes + item->n_written, item->n - item->n_written);

        if (n == 0)
            return;
        item->n_written += (size_t)MAX(n, (ssize_t)0);
        if (n < 0 || item->n_written == item->n) {
            stdio_pop(l);
            pthread_cond_broadcast(&l->changed);
        }
    }
}

static int stdio_refuse_closed(struct err *e)
{
    return err_set(e, -EPIPE, "MCP_CLOSED", "The connection to the MCP server has ended.");
}

/* Waits with the lock held until something changes or the wait is over. */
static int stdio_wait(struct stdio_link *l, const struct net_wait *wait, struct err *e)
{
    int64_t left_ms = net_wait_left(wait, e);

    if (left_ms < 0)
        return (int)left_ms;
    cond_wait_until(&l->changed, &l->lock, clock_mono_us() + MIN(left_ms, (int64_t)STDIO_LOOK_MS) * 1000);
    return 0;
}

static int stdio_wait_for_room(struct stdio_link *l, size_t n, const struct net_wait *wait, struct err *e)
{
    int r = 0;

    while (r == 0 && !l->has_closed && l->n_waiting > 0 && l->n_waiting + n > LIMIT_MCP_OUT_BYTES)
        r = stdio_wait(l, wait, e);
    return r < 0 ? r : l->has_closed ? stdio_refuse_closed(e) : 0;
}

static void stdio_unlink(struct stdio_link *l, struct stdio_item *item)
{
    struct stdio_item **at = &l->first;

    while (*at != item)
        at = &(*at)->next;
    *at = item->next;
    if (l->last == &item->next)
        l->last = at;
    l->n_waiting -= item->n;
}

/* The sender goes. An item of which nothing was written is withdrawn; the rest of any other one follows later, because
 * half a line would spoil the next one. */
static void stdio_leave(struct stdio_link *l, struct stdio_item *item)
{
    if (!item->is_done && item->n_written > 0) {
        item->is_left = true;
        return;
    }
    if (!item->is_done)
        stdio_unlink(l, item);
    stdio_item_free(item);
}

/* Queues the rest of a line; the lock is held. */
static struct stdio_item *stdio_queue(struct stdio_link *l, struct slice frame, size_t n_written)
{
    struct stdio_item *item = xcalloc(1, sizeof(*item));

    *item = (struct stdio_item){ .n = frame.n + 1, .n_written = n_written };
    item->bytes = xrealloc(NULL, item->n);
    memcpy(item->bytes, frame.p, frame.n);
    item->bytes[frame.n] = '\n';
    *l->last = item;
    l->last = &item->next;
    l->n_waiting += item->n;
    stdio_wake(l);
    return item;
}

static int stdio_send_queued(struct stdio_link *l, const struct mcp_send *s, size_t n_written, struct err *e)
{
    struct stdio_item *item = stdio_queue(l, s->frame, n_written);
    int r = 0;

    while (r == 0 && !item->is_done && !l->has_closed)
        r = stdio_wait(l, s->wait, e);
    if (r == 0 && item->n_written < item->n)
        r = stdio_refuse_closed(e);
    stdio_leave(l, item);
    return r;
}

/* The line in one write() when nothing waits and the pipe has room. */
static ssize_t stdio_send_at_once(struct stdio_link *l, struct slice frame)
{
    char small[4096];
    ssize_t n;

    if (l->first)
        return 0;
    if (frame.n >= sizeof(small))
        return stdio_write(l, frame.p, frame.n);
    memcpy(small, frame.p, frame.n);
    small[frame.n] = '\n';
    n = stdio_write(l, small, frame.n + 1);
    return n;
}

static int stdio_send(struct mcp_link *link, const struct mcp_send *s, struct err *e)
{
    struct stdio_link *l = stdio_of(link);
    ssize_t n;
    int r;

    if (s->frame.n > LIMIT_MCP_FRAME)
        return err_set(e, -E2BIG, "MCP_TOO_LARGE", "A message to an MCP server must have at most %d bytes.",
                       LIMIT_MCP_FRAME);
    pthread_mutex_lock(&l->lock);
    r = l->has_closed ? stdio_refuse_closed(e) : stdio_wait_for_room(l, s->frame.n, s->wait, e);
    n = r == 0 ? stdio_send_at_once(l, s->frame) : 0;
    if (n < 0)
        r = stdio_refuse_closed(e);
    else if (r == 0 && (size_t)n <= s->frame.n)
        r = stdio_send_queued(l, s, (size_t)n, e);
    pthread_mutex_unlock(&l->lock);
    return r;
}

/* ---- reading ---- */

/* A line that cannot be a frame is output like any other: it goes to the log. */
static void stdio_take_line(struct stdio_link *l, struct slice line)
{
    const struct slice text = slice_skip_blanks(line);

    if (text.n == 0)
        return;
    if (text.p[0] == '{' || text.p[0] == '[') {
        l->on.on_frame(l->on.arg, line, NULL);
        return;
    }
    child_log_add_bytes(l->log, CHILD_STDOUT, (struct slice){ line.p, MIN(line.n, (size_t)LIMIT_LOG_LINE_BYTES) });
    child_log_add_bytes(l->log, CHILD_STDOUT, SLICE_LIT("\n"));
}

static int stdio_refuse_line(struct err *e)
{
    return err_set(e, -E2BIG, "MCP_FRAME_TOO_LARGE",
                   "The MCP server sent a message above %d bytes; the connection was ended.", LIMIT_MCP_FRAME);
}

static int stdio_take_lines(struct stdio_link *l, size_t n_new, struct err *e)
{
    size_t begin = 0, from = l->line.n - n_new;
    const char *end;

    while ((end = memchr(l->line.p + from, '\n', l->line.n - from))) {
        size_t at = (size_t)(end - l->line.p);

        if (at - begin > LIMIT_MCP_FRAME)
            return stdio_refuse_line(e);
        stdio_take_line(l, (struct slice){ l->line.p + begin, at - begin });
        begin = from = at + 1;
    }
    buf_consume(&l->line, begin);
    if (l->line.n == 0 && l->line.cap > STDIO_KEPT_BYTES)
        buf_clear(&l->line);
    return l->line.n > LIMIT_MCP_FRAME ? stdio_refuse_line(e) : 1;
}

/* 1: there may be more; 0: the end; negative: the connection is to end. */
static int stdio_read(struct stdio_link *l, struct err *e)
{
    char *to = buf_reserve(&l->line, STDIO_READ_BYTES);
    ssize_t n;

    if (!to)
        return stdio_refuse_line(e);
    n = read(l->ends.stdout_fd, to, STDIO_READ_BYTES);
    if (n < 0)
        return errno == EAGAIN || errno == EINTR ? 1 : 0;
    if (n == 0)
        return 0;
    l->line.n += (size_t)n;
    return stdio_take_lines(l, (size_t)n, e);
}

/* ---- the end ---- */

/* On the loop thread. */
static void stdio_on_exit(struct child *c, const struct child_exit *how, void *arg)
{
    struct stdio_link *l = arg;

    pthread_mutex_lock(&l->lock);
    l->how = *how;
    l->has_exited = true;
    pthread_cond_broadcast(&l->changed);
    stdio_wake(l);
    pthread_mutex_unlock(&l->lock);
}

static void stdio_wait_for_exit(struct stdio_link *l, int64_t most_ms)
{
    int64_t until_us = clock_mono_us() + most_ms * 1000;

    while (!l->has_exited && cond_wait_until(&l->changed, &l->lock, until_us))
        ;
}

/* What is said to the calls in flight: the server's last words are the reason in most cases. */
static void stdio_explain_end(struct stdio_link *l, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    const char *words = child_log_tail(l->log, a, CHILD_STDERR, 5);
    const char *said = *words ? " Its last words: " : "";

    if (l->is_closing)
        err_set(e, -EPIPE, "MCP_CLOSED", "The connection to the MCP server was closed.");
    else if (!l->has_exited)
        err_set(e, -EPIPE, "MCP_CLOSED", "The MCP server closed its output.%s%.300s", said, words);
    else if (l->how.signal)
        err_set(e, -EPIPE, "MCP_CLOSED", "The MCP server was ended by signal %d (%s).%s%.300s", l->how.signal,
                strsignal(l->how.signal), said, words);
    else
        err_set(e, -EPIPE, "MCP_CLOSED", "The MCP server ended with exit code %d.%s%.300s", l->how.code, said, words);
}

static void stdio_close_stdin(struct stdio_link *l)
{
    if (l->ends.stdin_fd >= 0)
        close(l->ends.stdin_fd);
    l->ends.stdin_fd = -1;
}

/* On the connection's thread, once. */
static void stdio_finish(struct stdio_link *l, int r, struct err *e)
{
    bool is_closing;

    pthread_mutex_lock(&l->lock);
    l->has_closed = true;
    stdio_close_stdin(l);
    while (l->first)
        stdio_pop(l);
    pthread_cond_broadcast(&l->changed);
    if (r >= 0 && !l->is_closing)
        stdio_wait_for_exit(l, STDIO_END_MS);
    if (r >= 0)
        stdio_explain_end(l, e);
    is_closing = l->is_closing;
    pthread_mutex_unlock(&l->lock);
    if (!is_closing) /* stdio_close() gives it time to end by itself */
        child_stop(l->child);
    l->on.on_closed(l->on.arg, e);
}

static bool stdio_must_write(struct stdio_link *l, bool *ret_is_over)
{
    bool must;

    pthread_mutex_lock(&l->lock);
    stdio_flush(l);
    must = l->first != NULL;
    *ret_is_over = l->is_closing;
    pthread_mutex_unlock(&l->lock);
    return must;
}

/* After the child's end another process may still hold its output open: what is in the pipe is read, no more is waited
 * for. */
static int stdio_poll(struct stdio_link *l, bool must_write, bool has_exited)
{
    struct pollfd fds[] = { { .fd = l->ends.stdout_fd, .events = POLLIN },
                            { .fd = l->wake_fd, .events = POLLIN },
                            { .fd = must_write ? l->ends.stdin_fd : -1, .events = POLLOUT } };
    uint64_t n;

    if (poll(fds, ARRAY_SIZE(fds), has_exited ? 0 : -1) < 0 && errno != EINTR)
        return -errno;
    if (fds[1].revents && read(l->wake_fd, &n, sizeof(n)) < 0 && errno != EAGAIN)
        return -errno;
    return fds[0].revents != 0;
}

static bool stdio_has_exited(struct stdio_link *l)
{
    bool has;

    pthread_mutex_lock(&l->lock);
    has = l->has_exited;
    pthread_mutex_unlock(&l->lock);
    return has;
}

static void *stdio_main(void *arg)
{
    struct stdio_link *l = arg;
    struct err e = { 0 };
    int r = 1, n_after_end = 0;
    bool is_over = false;

    while (r > 0 && n_after_end < STDIO_READS_AFTER_END) {
        bool must_write = stdio_must_write(l, &is_over), has_exited = stdio_has_exited(l);
        int has_output = is_over ? 0 : stdio_poll(l, must_write, has_exited);

        if (is_over || has_output < 0 || (has_exited && !has_output))
            break;
        if (has_output)
            r = stdio_read(l, &e);
        n_after_end += has_exited;
    }
    stdio_finish(l, r, &e);
    return NULL;
}

/* ---- the link ---- */

static int stdio_start(struct mcp_link *link, const struct mcp_link_events *on, struct err *e)
{
    struct stdio_link *l = stdio_of(link);
    int r;

    l->on = *on;
    r = thread_start_sized(&l->thread, "mcp-stdio", LIMIT_MCP_STACK, stdio_main, l);
    if (r < 0)
        return err_errno(e, -r, "cannot start a thread for an MCP server");
    l->has_thread = true;
    return 0;
}

static struct stdio_link *stdio_free(struct stdio_link *l)
{
    stdio_close_stdin(l);
    if (l->ends.stdout_fd >= 0)
        close(l->ends.stdout_fd);
    if (l->wake_fd >= 0)
        close(l->wake_fd);
    buf_clear(&l->line);
    child_log_unref(l->log);
    child_unref(l->child);
    pthread_cond_destroy(&l->changed);
    pthread_mutex_destroy(&l->lock);
    free(l);
    return NULL;
}

/* Closing standard input is the protocol's request to end; the supervisor has the stronger ones. */
static struct mcp_link *stdio_close(struct mcp_link *link)
{
    struct stdio_link *l = stdio_of(link);

    pthread_mutex_lock(&l->lock);
    l->is_closing = true;
    stdio_wake(l);
    pthread_mutex_unlock(&l->lock);
    if (l->has_thread)
        pthread_join(l->thread, NULL);
    pthread_mutex_lock(&l->lock);
    stdio_close_stdin(l);
    stdio_wait_for_exit(l, LIMIT_MCP_EOF_MS);
    pthread_mutex_unlock(&l->lock);
    child_stop(l->child);
    pthread_mutex_lock(&l->lock);
    while (!l->has_exited)
        pthread_cond_wait(&l->changed, &l->lock); /* the supervisor kills, and gives up at last */
    pthread_mutex_unlock(&l->lock);
    stdio_free(l);
    return NULL;
}

static const struct mcp_link_ops stdio_ops = {
    .name = "stdio",
    .sends_at_once = true,
    .start = stdio_start,
    .send = stdio_send,
    .close = stdio_close,
};

int mcp_stdio_open(const struct mcp_stdio_config *c, struct mcp_link **ret, struct err *e)
{
    struct stdio_link *l = xcalloc(1, sizeof(*l));
    struct child_spec spec = *c->spec;
    int r;

    l->link.ops = &stdio_ops;
    l->ends = (struct child_ends){ -1, -1 };
    l->last = &l->first;
    l->log = spec.log ? child_log_ref(spec.log) : child_log_new();
    pthread_mutex_init(&l->lock, NULL);
    cond_init(&l->changed);
    buf_init(&l->line, LIMIT_MCP_FRAME + STDIO_READ_BYTES);
    l->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    spec.log = l->log;
    spec.ends = &l->ends;
    spec.max_stdout = 0;
    spec.on_exit = stdio_on_exit;
    spec.arg = l;
    r = l->wake_fd < 0 ? err_errno(e, errno, "An MCP server cannot be connected with")
                       : child_start(c->supervisor, &spec, &l->child, e);
    if (r < 0) {
        stdio_free(l);
        return r;
    }
    *ret = &l->link;
    return 0;
}

pid_t mcp_stdio_pid(const struct mcp_link *l)
{
    return child_pid(stdio_of(l)->child);
}

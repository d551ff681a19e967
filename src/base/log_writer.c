#include "base/log_writer.h"

#include "base/clock.h"
#include "base/cond.h"
#include "base/limits.h"
#include "base/metrics.h"
#include "base/thread.h"

#include <poll.h>
#include <stdatomic.h>
#include <unistd.h>

struct line {
    size_t n;
    char text[LIMIT_LOG_OWN_LINE_BYTES];
};

/* Never freed: a thread blocked in write() may outlive log_writer_stop(). */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    pthread_t thread;
    int fd;
    bool is_started, is_stopping, has_ended;
    char *ring;         /* owned; LIMIT_LOG_WAITING_BYTES: lines one after the other */
    size_t first, n;    /* bytes */
    uint64_t n_dropped; /* lines since the last log_writer_take_dropped() */
    struct metric *dropped;
} writer = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void copy_in(struct slice line)
{
    size_t at = (writer.first + writer.n) % LIMIT_LOG_WAITING_BYTES, n_end = MIN(line.n, LIMIT_LOG_WAITING_BYTES - at);

    memcpy(writer.ring + at, line.p, n_end);
    memcpy(writer.ring, line.p + n_end, line.n - n_end);
    writer.n += line.n;
}

/* The caller holds the lock; the ring holds a line. */
static void take_line(struct line *ret)
{
    ret->n = 0;
    do {
        ret->text[ret->n] = writer.ring[writer.first];
        writer.first = (writer.first + 1) % LIMIT_LOG_WAITING_BYTES;
        writer.n--;
    } while (ret->text[ret->n++] != '\n' && ret->n < sizeof(ret->text) && writer.n > 0);
}

/* Waits until the descriptor is writable; a writable pipe takes up to PIPE_BUF bytes in one write. */
static void write_out(const struct line *line)
{
    struct pollfd writable = { .fd = writer.fd, .events = POLLOUT };

    while (poll(&writable, 1, -1) < 0 && errno == EINTR) {
    }
    if (write(writer.fd, line->text, line->n) < 0) {
        /* The descriptor cannot be written: the line is lost. */
    }
}

/* False: the thread must end. */
static bool next_line(struct line *ret)
{
    bool has_line;

    ret->n = 0;
    pthread_mutex_lock(&writer.lock);
    while (writer.n == 0 && !writer.is_stopping)
        pthread_cond_wait(&writer.changed, &writer.lock);
    has_line = writer.n > 0;
    if (has_line)
        take_line(ret);
    writer.has_ended = !has_line;
    pthread_cond_broadcast(&writer.changed);
    pthread_mutex_unlock(&writer.lock);
    return has_line;
}

static void *write_lines(void *arg)
{
    struct line line;

    while (next_line(&line))
        write_out(&line);
    return NULL;
}

int log_writer_start(int fd, struct err *e)
{
    int r;

    if (!writer.ring) {
        writer.ring = xcalloc(1, LIMIT_LOG_WAITING_BYTES);
        writer.dropped = metric_counter("hearth_log_dropped_lines_total",
                                        "Log lines dropped because standard error was not read", "");
        cond_init(&writer.changed);
    }
    writer.fd = fd;
    writer.is_stopping = writer.has_ended = false;
    r = thread_start(&writer.thread, "log", write_lines, NULL);
    if (r < 0)
        return err_errno(e, -r, "The thread that writes the log could not be started");
    pthread_mutex_lock(&writer.lock);
    writer.is_started = true;
    pthread_mutex_unlock(&writer.lock);
    return 0;
}

void log_writer_stop(void)
{
    int64_t until_us = clock_mono_us() + LIMIT_LOG_FLUSH_MS * 1000;
    bool has_ended;

    pthread_mutex_lock(&writer.lock);
    if (!writer.is_started) {
        pthread_mutex_unlock(&writer.lock);
        return;
    }
    writer.is_started = false;
    writer.is_stopping = true;
    pthread_cond_broadcast(&writer.changed);
    while (!writer.has_ended && cond_wait_until(&writer.changed, &writer.lock, until_us)) {
    }
    has_ended = writer.has_ended;
    pthread_mutex_unlock(&writer.lock);
    if (has_ended)
        pthread_join(writer.thread, NULL);
    else
        pthread_detach(writer.thread);
}

bool log_writer_add(struct slice line)
{
    bool is_started, must_wake = false;

    pthread_mutex_lock(&writer.lock);
    is_started = writer.is_started;
    if (is_started && line.n > LIMIT_LOG_WAITING_BYTES - writer.n) {
        writer.n_dropped++;
        metric_add(writer.dropped, 1);
    } else if (is_started) {
        copy_in(line);
        must_wake = writer.n == line.n; /* otherwise the thread is awake already */
    }
    pthread_mutex_unlock(&writer.lock);
    if (must_wake)
        pthread_cond_signal(&writer.changed);
    return is_started;
}

uint64_t log_writer_take_dropped(void)
{
    uint64_t n = 0;

    pthread_mutex_lock(&writer.lock);
    if (LIMIT_LOG_WAITING_BYTES - writer.n >= 2 * (size_t)LIMIT_LOG_OWN_LINE_BYTES) {
        n = writer.n_dropped;
        writer.n_dropped = 0;
    }
    pthread_mutex_unlock(&writer.lock);
    return n;
}

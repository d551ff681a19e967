#include "speech/sound_queue.h"

#include "base/limits.h"

#include <sys/eventfd.h>
#include <unistd.h>

int sound_queue_init(struct sound_queue *q, void (*has_room)(void *arg), void *arg, struct err *e)
{
    *q = (struct sound_queue){ .has_room = has_room, .arg = arg };
    buf_init(&q->taken, LIMIT_SPEECH_SESSION_WAITING + LIMIT_SPEECH_SESSION_FRAME);
    buf_init(&q->added, LIMIT_SPEECH_SESSION_WAITING + LIMIT_SPEECH_SESSION_FRAME);
    pthread_mutex_init(&q->lock, NULL);
    q->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return q->fd < 0 ? err_errno(e, errno, "The queue of the sound") : 0;
}

void sound_queue_clear(struct sound_queue *q)
{
    if (q->fd >= 0)
        close(q->fd);
    buf_clear(&q->taken);
    buf_clear(&q->added);
    pthread_mutex_destroy(&q->lock);
}

static void wake(const struct sound_queue *q)
{
    const uint64_t one = 1;

    (void)!write(q->fd, &one, sizeof(one));
}

bool sound_queue_add(struct sound_queue *q, struct slice samples)
{
    bool is_full;

    pthread_mutex_lock(&q->lock);
    buf_add_slice(&q->added, samples);
    is_full = q->is_full = q->added.n >= LIMIT_SPEECH_SESSION_WAITING;
    pthread_mutex_unlock(&q->lock);
    wake(q);
    return !is_full;
}

void sound_queue_end(struct sound_queue *q)
{
    pthread_mutex_lock(&q->lock);
    q->has_ended = true;
    pthread_mutex_unlock(&q->lock);
    wake(q);
}

/* ---- the thread that listens ---- */

static int open_queue(void *arg, const struct net_wait *wait, struct err *e)
{
    return 0;
}

static void close_queue(void *arg)
{
}

static int fd_of(void *arg)
{
    return ((struct sound_queue *)arg)->fd;
}

static int take(void *arg, struct slice *ret, struct err *e)
{
    struct sound_queue *q = arg;
    struct buf empty = q->taken;
    uint64_t n_added;
    bool has_ended, was_full;

    (void)!read(q->fd, &n_added, sizeof(n_added)); /* before the look: what is added after it wakes again */
    buf_reset(&empty);
    pthread_mutex_lock(&q->lock);
    q->taken = q->added;
    q->added = empty;
    was_full = q->is_full;
    q->is_full = false;
    has_ended = q->has_ended;
    pthread_mutex_unlock(&q->lock);
    if (was_full)
        q->has_room(q->arg);
    *ret = buf_slice(&q->taken);
    return ret->n > 0 ? SOUND_SAMPLES : has_ended ? SOUND_END : SOUND_NONE;
}

struct sound_source sound_queue_source(struct sound_queue *q)
{
    return (struct sound_source){ open_queue, take, fd_of, close_queue, q };
}

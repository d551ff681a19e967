#include "base/loop.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/stall.h"

#include <assert.h>
#include <event2/event.h>
#include <event2/event_struct.h>
#include <event2/thread.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

static _Thread_local bool runs_loop; /* this thread is inside loop_run() */

struct post {
    void (*fn)(void *arg);
    void *arg;
};

struct posts {
    struct post *items; /* owned */
    size_t n, cap;
};

struct loop {
    struct event_base *base;  /* owned */
    struct event *wake;       /* owned; readable when posts wait */
    int wake_fd;              /* owned */
    _Atomic pthread_t thread; /* the thread that made the loop, then the thread that runs it */
    pthread_mutex_t lock;     /* guards what follows */
    pthread_cond_t call_done;
    struct posts waiting;
    bool has_ended;            /* loop_run() is over */
    atomic_size_t n_waking;    /* threads that are about to wake the loop */
    pthread_mutex_t after_end; /* held while a call runs after the end, so that calls run one at a time */
};

struct call {
    struct loop *loop;
    void (*fn)(void *arg);
    void *arg;
    bool is_done; /* under loop->lock */
};

struct loop_timer {
    struct event event;
    int64_t every_ms; /* 0 = once */
    void (*fn)(void *arg);
    void *arg;
};

struct loop_watch {
    struct event event;
    void (*fn)(int number, void *arg);
    void *arg;
};

void loop_measure(const struct stall_span *span, const char *kind, const void *place)
{
    struct stall stall = stall_held(span);

    if (stall.held_us == 0)
        return;
    metric_observe(metric_histogram("hearth_loop_stall_seconds",
                                    "Time for which one callback held the loop, when it was above 50 ms.", ""),
                   (double)stall.held_us / 1e6);
    log_warn("loop", NULL,
             "the loop was held for %lld ms by %s at %s: it ran for %lld ms and waited for %lld ms (and "
             "%lld ms while the machine lacked processors)",
             (long long)stall.held_us / 1000, kind, stall_place(place), (long long)stall.ran_us / 1000,
             (long long)stall.waited_us / 1000, (long long)(stall.ready_us + stall.starved_us) / 1000);
}

/* ISO C has no cast from a function pointer to a data pointer; POSIX requires that the conversion works, for
 * dlsym(). */
static const void *address_of(void (*fn)(void *arg))
{
    const void *address;

    memcpy(&address, &fn, sizeof(address));
    return address;
}

static void run_measured(const char *kind, void (*fn)(void *arg), void *arg)
{
    struct stall_span span = stall_begin();

    fn(arg);
    loop_measure(&span, kind, address_of(fn));
}

static void run_call(void *arg);

/* For a loop_call(), the function that it calls is measured. */
static void run_post(const struct post *p)
{
    if (p->fn == run_call)
        run_call(p->arg);
    else
        run_measured("a post", p->fn, p->arg);
}

/* Runs the posts that wait now; posts made meanwhile wait for the next round. True when there were any. */
static bool run_posts(struct loop *l)
{
    struct posts now;

    pthread_mutex_lock(&l->lock);
    now = l->waiting;
    l->waiting = (struct posts){ 0 };
    pthread_mutex_unlock(&l->lock);
    for (size_t i = 0; i < now.n; i++)
        run_post(&now.items[i]);
    free(now.items);
    return now.n > 0;
}

static void on_wake(evutil_socket_t fd, short what, void *arg)
{
    uint64_t count;

    if (read(fd, &count, sizeof(count)) < 0)
        return; /* spurious wakeup */
    run_posts(arg);
}

static void log_libevent(int severity, const char *text)
{
    log_debug("loop", NULL, "libevent: %s", LOG_Q(text));
}

static void prepare_libevent(void)
{
    evthread_use_pthreads();
    event_set_log_callback(log_libevent);
}

static int open_loop(struct loop *l, struct err *e)
{
    l->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (l->wake_fd < 0)
        return err_errno(e, errno, "The event loop could not be made");
    l->base = event_base_new();
    if (!l->base)
        return err_set(e, -EIO, "INTERNAL_ERROR", "The event loop could not be made.");
    l->wake = event_new(l->base, l->wake_fd, EV_READ | EV_PERSIST, on_wake, l);
    if (!l->wake || event_add(l->wake, NULL) < 0)
        return err_set(e, -EIO, "INTERNAL_ERROR", "The event loop could not watch its own wake-up.");
    return 0;
}

int loop_new(struct loop **ret, struct err *e)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct loop *l;
    int r;

    pthread_once(&once, prepare_libevent);
    l = xcalloc(1, sizeof(*l));
    atomic_init(&l->thread, pthread_self());
    pthread_mutex_init(&l->lock, NULL);
    pthread_cond_init(&l->call_done, NULL);
    pthread_mutex_init(&l->after_end, NULL);
    r = open_loop(l, e);
    if (r < 0) {
        loop_free(l);
        return r;
    }
    *ret = l;
    return 0;
}

struct loop *loop_free(struct loop *l)
{
    if (!l)
        return NULL;
    while (run_posts(l) || atomic_load(&l->n_waking) > 0)
        sched_yield();
    if (l->wake)
        event_free(l->wake);
    if (l->base)
        event_base_free(l->base);
    if (l->wake_fd >= 0)
        close(l->wake_fd);
    pthread_mutex_destroy(&l->after_end);
    pthread_cond_destroy(&l->call_done);
    pthread_mutex_destroy(&l->lock);
    free(l);
    return NULL;
}

static void set_ended(struct loop *l, bool has_ended)
{
    pthread_mutex_lock(&l->lock);
    l->has_ended = has_ended && l->waiting.n == 0;
    pthread_mutex_unlock(&l->lock);
}

int loop_run(struct loop *l, struct err *e)
{
    int r;

    atomic_store(&l->thread, pthread_self());
    set_ended(l, false);
    runs_loop = true;
    r = event_base_loop(l->base, EVLOOP_NO_EXIT_ON_EMPTY);
    while (!l->has_ended) { /* only this thread changes it */
        run_posts(l);
        set_ended(l, true);
    }
    runs_loop = false;
    if (r < 0)
        return err_set(e, -EIO, "INTERNAL_ERROR", "The event loop ended by a failure of its poll.");
    return 0;
}

static void break_loop(void *arg)
{
    struct loop *l = arg;

    event_base_loopbreak(l->base);
}

void loop_stop(struct loop *l)
{
    loop_post(l, break_loop, l);
}

bool loop_is_here(void)
{
    return runs_loop;
}

bool loop_is_current(const struct loop *l)
{
    return pthread_equal(atomic_load(&l->thread), pthread_self());
}

struct event_base *loop_base(struct loop *l)
{
    return l->base;
}

/* The first post must wake the loop, which then runs the later posts too: the caller holds the lock, and after its
 * release calls wake() with the returned value. */
static bool append_post(struct loop *l, struct post post)
{
    struct posts *posts = &l->waiting;

    if (posts->n == posts->cap) {
        posts->cap = MAX(2 * posts->cap, (size_t)16);
        posts->items = xrealloc(posts->items, posts->cap * sizeof(*posts->items));
    }
    posts->items[posts->n++] = post;
    if (posts->n == 1)
        atomic_fetch_add(&l->n_waking, 1);
    return posts->n == 1;
}

/* Called without the lock: a thread that is woken often takes the processor of its waker, and everybody would wait for
 * the lock until the waker runs again. */
static void wake(struct loop *l, bool is_first)
{
    static const uint64_t one = 1;

    if (!is_first)
        return;
    while (write(l->wake_fd, &one, sizeof(one)) < 0 && errno == EINTR) {
    }
    atomic_fetch_sub(&l->n_waking, 1);
}

void loop_post(struct loop *l, void (*fn)(void *arg), void *arg)
{
    bool is_first;

    pthread_mutex_lock(&l->lock);
    is_first = append_post(l, (struct post){ fn, arg });
    pthread_mutex_unlock(&l->lock);
    wake(l, is_first);
}

void loop_run_here(struct loop *l, void (*fn)(void *arg), void *arg)
{
    if (loop_is_current(l))
        fn(arg);
    else
        loop_post(l, fn, arg);
}

static void run_call(void *arg)
{
    struct call *call = arg;
    struct loop *l = call->loop;

    run_measured("a call", call->fn, call->arg);
    pthread_mutex_lock(&l->lock);
    call->is_done = true;
    pthread_cond_broadcast(&l->call_done);
    pthread_mutex_unlock(&l->lock);
}

/* No other thread runs callbacks any more: the caller acts as the loop's thread and first runs the earlier posts. */
static void call_after_end(struct loop *l, void (*fn)(void *arg), void *arg)
{
    pthread_t before;

    pthread_mutex_lock(&l->after_end);
    before = atomic_exchange(&l->thread, pthread_self());
    run_posts(l);
    fn(arg);
    atomic_store(&l->thread, before);
    pthread_mutex_unlock(&l->after_end);
}

void loop_call(struct loop *l, void (*fn)(void *arg), void *arg)
{
    struct call call = { .loop = l, .fn = fn, .arg = arg };
    bool has_ended, is_first = false;

    if (loop_is_current(l)) {
        fn(arg);
        return;
    }
    pthread_mutex_lock(&l->lock);
    has_ended = l->has_ended;
    if (!has_ended)
        is_first = append_post(l, (struct post){ run_call, &call });
    pthread_mutex_unlock(&l->lock);
    wake(l, is_first);
    if (has_ended) {
        call_after_end(l, fn, arg);
        return;
    }
    pthread_mutex_lock(&l->lock);
    while (!call.is_done)
        pthread_cond_wait(&l->call_done, &l->lock);
    pthread_mutex_unlock(&l->lock);
}

static struct timeval timeval_of_ms(int64_t ms)
{
    int64_t waited = MAX(ms, (int64_t)0);

    return (struct timeval){ .tv_sec = waited / 1000, .tv_usec = waited % 1000 * 1000 };
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
    struct loop_timer *t = arg;

    if (t->every_ms > 0) { /* before the call: fn may cancel or free the timer */
        struct timeval after = timeval_of_ms(t->every_ms);

        event_add(&t->event, &after);
    }
    run_measured("a timer", t->fn, t->arg);
}

struct loop_timer *loop_timer_new(struct loop *l, void (*fn)(void *arg), void *arg)
{
    struct loop_timer *t = xcalloc(1, sizeof(*t));

    assert(loop_is_current(l));
    t->fn = fn;
    t->arg = arg;
    evtimer_assign(&t->event, l->base, on_timer, t);
    return t;
}

void loop_timer_set(struct loop_timer *t, int64_t after_ms)
{
    struct timeval after = timeval_of_ms(after_ms);

    t->every_ms = 0;
    event_add(&t->event, &after);
}

void loop_timer_every(struct loop_timer *t, int64_t every_ms)
{
    struct timeval after;

    t->every_ms = MAX(every_ms, (int64_t)1);
    after = timeval_of_ms(t->every_ms);
    event_add(&t->event, &after);
}

void loop_timer_cancel(struct loop_timer *t)
{
    t->every_ms = 0;
    event_del(&t->event);
}

struct loop_timer *loop_timer_free(struct loop_timer *t)
{
    if (!t)
        return NULL;
    event_del(&t->event);
    free(t);
    return NULL;
}

static void on_watch(evutil_socket_t number, short what, void *arg)
{
    struct loop_watch *w = arg;
    struct stall_span span = stall_begin();
    const void *place;

    memcpy(&place, &w->fn, sizeof(place));
    w->fn((int)number, w->arg); /* w may be gone afterwards */
    loop_measure(&span, "a watch", place);
}

static struct loop_watch *make_watch(struct loop *l, int number, short what, void (*fn)(int number, void *arg),
                                     void *arg)
{
    struct loop_watch *w = xcalloc(1, sizeof(*w));

    assert(loop_is_current(l));
    w->fn = fn;
    w->arg = arg;
    if (event_assign(&w->event, l->base, number, (short)(what | EV_PERSIST), on_watch, w) < 0 ||
        event_add(&w->event, NULL) < 0) {
        free(w);
        return NULL;
    }
    return w;
}

struct loop_watch *loop_watch_read(struct loop *l, int fd, void (*fn)(int fd, void *arg), void *arg)
{
    return make_watch(l, fd, EV_READ, fn, arg);
}

struct loop_watch *loop_watch_signal(struct loop *l, int signum, void (*fn)(int signum, void *arg), void *arg)
{
    return make_watch(l, signum, EV_SIGNAL, fn, arg);
}

struct loop_watch *loop_watch_free(struct loop_watch *w)
{
    if (!w)
        return NULL;
    event_del(&w->event);
    free(w);
    return NULL;
}

/* The answer's deltas are made on the loop and passed on by the thread that waits. */
#include "models/chat_run.h"

#include "base/clock.h"
#include "base/cond.h"
#include "base/limits.h"

#include <stdlib.h>

enum { LOOK_US = CHAT_LOOK_MS * 1000 };

/* Shared by the thread that waits and the chat; the last of the two frees it. */
struct chat_wait {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    atomic_int n_refs;
    atomic_bool is_over; /* the chat's cancel flag */
    struct buf text;     /* deltas that were not passed on yet */
    bool is_done;
    int r;
    struct err *e;           /* owned; NULL: no error */
    struct llm_whole *whole; /* owned until chat_run() takes it; NULL: no request was sent */
};

static struct chat_wait *wait_new(void)
{
    struct chat_wait *w = xcalloc(1, sizeof(*w));

    pthread_mutex_init(&w->lock, NULL);
    cond_init(&w->changed);
    atomic_init(&w->n_refs, 2);
    buf_init(&w->text, LIMIT_LLM_ANSWER);
    return w;
}

static void wait_unref(struct chat_wait *w)
{
    if (atomic_fetch_sub(&w->n_refs, 1) > 1)
        return;
    llm_whole_free(w->whole);
    free(w->e);
    buf_clear(&w->text);
    pthread_cond_destroy(&w->changed);
    pthread_mutex_destroy(&w->lock);
    free(w);
}

/* ---- on the loop ---- */

static int on_delta(void *arg, struct slice text)
{
    struct chat_wait *w = arg;

    pthread_mutex_lock(&w->lock);
    buf_add_slice(&w->text, text);
    pthread_mutex_unlock(&w->lock);
    pthread_cond_signal(&w->changed);
    return 0;
}

static void on_done(void *arg, struct llm_whole *whole, int r, const struct err *e)
{
    struct chat_wait *w = arg;

    pthread_mutex_lock(&w->lock);
    w->is_done = true;
    w->r = r;
    w->whole = whole;
    if (r < 0)
        *err_place(&w->e) = *e;
    pthread_mutex_unlock(&w->lock);
    pthread_cond_signal(&w->changed);
    wait_unref(w);
}

/* ---- on the thread that waits ---- */

static void pass_on(struct chat_wait *w, const struct chat_run *run)
{
    struct buf ready = w->text;

    if (!run->on_text || ready.n == 0)
        return;
    buf_init(&w->text, LIMIT_LLM_ANSWER);
    pthread_mutex_unlock(&w->lock);
    run->on_text(run->arg, buf_slice(&ready));
    buf_clear(&ready);
    pthread_mutex_lock(&w->lock);
}

/* The wait's own reason to end, kept until the chat has ended as well. */
static void look(struct chat_wait *w, const struct chat_run *run, int *r, struct err *e)
{
    int64_t left;

    if (*r < 0)
        return;
    left = net_wait_left(run->wait, e);
    if (left < 0) {
        *r = (int)left;
        atomic_store(&w->is_over, true);
    }
}

/* 0, or why the wait ends; the chat has ended in both cases. */
static int wait_for_it(struct chat_wait *w, const struct chat_run *run, struct err *e)
{
    int r = 0;

    pthread_mutex_lock(&w->lock);
    while (!w->is_done) {
        look(w, run, &r, e);
        if (w->text.n == 0)
            cond_wait_until(&w->changed, &w->lock, clock_mono_us() + LOOK_US);
        pass_on(w, run);
    }
    pass_on(w, run);
    pthread_mutex_unlock(&w->lock);
    return r;
}

/* Takes over what the chat gave; the wait's own reason counts before the chat's. */
static int take_end(struct chat_wait *w, int r, struct llm_whole **ret, struct err *e)
{
    *ret = w->whole;
    w->whole = NULL;
    if (r == 0 && w->r < 0) {
        r = w->r;
        *e = *w->e;
    }
    wait_unref(w);
    return r;
}

int chat_run(struct models_call *call, const struct chat_job *job, const struct chat_run *run, struct llm_whole **ret,
             struct err *e)
{
    struct llm_sink sink = { .on_text = on_delta };
    struct chat *chat = NULL;
    struct chat_wait *w;
    int r = chat_prepare(call, job, &chat, e);

    *ret = NULL;
    if (r < 0)
        return r;
    w = wait_new();
    sink.arg = w;
    chat->is_gone = &w->is_over;
    chat_start(chat, &(struct chat_client){ .done = on_done, .sink = run->on_text ? &sink : NULL, .arg = w });
    return take_end(w, wait_for_it(w, run, e), ret, e);
}

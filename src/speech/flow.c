#include "speech/flow.h"

#include <stdlib.h>

struct speech_flow {
    struct speech_pool *pool;
    struct speech_worker *worker;
    struct speech_answer answer;
    const atomic_bool *is_gone, *is_leaving;
    int r; /* 0: the sentence has ended, and the worker can be kept */
};

/* For the worker's answer to one frame. */
static struct net_wait wait_of(const struct speech_flow *f)
{
    return net_wait_of(LIMIT_SPEECH_SENTENCE_MS, f->is_gone, f->is_leaving);
}

int speech_flow_begin(struct speech_pool *pool, const struct speech_frame_begin *begin, const char *caller,
                      const atomic_bool *is_gone, struct buf *audio, struct speech_flow **ret, struct err *e)
{
    struct speech_flow *f = xcalloc(1, sizeof(*f));
    struct net_wait wait;
    int r;

    *f =
        (struct speech_flow){ .pool = pool, .is_gone = is_gone, .is_leaving = speech_pool_is_leaving(pool), .r = -EIO };
    speech_answer_init(&f->answer, audio, LIMIT_SPEECH_AUDIO);
    f->answer.is_flow = true;
    r = speech_pool_lend(pool, caller, is_gone, &f->worker, e);
    if (r == 0) {
        wait = wait_of(f);
        r = speech_worker_begin(f->worker, begin, &wait, &f->answer, e);
    }
    if (r < 0)
        speech_flow_free(f);
    else
        *ret = f;
    return r;
}

int speech_flow_pass(struct speech_flow *f, struct slice samples, struct err *e)
{
    const struct net_wait wait = wait_of(f);
    int r = speech_worker_pass(f->worker, samples, &wait, &f->answer, e);

    return r < 0 ? r : buf_check(f->answer.out, e);
}

int speech_flow_end(struct speech_flow *f, struct speech_frame_done *ret, struct err *e)
{
    const struct net_wait wait = wait_of(f);

    f->r = speech_worker_end(f->worker, &wait, &f->answer, e);
    *ret = f->answer.done;
    return f->r < 0 ? f->r : buf_check(f->answer.out, e);
}

struct speech_flow *speech_flow_free(struct speech_flow *f)
{
    if (!f)
        return NULL;
    if (f->worker)
        speech_pool_give_back(f->pool, f->worker, f->r);
    speech_answer_clear(&f->answer);
    free(f);
    return NULL;
}

#include "speech/ears_worker.h"

#include "speech/ears_recording.h"

#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

enum { READ_BYTES = 32768 };

struct ears_run {
    struct arena *a;
    struct speech_engine program; /* as the worker's starter takes it */
    struct net_wait wait;
    struct speech_worker *worker;
    struct ears_answer answer;
    double duration;
    bool is_done;
};

/* ---- workers ---- */

struct speech_engine ears_worker_program(const struct ears_engine *engine)
{
    return (struct speech_engine){
        .id = engine->id, .program = engine->program, .packages = engine->needs, .remedy = engine->remedy
    };
}

int ears_worker_start(const struct ears_context *c, const struct speech_engine *program, const struct net_wait *wait,
                      struct speech_worker **ret, struct err *e)
{
    AUTO(arena_freep) struct arena *a = NULL;
    const char *folder;

    if (!c->supervisor)
        return err_set(e, -ENODEV, "SPEECH_UNAVAILABLE", "Only a running service hears: `hearth serve`.");
    a = arena_new();
    folder = settings_string(c->settings, a, SETTING_SPEECH_FOLDER);
    return speech_worker_start(c->supervisor, speech_engine_program(folder, program, a), program, wait, ret, e);
}

/* Containers are read by more libraries, which only this worker loads. */
static void add_containers(struct speech_engine *program, struct arena *a)
{
    size_t n = 0;
    const char **args;

    while (program->args && program->args[n])
        n++;
    args = arena_array(a, n + 2, sizeof(*args));
    args[0] = EARS_CONTAINERS;
    if (n > 0)
        memcpy(args + 1, program->args, n * sizeof(*args));
    program->args = args;
    program->packages = arena_printf(a, "%s libavformat59 libavcodec59 libswresample4", program->packages);
}

int ears_worker_check_with(const struct ears_engine *engine, const struct ears_context *c, const char *const *args,
                           struct err *e)
{
    const struct net_wait wait = net_wait_of(LIMIT_SPEECH_SENTENCE_MS, NULL, c->is_leaving);
    struct speech_engine program = ears_worker_program(engine);
    struct speech_worker *w = NULL;
    int r;

    program.args = args;
    r = ears_worker_start(c, &program, &wait, &w, e);
    speech_worker_stop(w);
    return r;
}

int ears_worker_check(const struct ears_engine *engine, const struct ears_context *c, struct err *e)
{
    return ears_worker_check_with(engine, c, NULL, e);
}

static int explain_wait(int r, struct err *e)
{
    return r == -ETIMEDOUT ? err_set(e, -EIO, "SPEECH_FAILED", "The worker that hears took longer than %d minutes.",
                                     LIMIT_SPEECH_TRANSCRIBE_MS / 60000)
                           : r;
}

int ears_worker_receive(const struct speech_worker *w, struct ears_answer *answer, struct err *e)
{
    char bytes[READ_BYTES];
    ssize_t n = read(speech_worker_ends(w).stdout_fd, bytes, sizeof(bytes));

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (n <= 0)
        return err_set(e, -EIO, "SPEECH_FAILED", "The worker of the engine ended before the end of the recording.");
    ears_answer_feed(answer, (struct slice){ bytes, (size_t)n });
    return 0;
}

/* The next event. */
static int await_event(struct ears_run *h, struct ears_event *ret, struct err *e)
{
    int r = ears_answer_next(&h->answer, ret, e);

    while (r == 0) {
        r = explain_wait(net_wait_fd(&h->wait, speech_worker_ends(h->worker).stdout_fd, POLLIN, e), e);
        if (r == 0)
            r = ears_worker_receive(h->worker, &h->answer, e);
        if (r == 0)
            r = ears_answer_next(&h->answer, ret, e);
    }
    return MIN(r, 0);
}

/* A worker that answers before it has everything has failed: its answer says why. */
static int send_bytes(struct ears_run *h, struct slice bytes, struct err *e)
{
    const struct child_ends ends = speech_worker_ends(h->worker);
    struct pollfd fds[] = { { .fd = ends.stdin_fd, .events = POLLOUT }, { .fd = ends.stdout_fd, .events = POLLIN } };

    while (bytes.n > 0 && !fds[1].revents) {
        int r = explain_wait(net_wait_fds(&h->wait, fds, ARRAY_SIZE(fds), e), e);
        ssize_t n;

        if (r < 0)
            return r;
        n = write(ends.stdin_fd, bytes.p, bytes.n);
        if (n < 0 && errno != EAGAIN && errno != EINTR)
            return 0;
        bytes = (struct slice){ bytes.p + MAX(n, 0), bytes.n - (size_t)MAX(n, 0) };
    }
    return 0;
}

static int send_job(struct ears_run *h, const struct ears_job *job, struct err *e)
{
    const struct {
        struct speech_frame frame;
        struct ears_frame_start start;
    } head = { { EARS_FRAME_START, sizeof(struct ears_frame_start) },
               { job->phrases, (uint32_t)job->phrases_text.n, (uint32_t)job->recording.n, 0, 0 } };
    int r = send_bytes(h, (struct slice){ (const char *)&head, sizeof(head) }, e);

    if (r == 0)
        r = send_bytes(h, job->phrases_text, e);
    if (r == 0)
        r = send_bytes(h, job->recording, e);
    return r;
}

int ears_worker_begin_with(const struct ears_engine *engine, const struct ears_context *c, const char *const *args,
                           const struct ears_job *job, const struct net_wait *wait, struct ears_run **ret,
                           struct err *e)
{
    const struct net_wait start = net_wait_part(wait, LIMIT_SPEECH_SENTENCE_MS);
    struct ears_run *h = xcalloc(1, sizeof(*h));
    struct ears_event event;
    int r;

    h->a = arena_new();
    h->program = ears_worker_program(engine);
    h->program.args = args;
    if (ears_recording_kind(job->recording) == EARS_CONTAINER)
        add_containers(&h->program, h->a);
    h->wait = *wait;
    ears_answer_init(&h->answer);
    r = ears_worker_start(c, &h->program, &start, &h->worker, e);
    if (r == 0)
        r = send_job(h, job, e);
    if (r == 0)
        r = await_event(h, &event, e); /* the first event is EARS_OPENED */
    if (r < 0)
        ears_worker_end(h);
    else
        *ret = h;
    return r;
}

int ears_worker_begin(const struct ears_engine *engine, const struct ears_context *c, const struct ears_job *job,
                      const struct net_wait *wait, struct ears_run **ret, struct err *e)
{
    return ears_worker_begin_with(engine, c, NULL, job, wait, ret, e);
}

/* ---- the answer ---- */

struct gathered {
    struct heard_word *words;
    size_t n, n_allocated;
    struct buf text;
};

static double seconds(uint32_t ms)
{
    return ms / 1000.0;
}

static void gather(struct gathered *g, struct arena *a, const struct ears_event *event)
{
    if (g->n == g->n_allocated) {
        struct heard_word *grown = arena_array(a, MAX(g->n_allocated * 2, (size_t)16), sizeof(*grown));

        if (g->n > 0)
            memcpy(grown, g->words, g->n * sizeof(*grown));
        g->words = grown;
        g->n_allocated = MAX(g->n_allocated * 2, (size_t)16);
    }
    if (g->n > 0)
        buf_add_char(&g->text, ' ');
    buf_add_slice(&g->text, event->word);
    g->words[g->n++] = (struct heard_word){ arena_slicedup(a, event->word), seconds(event->start_ms),
                                            seconds(event->end_ms), event->confidence };
}

/* Segments without words are left out. */
static int gather_segment(struct ears_run *h, struct gathered *g, struct arena *a, struct ears_event *event,
                          struct err *e)
{
    int r = 0;

    while (r == 0) {
        r = await_event(h, event, e);
        if (r == 0 && event->kind == EARS_WORD)
            gather(g, a, event);
        else if (r == 0 && (event->kind == EARS_DONE || g->n > 0))
            return 0;
    }
    return r;
}

int ears_worker_next(struct ears_run *h, struct arena *a, struct heard_segment *ret, struct err *e)
{
    struct gathered g = { NULL, 0, 0, { 0 } };
    struct ears_event event = { .kind = EARS_DONE };
    int r;

    if (h->is_done)
        return 0;
    buf_init(&g.text, LIMIT_SPEECH_TRANSCRIPT);
    r = gather_segment(h, &g, a, &event, e);
    h->is_done = r < 0 || event.kind == EARS_DONE;
    if (r == 0 && h->is_done)
        h->duration = seconds(event.end_ms);
    if (r == 0 && !h->is_done) {
        *ret = (struct heard_segment){ buf_to_arena(&g.text, a), seconds(event.start_ms), seconds(event.end_ms),
                                       g.words, g.n };
        r = 1;
    }
    buf_clear(&g.text);
    return r;
}

double ears_worker_duration(const struct ears_run *h)
{
    return h->duration;
}

struct ears_run *ears_worker_end(struct ears_run *h)
{
    if (!h)
        return NULL;
    speech_worker_stop(h->worker);
    ears_answer_clear(&h->answer);
    arena_free(h->a);
    free(h);
    return NULL;
}

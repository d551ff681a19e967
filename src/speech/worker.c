#include "speech/worker.h"

#include "os/env.h"
#include "speech/ears_frames.h"

#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

enum { STOP_GRACE_MS = 50, READ_BYTES = 32768, N_LAST_WORDS = 2 };

struct speech_worker {
    const struct speech_engine *engine;
    struct child *child; /* one reference */
    struct child_ends ends;
    char version[SPEECH_VERSION_SIZE];
    char voice[LIMIT_SPEECH_VOICE + 1]; /* of its last sentence; "": none */
};

struct speech_worker *speech_worker_stop(struct speech_worker *w)
{
    if (!w)
        return NULL;
    if (w->ends.stdin_fd >= 0)
        close(w->ends.stdin_fd);
    if (w->ends.stdout_fd >= 0)
        close(w->ends.stdout_fd);
    if (w->child)
        child_stop(w->child);
    child_unref(w->child);
    free(w);
    return NULL;
}

struct child_ends speech_worker_ends(const struct speech_worker *w)
{
    return w->ends;
}

/* Between two requests there is nothing to read but the end. */
static bool is_alive(const struct speech_worker *w)
{
    struct pollfd fd = { .fd = w->ends.stdout_fd, .events = POLLIN };

    return poll(&fd, 1, 0) == 0;
}

bool speech_worker_suits(const struct speech_worker *w, const char *voice)
{
    bool changes = voice && *w->voice && strcmp(w->voice, voice) != 0;

    return is_alive(w) && !(changes && w->engine->is_of_one_voice);
}

const char *speech_worker_version(const struct speech_worker *w)
{
    return w->version;
}

static int ended(const struct speech_worker *w, struct err *e)
{
    return err_set(e, -EIO, "SPEECH_FAILED", "The speech worker of %s ended while it worked on this sentence.",
                   w->engine->id);
}

static int too_slow(const struct speech_worker *w, struct err *e)
{
    return err_set(e, -EIO, "SPEECH_FAILED", "The speech worker of %s took longer than %d s.", w->engine->id,
                   LIMIT_SPEECH_SENTENCE_MS / 1000);
}

/* 0: more is to come; 1: complete. */
static int receive(struct speech_worker *w, struct speech_answer *answer, struct err *e)
{
    char bytes[READ_BYTES];
    ssize_t n = read(w->ends.stdout_fd, bytes, sizeof(bytes));

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    return n <= 0 ? ended(w, e) : speech_answer_feed(answer, (struct slice){ bytes, (size_t)n }, e);
}

static int await_answer(struct speech_worker *w, struct speech_answer *answer, const struct net_wait *wait,
                        struct err *e)
{
    int r = 0;

    while (r == 0) {
        r = net_wait_fd(wait, w->ends.stdout_fd, POLLIN, e);
        if (r == -ETIMEDOUT)
            return too_slow(w, e);
        if (r == 0)
            r = receive(w, answer, e);
    }
    return MIN(r, 0);
}

static int send(const struct speech_worker *w, const struct net_wait *wait, struct slice bytes, struct err *e)
{
    while (bytes.n > 0) {
        int r = net_wait_fd(wait, w->ends.stdin_fd, POLLOUT, e);
        ssize_t n = r < 0 ? 0 : write(w->ends.stdin_fd, bytes.p, bytes.n);

        if (r == -ETIMEDOUT)
            return too_slow(w, e);
        if (r < 0)
            return r;
        if (n < 0 && errno != EAGAIN && errno != EINTR)
            return ended(w, e);
        bytes = (struct slice){ bytes.p + MAX(n, 0), bytes.n - (size_t)MAX(n, 0) };
    }
    return 0;
}

static int send_frame(const struct speech_worker *w, const struct net_wait *wait, uint32_t kind, struct slice bytes,
                      struct err *e)
{
    const struct speech_frame frame = { kind, (uint32_t)bytes.n };
    int r = send(w, wait, (struct slice){ (const char *)&frame, sizeof(frame) }, e);

    return r < 0 ? r : send(w, wait, bytes, e);
}

/* The first part of the samples that fits a frame, which is removed. */
static struct slice cut_frame(struct slice *samples)
{
    const struct slice part = { samples->p, MIN(samples->n, (size_t)LIMIT_SPEECH_FRAME) };

    *samples = (struct slice){ samples->p + part.n, samples->n - part.n };
    return part;
}

/* In frames of whole samples. */
static int send_samples(const struct speech_worker *w, const struct net_wait *wait, struct slice samples, struct err *e)
{
    int r = 0;

    while (r == 0 && samples.n > 0)
        r = send_frame(w, wait, SPEECH_FRAME_SAMPLES, cut_frame(&samples), e);
    return r;
}

static void add_request(struct buf *out, const struct speech_worker_job *job)
{
    const struct speech_frame_say say = { job->format, (uint32_t)(job->speed * 1000 + 0.5),
                                          (uint32_t)strlen(job->voice), (uint32_t)job->text.n };
    const struct speech_frame frame = { SPEECH_FRAME_SAY, (uint32_t)sizeof(say) + say.n_voice + say.n_text };

    buf_add(out, &frame, sizeof(frame));
    buf_add(out, &say, sizeof(say));
    buf_add_str(out, job->voice);
    buf_add_slice(out, job->text);
}

int speech_worker_say(struct speech_worker *w, const struct speech_worker_job *job, const struct net_wait *wait,
                      struct buf *audio, struct speech_frame_done *ret, struct err *e)
{
    struct speech_answer answer;
    struct buf request;
    int r;

    snprintf(w->voice, sizeof(w->voice), "%s", job->voice);
    buf_init(&request, LIMIT_SPEECH_FRAME);
    add_request(&request, job);
    r = buf_check(&request, e);
    if (r == 0)
        r = send_samples(w, wait, job->samples, e);
    if (r == 0)
        r = send(w, wait, buf_slice(&request), e);
    buf_clear(&request);
    if (r < 0)
        return r;
    speech_answer_init(&answer, audio, LIMIT_SPEECH_AUDIO);
    r = await_answer(w, &answer, wait, e);
    *ret = answer.done;
    speech_answer_clear(&answer);
    return r;
}

/* ---- a sentence that arrives ---- */

static int send_and_await(struct speech_worker *w, uint32_t kind, struct slice bytes, const struct net_wait *wait,
                          struct speech_answer *answer, struct err *e)
{
    int r = send_frame(w, wait, kind, bytes, e);

    return r < 0 ? r : await_answer(w, answer, wait, e);
}

int speech_worker_begin(struct speech_worker *w, const struct speech_frame_begin *begin, const struct net_wait *wait,
                        struct speech_answer *answer, struct err *e)
{
    const struct slice bytes = { (const char *)begin, sizeof(*begin) };

    return send_and_await(w, SPEECH_FRAME_BEGIN, bytes, wait, answer, e);
}

/* The worker answers each frame before the next one is sent, so that neither waits for the other to read. */
int speech_worker_pass(struct speech_worker *w, struct slice samples, const struct net_wait *wait,
                       struct speech_answer *answer, struct err *e)
{
    int r = 0;

    while (r == 0 && samples.n > 0)
        r = send_and_await(w, SPEECH_FRAME_SAMPLES, cut_frame(&samples), wait, answer, e);
    return r;
}

int speech_worker_end(struct speech_worker *w, const struct net_wait *wait, struct speech_answer *answer, struct err *e)
{
    return send_and_await(w, SPEECH_FRAME_END, (struct slice){ NULL, 0 }, wait, answer, e);
}

/* ---- voices ---- */

int speech_worker_list(struct speech_worker *w, const struct net_wait *wait, struct buf *list, struct err *e)
{
    struct speech_answer answer;
    int r = send_frame(w, wait, SPEECH_FRAME_LIST, (struct slice){ NULL, 0 }, e);

    if (r < 0)
        return r;
    speech_answer_init(&answer, list, LIMIT_SPEECH_LIST);
    r = await_answer(w, &answer, wait, e);
    speech_answer_clear(&answer);
    return r;
}

/* ---- the start ---- */

/* Whether packages are missing. The first words are those of the loader of shared libraries, which ends a program that
 * lacks one before it runs. */
static bool lacks_library(const char *words)
{
    return strstr(words, "error while loading shared libraries") || strstr(words, EARS_CONTAINERS_MISSING);
}

static int unavailable(const struct speech_engine *engine, const char *why, bool has_run, struct err *e)
{
    if (engine->remedy && has_run && !lacks_library(why))
        return err_set(e, -ENODEV, "SPEECH_UNAVAILABLE", "%s does not work: %.300s %s", engine->id, why,
                       engine->remedy);
    return err_set(
        e, -ENODEV, "SPEECH_UNAVAILABLE",
        "%s does not work: %.300s Install what it needs (Debian: apt install %s); `hearth doctor` checks it.",
        engine->id, why, engine->packages);
}

static int explain_start(const struct speech_worker *w, const struct err *why, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    const char *words = child_last_words(w->child, w->ends.stdout_fd, a, N_LAST_WORDS);

    return unavailable(w->engine, *words ? words : why->text, true, e);
}

static int await_hello(struct speech_worker *w, const struct net_wait *wait, struct err *e)
{
    struct speech_answer answer;
    struct err why;
    int r;

    err_init(&why);
    speech_answer_init(&answer, NULL, 0);
    answer.is_start = true;
    r = await_answer(w, &answer, wait, &why);
    memcpy(w->version, answer.hello.engine, sizeof(w->version));
    speech_answer_clear(&answer);
    if (r == -ECANCELED)
        return err_set(e, r, "SHUTTING_DOWN", "%s", why.text);
    return r < 0 ? explain_start(w, &why, e) : 0;
}

/* A variable that the service does not have, or that is too long for a child, is left out. */
static const char *const *environment_of(const struct speech_engine *engine, struct arena *a)
{
    struct env_list *env = env_list_new(a);

    for (const char *const *name = engine->variables; name && *name; name++)
        if (getenv(*name))
            (void)!env_list_set(env, *name, getenv(*name), NULL);
    return env_list_strings(env);
}

static int spawn(struct speech_worker *w, struct supervisor *supervisor, const char *path, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    const struct child_spec spec = { .label = arena_printf(a, "speech %s", w->engine->id),
                                     .command = path,
                                     .args = w->engine->args,
                                     .env = environment_of(w->engine, a),
                                     .stop_grace_ms = STOP_GRACE_MS,
                                     .ends = &w->ends };
    struct err why;
    int r;

    err_init(&why);
    r = child_start(supervisor, &spec, &w->child, &why);
    if (r == -ENOENT || r == -EACCES)
        return unavailable(w->engine, why.text, false, e);
    return r < 0 ? err_set(e, r, why.code, "%s", why.text) : 0;
}

int speech_worker_start(struct supervisor *supervisor, const char *path, const struct speech_engine *engine,
                        const struct net_wait *wait, struct speech_worker **ret, struct err *e)
{
    struct speech_worker *w = xcalloc(1, sizeof(*w));
    int r;

    w->engine = engine;
    w->ends = (struct child_ends){ -1, -1 };
    r = spawn(w, supervisor, path, e);
    if (r == 0)
        r = await_hello(w, wait, e);
    if (r < 0) {
        speech_worker_stop(w);
        return r;
    }
    *ret = w;
    return 0;
}

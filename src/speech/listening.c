#include "speech/listening.h"

#include "base/clock.h"
#include "speech/ears_private.h"
#include "speech/ears_worker.h"
#include "speech/speech.h"
#include "speech/voice_activity.h"

#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

enum { FINISH_MS = 10 * LIMIT_SPEECH_SENTENCE_MS, MS_A_SECOND = 1000, N_PITCHED = 5 /* frames of a voice: 50 ms */ };

/* How long nobody has spoken, at EARS_RATE. Somebody has spoken when a voice was heard, or words: whispering has no
 * pitch. */
struct silence {
    struct voice_activity voice;
    int16_t loose[VOICE_FRAME];
    size_t n_loose, n_pitched; /* frames with the pitch of a voice */
    int64_t ms;
};

struct listening {
    struct ears *ears;   /* borrowed */
    struct arena *arena; /* owned: the names of who */
    struct ears_who who;
    struct listening_request request;
    struct net_wait wait;
    _Atomic int64_t quiet_until_ms;
    struct speech_engine program;
    struct speech_worker *worker; /* NULL: the engine hears the sound as a recording, when it has ended */
    struct hearing *hearing;
    struct ears_answer answer;
    struct buf unsent; /* frames for the worker */
    struct buf text;   /* n_final bytes are final, the rest is the segment that goes on */
    size_t n_final;
    struct buf kept;
    struct silence silence;
    uint64_t n_samples, max_samples;
    bool is_open, has_ended; /* the source */
    bool is_in_words;        /* of a segment that has ended */
    bool is_done;
};

/* ---- the sound ---- */

static void add_frame(struct listening *l, uint32_t kind, struct slice bytes)
{
    const struct speech_frame frame = { kind, (uint32_t)bytes.n };

    buf_add(&l->unsent, &frame, sizeof(frame));
    buf_add_slice(&l->unsent, bytes);
}

static void close_source(struct listening *l)
{
    if (l->is_open)
        l->request.source.close(l->request.source.arg);
    l->is_open = false;
}

/* The engine then has FINISH_MS for the rest. */
static void end_sound(struct listening *l)
{
    if (l->has_ended)
        return;
    l->has_ended = true;
    close_source(l);
    if (l->worker)
        add_frame(l, EARS_FRAME_END, (struct slice){ "", 0 });
    l->wait = net_wait_of(FINISH_MS, l->wait.is_gone, l->wait.is_leaving);
}

static void hear_frame(struct silence *s)
{
    bool is_loud = voice_activity_hear(&s->voice, s->loose);

    s->ms = is_loud ? 0 : s->ms + VOICE_FRAME_MS;
    if (is_loud && s->n_pitched < N_PITCHED)
        s->n_pitched += voice_activity_has_pitch(&s->voice);
}

static void hear_silence(struct silence *s, struct slice samples)
{
    for (size_t n; samples.n > 0; samples = (struct slice){ samples.p + n, samples.n - n }) {
        n = MIN(samples.n, (VOICE_FRAME - s->n_loose) * sizeof(int16_t));
        memcpy((char *)s->loose + s->n_loose * sizeof(int16_t), samples.p, n);
        s->n_loose += n / sizeof(int16_t);
        if (s->n_loose == VOICE_FRAME) {
            s->n_loose = 0;
            hear_frame(s);
        }
    }
}

static bool has_spoken(const struct listening *l)
{
    return l->silence.n_pitched == N_PITCHED || l->text.n > 0;
}

static bool is_silent(const struct listening *l)
{
    return l->request.silence_ms > 0 && has_spoken(l) && l->silence.ms >= l->request.silence_ms;
}

/* samples: whole ones. */
static void add_samples(struct listening *l, struct slice samples)
{
    samples.n = (size_t)MIN((uint64_t)samples.n, (l->max_samples - l->n_samples) * sizeof(int16_t));
    l->n_samples += samples.n / sizeof(int16_t);
    if (l->request.keeps || !l->worker)
        buf_add_slice(&l->kept, samples);
    if (l->request.silence_ms > 0)
        hear_silence(&l->silence, samples);
    for (size_t n; l->worker && samples.n > 0; samples = (struct slice){ samples.p + n, samples.n - n }) {
        n = MIN(samples.n, (size_t)LIMIT_SPEECH_FRAME);
        add_frame(l, EARS_FRAME_SOUND, (struct slice){ samples.p, n });
    }
    if (l->n_samples == l->max_samples || is_silent(l))
        end_sound(l);
}

static bool has_room(const struct listening *l)
{
    return !l->has_ended && l->unsent.n < LIMIT_SPEECH_UNHEARD;
}

static int take_sound(struct listening *l, struct err *e)
{
    struct slice samples;
    int r = SOUND_SAMPLES;

    while (r == SOUND_SAMPLES && has_room(l)) {
        r = l->request.source.take(l->request.source.arg, &samples, e);
        if (r == SOUND_END)
            end_sound(l);
        if (r != SOUND_SAMPLES)
            break;
        add_samples(l, samples);
        atomic_store(&l->quiet_until_ms, clock_mono_ms() + l->request.quiet_ms);
    }
    return MIN(r, 0);
}

/* ---- the text ---- */

static void forget_guess(struct listening *l)
{
    if (l->text.n == l->n_final)
        return;
    l->text.n = l->n_final;
    l->text.p[l->text.n] = '\0';
}

static void add_text(struct listening *l, struct slice text)
{
    text = slice_trim(text);
    if (text.n == 0)
        return;
    if (l->text.n > 0)
        buf_add_char(&l->text, ' ');
    buf_add_slice(&l->text, text);
}

static void add_word(struct listening *l, struct slice word)
{
    if (!l->is_in_words)
        forget_guess(l);
    l->is_in_words = true;
    add_text(l, word);
}

static void end_segment(struct listening *l)
{
    if (!l->is_in_words)
        forget_guess(l);
    l->is_in_words = false;
    l->n_final = l->text.n;
}

/* 1: the text has changed. */
static int take_event(struct listening *l, const struct ears_event *event, struct err *e)
{
    switch (event->kind) {
    case EARS_WORD:
        add_word(l, event->word);
        return 0;
    case EARS_SEGMENT:
        end_segment(l);
        return 1;
    case EARS_GUESS:
        forget_guess(l);
        add_text(l, event->word);
        return 1;
    case EARS_DONE:
        forget_guess(l);
        l->is_done = true;
        return 0;
    case EARS_OPENED:
        return 0;
    case EARS_SOUND:
        break;
    }
    return err_set(e, -EIO, "SPEECH_FAILED", "The worker that hears broke its protocol.");
}

/* ---- the worker ---- */

static void send_unsent(struct listening *l)
{
    ssize_t n = write(speech_worker_ends(l->worker).stdin_fd, l->unsent.p, l->unsent.n);

    if (n > 0)
        buf_consume(&l->unsent, (size_t)n);
}

/* Waits until something can be done, and moves bytes. The time of the sound may end. */
static int move(struct listening *l, struct err *e)
{
    const struct child_ends ends = speech_worker_ends(l->worker);
    struct pollfd fds[] = { { .fd = ends.stdout_fd, .events = POLLIN },
                            { .fd = l->unsent.n > 0 ? ends.stdin_fd : -1, .events = POLLOUT },
                            { .fd = has_room(l) ? l->request.source.fd(l->request.source.arg) : -1,
                              .events = POLLIN } };
    int r = net_wait_fds(&l->wait, fds, ARRAY_SIZE(fds), e);

    if (r == -ETIMEDOUT && !l->has_ended) {
        end_sound(l);
        return 0;
    }
    if (r == -ETIMEDOUT)
        return err_set(e, -EIO, "SPEECH_FAILED", "The worker that hears took longer than %d s.", FINISH_MS / 1000);
    if (r == 0 && fds[1].revents)
        send_unsent(l);
    if (r == 0 && fds[0].revents)
        r = ears_worker_receive(l->worker, &l->answer, e);
    return r == 0 && fds[2].revents ? take_sound(l, e) : r;
}

static int next_live(struct listening *l, struct err *e)
{
    struct ears_event event;
    int r = 0;

    while (r == 0 && !l->is_done) {
        r = ears_answer_next(&l->answer, &event, e);
        if (r == 1)
            r = take_event(l, &event, e);
        else if (r == 0)
            r = move(l, e);
    }
    return r;
}

/* ---- an engine that hears recordings ---- */

static int gather(struct listening *l, struct err *e)
{
    int r = 0;

    while (r == 0 && !l->has_ended) {
        r = net_wait_fd(&l->wait, l->request.source.fd(l->request.source.arg), POLLIN, e);
        if (r == -ETIMEDOUT)
            end_sound(l);
        r = r == -ETIMEDOUT ? 0 : r == 0 ? take_sound(l, e) : r;
    }
    return r;
}

static int start_hearing(struct listening *l, struct err *e)
{
    struct ears_request request = l->request.ears;
    char header[SPEECH_WAV_HEADER];
    struct buf wav;
    int r;

    speech_wav_header(header, l->request.rate, l->kept.n);
    buf_init(&wav, sizeof(header) + l->kept.n);
    buf_add(&wav, header, sizeof(header));
    buf_add_slice(&wav, buf_slice(&l->kept));
    request.recording = buf_slice(&wav);
    r = buf_check(&wav, e);
    if (r == 0)
        r = hearing_start(l->ears, &request, &l->hearing, e);
    buf_clear(&wav);
    return r;
}

/* A provider is not asked about silence. */
static bool has_sound(const struct listening *l)
{
    return l->kept.n > 0 && (l->request.silence_ms == 0 || has_spoken(l));
}

static int next_whole(struct listening *l, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct heard_segment segment;
    int r = gather(l, e);

    l->is_done |= !has_sound(l);
    if (r == 0 && !l->is_done && !l->hearing)
        r = start_hearing(l, e);
    if (r < 0 || l->is_done)
        return r;
    r = hearing_next(l->hearing, a, &segment, e);
    if (r == 1)
        add_text(l, slice_of(segment.text));
    l->is_done |= r == 0;
    return r;
}

int listening_next(struct listening *l, struct err *e)
{
    return l->worker ? next_live(l, e) : next_whole(l, e);
}

struct slice listening_text(const struct listening *l)
{
    return buf_slice(&l->text);
}

double listening_duration(const struct listening *l)
{
    return (double)l->n_samples / l->request.rate;
}

struct slice listening_samples(const struct listening *l)
{
    return buf_slice(&l->kept);
}

struct ears_who listening_who(const struct listening *l)
{
    return l->who;
}

/* ---- begin and end ---- */

static int start_worker(struct listening *l, const struct ears_job *job, struct err *e)
{
    const struct net_wait start = net_wait_of(LIMIT_SPEECH_SENTENCE_MS, l->wait.is_gone, l->wait.is_leaving);
    const struct ears_frame_start head = { job->phrases, (uint32_t)job->phrases_text.n, 0, l->request.rate,
                                           l->request.guesses };
    int r = ears_worker_start(ears_context_of(l->ears), &l->program, &start, &l->worker, e);

    if (r < 0)
        return r;
    add_frame(l, EARS_FRAME_START, (struct slice){ (const char *)&head, sizeof(head) });
    buf_add_slice(&l->unsent, job->phrases_text);
    return buf_check(&l->unsent, e);
}

/* The worker has read the phrases when it is open. */
static int await_open(struct listening *l, struct err *e)
{
    struct ears_event event;
    int r = 0;

    l->wait = net_wait_of(LIMIT_SPEECH_SENTENCE_MS, l->wait.is_gone, l->wait.is_leaving);
    l->has_ended = true; /* nothing is taken from the source yet */
    while (r == 0) {
        r = ears_answer_next(&l->answer, &event, e);
        if (r == 0)
            r = move(l, e);
    }
    l->has_ended = false;
    return MIN(r, 0);
}

static int open_source(struct listening *l, struct err *e)
{
    int r = l->request.source.open(l->request.source.arg, &l->wait, e);

    l->is_open = r == 0;
    l->wait = net_wait_of(l->request.wall_ms, l->wait.is_gone, l->wait.is_leaving);
    atomic_store(&l->quiet_until_ms, clock_mono_ms() + l->request.quiet_ms);
    l->wait.quiet_until_ms = l->request.quiet_ms > 0 ? &l->quiet_until_ms : NULL;
    return r;
}

static struct listening *new_listening(struct ears *ears, const struct listening_request *request)
{
    struct listening *l = xcalloc(1, sizeof(*l));

    l->ears = ears;
    l->arena = arena_new();
    l->request = *request;
    l->wait = net_wait_of(LIMIT_SPEECH_SENTENCE_MS, request->ears.is_gone, ears_context_of(ears)->is_leaving);
    l->max_samples = (uint64_t)request->max_ms * request->rate / MS_A_SECOND;
    ears_answer_init(&l->answer);
    buf_init(&l->unsent, LIMIT_SPEECH_UNHEARD * 2);
    buf_init(&l->text, LIMIT_SPEECH_TRANSCRIPT * 2);
    buf_init(&l->kept, LIMIT_SPEECH_UPLOAD);
    voice_activity_init(&l->silence.voice);
    return l;
}

static int begin(struct listening *l, const struct ears_engine *engine, const struct ears_job *job, struct err *e)
{
    int r = 0;

    l->program = ears_worker_program(engine);
    if (!engine->hears_live || l->request.keeps)
        l->max_samples = MIN(l->max_samples, (LIMIT_SPEECH_UPLOAD - SPEECH_WAV_HEADER) / sizeof(int16_t));
    if (engine->hears_live)
        r = start_worker(l, job, e);
    if (r == 0 && l->worker)
        r = await_open(l, e);
    return r < 0 ? r : open_source(l, e);
}

int listening_start(struct ears *ears, const struct listening_request *request, struct listening **ret, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    const struct ears_engine *engine = NULL;
    struct ears_job job;
    struct listening *l;
    int r = ears_plan(ears, &request->ears, a, &engine, &job, e);

    if (r < 0)
        return r;
    l = new_listening(ears, request);
    l->who =
        (struct ears_who){ arena_strdup(l->arena, engine->id), job.model ? arena_strdup(l->arena, job.model) : NULL };
    r = begin(l, engine, &job, e);
    if (r < 0)
        listening_end(l);
    else
        *ret = l;
    return r;
}

struct listening *listening_end(struct listening *l)
{
    if (!l)
        return NULL;
    close_source(l);
    hearing_end(l->hearing);
    speech_worker_stop(l->worker);
    ears_answer_clear(&l->answer);
    buf_clear(&l->unsent);
    buf_clear(&l->text);
    buf_clear(&l->kept);
    arena_free(l->arena);
    free(l);
    return NULL;
}

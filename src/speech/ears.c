#include "speech/ears.h"

#include "speech/ears_answer.h"
#include "speech/ears_phrases.h"
#include "speech/turns.h"
#include "speech/worker.h"

#include <assert.h>
#include <poll.h>
#include <stdlib.h>
#include <strings.h>
#include <unistd.h>

enum { READ_BYTES = 32768 };

struct ears {
    struct ears_config config;
    struct speech_turns turns;
    atomic_bool has_worked; /* a worker has started */
};

struct hearing {
    struct ears *ears;
    struct net_wait wait;
    struct speech_worker *worker;
    struct ears_answer answer;
    double duration;
    bool has_turn, is_done;
};

static const struct speech_engine pocketsphinx = {
    .id = "pocketsphinx_local",
    .name = "PocketSphinx (this machine)",
    .program = "hearth-speech-ears",
    .packages = "libpocketsphinx3 pocketsphinx-en-us libsndfile1 libsamplerate0",
};

#define MODEL "en-us"
#define LANGUAGE "en"

/* ---- workers ---- */

static int start_worker(struct ears *ears, const struct net_wait *wait, struct speech_worker **ret, struct err *e)
{
    AUTO(arena_freep) struct arena *a = NULL;
    const char *folder;
    int r;

    if (!ears->config.supervisor)
        return err_set(e, -ENODEV, "SPEECH_UNAVAILABLE", "Only a running service hears: `hearth serve`.");
    a = arena_new();
    folder = settings_string(ears->config.settings, a, SETTING_SPEECH_FOLDER);
    r = speech_worker_start(ears->config.supervisor, speech_engine_program(folder, &pocketsphinx, a), &pocketsphinx,
                            wait, ret, e);
    if (r == 0)
        atomic_store(&ears->has_worked, true);
    return r;
}

static int ended(struct err *e)
{
    return err_set(e, -EIO, "SPEECH_FAILED", "The worker that hears ended before the end of the recording.");
}

static int explain_wait(int r, struct err *e)
{
    return r == -ETIMEDOUT ? err_set(e, -EIO, "SPEECH_FAILED", "The worker that hears took longer than %d minutes.",
                                     LIMIT_SPEECH_TRANSCRIBE_MS / 60000)
                           : r;
}

/* Reads once from the worker, when its answer has come. */
static int receive(struct hearing *h, struct err *e)
{
    char bytes[READ_BYTES];
    ssize_t n = read(speech_worker_ends(h->worker).stdout_fd, bytes, sizeof(bytes));

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (n <= 0)
        return ended(e);
    ears_answer_feed(&h->answer, (struct slice){ bytes, (size_t)n });
    return 0;
}

/* The next event. */
static int await_event(struct hearing *h, struct ears_event *ret, struct err *e)
{
    int r = ears_answer_next(&h->answer, ret, e);

    while (r == 0) {
        r = explain_wait(net_wait_fd(&h->wait, speech_worker_ends(h->worker).stdout_fd, POLLIN, e), e);
        if (r == 0)
            r = receive(h, e);
        if (r == 0)
            r = ears_answer_next(&h->answer, ret, e);
    }
    return MIN(r, 0);
}

/* A worker that answers before it has everything has failed: its answer says why. */
static int send(struct hearing *h, struct slice bytes, struct err *e)
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

static int send_request(struct hearing *h, enum ears_phrases kind, struct slice phrases, struct slice recording,
                        struct err *e)
{
    const struct {
        struct speech_frame frame;
        struct ears_frame_start start;
    } head = { { EARS_FRAME_START, sizeof(struct ears_frame_start) },
               { kind, (uint32_t)phrases.n, (uint32_t)recording.n } };
    int r = send(h, (struct slice){ (const char *)&head, sizeof(head) }, e);

    if (r == 0)
        r = send(h, phrases, e);
    if (r == 0)
        r = send(h, recording, e);
    return r;
}

/* ---- the request ---- */

static bool is_given(const char *text)
{
    return text && *text;
}

static int check_choice(const struct ears_request *request, struct err *e)
{
    if (is_given(request->provider) && strcmp(request->provider, pocketsphinx.id) != 0)
        return err_add_field(e, "provider", "must be %s, not %.60s", pocketsphinx.id, request->provider);
    if (is_given(request->model) && strcmp(request->model, MODEL) != 0)
        return err_add_field(e, "model", "must be a model of %s (" MODEL "), not %.60s", pocketsphinx.id,
                             request->model);
    if (is_given(request->language) && strcasecmp(request->language, "auto") != 0 &&
        !speech_is_english(request->language))
        return err_add_field(e, "language", "must be a language of %s (" LANGUAGE "), not %.30s", pocketsphinx.id,
                             request->language);
    return 0;
}

/* What every format begins with: other bytes need no worker to be refused. */
static int check_recording(struct slice recording, struct err *e)
{
    static const struct {
        size_t at, n;
        const char *bytes;
    } beginnings[] = { { 0, 4, "RIFF" }, { 0, 4, "RIFX" }, { 0, 4, "RF64" }, { 0, 4, "OggS" }, { 0, 4, "fLaC" },
                       { 0, 3, "ID3" },  { 0, 4, "FORM" }, { 0, 4, "caff" }, { 0, 4, ".snd" }, { 0, 4, "riff" } };
    const unsigned char *p = (const unsigned char *)recording.p;

    if (recording.n == 0)
        return err_set(e, -EINVAL, "AUDIO_UNREADABLE", "The recording is empty.");
    if (recording.n > LIMIT_SPEECH_UPLOAD)
        return err_set(e, -E2BIG, "BODY_TOO_LARGE", "The recording must be at most %d bytes.", LIMIT_SPEECH_UPLOAD);
    if (recording.n >= 2 && p[0] == 0xff && (p[1] & 0xe0) == 0xe0)
        return 0;
    for (size_t i = 0; i < ARRAY_SIZE(beginnings); i++)
        if (recording.n >= beginnings[i].n && memcmp(p, beginnings[i].bytes, beginnings[i].n) == 0)
            return 0;
    return err_set(e, -EINVAL, "AUDIO_UNREADABLE",
                   "The recording is no audio that can be read: WAV, MP3, Ogg (Vorbis, Opus), FLAC, AIFF.");
}

static int begin(struct hearing *h, const struct ears_request *request, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    enum ears_phrases kind;
    struct slice phrases;
    struct ears_event event;
    struct net_wait start;
    int r = ears_phrases_read(a, request->phrases, &kind, &phrases, e);

    if (r == 0)
        r = speech_turns_take(&h->ears->turns, request->caller, &h->wait, e);
    h->has_turn = r == 0;
    start = net_wait_part(&h->wait, LIMIT_SPEECH_SENTENCE_MS);
    if (r == 0)
        r = start_worker(h->ears, &start, &h->worker, e);
    if (r == 0)
        r = send_request(h, kind, phrases, request->recording, e);
    if (r == 0)
        r = await_event(h, &event, e);
    return r; /* the first event is EARS_OPENED */
}

int hearing_start(struct ears *ears, const struct ears_request *request, struct hearing **ret, struct err *e)
{
    struct hearing *h;
    int r = check_choice(request, e);

    if (r == 0)
        r = check_recording(request->recording, e);
    if (r < 0)
        return r;
    h = xcalloc(1, sizeof(*h));
    h->ears = ears;
    h->wait = net_wait_of(LIMIT_SPEECH_TRANSCRIBE_MS, request->is_gone, ears->config.is_leaving);
    ears_answer_init(&h->answer);
    r = begin(h, request, e);
    if (r < 0)
        hearing_end(h);
    else
        *ret = h;
    return r;
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
static int gather_segment(struct hearing *h, struct gathered *g, struct arena *a, struct ears_event *event,
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

int hearing_next(struct hearing *h, struct arena *a, struct heard_segment *ret, struct err *e)
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

double hearing_duration(const struct hearing *h)
{
    return h->duration;
}

struct hearing *hearing_end(struct hearing *h)
{
    if (!h)
        return NULL;
    speech_worker_stop(h->worker);
    if (h->has_turn)
        speech_turns_give(&h->ears->turns);
    ears_answer_clear(&h->answer);
    free(h);
    return NULL;
}

/* ---- providers ---- */

static int try_worker(struct ears *ears, struct err *e)
{
    const struct net_wait wait = net_wait_of(LIMIT_SPEECH_SENTENCE_MS, NULL, ears->config.is_leaving);
    struct speech_worker *w = NULL;
    int r = start_worker(ears, &wait, &w, e);

    speech_worker_stop(w);
    return r;
}

void ears_providers(struct ears *ears, struct arena *a, struct ears_provider ret[N_EARS_PROVIDERS])
{
    struct err why;

    err_init(&why);
    ret[0] = (struct ears_provider){ .id = pocketsphinx.id,
                                     .name = pocketsphinx.name,
                                     .description = "English, on this machine, without a network",
                                     .is_configured = atomic_load(&ears->has_worked) || try_worker(ears, &why) == 0,
                                     .model = MODEL,
                                     .model_name = "English (United States)",
                                     .language = LANGUAGE };
    if (!ret[0].is_configured)
        ret[0].note = arena_strdup(a, why.text);
}

/* ---- lifetime ---- */

struct ears *ears_open(const struct ears_config *c)
{
    struct ears *ears = xcalloc(1, sizeof(*ears));

    ears->config = *c;
    speech_turns_init(&ears->turns, LIMIT_SPEECH_HEARINGS);
    return ears;
}

struct ears *ears_close(struct ears *ears)
{
    if (!ears)
        return NULL;
    speech_turns_clear(&ears->turns);
    free(ears);
    return NULL;
}

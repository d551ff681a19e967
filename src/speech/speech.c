#include "speech/speech.h"

#include "os/paths.h"
#include "speech/engines.h"
#include "speech/resample.h"
#include "speech/spoken.h"
#include "speech/turns.h"
#include "speech/worker.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <strings.h>
#include <unistd.h>

_Static_assert((int)N_SPEECH_PROVIDERS == (int)N_SPEECH_ENGINES, "every engine is a provider");

/* One engine and its workers. */
struct engine_state {
    const struct speech_engine *engine;
    struct speech_turns turns;
    pthread_mutex_t lock;
    struct speech_worker *idle[LIMIT_SPEECH_WORKERS];
    size_t n_idle;
    char *list; /* owned: what a worker listed; NULL: none was asked yet */
};

struct speech {
    struct speech_config config;
    size_t n_kept; /* idle workers of each engine */
    struct engine_state states[N_SPEECH_ENGINES];
};

/* ---- workers ---- */

static const char *folder_of_program(struct arena *a)
{
    char *path = NULL, *slash;

    if (paths_program(a, &path, NULL) < 0)
        return ".";
    slash = strrchr(path, '/');
    *slash = '\0';
    return path;
}

/* The worker's program: in the folder of the setting, beside this program, or in ../libexec/hearth. */
static const char *find_program(const struct speech *s, const struct speech_engine *engine, struct arena *a)
{
    const char *folder = settings_string(s->config.settings, a, SETTING_SPEECH_FOLDER), *path;

    if (*folder)
        return arena_printf(a, "%s/%s", folder, engine->program);
    folder = folder_of_program(a);
    path = arena_printf(a, "%s/%s", folder, engine->program);
    return access(path, X_OK) == 0 ? path : arena_printf(a, "%s/../libexec/hearth/%s", folder, engine->program);
}

static struct net_wait wait_of(const struct speech *s, const atomic_bool *is_gone)
{
    return net_wait_of(LIMIT_SPEECH_SENTENCE_MS, is_gone, s->config.is_leaving);
}

/* An idle worker for this voice; NULL: none. Those that do not suit are ended. */
static struct speech_worker *take_idle(struct engine_state *state, const char *voice)
{
    struct speech_worker *w = NULL;

    pthread_mutex_lock(&state->lock);
    while (!w && state->n_idle > 0) {
        w = state->idle[--state->n_idle];
        if (!speech_worker_suits(w, voice))
            w = speech_worker_stop(w);
    }
    pthread_mutex_unlock(&state->lock);
    return w;
}

static int take_worker(struct speech *s, struct engine_state *state, const char *voice, const struct net_wait *wait,
                       struct speech_worker **ret, struct err *e)
{
    AUTO(arena_freep) struct arena *a = NULL;

    *ret = take_idle(state, voice);
    if (*ret)
        return 0;
    if (!s->config.supervisor)
        return err_set(e, -ENODEV, "SPEECH_UNAVAILABLE", "Only a running service speaks: `hearth serve`.");
    a = arena_new();
    return speech_worker_start(s->config.supervisor, find_program(s, state->engine, a), state->engine, wait, ret, e);
}

/* r: of the worker's last request. After a failure its state is unknown. */
static void give_worker(struct speech *s, struct engine_state *state, struct speech_worker *w, int r)
{
    pthread_mutex_lock(&state->lock);
    if (r == 0 && state->n_idle < s->n_kept) {
        state->idle[state->n_idle++] = w;
        w = NULL;
    }
    pthread_mutex_unlock(&state->lock);
    speech_worker_stop(w);
}

/* ---- voices ---- */

static int list_voices(struct speech *s, struct engine_state *state, const struct net_wait *wait, struct buf *list,
                       struct err *e)
{
    struct speech_worker *w = NULL;
    int r = speech_turns_take(&state->turns, "", wait, e);

    if (r < 0)
        return r;
    r = take_worker(s, state, NULL, wait, &w, e);
    if (r == 0) {
        r = speech_worker_list(w, wait, list, e);
        give_worker(s, state, w, r);
    }
    speech_turns_give(&state->turns);
    return r;
}

static int request_list(struct speech *s, struct engine_state *state, const atomic_bool *is_gone, struct err *e)
{
    const struct net_wait wait = wait_of(s, is_gone);
    struct buf list;
    int r;

    buf_init(&list, LIMIT_SPEECH_LIST);
    r = list_voices(s, state, &wait, &list, e);
    pthread_mutex_lock(&state->lock);
    if (r == 0 && !state->list)
        state->list = buf_take(&list);
    pthread_mutex_unlock(&state->lock);
    buf_clear(&list);
    return r;
}

static const char *known_list(struct engine_state *state, struct arena *a)
{
    const char *list;

    pthread_mutex_lock(&state->lock);
    list = arena_strdup(a, state->list);
    pthread_mutex_unlock(&state->lock);
    return list;
}

static int voices_of(struct speech *s, struct engine_state *state, const atomic_bool *is_gone, struct arena *a,
                     struct speech_voices *ret, struct err *e)
{
    const char *list = known_list(state, a);
    int r = list ? 0 : request_list(s, state, is_gone, e);

    if (r < 0)
        return r;
    *ret = speech_answer_voices(a, slice_of(list ? list : known_list(state, a)));
    return 0;
}

/* ---- the choice ---- */

struct choice {
    struct speech *speech;
    const struct speech_request *request;
    struct arena *arena;
    const char *language;
    struct engine_state *state;
    const char *voice;
};

static bool is_given(const char *text)
{
    return text && *text;
}

static struct engine_state *state_of(struct speech *s, struct slice id)
{
    for (size_t i = 0; i < N_SPEECH_ENGINES; i++)
        if (slice_eq_str(id, s->states[i].engine->id))
            return &s->states[i];
    return NULL;
}

bool speech_is_provider(struct speech *s, struct slice id)
{
    return state_of(s, id) != NULL;
}

/* What the setting speech.voices says of the language, or of its first part: "provider/voice"; NULL: nothing. */
static const char *configured_voice(struct speech *s, const char *language, struct arena *a)
{
    size_t n = 0, n_first = strcspn(language, "-_");
    const char *const *rows = settings_list(s->config.settings, a, SETTING_SPEECH_VOICES, &n), *found = NULL;

    for (size_t i = 0; i < n; i++) {
        size_t n_name = strcspn(rows[i], "=");

        if (n_name == strlen(language) && strncasecmp(rows[i], language, n_name) == 0)
            return rows[i] + n_name + 1;
        if (n_name == n_first && strncasecmp(rows[i], language, n_name) == 0)
            found = rows[i] + n_name + 1;
    }
    return found;
}

/* The engine before the slash of such a voice; NULL: there is none of this name. */
static struct engine_state *configured_engine(struct speech *s, const char *configured)
{
    return state_of(s, (struct slice){ configured, strcspn(configured, "/") });
}

static struct engine_state *refuse_provider(const char *given, struct err *e)
{
    err_add_field(e, "provider", "must be flite_local or espeak_local, not %.60s", given);
    return NULL;
}

/* The provider named by the request, else by the setting for this language, else flite for English, else espeak. NULL:
 * the provider is refused. */
static struct engine_state *choose_engine(const struct choice *c, const char *configured, struct err *e)
{
    struct speech *s = c->speech;
    struct engine_state *state;

    if (is_given(c->request->provider)) {
        state = state_of(s, slice_of(c->request->provider));
        return state ? state : refuse_provider(c->request->provider, e);
    }
    if (configured) {
        state = configured_engine(s, configured);
        return state ? state : refuse_provider("what the setting speech.voices says", e);
    }
    return speech_is_english(c->language) ? &s->states[0] : &s->states[1];
}

static int refuse_voice(const struct choice *c, struct err *e)
{
    return err_add_field(e, "voice", "must be a voice of %s, which GET /sdk/tts/providers lists", c->state->engine->id);
}

static int choose_voice(struct choice *c, const char *wanted, struct err *e)
{
    struct speech_voices known;
    int r = voices_of(c->speech, c->state, c->request->is_gone, c->arena, &known, e);

    if (r < 0)
        return r;
    if (wanted) {
        c->voice = arena_strdup(c->arena, wanted);
        return c->state->engine->has_voice(&known, wanted) ? 0 : refuse_voice(c, e);
    }
    c->voice = c->state->engine->voice_of(&known, c->language, c->arena);
    return c->voice
               ? 0
               : err_add_field(e, "language", "must be a language of %s, not %.30s", c->state->engine->id, c->language);
}

/* A voice without a provider belongs to the first provider that has it. */
static int choose_by_voice(struct choice *c, struct err *e)
{
    struct err why = { 0 };
    int r = -EINVAL;

    for (size_t i = 0; r < 0 && i < N_SPEECH_ENGINES; i++) {
        c->state = &c->speech->states[i];
        why.n_fields = 0;
        r = choose_voice(c, c->request->voice, &why);
    }
    if (r == -EINVAL)
        return err_add_field(e, "voice", "must be a voice that GET /sdk/tts/providers lists");
    return r < 0 ? err_set(e, r, why.code, "%s", why.text) : 0;
}

/* Without flite English falls back to espeak, unless the request or a setting names flite. */
static int choose(struct choice *c, struct err *e)
{
    const char *configured = configured_voice(c->speech, c->language, c->arena), *wanted = NULL;
    int r;

    if (!is_given(c->request->provider) && is_given(c->request->voice))
        return choose_by_voice(c, e);
    c->state = choose_engine(c, configured, e);
    if (!c->state)
        return -EINVAL;
    if (is_given(c->request->voice))
        wanted = c->request->voice;
    else if (configured && configured_engine(c->speech, configured) == c->state)
        wanted = configured + strcspn(configured, "/") + 1;
    r = choose_voice(c, wanted, e);
    if (r != -ENODEV || is_given(c->request->provider) || configured || c->state != &c->speech->states[0])
        return r;
    c->state = &c->speech->states[1];
    err_init(e);
    return choose_voice(c, NULL, e);
}

int speech_plan(struct speech *s, const struct speech_request *request, struct arena *a, struct speech_plan *ret,
                struct err *e)
{
    struct choice c = { .speech = s, .request = request, .arena = a };
    struct speech_sentences sentences;
    int r;

    c.language = is_given(request->language) ? arena_strdup(a, request->language)
                                             : settings_string(s->config.settings, a, SETTING_SPEECH_LANGUAGE);
    r = speech_sentences(a, speech_spoken(a, request->text, c.language), c.language, &sentences, e);
    if (r == 0 && sentences.n == 0)
        r = err_add_field(e, request->text_name, "must have something that can be spoken");
    if (r == 0)
        r = choose(&c, e);
    if (r < 0)
        return r;
    assert(c.state);
    *ret = (struct speech_plan){ .engine = c.state->engine,
                                 .voice = c.voice,
                                 .caller = arena_strdup(a, request->caller),
                                 .speed = request->speed,
                                 .format = request->format,
                                 .rate = request->rate,
                                 .is_gone = request->is_gone,
                                 .sentences = sentences };
    return 0;
}

const char *speech_plan_provider(const struct speech_plan *plan)
{
    return plan->engine->id;
}

/* ---- speaking ---- */

static int say(struct speech *s, struct engine_state *state, const struct speech_worker_job *job,
               const atomic_bool *is_gone, struct buf *audio, struct speech_frame_done *ret, struct err *e)
{
    const struct net_wait wait = wait_of(s, is_gone);
    struct speech_worker *w = NULL;
    int r = take_worker(s, state, job->voice, &wait, &w, e);

    if (r < 0)
        return r;
    r = speech_worker_say(w, job, &wait, audio, ret, e);
    give_worker(s, state, w, r);
    return r < 0 ? r : buf_check(audio, e);
}

static int say_sentence(struct speech *s, const struct speech_plan *plan, size_t i, struct buf *audio,
                        struct speech_frame_done *ret, struct err *e)
{
    const struct speech_worker_job job = { plan->format, plan->speed, plan->voice, plan->sentences.items[i] };
    const struct net_wait wait = net_wait_of(LIMIT_LONG_DEADLINE_MS, plan->is_gone, s->config.is_leaving);
    struct engine_state *state = state_of(s, slice_of(plan->engine->id));
    int r = speech_turns_take(&state->turns, plan->caller, &wait, e);

    if (r < 0)
        return r;
    r = say(s, state, &job, plan->is_gone, audio, ret, e);
    speech_turns_give(&state->turns);
    return r;
}

/* Speaks at the engine's rate and then changes it. */
static int say_at_rate(struct speech *s, const struct speech_plan *plan, size_t i, struct buf *audio,
                       struct speech_frame_done *ret, struct err *e)
{
    struct buf spoken;
    int r;

    buf_init(&spoken, LIMIT_SPEECH_AUDIO);
    r = say_sentence(s, plan, i, &spoken, ret, e);
    if (r == 0) {
        ret->n_samples = (uint32_t)speech_resample(buf_slice(&spoken), ret->rate, plan->rate, audio);
        ret->rate = plan->rate;
        r = buf_check(audio, e);
    }
    buf_clear(&spoken);
    return r;
}

int speech_say(struct speech *s, const struct speech_plan *plan, size_t i, struct buf *audio,
               struct speech_frame_done *ret, struct err *e)
{
    bool is_changed = plan->rate > 0 && plan->format != SPEECH_MP3;

    return is_changed ? say_at_rate(s, plan, i, audio, ret, e) : say_sentence(s, plan, i, audio, ret, e);
}

static void put_le(char *out, uint32_t value, size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] = (char)(value >> (8 * i));
}

void speech_wav_header(char out[SPEECH_WAV_HEADER], uint32_t rate, size_t n_bytes)
{
    memcpy(out, "RIFF....WAVEfmt ", 16);
    put_le(out + 4, (uint32_t)n_bytes + SPEECH_WAV_HEADER - 8, 4);
    put_le(out + 16, 16, 4); /* bytes of the format */
    put_le(out + 20, 1, 2);  /* PCM */
    put_le(out + 22, 1, 2);  /* one channel */
    put_le(out + 24, rate, 4);
    put_le(out + 28, rate * 2, 4);
    put_le(out + 32, 2, 2); /* bytes of a sample */
    put_le(out + 34, 16, 2);
    memcpy(out + 36, "data", 4);
    put_le(out + 40, (uint32_t)n_bytes, 4);
}

const char *speech_mime_type(enum speech_format format)
{
    return format == SPEECH_MP3 ? "audio/mpeg" : format == SPEECH_PCM ? "audio/pcm" : "audio/wav";
}

/* ---- providers ---- */

static void describe(struct speech *s, struct engine_state *state, struct arena *a, struct speech_provider *ret)
{
    struct speech_voices known = { NULL, 0 }, languages;
    struct err why;

    err_init(&why);
    *ret =
        (struct speech_provider){ .id = state->engine->id, .name = state->engine->name, .note = state->engine->note };
    ret->is_configured = voices_of(s, state, NULL, a, &known, &why) == 0;
    if (!ret->is_configured)
        ret->note = arena_strdup(a, why.text);
    languages = ret->is_configured ? state->engine->languages(&known) : known;
    ret->voices = known.items;
    ret->n_voices = known.n;
    ret->languages = languages.items;
    ret->n_languages = languages.n;
}

void speech_providers(struct speech *s, struct arena *a, struct speech_provider ret[N_SPEECH_PROVIDERS])
{
    for (size_t i = 0; i < N_SPEECH_ENGINES; i++)
        describe(s, &s->states[i], a, &ret[i]);
}

const char *speech_default_provider(struct speech *s, struct arena *a)
{
    const struct speech_request nothing = { .text = SLICE_LIT("") };
    struct choice c = { .speech = s, .request = &nothing, .arena = a };
    struct err why;

    err_init(&why);
    c.language = settings_string(s->config.settings, a, SETTING_SPEECH_LANGUAGE);
    return choose(&c, &why) == 0 ? c.state->engine->id : speech_engines[0]->id;
}

/* ---- lifetime ---- */

struct speech *speech_open(const struct speech_config *c)
{
    struct speech *s = xcalloc(1, sizeof(*s));

    s->config = *c;
    s->n_kept = (size_t)settings_int(c->settings, SETTING_SPEECH_WORKERS);
    for (size_t i = 0; i < N_SPEECH_ENGINES; i++) {
        s->states[i].engine = speech_engines[i];
        speech_turns_init(&s->states[i].turns, MAX(s->n_kept, (size_t)1));
        pthread_mutex_init(&s->states[i].lock, NULL);
    }
    return s;
}

struct speech *speech_close(struct speech *s)
{
    if (!s)
        return NULL;
    for (size_t i = 0; i < N_SPEECH_ENGINES; i++) {
        while (s->states[i].n_idle > 0)
            speech_worker_stop(s->states[i].idle[--s->states[i].n_idle]);
        speech_turns_clear(&s->states[i].turns);
        pthread_mutex_destroy(&s->states[i].lock);
        free(s->states[i].list);
    }
    free(s);
    return NULL;
}

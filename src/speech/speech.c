#include "speech/speech.h"

#include "base/clock.h"
#include "speech/cache.h"
#include "speech/engines.h"
#include "speech/pool.h"
#include "speech/resample.h"
#include "speech/spoken.h"

#include <assert.h>
#include <stdlib.h>
#include <strings.h>

_Static_assert((int)N_SPEECH_PROVIDERS == (int)N_SPEECH_ENGINES, "every engine is a provider");

struct engine_state {
    const struct speech_engine *engine;
    struct speech_pool *pool;
};

struct speech {
    struct speech_config config;
    struct speech_cache *cache;
    struct engine_state states[N_SPEECH_ENGINES];
};

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
    int r = speech_pool_voices(c->state->pool, c->request->is_gone, c->arena, &known, e);

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

static size_t cache_bytes(const struct speech *s)
{
    return (size_t)settings_int(s->config.settings, SETTING_SPEECH_CACHE_MB) << 20;
}

static void cache_key(const struct speech_plan *plan, size_t i, struct speech_pool *pool, unsigned char key[HASH_BYTES])
{
    char version[SPEECH_VERSION_SIZE];
    const struct speech_cache_what what = {
        plan->sentences.items[i], plan->caller, plan->engine->id, version, plan->voice, plan->speed, plan->format
    };

    speech_pool_version(pool, version);
    speech_cache_key(&what, key);
}

static int say_anew(struct speech *s, const struct speech_plan *plan, size_t i, struct buf *audio,
                    struct speech_frame_done *ret, struct err *e)
{
    const struct speech_worker_job job = { plan->format, plan->speed, plan->voice, plan->sentences.items[i] };

    return speech_pool_say(state_of(s, slice_of(plan->engine->id))->pool, &job, plan->caller, plan->is_gone, audio, ret,
                           e);
}

static int say_sentence(struct speech *s, const struct speech_plan *plan, size_t i, struct buf *audio,
                        struct speech_frame_done *ret, struct err *e)
{
    const size_t max_bytes = cache_bytes(s), n_before = audio->n;
    unsigned char key[HASH_BYTES];
    int r;

    if (max_bytes == 0)
        return say_anew(s, plan, i, audio, ret, e);
    cache_key(plan, i, state_of(s, slice_of(plan->engine->id))->pool, key);
    if (speech_cache_find(s->cache, key, audio, ret))
        return buf_check(audio, e);
    r = say_anew(s, plan, i, audio, ret, e);
    if (r == 0)
        speech_cache_keep(s->cache, key, (struct slice){ audio->p + n_before, audio->n - n_before }, ret, max_bytes);
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

static void describe(const struct engine_state *state, struct arena *a, struct speech_provider *ret)
{
    struct speech_voices known = { NULL, 0 }, languages;
    struct err why;

    err_init(&why);
    *ret =
        (struct speech_provider){ .id = state->engine->id, .name = state->engine->name, .note = state->engine->note };
    ret->is_configured = speech_pool_voices(state->pool, NULL, a, &known, &why) == 0;
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
        describe(&s->states[i], a, &ret[i]);
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

void speech_tidy(struct speech *s)
{
    int64_t idle_s = settings_int(s->config.settings, SETTING_SPEECH_IDLE_S);

    for (size_t i = 0; idle_s > 0 && i < N_SPEECH_ENGINES; i++)
        speech_pool_end_idle(s->states[i].pool, clock_mono_ms() - idle_s * 1000);
    speech_cache_trim(s->cache, cache_bytes(s));
}

struct speech *speech_open(const struct speech_config *c)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct speech *s = xcalloc(1, sizeof(*s));
    struct speech_pool_config pool = { .supervisor = c->supervisor,
                                       .folder = settings_string(c->settings, a, SETTING_SPEECH_FOLDER),
                                       .n_kept = (size_t)settings_int(c->settings, SETTING_SPEECH_WORKERS),
                                       .is_leaving = c->is_leaving };

    s->config = *c;
    s->cache = speech_cache_new();
    for (size_t i = 0; i < N_SPEECH_ENGINES; i++) {
        pool.engine = speech_engines[i];
        s->states[i] = (struct engine_state){ speech_engines[i], speech_pool_new(&pool) };
    }
    return s;
}

struct speech *speech_close(struct speech *s)
{
    if (!s)
        return NULL;
    for (size_t i = 0; i < N_SPEECH_ENGINES; i++)
        speech_pool_free(s->states[i].pool);
    speech_cache_free(s->cache);
    free(s);
    return NULL;
}

#include "speech/speech_private.h"

#include "base/clock.h"
#include "speech/remote.h"
#include "speech/resample.h"
#include "speech/spoken.h"

#include <assert.h>
#include <stdlib.h>

/* ---- the plan ---- */

int speech_plan(struct speech *s, const struct speech_request *request, struct arena *a, struct speech_plan *ret,
                struct err *e)
{
    const char *language = speech_language(s, request, a);
    struct speech_sentences sentences;
    struct speech_target target = { .state = NULL };
    int r = speech_sentences(a, speech_spoken(a, request->text, language), language, &sentences, e);

    if (r == 0 && sentences.n == 0)
        r = err_add_field(e, request->text_name, "must have something that can be spoken");
    if (r == 0)
        r = speech_choose(s, request, language, a, &target, e);
    if (r < 0)
        return r;
    assert(target.state || target.account);
    *ret = (struct speech_plan){ .provider = target.state ? target.state->engine->id : target.account->name,
                                 .account = target.state ? NULL : target.account,
                                 .voice = target.voice,
                                 .model = target.state ? "" : target.model,
                                 .language = target.state ? language : target.language,
                                 .caller = arena_strdup(a, request->caller),
                                 .speed = request->speed,
                                 .format = request->format,
                                 .rate = request->rate,
                                 .is_gone = request->is_gone,
                                 .sentences = sentences };
    return 0;
}

/* ---- speaking ---- */

static size_t cache_bytes(const struct speech *s)
{
    return (size_t)settings_int(s->config.settings, SETTING_SPEECH_CACHE_MB) << 20;
}

/* Of a provider the address and the model stand for the version. */
static void cache_key(struct speech *s, const struct speech_plan *plan, size_t i, unsigned char key[HASH_BYTES])
{
    AUTO(arena_freep) struct arena *a = arena_new();
    char version[SPEECH_VERSION_SIZE] = "";
    struct speech_cache_what what = {
        plan->sentences.items[i], plan->caller, plan->provider, version, plan->voice, plan->speed, plan->format
    };

    if (plan->account)
        what.version = arena_printf(a, "%s %s %s", plan->account->base_url, plan->model, plan->language);
    else
        speech_pool_version(speech_state_of(s, slice_of(plan->provider))->pool, version);
    speech_cache_key(&what, key);
}

/* What the provider itself does of the speed; the rest is for the worker of sound. */
static double own_speed(const struct speech_plan *plan)
{
    const struct speech_service *service = plan->account->service;

    return plan->speed >= service->min_speed && plan->speed <= service->max_speed ? plan->speed : 1;
}

static int finish(struct speech *s, const struct speech_plan *plan, const struct speech_pcm *sound, double speed,
                  struct buf *audio, struct speech_frame_done *ret, struct err *e)
{
    char rate[16];
    struct speech_worker_job job = { plan->format, speed, plan->voice, { NULL, 0 }, sound->samples };
    int r;

    snprintf(rate, sizeof(rate), "%u", sound->rate);
    job.text = slice_of(rate);
    r = speech_pool_say(s->sound, &job, plan->caller, plan->is_gone, audio, ret, e);
    return r == -EIO && sound->rate == 0 ? speech_remote_blame(plan->account, r, e) : r;
}

static int request_sound(struct speech *s, const struct speech_plan *plan, const struct speech_say *say,
                         struct arena *a, struct speech_pcm *ret, struct err *e)
{
    const struct net_wait turn = net_wait_of(LIMIT_LONG_DEADLINE_MS, plan->is_gone, s->config.is_leaving);
    const struct net_wait wait = net_wait_of(LIMIT_SPEECH_REPLY_MS, plan->is_gone, s->config.is_leaving);
    int r = speech_turns_take(&s->turns, plan->caller, &turn, e);

    if (r < 0)
        return r;
    r = speech_remote_say(plan->account, say, &wait, a, ret, e);
    speech_turns_give(&s->turns);
    return r;
}

static int say_by_provider(struct speech *s, const struct speech_plan *plan, size_t i, struct buf *audio,
                           struct speech_frame_done *ret, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    const double speed = own_speed(plan);
    const struct speech_say say = { plan->sentences.items[i], plan->voice, plan->model, plan->language, speed };
    struct speech_pcm sound = { { NULL, 0 }, 0 };
    int r = request_sound(s, plan, &say, a, &sound, e);

    return r < 0 ? r : finish(s, plan, &sound, plan->speed / speed, audio, ret, e);
}

static int say_anew(struct speech *s, const struct speech_plan *plan, size_t i, struct buf *audio,
                    struct speech_frame_done *ret, struct err *e)
{
    const struct speech_worker_job job = {
        plan->format, plan->speed, plan->voice, plan->sentences.items[i], { NULL, 0 }
    };

    if (plan->account)
        return say_by_provider(s, plan, i, audio, ret, e);
    return speech_pool_say(speech_state_of(s, slice_of(plan->provider))->pool, &job, plan->caller, plan->is_gone, audio,
                           ret, e);
}

static int say_sentence(struct speech *s, const struct speech_plan *plan, size_t i, struct buf *audio,
                        struct speech_frame_done *ret, struct err *e)
{
    const size_t max_bytes = cache_bytes(s), n_before = audio->n;
    unsigned char key[HASH_BYTES];
    int r;

    if (max_bytes == 0)
        return say_anew(s, plan, i, audio, ret, e);
    cache_key(s, plan, i, key);
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

static void describe_engine(const struct engine_state *state, struct arena *a, struct speech_provider *ret)
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

static bool has_language(const struct speech_provider *p, const char *language)
{
    for (size_t i = 0; i < p->n_languages; i++)
        if (strcmp(p->languages[i], language) == 0)
            return true;
    return !*language;
}

static void describe_voices(const struct speech_voice_list *list, struct arena *a, struct speech_provider *ret)
{
    const char **voices = arena_array(a, list->n + 1, sizeof(*voices));
    const char **languages = arena_array(a, LIMIT_SPEECH_LANGUAGES + 1, sizeof(*languages));

    ret->languages = languages;
    for (size_t i = 0; i < list->n; i++) {
        voices[i] = list->items[i].id;
        if (ret->n_languages < LIMIT_SPEECH_LANGUAGES && !has_language(ret, list->items[i].language))
            languages[ret->n_languages++] = list->items[i].language;
    }
    ret->voices = voices;
    ret->n_voices = list->n;
    ret->details = list->items;
}

static void describe_models(const struct speech_account *acc, struct arena *a, struct speech_provider *ret)
{
    size_t n = 0;
    const char **models;

    while (acc->service->models[n])
        n++;
    models = arena_array(a, n + acc->n_models + 1, sizeof(*models));
    if (acc->model && *acc->model)
        models[ret->n_models++] = acc->model;
    for (size_t i = 0; i < n + acc->n_models; i++) {
        const char *model = i < acc->n_models ? acc->models[i] : acc->service->models[i - acc->n_models];

        if (!acc->model || strcmp(acc->model, model) != 0)
            models[ret->n_models++] = model;
    }
    ret->models = models;
}

static void describe_account(struct speech *s, const struct speech_account *acc, const atomic_bool *is_gone,
                             struct arena *a, struct speech_provider *ret)
{
    const struct net_wait wait = net_wait_of(LIMIT_SPEECH_REPLY_MS, is_gone, s->config.is_leaving);
    struct speech_voice_list voices = { NULL, 0 };
    struct err why;

    err_init(&why);
    *ret = (struct speech_provider){ .id = acc->name,
                                     .name = acc->label,
                                     .is_configured = true,
                                     .is_remote = !acc->is_local,
                                     .max_characters = acc->service->max_characters };
    if (speech_voice_lists_get(s->lists, acc, &wait, a, &voices, &why) < 0) {
        ret->is_configured = !acc->is_local;
        ret->note =
            acc->is_local ? arena_strdup(a, why.text) : arena_printf(a, "Its voices are not known: %s", why.text);
    }
    describe_voices(&voices, a, ret);
    describe_models(acc, a, ret);
}

/* only_local: no provider over HTTP is asked. */
static size_t describe_all(struct speech *s, bool only_local, const atomic_bool *is_gone, struct arena *a,
                           const struct speech_provider **ret)
{
    const struct speech_account *accounts;
    size_t n = speech_accounts_of(s, a, &accounts), n_described = N_SPEECH_ENGINES;
    struct speech_provider *providers = arena_array(a, N_SPEECH_ENGINES + n, sizeof(*providers));

    for (size_t i = 0; i < N_SPEECH_ENGINES; i++)
        describe_engine(&s->states[i], a, &providers[i]);
    for (size_t i = 0; i < n; i++)
        if (!only_local || accounts[i].is_local)
            describe_account(s, &accounts[i], is_gone, a, &providers[n_described++]);
    *ret = providers;
    return n_described;
}

size_t speech_local_describe(struct speech *s, struct arena *a, const struct speech_provider **ret)
{
    return describe_all(s, true, NULL, a, ret);
}

size_t speech_providers(struct speech *s, const atomic_bool *is_gone, struct arena *a,
                        const struct speech_provider **ret)
{
    return describe_all(s, false, is_gone, a, ret);
}

const char *speech_default_provider(struct speech *s, struct arena *a)
{
    const struct speech_request nothing = { .text = SLICE_LIT("") };
    struct speech_target target = { .state = NULL };
    struct err why;

    err_init(&why);
    if (speech_choose(s, &nothing, settings_string(s->config.settings, a, SETTING_SPEECH_LANGUAGE), a, &target, &why) <
        0)
        return speech_engines[0]->id;
    assert(target.state || target.account);
    return target.state ? target.state->engine->id : target.account->name;
}

/* ---- lifetime ---- */

void speech_tidy(struct speech *s)
{
    int64_t idle_s = settings_int(s->config.settings, SETTING_SPEECH_IDLE_S);

    for (size_t i = 0; idle_s > 0 && i < N_SPEECH_ENGINES; i++)
        speech_pool_end_idle(s->states[i].pool, clock_mono_ms() - idle_s * 1000);
    if (idle_s > 0)
        speech_pool_end_idle(s->sound, clock_mono_ms() - idle_s * 1000);
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
    s->lists = speech_voice_lists_new();
    speech_turns_init(&s->turns, LIMIT_SPEECH_REMOTE);
    pool.engine = &speech_sound;
    s->sound = speech_pool_new(&pool);
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
    speech_pool_free(s->sound);
    speech_turns_clear(&s->turns);
    speech_voice_lists_free(s->lists);
    speech_cache_free(s->cache);
    free(s);
    return NULL;
}

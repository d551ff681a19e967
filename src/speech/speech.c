#include "speech/speech_private.h"

#include "base/clock.h"
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

/* ---- formats ---- */

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
    speech_cache_trim(s->cache, speech_cache_bytes(s));
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
    s->levels = speech_levels_new();
    speech_turns_init(&s->turns, LIMIT_SPEECH_REMOTE);
    pool.engine = &speech_sound;
    pool.n_places =
        LIMIT_SPEECH_REMOTE + MAX(pool.n_kept, (size_t)1); /* those that arrive, and those that have arrived */
    s->sound = speech_pool_new(&pool);
    pool.n_places = 0;
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
    speech_levels_free(s->levels);
    speech_cache_free(s->cache);
    free(s);
    return NULL;
}

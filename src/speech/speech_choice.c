#include "speech/speech_private.h"

#include "base/limits.h"
#include "speech/programs.h"
#include "speech/script.h"

#include <strings.h>

struct choice {
    struct speech *speech;
    const struct speech_request *request;
    struct arena *arena;
    const char *language;
    int64_t list_ms; /* how long a provider has for its list of voices */
    struct speech_target target;
};

static bool is_given(const char *text)
{
    return text && *text;
}

struct engine_state *speech_state_of(struct speech *s, struct slice id)
{
    for (size_t i = 0; i < N_SPEECH_ENGINES; i++)
        if (slice_eq_str(id, s->states[i].engine->id))
            return &s->states[i];
    return NULL;
}

size_t speech_accounts_of(const struct speech *s, struct arena *a, const struct speech_account **ret)
{
    const struct speech_account *all = NULL;
    size_t n = s->config.accounts.list ? s->config.accounts.list(s->config.accounts.arg, a, &all) : 0, n_kept = 0;
    struct speech_account *kept = arena_array(a, n + N_SPEECH_PROGRAMS, sizeof(*kept));

    n_kept = speech_programs_list(&s->config, a, kept);
    for (size_t i = 0; i < n; i++)
        if (all[i].service)
            kept[n_kept++] = all[i];
    *ret = kept;
    return n_kept;
}

static const struct speech_account *find_account(const struct speech *s, struct slice name, struct arena *a)
{
    const struct speech_account *accounts;
    size_t n = speech_accounts_of(s, a, &accounts);

    for (size_t i = 0; i < n; i++)
        if (slice_eq_str(name, accounts[i].name))
            return &accounts[i];
    return NULL;
}

bool speech_is_provider(struct speech *s, struct slice id)
{
    AUTO(arena_freep) struct arena *a = arena_new();

    return speech_state_of(s, id) || find_account(s, id, a);
}

/* What the setting speech.voices says of the language, or of its first part: "provider/voice"; NULL: nothing. */
static const char *configured_voice(const struct choice *c)
{
    const char *language = c->language, *found = NULL;
    size_t n = 0, n_first = strcspn(language, "-_");
    const char *const *rows = settings_list(c->speech->config.settings, c->arena, SETTING_SPEECH_VOICES, &n);

    for (size_t i = 0; i < n; i++) {
        size_t n_name = strcspn(rows[i], "=");

        if (n_name == strlen(language) && strncasecmp(rows[i], language, n_name) == 0)
            return rows[i] + n_name + 1;
        if (n_name == n_first && strncasecmp(rows[i], language, n_name) == 0)
            found = rows[i] + n_name + 1;
    }
    return found;
}

/* flite gives silence for another script, and espeak-ng the names of its letters; a provider's voices speak many
 * languages. */
const char *speech_language(struct speech *s, const struct speech_request *request, struct arena *a)
{
    struct choice c = { .speech = s, .arena = a };
    const char *configured;

    if (is_given(request->language))
        return arena_strdup(a, request->language);
    c.language = settings_string(s->config.settings, a, SETTING_SPEECH_LANGUAGE);
    if (is_given(request->provider) || (is_given(request->voice) && !request->is_voice_optional))
        return c.language;
    configured = configured_voice(&c);
    if (configured && !speech_state_of(s, (struct slice){ configured, strcspn(configured, "/") }))
        return c.language;
    return speech_language_of(request->text, c.language);
}

/* ---- an engine of this machine ---- */

static int choose_engine_voice(struct choice *c, const char *wanted, struct err *e)
{
    const struct speech_engine *engine = c->target.state->engine;
    struct speech_voices known;
    int r = speech_pool_voices(c->target.state->pool, c->request->is_gone, c->arena, &known, e);

    if (r < 0)
        return r;
    if (wanted && c->request->is_voice_optional && !engine->has_voice(&known, wanted))
        wanted = NULL;
    if (wanted) {
        c->target.voice = arena_strdup(c->arena, wanted);
        return engine->has_voice(&known, wanted)
                   ? 0
                   : err_add_field(e, "voice", "must be a voice of %s, which GET /sdk/tts/providers lists", engine->id);
    }
    c->target.voice = engine->voice_of(&known, c->language, c->arena);
    return c->target.voice
               ? 0
               : err_add_field(e, "language", "must be a language of %s, not %.30s", engine->id, c->language);
}

/* ---- a provider over HTTP ---- */

/* 2: the same; 1: de for de-AT, de-AT for de; 0: another one. */
static int nearness(const char *have, const char *wanted)
{
    size_t n = strcspn(wanted, "-_");

    if (strcasecmp(have, wanted) == 0)
        return 2;
    return strncasecmp(have, wanted, n) == 0 && (!have[n] || have[n] == '-' || have[n] == '_');
}

/* The first voice that is nearest to the language; one of any language where none is near. */
static const struct speech_voice *voice_for(const struct speech_voice_list *list, const char *language)
{
    const struct speech_voice *best = NULL, *any = NULL;
    int best_nearness = 0;

    for (size_t i = 0; i < list->n; i++) {
        int near = nearness(list->items[i].language, language);

        if (near > best_nearness) {
            best = &list->items[i];
            best_nearness = near;
        }
        if (!any && !*list->items[i].language)
            any = &list->items[i];
    }
    return best ? best : any;
}

/* By its id, else by its name. */
static const struct speech_voice *find_voice(const struct speech_voice_list *list, const char *wanted)
{
    for (size_t i = 0; i < list->n; i++)
        if (strcasecmp(list->items[i].id, wanted) == 0)
            return &list->items[i];
    for (size_t i = 0; i < list->n; i++)
        if (strcasecmp(list->items[i].name, wanted) == 0)
            return &list->items[i];
    return NULL;
}

static int list_voices(const struct choice *c, struct speech_voice_list *ret, struct err *e)
{
    const struct net_wait wait = net_wait_of(c->list_ms, c->request->is_gone, c->speech->config.is_leaving);

    return speech_voice_lists_get(c->speech->lists, c->target.account, &wait, c->arena, ret, e);
}

static void take_voice(struct choice *c, const struct speech_voice *voice)
{
    c->target.voice = voice->id;
    if (*voice->language && nearness(voice->language, c->language) == 0)
        c->target.language = voice->language;
}

/* Without a list every name is taken as it is. */
static int take_wanted(struct choice *c, const struct speech_voice_list *known, const char *wanted, struct err *e)
{
    const char *name = c->target.account->name;
    const struct speech_voice *voice = find_voice(known, wanted);

    if (voice)
        take_voice(c, voice);
    else if (known->n > 0)
        return err_add_field(e, "voice", "must be a voice of %.64s, which GET /sdk/tts/providers lists", name);
    else if (!speech_voice_is_name(slice_of(wanted)))
        return err_add_field(e, "voice", "must be visible characters of ASCII, as %.64s names its voices", name);
    else
        c->target.voice = arena_strdup(c->arena, wanted);
    return 0;
}

static int choose_account_voice(struct choice *c, const char *wanted, struct err *e)
{
    const struct speech_account *acc = c->target.account;
    struct speech_voice_list known = { NULL, 0 };
    const struct speech_voice *voice;
    struct err why;
    int r;

    err_init(&why);
    r = list_voices(c, &known, &why);
    if (r == -ECANCELED || (r < 0 && !wanted)) /* a voice that is named needs no list */
        return err_set(e, r, why.code, "%s", why.text);
    c->target.model = is_given(c->request->model) ? arena_strdup(c->arena, c->request->model)
                      : is_given(acc->model)      ? acc->model
                                                  : acc->service->model;
    c->target.language = c->language;
    if (wanted && c->request->is_voice_optional && known.n > 0 && !find_voice(&known, wanted))
        wanted = NULL;
    if (wanted)
        return take_wanted(c, &known, wanted, e);
    voice = voice_for(&known, c->language);
    if (voice)
        take_voice(c, voice);
    else if (known.n > 0)
        return err_add_field(e, "language", "must be a language of %.64s, not %.30s", acc->name, c->language);
    else
        c->target.voice = acc->service->voice;
    return 0;
}

/* ---- the choice ---- */

static int choose_voice(struct choice *c, const char *wanted, struct err *e)
{
    return c->target.state ? choose_engine_voice(c, wanted, e) : choose_account_voice(c, wanted, e);
}

/* Whether the provider of this name exists; it is the target then. */
static bool choose_provider(struct choice *c, struct slice name)
{
    c->target.state = speech_state_of(c->speech, name);
    if (!c->target.state)
        c->target.account = find_account(c->speech, name, c->arena);
    return c->target.state || c->target.account;
}

static const char *names(const struct choice *c)
{
    const struct speech_account *accounts;
    size_t n = speech_accounts_of(c->speech, c->arena, &accounts);
    const char *text = "flite_local, espeak_local";

    for (size_t i = 0; i < n; i++)
        text = arena_printf(c->arena, "%s, %s", text, accounts[i].name);
    return text;
}

/* An engine that is missing is passed over, and a provider that does not answer too. */
static int choose_by_voice(struct choice *c, struct err *e)
{
    const struct speech_account *accounts;
    struct err why;
    int r = -EINVAL, r_first = 0;

    err_init(&why);
    for (size_t i = 0; r == -EINVAL && i < N_SPEECH_ENGINES; i++) {
        c->target.state = &c->speech->states[i];
        err_init(&why);
        r = choose_voice(c, c->request->voice, &why);
    }
    if (r == 0 || r == -ECANCELED)
        return r < 0 ? err_set(e, r, why.code, "%s", why.text) : 0;
    r_first = r;
    c->target.state = NULL;
    for (size_t i = 0, n = speech_accounts_of(c->speech, c->arena, &accounts); r < 0 && i < n; i++) {
        struct speech_voice_list known = { NULL, 0 };

        c->target.account = &accounts[i];
        if (list_voices(c, &known, NULL) == 0 && find_voice(&known, c->request->voice))
            r = choose_voice(c, c->request->voice, e);
    }
    if (r == 0)
        return 0;
    if (r_first == -EINVAL)
        return err_add_field(e, "voice", "must be a voice that GET /sdk/tts/providers lists");
    return err_set(e, r_first, why.code, "%s", why.text);
}

/* Without flite English falls back to espeak, unless the request or a setting names flite. */
static int choose_by_language(struct choice *c, struct err *e)
{
    struct speech *s = c->speech;
    int r;

    c->target.state = speech_is_english(c->language) ? &s->states[0] : &s->states[1];
    r = choose_voice(c, NULL, e);
    if (r != -ENODEV || c->target.state != &s->states[0])
        return r;
    c->target.state = &s->states[1];
    err_init(e);
    return choose_voice(c, NULL, e);
}

static int choose(struct choice *c, struct err *e)
{
    const char *configured = configured_voice(c), *wanted = is_given(c->request->voice) ? c->request->voice : NULL;
    struct slice provider = { configured, configured ? strcspn(configured, "/") : 0 };

    if (!is_given(c->request->provider) && wanted)
        return choose_by_voice(c, e);
    if (is_given(c->request->provider)) {
        bool is_configured = configured && slice_eq_str(provider, c->request->provider);

        if (!choose_provider(c, slice_of(c->request->provider)))
            return err_add_field(e, "provider", "must be one of %.100s, not %.60s", names(c), c->request->provider);
        return choose_voice(c, wanted || !is_configured ? wanted : provider.p + provider.n + 1, e);
    }
    if (!configured)
        return choose_by_language(c, e);
    if (!choose_provider(c, provider))
        return err_add_field(e, "provider", "must be one of %.100s; the setting speech.voices names %.*s", names(c),
                             (int)MIN(provider.n, (size_t)60), provider.p);
    return choose_voice(c, provider.p + provider.n + 1, e);
}

int speech_choose(struct speech *s, const struct speech_request *request, const char *language, struct arena *a,
                  struct speech_target *ret, struct err *e)
{
    struct choice c = {
        .speech = s, .request = request, .arena = a, .language = language, .list_ms = LIMIT_SPEECH_REPLY_MS
    };
    int r = choose(&c, e);

    *ret = c.target;
    return r;
}

int speech_check_row(struct speech *s, const char *row, const atomic_bool *is_gone, struct arena *a, struct err *e)
{
    const struct speech_request request = { .is_gone = is_gone };
    const char *provider = row + strcspn(row, "=") + 1, *voice = provider + strcspn(provider, "/") + 1;
    const struct slice name = { provider, (size_t)(voice - 1 - provider) };
    struct choice c = { .speech = s, .request = &request, .arena = a, .list_ms = LIMIT_DOCTOR_WAIT_MS };
    int r;

    c.language = arena_slicedup(a, (struct slice){ row, (size_t)(provider - 1 - row) });
    if (!choose_provider(&c, name))
        return err_set(e, -ENOENT, "SPEECH_UNAVAILABLE", "there is no provider %.*s that speaks",
                       (int)MIN(name.n, (size_t)60), name.p);
    r = choose_voice(&c, voice, e);
    return r == -EINVAL ? err_set(e, r, "SPEECH_UNAVAILABLE", "%.*s has no voice %.60s", (int)MIN(name.n, (size_t)60),
                                  name.p, voice)
                        : r;
}

#include "speech/ears_private.h"
#include "speech/ears_services.h"

#include "speech/ears_recording.h"
#include "speech/engines.h"
#include "speech/turns.h"

#include <stdlib.h>
#include <strings.h>

struct ears {
    struct ears_context context;
    struct speech_accounts accounts;
    struct speech_turns turns, remote_turns;
    atomic_bool has_worked[N_EARS_ENGINES]; /* needs no other check */
    atomic_uint n_listening;                /* requests that have the microphone */
};

struct hearing {
    struct ears *ears;
    struct arena *arena; /* owned: the engine of a provider */
    const struct ears_engine *engine;
    const char *model; /* in the arena, or NULL */
    struct ears_run *run;
    struct net_wait wait;
    struct speech_turns *turns; /* NULL: without a turn */
    bool is_done;
};

/* ---- the choice ---- */

static bool is_given(const char *text)
{
    return text && *text;
}

/* The engines of the configured providers, in the arena. */
static size_t list_remote(const struct ears *ears, struct arena *a, const struct ears_engine **ret)
{
    const struct speech_account *accounts = NULL;
    size_t n = ears->accounts.list ? ears->accounts.list(ears->accounts.arg, a, &accounts) : 0, n_hear = 0;
    struct ears_engine *engines = arena_array(a, n + 1, sizeof(*engines));

    for (size_t i = 0; i < n; i++)
        if (accounts[i].ears)
            ears_http_engine(&accounts[i], &engines[n_hear++]);
    *ret = engines;
    return n_hear;
}

static int refuse_provider(const struct ears *ears, const char *id, struct arena *a, struct err *e)
{
    const struct ears_engine *remote;
    const char *names = "";

    for (size_t i = 0; i < N_EARS_ENGINES; i++)
        names = arena_printf(a, "%s%s%s", names, i ? ", " : "", ears_engines[i]->id);
    for (size_t i = 0, n = list_remote(ears, a, &remote); i < n; i++)
        names = arena_printf(a, "%s, %s", names, remote[i].id);
    return err_add_field(e, "provider", "must be one of %.100s, not %.60s", names, id);
}

/* NULL: there is none of this name. */
static const struct ears_engine *find_engine(const struct ears *ears, struct slice id, struct arena *a)
{
    const struct ears_engine *remote;

    for (size_t i = 0; i < N_EARS_ENGINES; i++)
        if (slice_eq_str(id, ears_engines[i]->id))
            return ears_engines[i];
    for (size_t i = 0, n = list_remote(ears, a, &remote); i < n; i++)
        if (slice_eq_str(id, remote[i].id))
            return &remote[i];
    return NULL;
}

static int choose_engine(const struct ears *ears, const struct ears_request *request, struct arena *a,
                         const struct ears_engine **ret, struct err *e)
{
    const struct ears_engine *found;

    *ret = ears_engines[0];
    if (!is_given(request->provider))
        return 0;
    found = find_engine(ears, slice_of(request->provider), a);
    if (!found)
        return refuse_provider(ears, request->provider, a, e);
    *ret = found;
    return 0;
}

/* de suits a model of de and one of de-AT; "" suits all. */
static bool is_of_language(const struct ears_model *model, const char *language)
{
    size_t n = strcspn(language, "-_");

    return !*model->language || (strncasecmp(model->language, language, n) == 0 &&
                                 (!model->language[n] || model->language[n] == '-' || model->language[n] == '_'));
}

static int refuse_model(const struct ears_engine *engine, const char *id, struct err *e)
{
    return err_add_field(e, "model", "must be a model of %s, which GET /sdk/stt/providers lists, not %.60s", engine->id,
                         id);
}

/* Without a model. */
static int refuse_engine(const struct ears_engine *engine, const struct ears_context *c, struct err *e)
{
    int r = engine->check(engine, c, e);

    return r < 0 ? r : err_add_field(e, "provider", "must have a model, and %s has none", engine->id);
}

static int refuse_language(const struct ears_engine *engine, const char *language, struct err *e)
{
    return err_add_field(e, "language", "must be a language of %s, which GET /sdk/stt/providers lists, not %.30s",
                         engine->id, language);
}

/* The first model of that name and language. */
static int choose_model(const struct ears *ears, const struct ears_engine *engine, const struct ears_request *request,
                        struct arena *a, struct ears_job *job, struct err *e)
{
    const struct ears_model *models = NULL;
    size_t n = engine->models(engine, &ears->context, a, &models);
    bool has_name = !is_given(request->model);

    if (is_given(request->language) && strcasecmp(request->language, "auto") != 0)
        job->language = request->language;
    for (size_t i = 0; i < n; i++) {
        if (is_given(request->model) && strcmp(models[i].id, request->model) != 0)
            continue;
        has_name = true;
        if (job->language && !is_of_language(&models[i], job->language))
            continue;
        job->model = models[i].id;
        return 0;
    }
    if (!has_name && engine->reads_anything) {
        job->model = arena_strdup(a, request->model);
        return 0;
    }
    if (n == 0)
        return refuse_engine(engine, &ears->context, e);
    return has_name ? refuse_language(engine, job->language, e) : refuse_model(engine, request->model, e);
}

/* ---- the recording ---- */

static int check_recording(const struct ears_engine *engine, struct slice recording, struct err *e)
{
    if (recording.n == 0)
        return err_set(e, -EINVAL, "AUDIO_UNREADABLE", "The recording is empty.");
    if (recording.n > LIMIT_SPEECH_UPLOAD)
        return err_set(e, -E2BIG, "BODY_TOO_LARGE", "The recording must be at most %d bytes.", LIMIT_SPEECH_UPLOAD);
    if (engine->reads_anything || ears_recording_kind(recording) != EARS_NO_RECORDING)
        return 0;
    return err_set(e, -EINVAL, "AUDIO_UNREADABLE",
                   "The recording is no audio that can be read: WAV, MP3, Ogg (Vorbis, Opus), FLAC, AIFF, WebM, MP4, "
                   "M4A, AAC.");
}

/* ---- the hearing ---- */

static int read_phrases(const struct ears_engine *engine, const struct ears_request *request, struct arena *a,
                        struct ears_job *job, struct err *e)
{
    if (is_given(request->phrases) && !engine->takes_phrases)
        return err_add_field(e, "phrases", "must be absent: %s takes none", engine->id);
    return ears_phrases_read(a, request->phrases, &job->phrases, &job->phrases_text, e);
}

int ears_plan(const struct ears *ears, const struct ears_request *request, struct arena *a,
              const struct ears_engine **ret_engine, struct ears_job *job, struct err *e)
{
    const struct ears_engine *engine = ears_engines[0];
    int r = choose_engine(ears, request, a, &engine, e);

    *ret_engine = engine;
    *job = (struct ears_job){ .recording = request->recording };
    if (r == 0)
        r = choose_model(ears, engine, request, a, job, e);
    if (r == 0)
        r = read_phrases(engine, request, a, job, e);
    return r;
}

static void note_worked(struct ears *ears, const struct ears_engine *engine)
{
    for (size_t i = 0; i < N_EARS_ENGINES; i++)
        if (ears_engines[i] == engine)
            atomic_store(&ears->has_worked[i], true);
}

static int begin(struct hearing *h, const struct ears_job *job, const char *caller, struct err *e)
{
    struct speech_turns *turns = h->engine->reads_anything ? &h->ears->remote_turns : &h->ears->turns;
    int r = speech_turns_take(turns, caller, &h->wait, e);

    h->turns = r == 0 ? turns : NULL;
    if (r == 0)
        r = h->engine->begin(h->engine, &h->ears->context, job, &h->wait, &h->run, e);
    if (r == 0)
        note_worked(h->ears, h->engine);
    return r;
}

int hearing_start(struct ears *ears, const struct ears_request *request, struct hearing **ret, struct err *e)
{
    struct hearing *h = xcalloc(1, sizeof(*h));
    struct ears_job job;
    int r;

    h->ears = ears;
    h->arena = arena_new();
    h->wait = net_wait_of(LIMIT_SPEECH_TRANSCRIBE_MS, request->is_gone, ears->context.is_leaving);
    r = ears_plan(ears, request, h->arena, &h->engine, &job, e);
    h->model = r == 0 && job.model ? arena_strdup(h->arena, job.model) : NULL;
    if (r == 0)
        r = check_recording(h->engine, request->recording, e);
    if (r == 0)
        r = begin(h, &job, request->caller, e);
    if (r < 0)
        hearing_end(h);
    else
        *ret = h;
    return r;
}

int hearing_next(struct hearing *h, struct arena *a, struct heard_segment *ret, struct err *e)
{
    int r = h->is_done ? 0 : h->engine->next(h->run, a, ret, e);

    h->is_done |= r <= 0;
    return r;
}

double hearing_duration(const struct hearing *h)
{
    return h->engine->duration(h->run);
}

struct ears_who hearing_who(const struct hearing *h)
{
    return (struct ears_who){ h->engine->id, h->model };
}

struct hearing *hearing_end(struct hearing *h)
{
    if (!h)
        return NULL;
    if (h->run)
        h->engine->end(h->run);
    if (h->turns)
        speech_turns_give(h->turns);
    arena_free(h->arena);
    free(h);
    return NULL;
}

/* ---- providers ---- */

bool ears_is_provider(const struct ears *ears, struct slice id)
{
    AUTO(arena_freep) struct arena *a = arena_new();

    return find_engine(ears, id, a) != NULL;
}

static void describe(struct ears *ears, size_t i, struct arena *a, struct ears_provider *ret)
{
    const struct ears_engine *engine = ears_engines[i];
    struct err why;

    err_init(&why);
    *ret = (struct ears_provider){ .id = engine->id, .name = engine->name, .description = engine->description };
    ret->n_models = engine->models(engine, &ears->context, a, &ret->models);
    ret->is_configured = atomic_load(&ears->has_worked[i]) || engine->check(engine, &ears->context, &why) == 0;
    atomic_store(&ears->has_worked[i], ret->is_configured);
    if (!ret->is_configured)
        ret->note = arena_strdup(a, why.text);
}

static void describe_remote(const struct ears *ears, const struct ears_engine *engine, struct arena *a,
                            struct ears_provider *ret)
{
    *ret = (struct ears_provider){ .id = engine->id,
                                   .name = engine->name,
                                   .description = engine->description,
                                   .is_configured = true,
                                   .is_remote = true };
    ret->n_models = engine->models(engine, &ears->context, a, &ret->models);
}

size_t ears_providers(struct ears *ears, struct arena *a, const struct ears_provider **ret)
{
    const struct ears_engine *remote;
    size_t n = list_remote(ears, a, &remote);
    struct ears_provider *providers = arena_array(a, N_EARS_ENGINES + n, sizeof(*providers));

    for (size_t i = 0; i < N_EARS_ENGINES; i++)
        describe(ears, i, a, &providers[i]);
    for (size_t i = 0; i < n; i++)
        describe_remote(ears, &remote[i], a, &providers[N_EARS_ENGINES + i]);
    *ret = providers;
    return N_EARS_ENGINES + n;
}

/* ---- the microphone ---- */

bool ears_take_microphone(struct ears *ears)
{
    if (atomic_fetch_add(&ears->n_listening, 1) < LIMIT_SPEECH_LISTENERS)
        return true;
    atomic_fetch_sub(&ears->n_listening, 1);
    return false;
}

void ears_give_microphone(struct ears *ears)
{
    atomic_fetch_sub(&ears->n_listening, 1);
}

/* ---- lifetime ---- */

const struct ears_context *ears_context_of(const struct ears *ears)
{
    return &ears->context;
}

struct ears *ears_open(const struct ears_config *c)
{
    struct ears *ears = xcalloc(1, sizeof(*ears));

    ears->accounts = c->accounts;
    ears->context = (struct ears_context){ c->supervisor, c->settings, c->is_leaving, c->data_dir };
    speech_turns_init(&ears->turns, LIMIT_SPEECH_HEARINGS);
    speech_turns_init(&ears->remote_turns, LIMIT_SPEECH_REMOTE);
    return ears;
}

struct ears *ears_close(struct ears *ears)
{
    if (!ears)
        return NULL;
    speech_turns_clear(&ears->turns);
    speech_turns_clear(&ears->remote_turns);
    free(ears);
    return NULL;
}

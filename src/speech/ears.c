#include "speech/ears_engine.h"

#include "speech/ears_recording.h"
#include "speech/engines.h"
#include "speech/turns.h"

#include <stdlib.h>
#include <strings.h>

struct ears {
    struct ears_context context;
    struct speech_turns turns;
    atomic_bool has_worked[N_EARS_ENGINES]; /* needs no other check */
};

struct hearing {
    struct ears *ears;
    const struct ears_engine *engine;
    struct ears_run *run;
    struct net_wait wait;
    bool has_turn, is_done;
};

/* ---- the choice ---- */

static bool is_given(const char *text)
{
    return text && *text;
}

static const char *names(struct arena *a)
{
    const char *text = "";

    for (size_t i = 0; i < N_EARS_ENGINES; i++)
        text = arena_printf(a, "%s%s%s", text, i ? ", " : "", ears_engines[i]->id);
    return text;
}

/* NULL: there is none of this name. */
static const struct ears_engine *find_engine(struct slice id)
{
    for (size_t i = 0; i < N_EARS_ENGINES; i++)
        if (slice_eq_str(id, ears_engines[i]->id))
            return ears_engines[i];
    return NULL;
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
    return has_name && n > 0 ? refuse_language(engine, job->language, e) : refuse_model(engine, request->model, e);
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

static int make_job(const struct ears *ears, const struct ears_request *request, struct arena *a,
                    const struct ears_engine **ret_engine, struct ears_job *job, struct err *e)
{
    const struct ears_engine *engine = ears_engines[0];
    int r;

    if (is_given(request->provider)) {
        engine = find_engine(slice_of(request->provider));
        if (!engine)
            return err_add_field(e, "provider", "must be one of %s, not %.60s", names(a), request->provider);
    }
    *ret_engine = engine;
    *job = (struct ears_job){ .recording = request->recording };
    r = choose_model(ears, engine, request, a, job, e);
    if (r == 0)
        r = read_phrases(engine, request, a, job, e);
    return r < 0 ? r : check_recording(engine, request->recording, e);
}

static void note_worked(struct ears *ears, const struct ears_engine *engine)
{
    for (size_t i = 0; i < N_EARS_ENGINES; i++)
        if (ears_engines[i] == engine)
            atomic_store(&ears->has_worked[i], true);
}

static int begin(struct hearing *h, const struct ears_job *job, const char *caller, struct err *e)
{
    int r = speech_turns_take(&h->ears->turns, caller, &h->wait, e);

    h->has_turn = r == 0;
    if (r == 0)
        r = h->engine->begin(h->engine, &h->ears->context, job, &h->wait, &h->run, e);
    if (r == 0)
        note_worked(h->ears, h->engine);
    return r;
}

int hearing_start(struct ears *ears, const struct ears_request *request, struct hearing **ret, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    const struct ears_engine *engine = ears_engines[0];
    struct ears_job job;
    struct hearing *h;
    int r = make_job(ears, request, a, &engine, &job, e);

    if (r < 0)
        return r;
    h = xcalloc(1, sizeof(*h));
    h->ears = ears;
    h->engine = engine;
    h->wait = net_wait_of(LIMIT_SPEECH_TRANSCRIBE_MS, request->is_gone, ears->context.is_leaving);
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

struct hearing *hearing_end(struct hearing *h)
{
    if (!h)
        return NULL;
    if (h->run)
        h->engine->end(h->run);
    if (h->has_turn)
        speech_turns_give(&h->ears->turns);
    free(h);
    return NULL;
}

/* ---- providers ---- */

bool ears_is_provider(const struct ears *ears, struct slice id)
{
    return find_engine(id) != NULL;
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

size_t ears_providers(struct ears *ears, struct arena *a, const struct ears_provider **ret)
{
    struct ears_provider *providers = arena_array(a, N_EARS_ENGINES, sizeof(*providers));

    for (size_t i = 0; i < N_EARS_ENGINES; i++)
        describe(ears, i, a, &providers[i]);
    *ret = providers;
    return N_EARS_ENGINES;
}

/* ---- lifetime ---- */

struct ears *ears_open(const struct ears_config *c)
{
    struct ears *ears = xcalloc(1, sizeof(*ears));

    ears->context = (struct ears_context){ c->supervisor, c->settings, c->is_leaving };
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

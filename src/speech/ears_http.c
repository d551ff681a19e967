/* Engines that hear by asking a provider: the whole transcript comes in one answer. */
#include "speech/ears_services.h"

#include "base/limits.h"
#include "speech/remote.h"

#include <stdlib.h>
#include <string.h>

enum { RECORDING_TIMES = 10 /* as much time as for a sentence */ };

struct ears_run {
    struct arena *arena; /* owned */
    struct ears_heard heard;
    size_t at;
};

static size_t models(const struct ears_engine *engine, const struct ears_context *c, struct arena *a,
                     const struct ears_model **ret)
{
    const struct speech_account *acc = engine->arg;
    struct ears_model *models;
    size_t n = 0, n_known = 0;

    while (acc->ears->models[n_known])
        n_known++;
    models = arena_array(a, n_known + acc->n_models + 1, sizeof(*models));
    if (acc->model && *acc->model)
        models[n++] = (struct ears_model){ acc->model, acc->model, "" };
    for (size_t i = 0; i < n_known + acc->n_models; i++) {
        const char *id = i < acc->n_models ? acc->models[i] : acc->ears->models[i - acc->n_models];

        if (!acc->model || strcmp(acc->model, id) != 0)
            models[n++] = (struct ears_model){ id, id, "" };
    }
    *ret = models;
    return n;
}

/* Nothing is sent to find out. */
static int check(const struct ears_engine *engine, const struct ears_context *c, struct err *e)
{
    return 0;
}

static int read_answer(const struct speech_account *acc, struct slice body, struct ears_run *run, struct err *e)
{
    struct json_value root = { 0 };
    size_t n_text = 0;
    int r = json_parse(run->arena, body, &root, NULL);

    r = r < 0 ? err_set(e, -EBADMSG, "SPEECH_FAILED", "it sent a transcript that is no JSON.")
              : acc->ears->protocol->read(root, run->arena, &run->heard, e);
    for (size_t i = 0; r == 0 && i < run->heard.n; i++)
        n_text += strlen(run->heard.segments[i].text) + 1;
    if (r == 0 && n_text > LIMIT_SPEECH_TRANSCRIPT)
        r = err_set(e, -EBADMSG, "SPEECH_FAILED", "it sent a transcript above %d bytes.", LIMIT_SPEECH_TRANSCRIPT);
    return r < 0 ? speech_remote_blame(acc, r, e) : 0;
}

static struct ears_run *end(struct ears_run *run)
{
    if (!run)
        return NULL;
    arena_free(run->arena);
    free(run);
    return NULL;
}

static int begin(const struct ears_engine *engine, const struct ears_context *c, const struct ears_job *job,
                 const struct net_wait *wait, struct ears_run **ret, struct err *e)
{
    struct speech_account acc = *(const struct speech_account *)engine->arg;
    struct ears_run *run = xcalloc(1, sizeof(*run));
    struct http_call_request request;
    struct http_answer answer = { 0 };
    int r;

    run->arena = arena_new();
    acc.total_ms *= RECORDING_TIMES;
    acc.ears->protocol->request(&acc, job, run->arena, &request);
    request.max_reply = LIMIT_SPEECH_TRANSCRIPT_REPLY;
    r = speech_remote_call(&acc, &request, wait, run->arena, &answer, e);
    if (r == 0)
        r = read_answer(&acc, answer.body, run, e);
    if (r < 0)
        end(run);
    else
        *ret = run;
    return r;
}

static int next(struct ears_run *run, struct arena *a, struct heard_segment *ret, struct err *e)
{
    const struct heard_segment *from;
    struct heard_word *words;

    if (run->at == run->heard.n)
        return 0;
    from = &run->heard.segments[run->at++];
    words = arena_array(a, from->n_words + 1, sizeof(*words));
    for (size_t i = 0; i < from->n_words; i++) {
        words[i] = from->words[i];
        words[i].text = arena_strdup(a, words[i].text);
    }
    *ret = (struct heard_segment){ arena_strdup(a, from->text), from->start, from->end, words, from->n_words };
    return 1;
}

static double duration(const struct ears_run *run)
{
    return run->heard.duration;
}

void ears_http_engine(const struct speech_account *acc, struct ears_engine *ret)
{
    *ret = (struct ears_engine){ .id = acc->name,
                                 .name = acc->label,
                                 .description = "A provider over HTTP: the recording leaves this machine unless its "
                                                "address is here",
                                 .reads_anything = true,
                                 .arg = acc,
                                 .models = models,
                                 .check = check,
                                 .begin = begin,
                                 .next = next,
                                 .duration = duration,
                                 .end = end };
}

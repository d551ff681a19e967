/* The table of engines that hear: one row each, constant; what runs is a struct ears_run, which belongs to one hearing
 * and one thread. A new engine is a row of ears_engines[] (ears_engines.c). An engine in a worker program takes the
 * functions of speech/ears_worker.h; a provider over HTTP has functions of its own.
 *
 *     r = engine->begin(engine, &context, &job, &wait, &run, e);
 *     while (r >= 0 && (r = engine->next(run, arena, &segment, e)) == 1)
 *         ...
 *     seconds = engine->duration(run);
 *     run = engine->end(run);
 */
#pragma once

#include "base/arena.h"
#include "net/wait.h"
#include "speech/ears.h"
#include "speech/ears_phrases.h"

enum { N_EARS_ENGINES = 3 };

struct ears_run; /* the engine's own */

struct ears_context { /* borrowed from struct ears */
    struct supervisor *supervisor;
    struct settings *settings;
    const atomic_bool *is_leaving;
    const char *data_dir;
};

/* Everything is checked, and borrowed until begin() returns. */
struct ears_job {
    struct slice recording;    /* not empty, at most LIMIT_SPEECH_UPLOAD */
    const char *model;         /* one of the engine's; NULL: its first, when it lists none */
    const char *language;      /* one of the model's; NULL: unknown, or not named */
    enum ears_phrases phrases; /* EARS_NO_PHRASES unless the engine takes them */
    struct slice phrases_text; /* a phrase a line, or a grammar */
};

struct ears_engine {
    const char *id, *name, *description;
    const char *needs;   /* what a person installs, for the advice */
    const char *remedy;  /* NULL, or the advice when its worker runs and says why it cannot work */
    const char *program; /* of the worker; NULL: none */
    bool takes_phrases;
    bool hears_live;     /* its worker takes sound while it comes; other engines get it as a recording */
    bool reads_anything; /* the provider decides which formats it reads, and which models it has */
    const void *arg;     /* the engine's own */

    /* Its models, in the arena, the best first; languages: "" for any. */
    size_t (*models)(const struct ears_engine *engine, const struct ears_context *c, struct arena *a,
                     const struct ears_model **ret);
    /* Whether it can work: -ENODEV SPEECH_UNAVAILABLE says what is missing. May start a worker. */
    int (*check)(const struct ears_engine *engine, const struct ears_context *c, struct err *e);
    /* Returns when the engine has the recording and can read it. Errors of hearing_start(). */
    int (*begin)(const struct ears_engine *engine, const struct ears_context *c, const struct ears_job *job,
                 const struct net_wait *wait, struct ears_run **ret, struct err *e);
    /* 1: a segment, in the arena; 0: the end. The wait of begin() bounds it. */
    int (*next)(struct ears_run *run, struct arena *a, struct heard_segment *ret, struct err *e);
    double (*duration)(const struct ears_run *run); /* seconds of the recording, after its end */
    struct ears_run *(*end)(struct ears_run *run);  /* any time; returns NULL */
};

extern const struct ears_engine ears_vosk, ears_sherpa;
extern const struct ears_engine *const ears_engines[N_EARS_ENGINES]; /* the first is the default */

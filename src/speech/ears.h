/* Speech to text (specification, "Speech-to-text"; decision D11; docs/speech.md).
 *
 * A recording is heard by one engine of the table (speech/ears_engine.h). Callers take turns (speech/turns.h). Every
 * function blocks its worker thread; any thread but the loop's, and one thread for a hearing.
 *
 *     r = hearing_start(ears, &request, &hearing, e);
 *     while (r >= 0 && (r = hearing_next(hearing, arena, &segment, e)) == 1)
 *         ...
 *     hearing = hearing_end(hearing);
 */
#pragma once

#include "os/child.h"
#include "settings/settings.h"
#include "speech/account.h"

struct ears;
struct hearing;

struct ears_config {
    struct supervisor *supervisor; /* NULL without a service: nothing can be heard */
    struct settings *settings;     /* borrowed */
    const atomic_bool *is_leaving; /* the service is stopping */
    struct speech_accounts accounts;
    const char *data_dir; /* borrowed */
};

struct ears *ears_open(const struct ears_config *c) MUST_CHECK;
/* To be called when no hearing goes on. */
struct ears *ears_close(struct ears *ears);

struct ears_request {
    struct slice recording;                  /* needed until hearing_start() returns */
    const char *provider, *model, *language; /* NULL or "": as configured */
    const char *phrases; /* NULL or "": any. Phrases divided by commas or lines, or a grammar that begins with #JSGF */
    const char *caller;  /* takes turns with other callers */
    const atomic_bool *is_gone; /* the work is no longer wanted; valid until hearing_end() */
};

struct heard_word {
    const char *text;
    double start, end; /* seconds */
    double confidence; /* 0 to 1 */
};

struct heard_segment {
    const char *text; /* not empty */
    double start, end;
    const struct heard_word *words;
    size_t n_words;
};

/* Waits for a turn, and returns when the engine has the whole recording and can read it. -EINVAL VALIDATION_ERROR,
 * AUDIO_UNREADABLE; -ENODEV SPEECH_UNAVAILABLE; -EIO SPEECH_FAILED; -EAGAIN OVERLOADED; -ECANCELED SHUTTING_DOWN. */
int hearing_start(struct ears *ears, const struct ears_request *request, struct hearing **ret,
                  struct err *e) MUST_CHECK;
/* 1: a segment, in the arena; 0: the recording has ended. Fails as above, and with -EFBIG AUDIO_TOO_LONG. */
int hearing_next(struct hearing *h, struct arena *a, struct heard_segment *ret, struct err *e) MUST_CHECK;
/* Seconds of the recording, after its end. */
double hearing_duration(const struct hearing *h);
/* Who hears: a provider, and its model or NULL. */
struct ears_who {
    const char *provider, *model;
};
struct ears_who hearing_who(const struct hearing *h); /* valid until its end */
/* Any time; returns NULL. */
struct hearing *hearing_end(struct hearing *h);

struct ears_model {
    const char *id, *name;
    const char *language; /* "": any */
};

struct ears_provider {
    const char *id, *name, *description, *note; /* note: NULL, or why it is not configured */
    bool is_configured;
    const struct ears_model *models; /* the best first */
    size_t n_models;
    bool is_remote;
};

bool ears_is_provider(const struct ears *ears, struct slice id);
/* All engines, the default first; in the arena. Starts a worker where none ever ran. */
size_t ears_providers(struct ears *ears, struct arena *a, const struct ears_provider **ret);

/* Text to speech (specification, "Text-to-speech"; decision D11; docs/speech.md).
 *
 * A text is planned first: provider and voice are chosen, Markdown becomes spoken text (speech/spoken.h), the text is
 * split into sentences (speech/sentences.h). Then its sentences are spoken one at a time, each by a worker: a child
 * program of one engine (speech/worker_main.c), which is kept for the next sentence and killed when its sentence fails,
 * takes too long or is no longer wanted; or by a configured provider over HTTP (speech/account.h), whose samples pass
 * through such a worker too. Callers take turns by sentence (speech/turns.h). Every function blocks its
 * worker thread; any thread but the loop's.
 *
 *     r = speech_plan(speech, &request, arena, &plan, e);
 *     for (size_t i = 0; r == 0 && i < plan.sentences.n; i++)
 *         r = speech_say(speech, &plan, i, &audio, &spoken, e);
 */
#pragma once

#include "net/wait.h"
#include "os/child.h"
#include "settings/settings.h"
#include "speech/account.h"
#include "speech/sentences.h"
#include "speech/worker_frames.h"

struct speech;

struct speech_config {
    struct supervisor *supervisor; /* NULL without a service: nothing can be spoken */
    struct settings *settings;     /* borrowed */
    const atomic_bool *is_leaving; /* the service is stopping */
    struct speech_accounts accounts;
};

struct speech *speech_open(const struct speech_config *c) MUST_CHECK;
/* Ends the workers. To be called when no function below runs. */
struct speech *speech_close(struct speech *s);

/* Ends workers that have been idle for speech.idle_s, and what speech.cache_mb no longer allows. Never waits. */
void speech_tidy(struct speech *s);

struct speech_request {
    struct slice text;                       /* valid UTF-8, at most LIMIT_SPEECH_TEXT characters */
    const char *text_name;                   /* the field that it came in, for refusals */
    const char *provider, *voice, *language; /* NULL or "": as configured */
    bool is_voice_optional;                  /* a voice that the provider does not have counts as none */
    const char *model;                       /* NULL or "": the provider's own; no engine of this machine has any */
    double speed;                            /* 0.5 to 2.0 */
    enum speech_format format;
    uint32_t rate;              /* samples a second of WAV and PCM; 0: the engine's */
    const char *caller;         /* takes turns with other callers */
    const atomic_bool *is_gone; /* the work is no longer wanted; valid as long as the plan is used */
};

struct speech_plan {
    const char *provider;                 /* its id */
    const struct speech_account *account; /* NULL: an engine of this machine */
    const char *voice, *model, *language, *caller;
    double speed;
    enum speech_format format;
    uint32_t rate;
    const atomic_bool *is_gone;
    struct speech_sentences sentences; /* at least one */
};

/* The plan is in the arena. -EINVAL VALIDATION_ERROR names the field; -ENODEV SPEECH_UNAVAILABLE when the engine's
 * worker is missing. */
int speech_plan(struct speech *s, const struct speech_request *request, struct arena *a, struct speech_plan *ret,
                struct err *e) MUST_CHECK;
/* Appends the audio of one sentence: for SPEECH_WAV samples without a header. -EIO SPEECH_FAILED; -ENODEV
 * SPEECH_UNAVAILABLE; -EAGAIN OVERLOADED; -ECANCELED SHUTTING_DOWN. */
int speech_say(struct speech *s, const struct speech_plan *plan, size_t i, struct buf *audio,
               struct speech_frame_done *ret, struct err *e) MUST_CHECK;

/* Takes audio while it is spoken: rate is that of its samples. Negative: it is no longer wanted. Never waits for a
 * peer, since a worker and a place among the requests to providers are held meanwhile. */
struct speech_tap {
    int (*take)(void *arg, uint32_t rate, struct slice audio);
    void *arg;
};
/* The same piece by piece, where a provider sends its sound piece by piece; else in one piece. What the tap has had
 * when it fails is no whole sentence. Errors as above, or what the tap returned. */
int speech_say_live(struct speech *s, const struct speech_plan *plan, size_t i, const struct speech_tap *tap,
                    struct speech_frame_done *ret, struct err *e) MUST_CHECK;

enum { SPEECH_WAV_HEADER = 44 };
/* The RIFF header of n_bytes bytes of samples: 16 bits, mono. */
void speech_wav_header(char out[SPEECH_WAV_HEADER], uint32_t rate, size_t n_bytes);
const char *speech_mime_type(enum speech_format format); /* a literal */

struct speech_provider {
    const char *id, *name, *note; /* note: why it is not configured, or what the person should know */
    bool is_configured, is_remote;
    const char *const *voices, *const *languages, *const *models;
    size_t n_voices, n_languages, n_models;
    const struct speech_voice *details; /* of the voices; NULL: they have only names */
    size_t max_characters;              /* of one request to it; 0: unknown */
};

/* All providers, in the order of preference; in the arena. Starts workers that never ran, and asks for lists of
 * voices. */
size_t speech_providers(struct speech *s, const atomic_bool *is_gone, struct arena *a,
                        const struct speech_provider **ret);
/* The engines and programs of this machine alone. */
size_t speech_local_describe(struct speech *s, struct arena *a, const struct speech_provider **ret);
bool speech_is_provider(struct speech *s, struct slice id);
/* Whether somebody speaks what a row of the setting speech.voices names; the text says what is missing. -ENOENT: the
 * provider; -EINVAL: the voice; -ENODEV: the engine is not installed; -ECANCELED. A provider that does not answer is
 * believed to have the voice. */
int speech_check_row(struct speech *s, const char *row, const atomic_bool *is_gone, struct arena *a,
                     struct err *e) MUST_CHECK;
/* The id of the provider that speaks when a request names nothing. */
const char *speech_default_provider(struct speech *s, struct arena *a);

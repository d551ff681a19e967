/* The workers of one engine: idle ones are kept for the next sentence, callers take turns (speech/turns.h), and a
 * worker that failed is killed. Owned by speech.c; every function but the last two blocks its thread; any thread but
 * the loop's.
 *
 *     pool = speech_pool_new(&(struct speech_pool_config){ .engine = &speech_flite, .supervisor = supervisor, ... });
 *     r = speech_pool_say(pool, &job, caller, is_gone, &audio, &done, e);
 */
#pragma once

#include "os/child.h"
#include "speech/worker.h"
#include <stdatomic.h>

struct speech_pool;

struct speech_pool_config {
    const struct speech_engine *engine;
    struct supervisor *supervisor; /* NULL without a service: nothing can be spoken */
    const char *folder;            /* of the worker's program; "": beside this program, or in ../libexec/hearth */
    size_t n_kept;                 /* idle workers */
    size_t n_places;               /* how many speak at the same time; 0: as many as are kept, at least one */
    const atomic_bool *is_leaving; /* the service is stopping */
};

struct speech_pool *speech_pool_new(const struct speech_pool_config *c) MUST_CHECK;
/* Ends the workers. To be called when no other function runs. */
struct speech_pool *speech_pool_free(struct speech_pool *p);

/* Appends the audio of one sentence. -EIO SPEECH_FAILED; -ENODEV SPEECH_UNAVAILABLE; -EAGAIN OVERLOADED; -ECANCELED
 * SHUTTING_DOWN. */
int speech_pool_say(struct speech_pool *p, const struct speech_worker_job *job, const char *caller,
                    const atomic_bool *is_gone, struct buf *audio, struct speech_frame_done *ret,
                    struct err *e) MUST_CHECK;
/* One of its workers, and a turn, for a sentence that arrives piece by piece (speech/flow.h). Errors as above. */
int speech_pool_lend(struct speech_pool *p, const char *caller, const atomic_bool *is_gone, struct speech_worker **ret,
                     struct err *e) MUST_CHECK;
/* r: of the worker's last request; after a failure it is ended. */
void speech_pool_give_back(struct speech_pool *p, struct speech_worker *w, int r);
/* The names of the voices, in the arena; a worker lists them once. */
int speech_pool_voices(struct speech_pool *p, const atomic_bool *is_gone, struct arena *a, struct speech_voices *ret,
                       struct err *e) MUST_CHECK;
const atomic_bool *speech_pool_is_leaving(const struct speech_pool *p); /* the service is stopping */
/* What the last worker said its engine's version is; "" before the first. */
void speech_pool_version(struct speech_pool *p, char out[SPEECH_VERSION_SIZE]);
/* Ends the workers that have been idle since before this time of clock_mono_ms(). */
void speech_pool_end_idle(struct speech_pool *p, int64_t before_ms);

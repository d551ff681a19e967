/* The service's end of one speech worker: a child of the supervisor, and one request at a time. One thread at a time;
 * after a failure the worker can only be stopped.
 *
 *     r = speech_worker_start(supervisor, path, engine, &wait, &worker, e);
 *     r = speech_worker_say(worker, &say, &wait, &audio, &done, e);
 *     worker = speech_worker_stop(worker);
 */
#pragma once

#include "net/wait.h"
#include "os/child.h"
#include "speech/answer.h"
#include "speech/engines.h"

struct speech_worker;

struct speech_worker_job {
    enum speech_format format;
    double speed;
    const char *voice;
    struct slice text;
    struct slice samples; /* for the worker of sound, whose text is their rate; else empty */
};

/* path: of the program. -ENODEV SPEECH_UNAVAILABLE says why the worker cannot work. */
int speech_worker_start(struct supervisor *supervisor, const char *path, const struct speech_engine *engine,
                        const struct net_wait *wait, struct speech_worker **ret, struct err *e) MUST_CHECK;
/* Whether an idle worker can speak with this voice (NULL: any): it has not ended, and need not change its voice where
 * its engine cannot. */
bool speech_worker_suits(const struct speech_worker *w, const char *voice);
const char *speech_worker_version(const struct speech_worker *w); /* of its engine */
/* -EIO SPEECH_FAILED; or as net_wait_fd(). */
int speech_worker_say(struct speech_worker *w, const struct speech_worker_job *job, const struct net_wait *wait,
                      struct buf *audio, struct speech_frame_done *ret, struct err *e) MUST_CHECK;
/* A sentence whose samples arrive one by one, for the worker of sound: begin, any number of pieces, end. The answer
 * belongs to the caller, is a flow, and gets the audio that is ready after each call. Errors as above. */
int speech_worker_begin(struct speech_worker *w, const struct speech_frame_begin *begin, const struct net_wait *wait,
                        struct speech_answer *answer, struct err *e) MUST_CHECK;
int speech_worker_pass(struct speech_worker *w, struct slice samples, const struct net_wait *wait,
                       struct speech_answer *answer, struct err *e) MUST_CHECK;
int speech_worker_end(struct speech_worker *w, const struct net_wait *wait, struct speech_answer *answer,
                      struct err *e) MUST_CHECK;
int speech_worker_list(struct speech_worker *w, const struct net_wait *wait, struct buf *list,
                       struct err *e) MUST_CHECK;
/* Its pipes, for a protocol of its own (speech/ears_frames.h); they remain the worker's. */
struct child_ends speech_worker_ends(const struct speech_worker *w);
/* Kills it; NULL is fine; returns NULL. */
struct speech_worker *speech_worker_stop(struct speech_worker *w);

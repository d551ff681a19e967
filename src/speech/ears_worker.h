/* An engine that hears in a worker program of its own (speech/ears_frames.h): one process for one recording, killed
 * when nobody wants the answer any more. The functions of a row of ears_engines[]; threads as there.
 *
 *     const struct ears_engine ears_x = { .id = "x_local", .program = "hearth-speech-x", .models = models,
 * EARS_BY_WORKER };
 */
#pragma once

#include "speech/ears_answer.h"
#include "speech/ears_engine.h"
#include "speech/worker.h"

#define EARS_BY_WORKER                                                                                                 \
    .check = ears_worker_check, .begin = ears_worker_begin, .next = ears_worker_next,                                  \
    .duration = ears_worker_duration, .end = ears_worker_end

/* As the starter of workers takes the engine. */
struct speech_engine ears_worker_program(const struct ears_engine *engine);
/* program is borrowed by the worker. */
int ears_worker_start(const struct ears_context *c, const struct speech_engine *program, const struct net_wait *wait,
                      struct speech_worker **ret, struct err *e) MUST_CHECK;
/* Reads once from a worker that poll() has reported. -EIO SPEECH_FAILED when it has ended. */
int ears_worker_receive(const struct speech_worker *w, struct ears_answer *answer, struct err *e) MUST_CHECK;

/* Starts the worker of an engine that never ran, and ends it. */
int ears_worker_check(const struct ears_engine *engine, const struct ears_context *c, struct err *e) MUST_CHECK;
int ears_worker_begin(const struct ears_engine *engine, const struct ears_context *c, const struct ears_job *job,
                      const struct net_wait *wait, struct ears_run **ret, struct err *e) MUST_CHECK;
/* The same for a program that takes arguments, NULL-ended; they are borrowed until the function returns. */
int ears_worker_check_with(const struct ears_engine *engine, const struct ears_context *c, const char *const *args,
                           struct err *e) MUST_CHECK;
int ears_worker_begin_with(const struct ears_engine *engine, const struct ears_context *c, const char *const *args,
                           const struct ears_job *job, const struct net_wait *wait, struct ears_run **ret,
                           struct err *e) MUST_CHECK;
int ears_worker_next(struct ears_run *h, struct arena *a, struct heard_segment *ret, struct err *e) MUST_CHECK;
double ears_worker_duration(const struct ears_run *h);
struct ears_run *ears_worker_end(struct ears_run *h);

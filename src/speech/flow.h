/* A sentence of a provider that is spoken while it arrives: the service's end of SPEECH_FRAME_BEGIN (worker_frames.h).
 * It holds a worker of sound until its end. Blocks its thread; one thread.
 *
 *     r = speech_flow_begin(pool, &begin, caller, is_gone, &audio, &flow, e);
 *     r = speech_flow_pass(flow, samples, e);          as often as samples arrive
 *     r = speech_flow_end(flow, &done, e);
 *     flow = speech_flow_free(flow);
 */
#pragma once

#include "speech/pool.h"

struct speech_flow;

/* audio: gets what is ready after each call; the caller may empty it. Errors of speech_pool_say(), here and below. */
int speech_flow_begin(struct speech_pool *pool, const struct speech_frame_begin *begin, const char *caller,
                      const atomic_bool *is_gone, struct buf *audio, struct speech_flow **ret,
                      struct err *e) MUST_CHECK;
int speech_flow_pass(struct speech_flow *f, struct slice samples, struct err *e) MUST_CHECK;
int speech_flow_end(struct speech_flow *f, struct speech_frame_done *ret, struct err *e) MUST_CHECK;
/* Ends the worker unless the sentence has ended; NULL is fine. */
struct speech_flow *speech_flow_free(struct speech_flow *f);

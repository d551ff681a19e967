/* One sentence whose samples arrive while it is spoken: speed, loudness and format as for all others, and each piece is
 * sent on as soon as it is ready (worker_frames.h, SPEECH_FRAME_BEGIN). For the worker of sound; one thread.
 *
 *     if (!worker_flow_take(kind, bytes, n))
 *         return 1;
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Whether a sentence has begun and not ended. */
bool worker_flow_is_open(void);
/* BEGIN, SAMPLES and END, and their answers. False: the service has gone, the frame breaks the protocol, or the
 * sentence has failed, which was said. */
bool worker_flow_take(uint32_t kind, const char *bytes, size_t n);

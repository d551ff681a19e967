/* A speech worker's end of its pipes to the service: standard input and output (worker_frames.h, ears_frames.h). For
 * the worker programs only; one thread. False: the service has gone.
 *
 *     if (!worker_read(&frame, sizeof(frame)) || frame.n_bytes > sizeof(bytes))
 *         return 1;
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

bool worker_read(void *to, size_t n);
/* n: at most LIMIT_SPEECH_FRAME. */
bool worker_send(uint32_t kind, const void *bytes, size_t n);
/* Makes room for a usual sentence in the pipe to the service, as far as the system allows it: the worker is free before
 * the service has read it. */
void worker_widen_pipe(void);

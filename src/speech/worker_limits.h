/* The limits that a speech worker sets for itself: LIMIT_SPEECH_WORKER_MB of address space, no file written, no
 * network, no other programs. For the worker programs only; one thread.
 *
 *     if (!worker_limit() || worker_engine.start() || !worker_refuse_calls(false))
 *         return 1;
 */
#pragma once

#include <stdbool.h>

/* Resources, before anything foreign is read. */
bool worker_limit(void);
/* The same for the worker of a sound device, whose libraries share memory with a sound server through files. */
bool worker_limit_device(void);
/* System calls, of every thread, after the engine's start: espeak-ng makes a thread there. is_complete: files cannot be
 * opened any more. */
bool worker_refuse_calls(bool is_complete);

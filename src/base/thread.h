/* Threads of the service. Signals belong to the loop: a new thread starts with all of them blocked.
 *
 *     r = thread_start(&w->thread, "writer", writer_main, w);
 *     ...
 *     pthread_join(w->thread, NULL);
 */
#pragma once

#include "base/util.h"

#include <pthread.h>

/* The kernel keeps the first 15 bytes of the name. 0 or a negative errno: -EAGAIN when the system allows no more
 * threads. */
int thread_start_sized(pthread_t *ret, const char *name, size_t stack_bytes /* 0: the usual size */,
                       void *(*fn)(void *arg), void *arg) MUST_CHECK;
int thread_start(pthread_t *ret, const char *name, void *(*fn)(void *arg), void *arg) MUST_CHECK;

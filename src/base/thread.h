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

/* Of the calling thread: others that wake, such as one with a query, need not wait for the usual three milliseconds of
 * its turn when all processors are in use, but for a tenth of one (Linux 6.12 and newer; before, all turns have one
 * length). Its nice value becomes least_nice if it is lower; PRIO_MIN: it stays. */
void thread_give_way(int least_nice);
/* The same for a thread that only computes: it also preempts no other thread when it wakes. */
void thread_preempt_none(int least_nice);

/* Conditions that wait by the monotonic clock: setting the wall clock neither ends nor lengthens a wait. Destroyed by
 * pthread_cond_destroy().
 *
 *     while (!p->is_done && cond_wait_until(&p->changed, &p->lock, until_us))
 *         ;
 */
#pragma once

#include "base/util.h"

#include <pthread.h>

void cond_init(pthread_cond_t *c);
/* The caller holds the lock; until_us is a time of clock_mono_us(). False once that time has passed. True may be a
 * spurious wakeup. */
bool cond_wait_until(pthread_cond_t *c, pthread_mutex_t *lock, int64_t until_us);

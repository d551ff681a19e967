/* Conditions that wait by the monotonic clock: a wall clock that is set ends no wait and stretches none. Ended by pthread_cond_destroy().
 *
 *     while (!p->is_done && cond_wait_until(&p->changed, &p->lock, until_us))
 *         ;
 */
#pragma once

#include "base/util.h"

#include <pthread.h>

void cond_init(pthread_cond_t *c);
/* The lock is held, until_us is a time of clock_mono_us(). False once that has passed; true may mean nothing, as with every condition. */
bool cond_wait_until(pthread_cond_t *c, pthread_mutex_t *lock, int64_t until_us);

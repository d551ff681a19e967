/* Changes the speed of samples and leaves their pitch (libsonic). For the worker of sound; one thread. NULL and false:
 * out of memory, or the result became too long.
 *
 *     speed = worker_speed_new(24000, 1.5);
 *     is_done = worker_speed_add(speed, items, n, &out) && worker_speed_end(speed, &out);
 */
#pragma once

#include "speech/worker_engine.h"

struct worker_speed;

struct worker_speed *worker_speed_new(int rate, double speed);
struct worker_speed *worker_speed_free(struct worker_speed *s);
/* Appends what can be said of the samples so far. */
bool worker_speed_add(struct worker_speed *s, const int16_t *items, size_t n, struct worker_samples *out);
bool worker_speed_end(struct worker_speed *s, struct worker_samples *out);

/* The thread that spawns every child. PR_SET_PDEATHSIG follows the thread that spawned, so this thread lives until the
 * last child has ended; the loop cannot be that thread, because a spawn takes milliseconds when the machine is busy.
 *
 * Owned by the supervisor. Any thread may call spawner_run(); jobs run in the order of the calls.
 *
 *     r = spawner_run(spawner, &plan, &spawned, e);
 */
#pragma once

#include "os/spawn.h"

struct spawner;

int spawner_start(struct spawner **ret, struct err *e) MUST_CHECK;
/* The kernel kills each child that still runs. */
struct spawner *spawner_stop(struct spawner *s);
/* Blocks the caller until the program runs or cannot run. Result and errors are those of spawn_process(); -EAGAIN
 * OVERLOADED while LIMIT_SPAWNS_WAITING jobs wait, -EPIPE SHUTTING_DOWN after spawner_stop() has begun. */
int spawner_run(struct spawner *s, const struct spawn_plan *plan, struct spawned *ret, struct err *e) MUST_CHECK;

/* The programs that the service started and that still run (apps, and agents working on a task), and the proof that a
 * caller is one of them.
 *
 * Each start has its own secret, which the program finds in its environment; only the secret's hash is kept, in memory,
 * until the program ends. Any thread; launches_find_pids() may wait and is for workers.
 *
 *     launches_begin(id, &(struct launch_what){ .app_id = app_id }, secret, &serial);    before the environment is made
 *     launches_started(id, serial, pid);                     as soon as the process exists
 *     launches_end(id, serial);                              also when it could not be started
 */
#pragma once

#include "identity/identity.h"
#include <sys/types.h>

enum { LAUNCH_SECRET_SIZE = 64 };

struct launch_what {
    const char *app_id;    /* the app that runs, or that the agent works for; NULL: none */
    const char *task_uuid; /* of an agent, together with the attempt it was started for; NULL: the app itself */
    int64_t attempt;
};

/* The serial must be the tag of the child: a listener that only this program reaches has the same tag (http/peer.h). */
void launches_begin(struct identity *id, const struct launch_what *what, char ret_secret[LAUNCH_SECRET_SIZE],
                    uint64_t *ret_serial);
void launches_started(struct identity *id, uint64_t serial, pid_t pid);
void launches_end(struct identity *id, uint64_t serial);

/* A turn in words, for a person who looks at the run of a task: what the model said, which tools it called, how they
 * answered. Any worker.
 *
 *     text = agent_turn_log(store, agent_turn_uuid(turn), a);
 */
#pragma once

#include "store/store.h"

/* At most LIMIT_RUN_LOG_BYTES; of a longer turn the last lines. In the arena; "" when nothing is stored. */
char *agent_turn_log(struct store *store, const char *turn_uuid, struct arena *a);

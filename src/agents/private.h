/* The internals that agents.c, process.c and outcome.c share; no other file includes this. */
#pragma once

#include "agents/process.h"
#include "base/pool.h"

struct agents {
    struct arena *arena;           /* owned: the paths below */
    struct store *store;           /* borrowed */
    struct supervisor *supervisor; /* borrowed; NULL: no process can be started */
    struct pool *ends;             /* owned; reads the output and files of ended processes; NULL without a supervisor */
    const char *data_dir;          /* of the service */
    const char *activities_dir;    /* <data>/run/activities: payloads too large for the environment */
};

/* outcome.c: the outcome of an ended process, as texts of the arena. Pure. */
struct agent_end {
    struct child_exit how;
    struct slice output; /* standard output */
    bool is_output_cut;  /* the output was longer than LIMIT_RESULT_BYTES */
    struct child_log *log;
    double timeout_s;
};
void agent_outcome_read(const struct agent_end *end, struct arena *a, struct agent_outcome *ret);

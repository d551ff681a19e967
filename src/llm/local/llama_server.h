/* One llama-server process, and the state all of them share. Private to src/llm/local/llamacpp.c and llama_server.c.
 *
 * Everything that changes is guarded by llamacpp.lock; `changed` is signalled at every change of state.
 */
#pragma once

#include "base/pool.h"
#include "llm/local/llamacpp.h"
#include "llm/local/model_files.h"
#include "os/child.h"

#include <pthread.h>

enum llama_state { LLAMA_STOPPED, LLAMA_STARTING, LLAMA_READY, LLAMA_STOPPING };

struct llama_server {
    struct llama_server *next;
    struct llamacpp *owner;
    char *model; /* owned */
    enum llama_state state;
    struct child *child; /* a reference, from the start to the end of the process */
    char base_url[40], api_key[48];
    size_t n_holds, n_waiting; /* requests that use the process; requests that wait for its start */
    int64_t n_bytes;           /* of memory, as estimated */
    int64_t used_ms, ready_ms; /* clock_mono_ms(): last use, end of the start */
    unsigned run;              /* counts starts, so that a thread of an earlier start changes nothing */
    bool has_exited;
    const char *failure; /* why the process is ended although requests want it; a literal or NULL */
    unsigned n_crashes;  /* in a row */
    int64_t not_before_ms;
    char why[400]; /* the last crash */
};

struct llamacpp {
    struct llamacpp_config config; /* borrowed */
    struct pool *pool;             /* owned: a thread waits for each process that starts */
    struct loop_timer *timer;      /* owned: looks for idle processes */
    pthread_mutex_t lock;          /* guards the members below */
    pthread_cond_t changed;
    struct llama_server *servers; /* owned */
    bool is_closing;
    bool is_offered;
    _Atomic int64_t looked_ms; /* clock_mono_ms(); 0: never; written under the lock */
};

struct llama_plan {
    const char *program;
    const struct model_file *file;
    int64_t n_tokens;
}; /* of context */

/* Under the lock; state becomes LLAMA_STARTING. Errors of the start itself count as crashes. */
int llama_server_start(struct llama_server *s, const struct llama_plan *plan, struct err *e) MUST_CHECK;
void llama_server_stop(struct llama_server *s); /* under the lock; the state is LLAMA_READY */

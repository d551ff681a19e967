/* One llama-server process, and what those that run share. Private to src/llm/llamacpp.c and llama_server.c.
 *
 * Everything that changes is guarded by llamacpp.lock; `changed` is told of every change of state.
 */
#pragma once

#include "base/pool.h"
#include "llm/llamacpp.h"
#include "llm/model_files.h"
#include "os/child.h"

#include <pthread.h>

enum llama_state { LLAMA_STOPPED, LLAMA_STARTING, LLAMA_READY, LLAMA_STOPPING };

struct llama_server {
    struct llama_server *next;
    struct llamacpp *owner;
    char *model;                        /* owned */
    enum llama_state state;
    struct child *child;                /* a reference, from the start to the end of the process */
    char base_url[40], api_key[48];
    size_t n_holds, n_waiting;          /* requests that use it; that wait for its start */
    int64_t n_bytes;                    /* of memory, as estimated */
    int64_t used_ms, ready_ms;          /* clock_mono_ms(): last use, end of the start */
    unsigned run;                       /* counts starts: what waits for an earlier one must not meddle */
    bool has_exited;
    const char *failure;                /* why it is being ended although it is wanted; a literal or NULL */
    unsigned n_crashes;                 /* in a row */
    int64_t not_before_ms;
    char why[400];                      /* the last crash */
};

struct llamacpp {
    struct llamacpp_config config;      /* borrowed */
    struct pool *pool;                  /* owned: a thread waits for each process that starts */
    struct loop_timer *timer;           /* owned: looks for idle ones */
    pthread_mutex_t lock;               /* guards what follows */
    pthread_cond_t changed;
    struct llama_server *servers;       /* owned */
    bool is_closing;
    int64_t looked_ms;                  /* clock_mono_ms(); 0: never */
    bool is_offered;
};

struct llama_plan { const char *program; const struct model_file *file; int64_t n_tokens; };    /* of context */

/* Under the lock; state becomes STARTING. Errors of the start itself become crashes. */
int llama_server_start(struct llama_server *s, const struct llama_plan *plan, struct err *e) MUST_CHECK;
void llama_server_stop(struct llama_server *s);         /* under the lock, of a READY one */

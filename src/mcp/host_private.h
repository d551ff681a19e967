/* Shared by the files of the host: host.c (registry), host_start.c (start and end of connections), host_tools.c (lists
 * of tools, calls), host_upkeep.c (idle stop, health, refresh).
 *
 * One lock for the whole host; it guards memory only and is never held over I/O. `changed` is broadcast at every change
 * that a caller may wait for.
 */
#pragma once

#include "mcp/host.h"

#include <pthread.h>

/* A definition in force; constant, shared. */
struct host_definition {
    atomic_int n_refs;
    struct arena *arena; /* owned: everything below */
    struct mcp_server server;
    const char *hash;     /* mcp_server_hash() */
    const char *accepted; /* the hash that a person accepted; NULL: none */
    enum mcp_era era;     /* verdict of an earlier connection */
};

/* One list of tools; constant, shared. */
struct host_list {
    atomic_int n_refs;
    struct arena *arena; /* owned: everything below */
    struct mcp_host_tool *items;
    size_t n;
    const char **names;                 /* of all items */
    const struct mcp_host_tool **index; /* by name */
};

/* One connection: the argument of the client's events; ends when mcp_client_close() has returned. */
struct host_connection {
    struct host_server *server; /* a reference */
    struct mcp_client *client;  /* a reference; NULL until the client is open */
    bool has_ended;             /* the client said so */
};

struct host_server {
    struct mcp_host *host;
    char *name; /* owned */
    atomic_int n_refs;
    struct host_server *next; /* in the order of configuration */
    struct host_definition *definition;
    struct child_log *log;     /* owned; across restarts */
    _Atomic int64_t log_start; /* number of the last line before the last start */

    enum mcp_status status;
    struct host_connection *connection; /* of RUNNING */
    struct host_start *start;           /* of STARTING; borrowed */
    bool is_removed, was_denied;        /* denied: a person does not want this command to run */
    bool is_ending;                     /* an earlier connection is being closed: the next start waits */
    uint64_t n_starts;                  /* attempts that have ended, in whatever way */
    unsigned n_failures;                /* in a row */
    bool waits_for_person;              /* the start does: is the command allowed? */
    int64_t not_before_ms, started_ms, used_ms, pinged_ms;
    struct err *why; /* owned; of the last start or end, when it failed */
    int why_r;
    pid_t pid;
    char started_at[32];

    size_t n_calls;
    struct host_list *list;  /* NULL: not listed since the start */
    struct err *why_no_list; /* owned; of the last listing */
    bool is_listing, is_list_old, is_pinging, is_refreshing;
    int64_t listed_ms, old_since_ms;
    size_t n_changed_tools;
};

struct host_caller {
    struct host_caller *next;
    size_t n_calls;
    char name[];
};

struct mcp_host {
    struct mcp_host_config config;
    struct pool *pool;      /* starts, ends, lists, pings; NULL: nothing can be started */
    struct pool *answerers; /* what servers ask */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct host_server *servers;
    struct host_caller *callers;
    bool is_stopping;
    atomic_bool is_leaving; /* the same, for waits */
    size_t n_jobs;          /* of the pools, and connections that have not ended */
    size_t n_unusable;      /* rows that could not be read */
    pthread_t upkeep;
    bool has_upkeep;
    int64_t next_look_ms; /* of the upkeep, unless `changed` comes before */
};

/* ---- host.c ---- */

void host_definition_unref(void *definition);
void host_list_unref(void *list);
struct host_server *host_server_ref(struct host_server *s);
void host_server_unref(void *server);
/* Under the lock; NULL: none. */
struct host_server *host_find(struct mcp_host *h, const char *name);
/* The client knows of the end of its connection a moment before on_closed() is here. */
enum mcp_status host_status(const struct host_server *s);
int host_err_unknown(struct mcp_host *h, const char *name, struct err *e);
/* Waits for a change, at most until `wait` is over. Under the lock. */
int host_wait(struct mcp_host *h, const struct net_wait *wait, struct err *e) MUST_CHECK;
/* Whether a person has accepted its command; one of another machine has none. */
bool host_is_accepted(const struct host_definition *d);
/* Runs fn(arg) on the pool; counted in n_jobs until host_job_done(). Under the lock. */
int host_submit(struct mcp_host *h, void (*fn)(void *arg), void *arg, struct err *e) MUST_CHECK;
void host_job_done(struct mcp_host *h);
void host_report(struct mcp_host *h, const char *server);
/* What has changed of a server's row: another command ends what runs; which tools are off makes the list old; a note
 * (the era, that the command was accepted) changes nothing that runs. */
enum host_change { HOST_COMMAND_CHANGED, HOST_TOOLS_CHANGED, HOST_NOTE_CHANGED };
/* Reads the row of the store again, after a change of it. */
int host_reload(struct mcp_host *h, const char *name, enum host_change change, struct err *e) MUST_CHECK;

/* ---- host_start.c ---- */

/* A use of a running server: its client is held and counted as a call. */
struct host_use {
    struct host_server *server;         /* a reference */
    struct host_definition *definition; /* a reference */
    struct mcp_client *client;          /* a reference */
    bool is_upkeep;
};
int host_use(struct mcp_host *h, const char *name, const struct net_wait *wait, struct host_use *ret,
             struct err *e) MUST_CHECK;
/* For upkeep: starts nothing and does not count as a use. False when the server does not run. */
bool host_use_running(struct host_server *s, struct host_use *ret) MUST_CHECK;
void host_unuse(struct host_use *use);
/* Ends the connection, if there is one, on the pool. Under the lock. */
void host_end(struct host_server *s);
/* After a change of the definition: ends a start that is not wanted any more, and the question that it waits for when
 * that has its answer by now. Under the lock. */
void host_overtake(struct host_server *s);
/* The same for a server that failed: `why` is a sentence. Under the lock. */
void host_lose(struct host_server *s, const char *why);
/* A request of the upkeep ended with r: after -ETIMEDOUT the server counts as failed, unless its connection is another
 * one by now. */
void host_lose_silent(struct host_use *use, int r, const char *why);
/* An error of the client, for callers: decision D12, with the end of standard error where the server failed. Returns
 * the errno for the caller. */
int host_err(struct host_server *s, int r, struct err *e);

/* One start of a server, on a thread of the pool. */
struct host_start {
    struct host_server *server;         /* a reference */
    struct host_definition *definition; /* a reference */
    atomic_bool is_overtaken;           /* it is not wanted any more, or its question has its answer */
    struct net_wait wait;
    struct arena *arena;
    enum mcp_era era;
    pid_t pid;
};
/* An event of the client: the connection has ended. */
void host_on_closed(void *arg, const struct err *why);

/* ---- host_link.c ---- */

struct mcp_oauth_target host_target_of(const struct mcp_server *server);
/* Opens the link and the client of c; st->era and st->pid are set. */
int host_open_client(struct host_start *st, struct host_connection *c, struct err *e) MUST_CHECK;

/* ---- host_tools.c ---- */

/* The list, read anew when it is old. A reference. */
int host_list(struct host_use *use, const struct net_wait *wait, bool must_be_new, struct host_list **ret,
              struct err *e) MUST_CHECK;
/* -ENOENT TOOL_NOT_FOUND with the nearest name. Under the lock, or of a list that the caller has a reference to. */
int host_list_check(const struct host_list *list, const char *server, const char *tool, struct err *e) MUST_CHECK;

/* ---- host_upkeep.c ---- */

int host_upkeep_start(struct mcp_host *h, struct err *e) MUST_CHECK;
void host_upkeep_stop(struct mcp_host *h);
/* Whether the upkeep must be woken to look at this server in time, now that a call of it has ended. A thread less is
 * woken by most calls. Under the lock. */
bool host_upkeep_is_late(const struct host_server *s);

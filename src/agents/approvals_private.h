/* What the files of the approvals share; no other file includes this. */
#pragma once

#include "agents/approvals.h"
#include "base/clock.h"
#include "base/uuid.h"

#include <pthread.h>

enum approval_state { APPROVAL_OPEN, APPROVAL_DECIDING /* a decision is being stored */, APPROVAL_DECIDED };

/* A question; belongs to the call that waits for it. */
struct approval {
    struct approval *next;
    struct arena *arena; /* owned: the texts below */
    char id[UUID_SIZE];
    char requested_at[TIME_TEXT_SIZE];
    struct approval_view view; /* texts in the arena; arguments, choices and schema as JSON text */
    enum approval_state state;
    enum approval_outcome outcome;
    const char *reply; /* JSON text in the arena; NULL: none */
    bool was_kept;
};

/* A decision for one session. */
struct session_rule {
    struct session_rule *next;
    char *session_id, *agent, *server, *tool; /* owned; one allocation */
    bool is_allowed;
};

/* The time that questions of one session, or of one task, have waited. */
struct approval_clock {
    struct approval_clock *next;
    char *of; /* owned */
    size_t n_waiting;
    int64_t since_ms, total_ms;
};

struct approvals {
    struct approvals_config config;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct approval *first, **last; /* oldest first; borrowed from the calls that wait */
    size_t n;
    struct session_rule *rules; /* newest first */
    size_t n_rules;
    struct approval_clock *clocks; /* latest first */
    size_t n_clocks;
    uint64_t n_changes; /* decisions that may answer later questions */
    bool is_closing;
};

/* approvals_rules.c: kept decisions. 1: there is one; 0: none. session rules: the caller holds the lock. */
int approvals_find_rule(struct approvals *p, const struct approval_view *q, bool *ret_is_allowed,
                        struct err *e) MUST_CHECK;
int approvals_keep_rule(struct approvals *p, const struct approval_view *q, bool is_allowed,
                        struct err *e) MUST_CHECK; /* for good */
bool approvals_find_session_rule(struct approvals *p, const struct approval_view *q, bool *ret_is_allowed);
void approvals_keep_session_rule(struct approvals *p, const struct approval_view *q, bool is_allowed);
/* The same call of the same agent, as far as kept decisions tell. */
bool approvals_is_same(const struct approval_view *a, const struct approval_view *b);

/* approvals.c: a kept decision answers what waits already. Takes the lock. */
void approvals_settle_same(struct approvals *p, const struct approval_view *of, bool is_allowed);

/* approvals_clock.c; the caller holds the lock. */
void approvals_clock_begin(struct approvals *p, const struct approval_view *q);
void approvals_clock_end(struct approvals *p, const struct approval_view *q);

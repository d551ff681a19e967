/* What each caller holds of the service, and how much of it one caller and all callers together may hold.
 *
 * One table (budget.c) says it all: name, unit, limit of each kind of caller, limit of the service, setting. One account a caller,
 * process-wide like the metrics, because sockets, requests, children and files are counted in different folders. The administrator is counted
 * and never refused. Who takes gives back the same amount. Any thread; taking and giving are a few atomics.
 *
 *     struct budget_holder *h = budget_holder_get(HOLDER_APP, app_id);
 *     r = budget_take(h, BUDGET_STREAMS, 1, e);       -EBUSY BUDGET_EXCEEDED (429), -EAGAIN OVERLOADED (503): both name the budget
 *     budget_give(h, BUDGET_STREAMS, 1);
 *     budget_holder_unref(h);
 */
#pragma once

#include "base/buf.h"

enum budget {
    BUDGET_CONNECTIONS,                 /* client connections that are open */
    BUDGET_REQUESTS,                    /* requests that are not answered yet */
    BUDGET_LONG_REQUESTS,               /* of them those that wait for a provider, a program or a person on a thread */
    BUDGET_STREAMS,                     /* streamed answers that are open */
    BUDGET_BODY,                        /* bytes of request bodies received and not yet handled */
    BUDGET_REPLIES,                     /* bytes of answers that the client has not read yet */
    BUDGET_MEMORY,                      /* bytes that large requests may need while they are handled */
    BUDGET_CHILDREN,                    /* processes that run for the caller */
    BUDGET_DISK,                        /* bytes of an app's data folder; measured */
    BUDGET_VECTORS,                     /* bytes of its namespaces in the embedded vector store; measured */
    N_BUDGETS
};

enum holder_kind {
    HOLDER_ADMIN,
    HOLDER_APP, HOLDER_KEY,             /* by id */
    HOLDER_ADDRESS,                     /* of another machine, while it has not said who it is */
    HOLDER_NOBODY,                      /* of this machine, while it has not said who it is */
    N_HOLDER_KINDS
};

enum { BUDGET_ID_SIZE = 64 };
#define BUDGET_UNLIMITED INT64_MAX

struct budget_rule {
    const char *name, *holds;           /* "streams", "open streams" */
    bool is_bytes;
    bool takes_one;                     /* who holds nothing may take any amount that the service has: one large request must be possible */
    int64_t limits[N_HOLDER_KINDS];     /* before any setting */
    int64_t total;                      /* of all callers but the administrator */
    const char *setting;                /* changes the limit of apps and keys; in MiB for bytes; NULL: none */
};
extern const struct budget_rule budget_rules[N_BUDGETS];

struct budget_holder;

/* The account of this caller, made when there is none; a reference. id "" where the kind is one caller. */
struct budget_holder *budget_holder_get(enum holder_kind kind, const char *id) MUST_CHECK;
struct budget_holder *budget_holder_ref(struct budget_holder *h) MUST_CHECK;
struct budget_holder *budget_holder_unref(struct budget_holder *h);     /* NULL is fine; returns NULL */
enum holder_kind budget_holder_kind(const struct budget_holder *h);
const char *budget_holder_id(const struct budget_holder *h);
const char *holder_kind_name(enum holder_kind kind);
bool budget_holder_is(const struct budget_holder *h, enum holder_kind kind, const char *id);

int budget_take(struct budget_holder *h, enum budget b, int64_t n, struct err *e) MUST_CHECK;
void budget_give(struct budget_holder *h, enum budget b, int64_t n);
/* Takes what is there already, whatever the limit. */
void budget_force(struct budget_holder *h, enum budget b, int64_t n);
/* For what is measured and not taken: what the caller holds now. */
void budget_measured(struct budget_holder *h, enum budget b, int64_t n);
/* Whether n more would be refused, without taking them. */
int budget_check(struct budget_holder *h, enum budget b, int64_t n, struct err *e) MUST_CHECK;
/* The same question, without counting the answer as a refusal. Admins always fit. */
bool budget_has_room(const struct budget_holder *h, enum budget b, int64_t n, bool *ret_is_own);
int64_t budget_held(const struct budget_holder *h, enum budget b);
int64_t budget_total(enum budget b);                    /* of all callers but the administrator */
/* Where the two limits stand now. */
int64_t budget_limit(enum budget b, enum holder_kind kind);
int64_t budget_total_limit(enum budget b);

/* At start, before the first request: the limit of apps and keys (the others keep theirs when it is higher), and the service's. */
void budget_set_limit(enum budget b, int64_t limit);
void budget_set_total(enum budget b, int64_t total);
/* The gauges and counters of /metrics, made once. */
void budget_show_metrics(void);

/* The error of a budget that is full; for what is decided elsewhere. Returns -EBUSY (own) or -EAGAIN. */
int budget_refuse(struct budget_holder *h, enum budget b, bool is_own, struct err *e);

/* What one request holds; embedded in it, zeroed at first. One thread at a time. Without a holder everything is granted and nothing counted. */
struct budget_purse {
    struct budget_holder *holder;       /* owned reference */
    int64_t held[N_BUDGETS];
};

void purse_open(struct budget_purse *p, struct budget_holder *h);       /* another holder takes over what an earlier one held */
int purse_take(struct budget_purse *p, enum budget b, int64_t n, struct err *e) MUST_CHECK;
void purse_force(struct budget_purse *p, enum budget b, int64_t n);     /* what is there already, whatever the limit */
void purse_give(struct budget_purse *p, enum budget b);                 /* all of it */
void purse_close(struct budget_purse *p);                               /* gives everything back */

struct budget_state { enum holder_kind kind; char id[BUDGET_ID_SIZE]; int64_t held, limit, n_refused, refused_ago_ms; };
enum { BUDGET_NEVER_REFUSED = -1 };     /* refused_ago_ms */
/* Every caller that holds something of b or was refused, outside of all locks. */
void budget_each(enum budget b, void (*fn)(void *arg, const struct budget_state *s), void *arg);

/* Resources that each caller holds, and the limits for one caller and for all callers together.
 *
 * One table (budget.c) defines every budget: name, unit, limit of each kind of caller, limit of the service, setting.
 * Each caller has one account, process-wide like the metrics, because different folders count sockets, requests,
 * children and files. The administrator is counted and never refused. Code that takes an amount gives the same amount
 * back. Any thread; taking and giving cost a few atomic operations.
 *
 *     struct budget_holder *h = budget_holder_get(HOLDER_APP, app_id);
 *     r = budget_take(h, BUDGET_STREAMS, 1, e);
 *     budget_give(h, BUDGET_STREAMS, 1);
 *     budget_holder_unref(h);
 *
 * budget_take() returns -EBUSY BUDGET_EXCEEDED (429) or -EAGAIN OVERLOADED (503); both texts name the budget.
 */
#pragma once

#include "base/buf.h"

enum budget {
    BUDGET_CONNECTIONS,   /* client connections that are open */
    BUDGET_REQUESTS,      /* requests that are not answered yet */
    BUDGET_LONG_REQUESTS, /* the requests that occupy a thread while they wait for a provider, a program or a person */
    BUDGET_STREAMS,       /* streamed answers that are open */
    BUDGET_SOCKETS,       /* WebSockets that are open */
    BUDGET_SUBSCRIPTIONS, /* channels joined over WebSockets, and their subscriptions to changes */
    BUDGET_BODY,          /* bytes of request bodies received and not yet handled */
    BUDGET_REPLIES,       /* bytes of answers that the client has not read yet */
    BUDGET_MEMORY,        /* bytes that large requests may need during handling */
    BUDGET_CHILDREN,      /* processes that run for the caller */
    BUDGET_DISK,          /* bytes of an app's data folder; measured */
    BUDGET_VECTORS,       /* bytes of its namespaces in the embedded vector store; measured */
    N_BUDGETS
};

enum holder_kind {
    HOLDER_ADMIN,
    HOLDER_APP,
    HOLDER_KEY,     /* by id */
    HOLDER_ADDRESS, /* of another machine, before authentication */
    HOLDER_NOBODY,  /* all programs of this machine, before authentication */
    N_HOLDER_KINDS
};

enum { BUDGET_ID_SIZE = 64 };
#define BUDGET_UNLIMITED INT64_MAX

struct budget_rule {
    const char *name, *holds; /* "streams", "open streams" */
    bool is_bytes;
    bool takes_one; /* a caller that holds nothing may take any amount the service has: one large request must be
                       possible */
    int64_t limits[N_HOLDER_KINDS]; /* before any setting */
    int64_t total;                  /* of all callers but the administrator */
    const char *setting;            /* changes the limit of apps and keys; in MiB for bytes; NULL: none */
};
extern const struct budget_rule budget_rules[N_BUDGETS];

struct budget_holder;

/* Returns a reference to this caller's account, which is created when missing. id is "" for a kind that is a single
 * caller. */
struct budget_holder *budget_holder_get(enum holder_kind kind, const char *id) MUST_CHECK;
struct budget_holder *budget_holder_ref(struct budget_holder *h) MUST_CHECK;
struct budget_holder *budget_holder_unref(struct budget_holder *h); /* NULL is fine; returns NULL */
enum holder_kind budget_holder_kind(const struct budget_holder *h);
const char *holder_kind_name(enum holder_kind kind);
bool budget_holder_is(const struct budget_holder *h, enum holder_kind kind, const char *id);

int budget_take(struct budget_holder *h, enum budget b, int64_t n, struct err *e) MUST_CHECK;
void budget_give(struct budget_holder *h, enum budget b, int64_t n);
/* Takes an amount that is in use already, whatever the limit. */
void budget_force(struct budget_holder *h, enum budget b, int64_t n);
/* For budgets that are measured, not taken: sets the amount that the caller holds now. */
void budget_measured(struct budget_holder *h, enum budget b, int64_t n);
/* Returns the error that budget_take() of n would return, without taking anything. */
int budget_check(struct budget_holder *h, enum budget b, int64_t n, struct err *e) MUST_CHECK;
/* Like budget_check(), but a negative answer does not count as a refusal. Administrators always have room. */
bool budget_has_room(const struct budget_holder *h, enum budget b, int64_t n, bool *ret_is_own);
int64_t budget_held(const struct budget_holder *h, enum budget b);
int64_t budget_total(enum budget b); /* of all callers but the administrator */
/* The limits in force now. */
int64_t budget_limit(enum budget b, enum holder_kind kind);
int64_t budget_total_limit(enum budget b);

/* Called at start, before the first request: set the limit of apps and keys (other kinds keep a higher limit of their
 * own) and the limit of the service. */
void budget_set_limit(enum budget b, int64_t limit);
void budget_set_total(enum budget b, int64_t total);
/* Creates the gauges and counters of /metrics; call once. */
void budget_show_metrics(void);

/* Sets the error of a full budget, for decisions made elsewhere. Returns -EBUSY (is_own) or -EAGAIN. */
int budget_refuse(struct budget_holder *h, enum budget b, bool is_own, struct err *e);

/* The amounts that one request holds; embedded in the request, zeroed at the start. One thread at a time. Without a
 * holder every amount is granted and nothing is counted. */
struct budget_purse {
    struct budget_holder *holder; /* owned reference */
    int64_t held[N_BUDGETS];
};

void purse_open(struct budget_purse *p, struct budget_holder *h); /* moves the amounts held to another holder */
int purse_take(struct budget_purse *p, enum budget b, int64_t n, struct err *e) MUST_CHECK;
void purse_force(struct budget_purse *p, enum budget b, int64_t n); /* an amount in use already, whatever the limit */
void purse_give(struct budget_purse *p, enum budget b);             /* all of it */
void purse_close(struct budget_purse *p);                           /* gives everything back */

struct budget_state {
    enum holder_kind kind;
    char id[BUDGET_ID_SIZE];
    int64_t held, limit, n_refused, refused_ago_ms;
};
enum { BUDGET_NEVER_REFUSED = -1 }; /* refused_ago_ms */
/* Calls fn, outside all locks, for every caller that holds an amount of b or was refused one. */
void budget_each(enum budget b, void (*fn)(void *arg, const struct budget_state *s), void *arg);

/* Questions that wait for a person: may a tool be called, which choice, may a server use a model, what is its form's
 * answer. They stand beside the questions about permissions (identity/consent.h): list, events, command line.
 *
 * Questions live in memory and end with the call that asked; decisions "always" and "never" about an agent and a tool
 * are kept in the store, those "for this session" in memory. Any thread; approvals_request() and approvals_wait()
 * block, so they are for workers. A question has exactly one outcome, whoever comes first: a person, the deadline, the
 * cancel.
 *
 *     r = approvals_request(p, &(struct approval_question){ .kind = "tool", .agent = "triage", .server = "files",
 *                           .tool = "write_file", .session_id = id, .arguments = args }, &wait, arena, &answer, NULL,
 * e); if (r == 0 && answer.outcome == APPROVAL_ALLOWED) ...
 */
#pragma once

#include "base/json_write.h"
#include "net/wait.h"

struct approvals;
struct identity;
struct settings;
struct store;

struct approvals_config {
    struct store *store;
    struct settings *settings;
    struct identity *identity; /* for the audit log; NULL: decisions are not audited */
    /* A question was added, decided or given up. Any thread, no lock held. NULL: nobody listens. */
    void (*on_change)(void *arg);
    void *arg;
};

int approvals_open(const struct approvals_config *c, struct approvals **ret, struct err *e) MUST_CHECK;
struct approvals *approvals_close(struct approvals *p); /* no call waits any more */
/* The service is stopping: calls that wait return at once, unanswered. */
void approvals_end_waits(struct approvals *p);
/* Makes waiting calls look at their is_gone again. Any thread, the loop as well. */
void approvals_poke(struct approvals *p);

struct approval_question {
    const char *kind;          /* "tool", "question", "sampling", "elicitation", "trust" */
    const char *agent;         /* NULL: no agent asks */
    const char *server, *tool; /* server NULL: a built-in tool */
    const char *session_id, *task_uuid, *app_id;
    const char *text;            /* the question in words; NULL: made from the tool */
    struct json_value arguments; /* shown in full */
    struct json_value choices;   /* of "question": texts to choose from; absent: free text */
    struct json_value schema;    /* of "elicitation": what the reply must be; absent: an object or none */
    bool is_destructive;         /* shown */
};

enum approval_outcome { APPROVAL_ALLOWED, APPROVAL_DENIED, APPROVAL_UNANSWERED };
struct approval_answer {
    enum approval_outcome outcome;
    struct json_value reply; /* of a question or an elicitation; in the caller's arena; absent: none */
    bool was_kept;           /* by a decision made earlier; nobody was asked now */
};

/* Waits until a person answers, approvals.wait_s (settings) are over (then APPROVAL_UNANSWERED, a denial) or the wait
 * is cancelled; the deadline of `wait` does not count, because it is the person's time. -ECANCELED SHUTTING_DOWN when
 * *wait->is_gone or *wait->is_leaving; -EAGAIN TOO_MANY_QUESTIONS above LIMIT_PENDING_APPROVALS or the app's share,
 * LIMIT_APP_APPROVALS; -E2BIG for arguments above LIMIT_APPROVAL_BYTES. */
int approvals_request(struct approvals *p, const struct approval_question *q, const struct net_wait *wait,
                      struct arena *a, struct approval_answer *ret, struct err *e) MUST_CHECK;
/* The same in two parts, so that one thread can ask several questions at once. Every question that was put must be
 * waited for; its handle ends there. */
struct approval;
int approvals_put(struct approvals *p, const struct approval_question *q, struct approval **ret,
                  struct err *e) MUST_CHECK;
int approvals_wait(struct approvals *p, struct approval *question, const struct net_wait *wait, struct arena *a,
                   struct approval_answer *ret, struct err *e) MUST_CHECK;

bool approval_is_open(const struct approval *question); /* false: decided by a kept decision, nobody is asked */

/* ---- for people ---- */

enum approval_scope { APPROVAL_ONCE, APPROVAL_SESSION, APPROVAL_ALWAYS };
const char *approval_scope_name(enum approval_scope s); /* "once", "session", "always" */

struct approval_view {
    const char *id, *kind, *agent, *server, *tool, *session_id, *task_uuid, *app_id, *text; /* NULL: none */
    const char *arguments, *choices, *schema;                                               /* JSON text; NULL: none */
    const char *requested_at;
    bool is_destructive;
};
struct approval_views {
    struct approval_view *items;
    size_t n;
};
void approvals_list(struct approvals *p, struct arena *a, struct approval_views *ret); /* oldest first */
size_t approvals_n_pending(struct approvals *p);
bool approvals_has_kind(struct approvals *p, const char *id, const char *kind); /* an open question of that kind */

struct approval_decision {
    const char *id;
    bool is_allowed;
    enum approval_scope scope; /* a denial with APPROVAL_ALWAYS is "never" */
    struct json_value reply;   /* of a question: a text; of an elicitation: an object */
    const char *actor;         /* who decided, for the audit log */
};
/* -ENOENT APPROVAL_NOT_FOUND: decided, given up or never asked; -EINVAL VALIDATION_ERROR for a reply that is no choice
 * or does not fit the schema, and for a scope other than once where nothing can be kept (kinds but "tool"). The
 * decision is in the store before the call that waits goes on. */
int approvals_decide(struct approvals *p, const struct approval_decision *d, struct err *e) MUST_CHECK;
/* How long questions of this session (or of the task, for a question without a session) have waited so far, in
 * milliseconds; time in which several waited counts once. */
int64_t approvals_waited_ms(struct approvals *p, const char *session_id);
/* Decides before any call: always or never; server "": a built-in tool. Answers what waits already. -E2BIG
 * TOO_MANY_RULES. */
struct approval_rule {
    const char *agent, *server, *tool;
    bool is_allowed;
};
int approvals_set_rule(struct approvals *p, const struct approval_rule *rule, const char *actor,
                       struct err *e) MUST_CHECK;
/* Takes such a decision back. -ENOENT RULE_NOT_FOUND. */
int approvals_forget_rule(struct approvals *p, const struct approval_rule *rule, const char *actor,
                          struct err *e) MUST_CHECK;
/* An agent (server NULL) or a server (agent NULL) was removed: what was allowed of it for a session is forgotten. What
 * was allowed for good is deleted with its row. */
void approvals_forget_allowed(struct approvals *p, const char *agent, const char *server);
/* Decisions "for this session" end with the session. */
void approvals_forget_session(struct approvals *p, const char *session_id);

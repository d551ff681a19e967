/* Asking the person: the list of permissions that wait for an answer, and the answers.
 *
 * A question stays in the list until it is answered or its app is reset or removed, whether or not a request still waits for it. Waiting is on a
 * worker of the long pool. Questions live in memory; grants and denials in the store. A second denial stops asking (D4).
 */
#pragma once

#include "identity/identity.h"
#include <stdatomic.h>

enum consent_scope { CONSENT_ONCE, CONSENT_UNTIL_STOP, CONSENT_UNTIL_DATE, CONSENT_ALWAYS };
const char *consent_scope_name(enum consent_scope s);   /* "once", "until_stop", "until_date", "always" */

struct consent_question {
    const char *id;                     /* of the prompt: all permissions of a bulk prompt share it */
    const char *app_id, *app_name, *permission, *asks;
    bool is_known, is_dangerous;
    const char *asked_at;
    const char *change;                 /* it was allowed to another command than is started now: how they differ; NULL: it was not */
};
struct consent_questions { struct consent_question *items; size_t n; };

struct consent_decision {
    const char *app_id, *permission;
    bool is_allowed;
    enum consent_scope scope;
    const char *until;                  /* ISO 8601, of CONSENT_UNTIL_DATE: must be in the future */
    const char *actor;                  /* who decided, for the audit log */
};

struct consent_answer {
    const char *permission;
    bool is_granted, is_denied;
    bool is_withdrawn;                  /* the decision was revoked while the call waited, which no longer waits for this one */
};

/* -EINVAL VALIDATION_ERROR unless it is 1 to LIMIT_NAME_CHARS characters; unknown names are fine (D4). */
int consent_check_name(const char *permission, struct err *e) MUST_CHECK;
/* Adds missing permissions as one prompt and waits up to wait_ms (0: does not wait) until all are decided or `is_gone`.
 * answers has n entries. -ENOENT APP_NOT_FOUND; -EINVAL for an empty or overlong name. */
int consent_ask(struct identity *id, const char *app_id, const char *const *permissions, size_t n, int64_t wait_ms,
                const atomic_bool *is_gone, struct consent_answer *answers, struct err *e) MUST_CHECK;
int consent_pending(struct identity *id, struct arena *a, struct consent_questions *ret, struct err *e) MUST_CHECK;
/* Stores the decision, audits it, answers who waits. Also without a question (grant, deny of the command line). */
int consent_decide(struct identity *id, const struct consent_decision *d, struct err *e) MUST_CHECK;
/* A call that waits is told the permission as not decided; a question about it stays. */
int consent_revoke(struct identity *id, const char *app_id, const char *permission, const char *actor, struct err *e) MUST_CHECK;
/* Forgets decisions and questions; calls of the app that wait return with nothing decided. */
int consent_reset(struct identity *id, const char *app_id, const char *actor, struct err *e) MUST_CHECK;
/* Grants `until the app stops` end here; called by whoever sees the app stop. */
int consent_app_stopped(struct identity *id, const char *app_id, struct err *e) MUST_CHECK;
/* A call failed for want of this permission: the person sees the question, nobody waits. Not after a denial. */
int consent_app_misses(struct identity *id, const char *app_id, const char *permission, struct err *e) MUST_CHECK;
/* The app's declared permissions or its command changed: what is new and undecided, and what was allowed to another command, is asked again.
 * Also at launch (bulk prompt). */
int consent_app_declares(struct identity *id, const char *app_id, const char *const *permissions, size_t n, struct err *e) MUST_CHECK;
void consent_app_removed(struct identity *id, const char *app_id);
/* Makes waiting calls look at their is_gone again. Never blocks for long: for the loop thread, as http_exchange_on_gone() callback. */
void consent_poke(struct identity *id);
/* The service is stopping: calls that wait return at once with what is decided. */
void consent_end_waits(struct identity *id);
/* One listener: called on any thread when the pending list changed (for GET /api/events and `permission watch`). */
void consent_on_change(struct identity *id, void (*fn)(void *arg), void *arg);

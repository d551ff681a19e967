/* Asking the person: the list of permissions that await an answer, and the answers.
 *
 * A question stays in the list until it is answered or its app is reset or removed, whether or not a request still
 * waits for it. Calls wait on a worker of the long pool. Questions live in memory; grants and denials live in the
 * store. A second denial stops further questions (D4).
 */
#pragma once

#include "identity/identity.h"
#include <stdatomic.h>

enum consent_scope { CONSENT_ONCE, CONSENT_UNTIL_STOP, CONSENT_UNTIL_DATE, CONSENT_ALWAYS };
const char *consent_scope_name(enum consent_scope s); /* "once", "until_stop", "until_date", "always" */

struct consent_question {
    const char *id; /* of the prompt: all permissions of a bulk prompt share it */
    const char *app_id, *app_name, *permission, *requests;
    bool is_known, is_dangerous;
    const char *requested_at;
    const char *change; /* how the command started now differs from the one it was allowed for; NULL: it was not allowed
                           before */
};
struct consent_questions {
    struct consent_question *items;
    size_t n;
};

struct consent_decision {
    const char *app_id, *permission;
    bool is_allowed;
    enum consent_scope scope;
    const char *until; /* ISO 8601, of CONSENT_UNTIL_DATE: must be in the future */
    const char *actor; /* who decided, for the audit log */
};

struct consent_answer {
    const char *permission;
    bool is_granted, is_denied;
    bool is_withdrawn; /* the decision was revoked during the call; the call no longer waits for this permission */
};

/* -EINVAL VALIDATION_ERROR unless it is 1 to LIMIT_NAME_CHARS characters; unknown names are fine (D4). */
int consent_check_name(const char *permission, struct err *e) MUST_CHECK;
struct consent_request {
    const char *app_id;
    const char *const *permissions;
    size_t n;
    int64_t wait_ms;            /* 0: does not wait */
    const atomic_bool *is_gone; /* true: the caller no longer waits; NULL: it always waits */
};
/* Adds missing permissions as one prompt and waits up to wait_ms until all are decided or *is_gone.
 * answers has request->n entries. -ENOENT APP_NOT_FOUND; -EINVAL for an empty or overlong name. */
int consent_request(struct identity *id, const struct consent_request *request, struct consent_answer *answers,
                    struct err *e) MUST_CHECK;
int consent_pending(struct identity *id, struct arena *a, struct consent_questions *ret, struct err *e) MUST_CHECK;
/* Stores the decision, audits it and answers waiting calls. Also without a question (grant, deny of the command line).
 */
int consent_decide(struct identity *id, const struct consent_decision *d, struct err *e) MUST_CHECK;
/* A waiting call gets the permission as not decided; a question about the permission stays. */
int consent_revoke(struct identity *id, const char *app_id, const char *permission, const char *actor,
                   struct err *e) MUST_CHECK;
/* Revokes what any app was allowed of a permission and its parts ("mcp.tools/files", "mcp.tools/files/read"), because
 * the thing they name is no longer there. Denials stay. */
int consent_revoke_part(struct identity *id, const char *permission, const char *actor, struct err *e) MUST_CHECK;
/* Forgets decisions and questions; waiting calls of the app return with nothing decided. */
int consent_reset(struct identity *id, const char *app_id, const char *actor, struct err *e) MUST_CHECK;
/* Ends the app's grants `until the app stops`; called by the part that sees the app stop. */
int consent_app_stopped(struct identity *id, const char *app_id, struct err *e) MUST_CHECK;
/* A call failed because the app lacks this permission: the person sees the question, but no call waits for the answer.
 * Asks nothing after a denial. */
int consent_app_misses(struct identity *id, const char *app_id, const char *permission, struct err *e) MUST_CHECK;
/* The app's declared permissions or its command changed: asks about new undecided permissions, and again about those
 * allowed for another command. Also at launch (bulk prompt). */
int consent_app_declares(struct identity *id, const char *app_id, const char *const *permissions, size_t n,
                         struct err *e) MUST_CHECK;
void consent_app_removed(struct identity *id, const char *app_id);
/* Makes waiting calls check their is_gone again. Blocks only briefly, so the loop thread may use it as
 * http_exchange_on_gone() callback. */
void consent_poke(struct identity *id);
/* The service is stopping: waiting calls return immediately with the decisions made so far. */
void consent_end_waits(struct identity *id);
/* One listener: called on any thread when the pending list changed (for GET /api/events and `permission watch`). */
void consent_on_change(struct identity *id, void (*fn)(void *arg), void *arg);

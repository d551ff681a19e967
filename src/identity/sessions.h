/* The local administrator's browser session: a one-time link (10 minutes) becomes a cookie and a proof (30 days).
 *
 * Browsers send a cookie to every port of a host, so the cookie alone is no session. The proof is kept in the storage
 * of one origin, port included, and comes as a header that the page sets; the proof alone is no session either. The
 * store has hashes of both in one row. Any worker.
 */
#pragma once

#include "identity/identity.h"

#define SESSION_COOKIE "hearth_session"
#define SESSION_PROOF_HEADER "x-hearth-proof"
enum { SESSION_TOKEN_SIZE = 48, SESSION_LINK_S = 600, SESSION_S = 30 * 24 * 3600, CONFIRM_S = 300 };

struct session_tokens {
    char cookie[SESSION_TOKEN_SIZE], proof[SESSION_TOKEN_SIZE];
};

int session_link_new(struct identity *id, char ret_token[SESSION_TOKEN_SIZE], struct err *e) MUST_CHECK;
/* Uses the link up; -EACCES LINK_INVALID "This link has been used or has expired; `hearth open` prints a new one." */
int session_open(struct identity *id, const char *link_token, struct session_tokens *ret, struct err *e) MUST_CHECK;
/* True when cookie and proof belong to the same session and the session is in force; either may be NULL. *ret names the
 * session without revealing its secrets. */
bool session_find(struct identity *id, const char *cookie, const char *proof, struct arena *a, const char **ret);
/* Ends the caller's session. */
int session_close(struct identity *id, const struct caller *caller, struct err *e) MUST_CHECK;

/* May this administrator change what runs now? The socket and this process always may; a browser may for five minutes
 * after session_confirm(). -EPERM CONFIRMATION_REQUIRED names the command that confirms the session, as a sentence and
 * as the extra `confirm`. what: the sentence shown in the terminal. */
int session_need_confirmation(struct identity *id, const struct caller *caller, const char *what,
                              struct err *e) MUST_CHECK;
/* Called by the person in a terminal: -EPERM TERMINAL_REQUIRED for a browser. -ENOENT CONFIRMATION_NOT_FOUND. */
int session_confirm(struct identity *id, const struct caller *caller, const char *code, struct arena *a,
                    const char **ret_what, struct err *e) MUST_CHECK;
int64_t session_confirmed_for_s(struct identity *id, const struct caller *caller);

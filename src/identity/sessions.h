/* The local administrator's browser session: a one-time link (10 minutes) becomes a cookie (30 days). */
#pragma once

#include "identity/identity.h"

#define SESSION_COOKIE "hearth_session"
enum { SESSION_TOKEN_SIZE = 48, SESSION_LINK_S = 600, SESSION_S = 30 * 24 * 3600 };

int session_link_new(struct identity *id, char ret_token[SESSION_TOKEN_SIZE], struct err *e) MUST_CHECK;
/* Uses the link up; -EACCES LINK_INVALID "This link has been used or has expired; `hearth open` prints a new one." */
int session_open(struct identity *id, const char *link_token, char ret_session[SESSION_TOKEN_SIZE], struct err *e) MUST_CHECK;
int session_close(struct identity *id, const char *session, struct err *e) MUST_CHECK;

/* What the client reads of a user's token, which it cannot check (RFC 7519). Pure; any thread. */
#pragma once

#include "base/arena.h"

/* The claim `exp` in milliseconds since 1970; 0: none, or the text is no JWT. */
int64_t hosted_token_expiry(struct arena *a, const char *token);

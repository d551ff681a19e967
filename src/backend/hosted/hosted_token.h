/* What the client reads of tokens, which it cannot check (RFC 7519). Pure; any thread. */
#pragma once

#include "base/arena.h"

/* The claim `exp` in milliseconds since 1970; 0: none, or the text is no JWT. */
int64_t hosted_token_expiry(struct arena *a, const char *token);
/* The claim `sub` when it is a UUID; NULL: it is none. */
const char *hosted_token_user(struct arena *a, const char *token);
/* The claim `role` is service_role, as in the older secret keys. */
bool hosted_token_is_service(struct arena *a, const char *token);

/* Refresh tokens: base64url of the session's id (16 bytes), a counter (4 bytes, big end first) and a message
 * authentication code of both (HMAC SHA-256, 16 bytes). Pure; any thread. */
#pragma once

#include "base/err.h"
#include "base/slice.h"
#include "base/uuid.h"

enum { REFRESH_TOKEN_CHARS = 48 };

struct refresh_token {
    char session[UUID_SIZE];
    uint32_t counter;
};

void refresh_token_write(const struct refresh_token *token, struct slice secret, char out[REFRESH_TOKEN_CHARS + 1]);
/* -ENOENT REFRESH_TOKEN_NOT_FOUND for what refresh_token_write() has not written with this secret. */
int refresh_token_read(struct slice text, struct slice secret, struct refresh_token *ret, struct err *e) MUST_CHECK;

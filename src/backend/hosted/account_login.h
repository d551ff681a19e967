/* The login of the hosted service with an eight-character code, without its requests: the key pair of this side, the
 * address of the page, and the answer that holds the account's token. As the service's own command line does it: a
 * P-256 key pair; the x coordinate of the ECDH point is the key of AES-256-GCM; nonce of 12 bytes, no further data; the
 * code that the person brings is the first eight hexadecimal characters of the nonce. Pure functions; any thread.
 *
 *     r = account_login_make(&login, e);
 *     url = account_login_url(arena, page, &login, token_name);            the person brings the code
 *     r = account_login_open(&login, code, answer, arena, &token, e);
 */
#pragma once

#include "base/arena.h"
#include "base/err.h"
#include "base/slice.h"
#include "base/uuid.h"

enum {
    ACCOUNT_CODE_CHARS = 8,
    ACCOUNT_PUBLIC_HEX = 130, /* the uncompressed point: 04, x, y */
    ACCOUNT_PRIVATE_HEX = 64,
};

struct account_login {
    char session[UUID_SIZE];
    char public_hex[ACCOUNT_PUBLIC_HEX + 1], private_hex[ACCOUNT_PRIVATE_HEX + 1];
};

/* -ENOMEM when OpenSSL has none. */
int account_login_make(struct account_login *ret, struct err *e) MUST_CHECK;
char *account_login_url(struct arena *a, const char *page, const struct account_login *l, const char *token_name);
/* Eight hexadecimal characters, in lower case and without blanks around them. -EINVAL VALIDATION_ERROR. */
int account_code_read(struct arena *a, const char *text, const char **ret, struct err *e) MUST_CHECK;
/* Whether the text has the form of an account's token: sbp_ or sbp_oauth_, and 40 hexadecimal digits in lower case. */
bool account_token_is_valid(const char *token);
/* The token of an answer of the login; code as account_code_read() returns it. -EPROTO HOSTED_LOGIN_FAILED names what
 * is wrong with the answer: no such JSON, a nonce of another code, a point that is not on the curve, a tag that does
 * not fit, a token of another form. */
int account_login_open(const struct account_login *l, const char *code, struct slice json, struct arena *a,
                       const char **ret_token, struct err *e) MUST_CHECK;

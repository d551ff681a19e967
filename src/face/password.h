/* Passwords and e-mail addresses of users of the face.
 *
 * A hash is argon2id (RFC 9106) with 19 MiB and 2 passes, some 30 ms of one core. LIMIT_FACE_HASHES of them run at the
 * same time and the others wait, so call these two on threads that may wait.
 */
#pragma once

#include "base/err.h"

enum { PASSWORD_HASH_SIZE = 128 };

/* Length by the rules of the hosted service: -EINVAL WEAK_PASSWORD, VALIDATION_ERROR. */
int password_check(const char *password, struct err *e) MUST_CHECK;
/* -ENOMEM OUT_OF_MEMORY. */
int password_hash(const char *password, char out[PASSWORD_HASH_SIZE], struct err *e) MUST_CHECK;
/* 1 when it is the password of the hash, 0 when it is not. hash NULL: 0, after the same work. -ENOMEM OUT_OF_MEMORY. */
int password_verify(const char *hash, const char *password, struct err *e) MUST_CHECK;

/* In place: ASCII letters become lower case. -EINVAL VALIDATION_ERROR when it is no address of the form local@domain of
 * ASCII characters (RFC 5321 section 4.1.2, without quoted strings and address literals). */
int email_normalize(char *email, struct err *e) MUST_CHECK;

#include "backend/hosted/hosted_token.h"

#include "base/base64.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/uuid.h"

#include <string.h>

enum { MS_A_SECOND = 1000 };

static const int64_t last_second = INT64_C(253402300799); /* of the year 9999 */

/* Absent when the text is no JWT. */
static struct json_value read_claims(struct arena *a, const char *token)
{
    const char *begin = strchr(token, '.'), *end = begin ? strchr(begin + 1, '.') : NULL;
    struct json_value claims = { 0 };
    struct buf text;

    if (!end)
        return claims;
    buf_init(&text, LIMIT_JWT_BYTES);
    if (base64url_decode(&text, (struct slice){ begin + 1, (size_t)(end - begin - 1) }) < 0 ||
        json_parse(a, slice_of(arena_slicedup(a, buf_slice(&text))), &claims, NULL) < 0)
        claims = (struct json_value){ 0 };
    buf_clear(&text);
    return claims;
}

int64_t hosted_token_expiry(struct arena *a, const char *token)
{
    double seconds = json_double(json_get(read_claims(a, token), "exp"));

    return (int64_t)MAX(MIN(seconds, (double)last_second), 0.0) * MS_A_SECOND;
}

const char *hosted_token_user(struct arena *a, const char *token)
{
    struct slice user = json_string(json_get(read_claims(a, token), "sub"));

    return uuid_is_valid(user) ? arena_slicedup(a, user) : NULL;
}

bool hosted_token_is_service(struct arena *a, const char *token)
{
    return slice_eq_str(json_string(json_get(read_claims(a, token), "role")), "service_role");
}

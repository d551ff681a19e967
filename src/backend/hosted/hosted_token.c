#include "backend/hosted/hosted_token.h"

#include "base/base64.h"
#include "base/json.h"
#include "base/limits.h"

#include <string.h>

enum { MS_A_SECOND = 1000 };

static const int64_t last_second = INT64_C(253402300799); /* of the year 9999 */

static int64_t read_expiry(struct arena *a, struct slice claims)
{
    struct json_value v;
    int64_t expires_s;

    if (json_parse(a, claims, &v, NULL) < 0)
        return 0;
    expires_s = (int64_t)MIN(json_double(json_get(v, "exp")), (double)last_second);
    return expires_s > 0 ? expires_s * MS_A_SECOND : 0;
}

int64_t hosted_token_expiry(struct arena *a, const char *token)
{
    const char *begin = strchr(token, '.'), *end = begin ? strchr(begin + 1, '.') : NULL;
    struct buf claims;
    int64_t expires_ms = 0;

    if (!end)
        return 0;
    buf_init(&claims, LIMIT_JWT_BYTES);
    if (base64url_decode(&claims, (struct slice){ begin + 1, (size_t)(end - begin - 1) }) == 0)
        expires_ms = read_expiry(a, buf_slice(&claims));
    buf_clear(&claims);
    return expires_ms;
}

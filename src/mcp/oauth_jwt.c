#include "mcp/oauth_jwt.h"

#include "base/base64.h"
#include "base/limits.h"

#include <string.h>
#include <strings.h>

static int err_jwt(const char *what, const char *why, struct err *e)
{
    return err_set(e, -EPROTO, "MCP_LOGIN_FAILED", "%s %s.", what, why);
}

/* One of the parts between the dots, as a JSON object. */
static int read_part(struct arena *a, const char *text, size_t n, struct json_value *ret)
{
    const char *json = NULL;
    struct buf out;
    size_t n_json;
    int r;

    buf_init(&out, LIMIT_MCP_TOKEN_BYTES);
    r = base64url_decode(&out, (struct slice){ text, n });
    n_json = out.n;
    if (r == 0)
        json = buf_to_arena(&out, a);
    buf_clear(&out);
    if (r < 0 || json_parse(a, (struct slice){ json, n_json }, ret, NULL) < 0)
        return -EINVAL;
    return json_type(*ret) == JSON_OBJECT ? 0 : -EINVAL;
}

static const char *text_in(struct json_value v, const char *name)
{
    const char *text = json_cstr(json_get(v, name));

    return text ? text : "";
}

/* NumericDate (RFC 7519 section 2); a fraction does not count. */
static int64_t time_in(struct json_value v, const char *name)
{
    static const double latest_s = 253402300799.0; /* of the year 9999 */
    double s = json_double(json_get(v, name));

    return s > 0 && s <= latest_s ? (int64_t)s : 0;
}

static void take_claims(struct json_value header, struct json_value claims, struct mcp_jwt *ret)
{
    *ret = (struct mcp_jwt){ .type = text_in(header, "typ"),
                             .issuer = text_in(claims, "iss"),
                             .subject = text_in(claims, "sub"),
                             .nonce = json_cstr(json_get(claims, "nonce")),
                             .client_id = json_cstr(json_get(claims, "client_id")),
                             .audience = json_get(claims, "aud"),
                             .resource = json_get(claims, "resource"),
                             .expires_s = time_in(claims, "exp") };
}

int mcp_jwt_read(struct arena *a, const char *what, const char *text, struct mcp_jwt *ret, struct err *e)
{
    size_t n_header = strcspn(text, "."), n_claims, n_signature;
    struct json_value header = { 0 }, claims = { 0 };
    const char *alg, *rest;

    if (strnlen(text, LIMIT_MCP_TOKEN_BYTES + 1) > LIMIT_MCP_TOKEN_BYTES || text[n_header] == '\0')
        return err_jwt(what, "is no JSON Web Token", e);
    rest = text + n_header + 1;
    n_claims = strcspn(rest, ".");
    n_signature = rest[n_claims] ? strlen(rest + n_claims + 1) : 0;
    if (strchr(rest + n_claims + (rest[n_claims] != '\0'), '.') || read_part(a, text, n_header, &header) < 0 ||
        read_part(a, rest, n_claims, &claims) < 0)
        return err_jwt(what, "is no JSON Web Token", e);
    alg = text_in(header, "alg");
    if (!*alg || strcasecmp(alg, "none") == 0 || n_signature == 0)
        return err_jwt(what, "is not signed", e);
    take_claims(header, claims, ret);
    return 0;
}

bool mcp_jwt_holds(struct json_value texts, const char *text)
{
    struct json_value item;
    struct slice key;

    if (json_type(texts) == JSON_STRING)
        return slice_eq_str(json_string(texts), text);
    for (struct json_iter it = json_iter(texts); json_type(texts) == JSON_ARRAY && json_next(&it, &key, &item);)
        if (slice_eq_str(json_string(item), text))
            return true;
    return false;
}

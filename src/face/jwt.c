#include "face/jwt.h"

#include "base/base64.h"
#include "base/hash.h"
#include "base/json.h"

#include <string.h>

struct parts {
    struct slice header, claims, signature, signed_text; /* base64url, but for signed_text */
};

static int malformed(struct err *e, const char *what)
{
    return err_set(e, -EINVAL, "MALFORMED_JWT", "The token is no JWT: %s.", what);
}

static bool cut(struct slice *rest, struct slice *ret)
{
    const char *dot = rest->n ? memchr(rest->p, '.', rest->n) : NULL;

    if (!dot)
        return false;
    *ret = (struct slice){ rest->p, (size_t)(dot - rest->p) };
    *rest = (struct slice){ dot + 1, rest->n - ret->n - 1 };
    return true;
}

/* RFC 7515 section 3.1: three parts between two dots. */
static int split(struct slice token, struct parts *ret, struct err *e)
{
    struct slice rest = token;

    if (token.n > LIMIT_JWT_BYTES)
        return malformed(e, "it is above 8192 bytes");
    if (!cut(&rest, &ret->header) || !cut(&rest, &ret->claims) || memchr(rest.p, '.', rest.n))
        return malformed(e, "it must have three parts");
    ret->signature = rest;
    ret->signed_text = (struct slice){ token.p, ret->header.n + 1 + ret->claims.n };
    return 0;
}

static int read_object(struct arena *a, struct slice part, struct json_value *ret, struct err *e)
{
    struct buf text;
    int r;

    buf_init(&text, LIMIT_JWT_BYTES);
    r = base64url_decode(&text, part);
    if (r == 0)
        r = json_parse(a, buf_slice(&text), ret, NULL);
    buf_clear(&text);
    return r < 0 || json_type(*ret) != JSON_OBJECT ? malformed(e, "a part is no base64url of a JSON object") : 0;
}

/* RFC 7515 section 4.1: the algorithm is ours to choose, and a critical extension that is not understood refuses. */
static int check_header(struct arena *a, const struct parts *parts, struct err *e)
{
    struct json_value header = { 0 };
    int r = read_object(a, parts->header, &header, e);

    if (r < 0)
        return r;
    if (!slice_eq_str(json_string(json_get(header, "alg")), "HS256"))
        return malformed(e, "its algorithm must be HS256");
    return json_type(json_get(header, "crit")) == JSON_ABSENT ? 0 : malformed(e, "it has a critical extension");
}

static int check_signature(const struct parts *parts, struct slice secret, struct err *e)
{
    unsigned char wanted[HASH_BYTES];
    struct buf given;
    bool is_right;

    buf_init(&given, HASH_BYTES + 2); /* the reader of base64 reserves a little more than it needs */
    hash_hmac_sha256(parts->signed_text, secret, wanted);
    is_right = base64url_decode(&given, parts->signature) == 0 && given.n == sizeof(wanted) &&
               hash_equal(given.p, wanted, sizeof(wanted));
    buf_clear(&given);
    return is_right ? 0 : err_set(e, -EACCES, "JWT_SIGNATURE", "The token was not signed with this machine's key.");
}

/* A NumericDate, perhaps with a fraction (RFC 7519 section 2). False: it is there and is none. */
static bool read_time(struct json_value claims, const char *name, int64_t *ret)
{
    struct json_value v = json_get(claims, name);
    double seconds = json_double(v);

    *ret = 0;
    if (json_type(v) == JSON_ABSENT)
        return true;
    if ((json_type(v) != JSON_INT && json_type(v) != JSON_DOUBLE) || !(seconds >= 0 && seconds < 1e15))
        return false;
    *ret = (int64_t)seconds;
    return true;
}

static int check_times(struct json_value claims, int64_t now_s, struct jwt_claims *ret, struct err *e)
{
    int64_t not_before, issued;

    if (!read_time(claims, "exp", &ret->expires_s) || !read_time(claims, "nbf", &not_before) ||
        !read_time(claims, "iat", &issued))
        return malformed(e, "exp, nbf and iat must be numbers of seconds");
    if (json_type(json_get(claims, "exp")) != JSON_ABSENT && now_s > ret->expires_s + LIMIT_JWT_SKEW_S)
        return err_set(e, -EACCES, "JWT_EXPIRED", "The token has expired %lld seconds ago.",
                       (long long)(now_s - ret->expires_s));
    if (not_before > now_s + LIMIT_JWT_SKEW_S || issued > now_s + LIMIT_JWT_SKEW_S)
        return err_set(e, -EACCES, "JWT_NOT_YET", "The token is not valid yet: see its claims nbf and iat.");
    return 0;
}

static bool read_text(struct json_value claims, const char *name, char *out, size_t max)
{
    struct json_value v = json_get(claims, name);
    struct slice text = json_string(v);

    if (json_is_absent(v))
        return true;
    if (json_type(v) != JSON_STRING || text.n > max || (text.n && memchr(text.p, '\0', text.n)))
        return false;
    memcpy(out, text.p, text.n);
    out[text.n] = '\0';
    return true;
}

int jwt_verify(struct slice token, struct slice secret, int64_t now_s, struct jwt_claims *ret, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct jwt_claims claims = { 0 };
    struct json_value body = { 0 };
    struct parts parts = { 0 };
    int r = split(token, &parts, e);

    if (r == 0)
        r = check_header(a, &parts, e);
    if (r == 0)
        r = check_signature(&parts, secret, e);
    if (r == 0)
        r = read_object(a, parts.claims, &body, e);
    if (r == 0)
        r = check_times(body, now_s, &claims, e);
    if (r < 0)
        return r;
    if (!read_text(body, "role", claims.role, LIMIT_JWT_ROLE) ||
        !read_text(body, "sub", claims.subject, LIMIT_JWT_SUBJECT))
        return malformed(e, "role and sub must be short texts");
    if (uuid_is_valid(json_string(json_get(body, "session_id"))))
        memcpy(claims.session, json_string(json_get(body, "session_id")).p, UUID_LEN);
    *ret = claims;
    return 0;
}

void jwt_sign(struct buf *out, struct slice claims, struct slice secret)
{
    unsigned char signature[HASH_BYTES];
    size_t start = out->n;

    base64url_encode(out, SLICE_LIT("{\"alg\":\"HS256\",\"typ\":\"JWT\"}"));
    buf_add_char(out, '.');
    base64url_encode(out, claims);
    hash_hmac_sha256((struct slice){ out->p + start, out->n - start }, secret, signature);
    buf_add_char(out, '.');
    base64url_encode(out, (struct slice){ (const char *)signature, sizeof(signature) });
}

/* A token of a user, as any client sends it. What is accepted has the signature of the key; a token is signed here when
 * the input begins with '+', so that claims are reached as well. */
#include "base/base64.h"
#include "base/hash.h"
#include "face/jwt.h"

#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static const struct slice secret = { "secret", 6 };

static void verify(struct slice token, bool is_signed)
{
    struct jwt_claims claims;
    struct err e = { 0 };
    int r = jwt_verify(token, secret, 1800000000, &claims, &e);

    assert(r == 0 || (r < 0 && e.code[0]));
    assert(is_signed || r < 0 || token.n <= LIMIT_JWT_BYTES);
    if (r == 0)
        assert(memchr(claims.role, '\0', sizeof(claims.role)) && memchr(claims.subject, '\0', sizeof(claims.subject)));
}

static void sign(struct buf *out, struct slice claims)
{
    unsigned char hash[HASH_BYTES];

    base64url_encode(out, SLICE_LIT("{\"alg\":\"HS256\"}"));
    buf_add_char(out, '.');
    base64url_encode(out, claims);
    hash_hmac_sha256(buf_slice(out), secret, hash);
    buf_add_char(out, '.');
    base64url_encode(out, (struct slice){ (const char *)hash, sizeof(hash) });
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    struct slice text = { (const char *)bytes, n };
    struct buf token;

    if (n == 0 || bytes[0] != '+') {
        verify(text, false);
        return 0;
    }
    buf_init(&token, 1 << 20);
    sign(&token, (struct slice){ text.p + 1, n - 1 });
    verify(buf_slice(&token), true);
    buf_clear(&token);
    return 0;
}

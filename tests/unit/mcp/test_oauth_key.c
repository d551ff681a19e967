#include "mcp/oauth_key.h"

#include "base/base64.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/limits.h"
#include "mcp/oauth_jwt.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "test_keys.h"

#include <openssl/ec.h>
#include <openssl/rsa.h>

static struct slice part_of(struct arena *a, const char *jwt, int which)
{
    struct buf out;
    const char *text;
    size_t n;

    for (; which > 0; which--)
        jwt = strchr(jwt, '.') + 1;
    buf_init(&out, KIB(64));
    assert_int_equal(base64url_decode(&out, (struct slice){ jwt, strcspn(jwt, ".") }), 0);
    n = out.n;
    text = buf_to_arena(&out, a);
    return (struct slice){ text, n };
}

static struct json_value json_part(struct arena *a, const char *jwt, int which)
{
    struct json_value v = { 0 };

    assert_int_equal(json_parse(a, part_of(a, jwt, which), &v, NULL), 0);
    return v;
}

/* RFC 7518 section 3.4, backwards. */
static struct slice der_of(struct arena *a, struct slice pair)
{
    ECDSA_SIG *signature = ECDSA_SIG_new();
    unsigned char *to = arena_alloc(a, 128), *at = to;
    int n;

    assert_int_equal(pair.n, 64);
    ECDSA_SIG_set0(signature, BN_bin2bn((const unsigned char *)pair.p, 32, NULL),
                   BN_bin2bn((const unsigned char *)pair.p + 32, 32, NULL));
    n = i2d_ECDSA_SIG(signature, &at);
    ECDSA_SIG_free(signature);
    return (struct slice){ (const char *)to, (size_t)n };
}

static bool is_signed_by(struct arena *a, EVP_PKEY *key, int64_t alg, const char *jwt)
{
    struct slice signature = part_of(a, jwt, 2);
    EVP_MD_CTX *md = EVP_MD_CTX_new();
    EVP_PKEY_CTX *padding;
    bool is_good;

    if (alg == MCP_ALG_ES256)
        signature = der_of(a, signature);
    assert_int_equal(EVP_DigestVerifyInit(md, &padding, EVP_sha256(), NULL, key), 1);
    if (alg == MCP_ALG_PS256)
        assert_int_equal(EVP_PKEY_CTX_set_rsa_padding(padding, RSA_PKCS1_PSS_PADDING), 1);
    is_good = EVP_DigestVerify(md, (const unsigned char *)signature.p, signature.n, (const unsigned char *)jwt,
                               (size_t)(strrchr(jwt, '.') - jwt)) == 1;
    EVP_MD_CTX_free(md);
    return is_good;
}

static void check_assertion(EVP_PKEY *key, int64_t alg, const char *name)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    const struct mcp_assertion what = {
        pem_of(a, key, NULL), "key \"1\"", alg, "client-1", "https://as.example", 1000
    };
    const char *one = NULL, *other = NULL;
    struct json_value header, claims;

    assert_int_equal(mcp_key_assert(a, &what, &one, NULL), 0);
    assert_int_equal(mcp_key_assert(a, &what, &other, NULL), 0);
    assert_true(is_signed_by(a, key, alg, one) && is_signed_by(a, key, alg, other));
    header = json_part(a, one, 0);
    claims = json_part(a, one, 1);
    assert_string_equal(json_cstr(json_get(header, "alg")), name);
    assert_string_equal(json_cstr(json_get(header, "typ")), "JWT");
    assert_string_equal(json_cstr(json_get(header, "kid")), "key \"1\"");
    assert_string_equal(json_cstr(json_get(claims, "iss")), "client-1");
    assert_string_equal(json_cstr(json_get(claims, "sub")), "client-1");
    assert_string_equal(json_cstr(json_get(claims, "aud")), "https://as.example");
    assert_int_equal(json_int(json_get(claims, "iat")), 1000);
    assert_int_equal(json_int(json_get(claims, "exp")), 1000 + LIMIT_MCP_ASSERTION_S);
    assert_true(strlen(json_cstr(json_get(claims, "jti"))) >= 22);
    assert_string_not_equal(json_cstr(json_get(claims, "jti")),
                            json_cstr(json_get(json_part(a, other, 1), "jti"))); /* cannot be replayed */
}

static void an_assertion_is_signed_by_the_key_and_each_is_another_one(void **state)
{
    EVP_PKEY *p256 = EVP_EC_gen("P-256"), *rsa = EVP_RSA_gen(2048U);

    for (int i = 0; i < 32; i++) /* numbers of the signature that begin with zeroes, too */
        check_assertion(p256, MCP_ALG_ES256, "ES256");
    check_assertion(rsa, MCP_ALG_RS256, "RS256");
    check_assertion(rsa, MCP_ALG_PS256, "PS256");
    EVP_PKEY_free(p256);
    EVP_PKEY_free(rsa);
}

static void check_rule(EVP_PKEY *key, const char *passphrase, const char *rule)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    const char *got = mcp_key_rule(pem_of(a, key, passphrase));

    EVP_PKEY_free(key);
    if (!rule)
        assert_null(got);
    else
        assert_non_null(got ? strstr(got, rule) : NULL);
}

static void a_key_that_cannot_sign_is_named(void **state)
{
    check_rule(EVP_EC_gen("P-256"), NULL, NULL);
    check_rule(EVP_EC_gen("P-256"), "secret", "encrypted");
    check_rule(EVP_EC_gen("P-384"), NULL, "P-256");
    check_rule(EVP_EC_gen("secp256k1"), NULL, "P-256");
    check_rule(EVP_PKEY_Q_keygen(NULL, NULL, "ED25519"), NULL, "P-256");
    check_rule(EVP_PKEY_Q_keygen(NULL, NULL, "X25519"), NULL, "P-256");
}

/* Of more primes than two: found sooner. */
static EVP_PKEY *rsa_of(int bits)
{
    EVP_PKEY_CTX *maker = EVP_PKEY_CTX_new_id(EVP_PKEY_RSA, NULL);
    EVP_PKEY *key = NULL;

    assert_int_equal(EVP_PKEY_keygen_init(maker), 1);
    assert_int_equal(EVP_PKEY_CTX_set_rsa_keygen_bits(maker, bits), 1);
    assert_int_equal(EVP_PKEY_CTX_set_rsa_keygen_primes(maker, bits < 4096 ? 3 : 4), 1);
    assert_int_equal(EVP_PKEY_keygen(maker, &key), 1);
    EVP_PKEY_CTX_free(maker);
    return key;
}

static void the_length_of_an_rsa_key_has_two_edges(void **state)
{
    check_rule(rsa_of(2040), NULL, "2048");
    check_rule(rsa_of(2048), NULL, NULL);
    check_rule(rsa_of(LIMIT_MCP_RSA_BITS), NULL, NULL);
    check_rule(rsa_of(LIMIT_MCP_RSA_BITS + 8), NULL, "4096");
}

static void what_is_no_private_key_is_named(void **state)
{
    static const struct {
        const char *text, *rule;
    } cases[] = {
        { "", "no private key" },
        { "secret", "no private key" },
        { "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n", "no private key" },
        { "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n", "a public key" },
        { "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "a certificate" },
        { "-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n-----END OPENSSH PRIVATE KEY-----\n", "of OpenSSH" },
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        assert_non_null(strstr(mcp_key_rule(cases[i].text), cases[i].rule));
}

static void a_key_has_its_largest_size(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    char *pem = new_p256_pem(a), *text = arena_alloc(a, LIMIT_MCP_KEY_BYTES + 2);

    memset(text, '\n', LIMIT_MCP_KEY_BYTES + 1);
    memcpy(text, pem, strlen(pem));
    text[LIMIT_MCP_KEY_BYTES] = '\0';
    assert_null(mcp_key_rule(text));
    text[LIMIT_MCP_KEY_BYTES] = '\n';
    assert_non_null(mcp_key_rule(text));
}

static void the_server_chooses_among_what_the_key_can(void **state)
{
    static const struct {
        bool is_rsa;
        unsigned offered;
        int64_t alg; /* 0: refused */
    } cases[] = {
        { false, 0, MCP_ALG_ES256 },
        { false, MCP_ALG_ES256 | MCP_ALG_RS256 | MCP_ALG_OTHER, MCP_ALG_ES256 },
        { false, MCP_ALG_RS256 | MCP_ALG_OTHER, 0 },
        { false, MCP_ALG_OTHER, 0 }, /* `none` */
        { true, 0, MCP_ALG_RS256 },
        { true, MCP_ALG_RS256 | MCP_ALG_PS256 | MCP_ALG_OTHER, MCP_ALG_RS256 },
        { true, MCP_ALG_PS256 | MCP_ALG_OTHER, MCP_ALG_PS256 },
        { true, MCP_ALG_ES256 | MCP_ALG_OTHER, 0 },
    };
    AUTO(arena_freep) struct arena *a = arena_new();
    EVP_PKEY *rsa = EVP_RSA_gen(2048U);
    const char *pems[] = { new_p256_pem(a), pem_of(a, rsa, NULL) };

    EVP_PKEY_free(rsa);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        int64_t alg = 0;
        int r = mcp_key_choose(pems[cases[i].is_rsa], cases[i].offered, &alg, NULL);

        assert_int_equal(r, cases[i].alg ? 0 : -EPROTO);
        assert_int_equal(alg, cases[i].alg);
    }
}

static void the_longest_client_id_is_named_whole(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct mcp_assertion what = { .pem = new_p256_pem(a), .alg = MCP_ALG_ES256, .audience = "https://as.example" };
    char *id = arena_alloc(a, 4 * LIMIT_MCP_CLIENT_BYTES + 1);
    const char *jwt = NULL;

    for (size_t i = 0; i < LIMIT_MCP_CLIENT_BYTES; i++)
        memcpy(id + 4 * i, "\xf0\x9f\x94\x91", 5);
    what.client_id = id;
    assert_int_equal(mcp_key_assert(a, &what, &jwt, NULL), 0);
    assert_string_equal(json_cstr(json_get(json_part(a, jwt, 1), "iss")), id);
    assert_string_equal(json_cstr(json_get(json_part(a, jwt, 1), "sub")), id);
}

static void a_key_signs_in_its_own_way_only(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    const int64_t algs[] = { MCP_ALG_RS256, MCP_ALG_PS256, MCP_ALG_OTHER, 0 };
    struct mcp_assertion what = { .pem = new_p256_pem(a), .client_id = "c", .audience = "https://as.example" };
    const char *jwt = NULL;

    for (size_t i = 0; i < ARRAY_SIZE(algs); i++) {
        what.alg = algs[i];
        assert_int_equal(mcp_key_assert(a, &what, &jwt, NULL), -EINVAL);
    }
    assert_null(jwt);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_assertion_is_signed_by_the_key_and_each_is_another_one),
        cmocka_unit_test(a_key_that_cannot_sign_is_named),
        cmocka_unit_test(the_length_of_an_rsa_key_has_two_edges),
        cmocka_unit_test(what_is_no_private_key_is_named),
        cmocka_unit_test(a_key_has_its_largest_size),
        cmocka_unit_test(the_server_chooses_among_what_the_key_can),
        cmocka_unit_test(the_longest_client_id_is_named_whole),
        cmocka_unit_test(a_key_signs_in_its_own_way_only),
    };

    if (hash_init(NULL) < 0)
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}

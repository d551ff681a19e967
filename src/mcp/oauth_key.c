#include "mcp/oauth_key.h"

#include "base/base64.h"
#include "base/hash.h"
#include "base/json_write.h"
#include "base/limits.h"

#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <string.h>

enum { MIN_RSA_BITS = 2048, P256_BYTES = 32, JTI_BYTES = 24, JTI_TEXT = 40, JWT_BYTES = 128 << 10 };

static void key_freep(EVP_PKEY **key)
{
    EVP_PKEY_free(*key);
}

static void signer_freep(EVP_MD_CTX **signer)
{
    EVP_MD_CTX_free(*signer);
}

/* ---- keys ---- */

/* Without this, OpenSSL would ask at the terminal. */
static int give_no_passphrase(char *to, int size, int is_writing, void *arg)
{
    return -1;
}

static const char *what_it_is(const char *pem)
{
    if (strstr(pem, "ENCRYPTED"))
        return "is encrypted: remove its passphrase first (openssl pkey -in FILE -out NEW), Hearth seals the key itself";
    if (strstr(pem, "-----BEGIN PUBLIC KEY") || strstr(pem, "-----BEGIN RSA PUBLIC KEY"))
        return "is a public key: that one belongs to the authorization server, the private one is needed here";
    if (strstr(pem, "-----BEGIN CERTIFICATE"))
        return "is a certificate: the private key is needed";
    if (strstr(pem, "OPENSSH PRIVATE KEY"))
        return "is a key of OpenSSH: write it as PEM (ssh-keygen -p -m PKCS8 -f FILE)";
    return "is no private key in PEM";
}

static int err_key(struct err *e, const char *why)
{
    return err_set(e, -EINVAL, "VALIDATION_ERROR", "The private_key %s.", why);
}

static unsigned algs_of(const EVP_PKEY *key)
{
    char curve[32] = "";
    int bits = EVP_PKEY_get_bits(key);

    if (EVP_PKEY_get_base_id(key) == EVP_PKEY_EC &&
        EVP_PKEY_get_group_name((EVP_PKEY *)key, curve, sizeof(curve), NULL) == 1)
        return strcmp(curve, "prime256v1") == 0 ? MCP_ALG_ES256 : 0;
    if (EVP_PKEY_get_base_id(key) == EVP_PKEY_RSA && bits >= MIN_RSA_BITS && bits <= LIMIT_MCP_RSA_BITS)
        return MCP_ALG_RS256 | MCP_ALG_PS256;
    return 0;
}

static const char *rule_of(unsigned algs)
{
    return algs ? NULL : "must be EC on the curve P-256 or RSA of 2048 to 4096 bits"; /* LIMIT_MCP_RSA_BITS */
}

/* NULL: *ret is a key that can sign, which the caller frees. */
static const char *open_key(const char *pem, EVP_PKEY **ret)
{
    size_t n = strlen(pem);
    BIO *bio = n <= LIMIT_MCP_KEY_BYTES ? BIO_new_mem_buf(pem, (int)n) : NULL;
    EVP_PKEY *key = bio ? PEM_read_bio_PrivateKey(bio, NULL, give_no_passphrase, NULL) : NULL;
    const char *rule = key ? rule_of(algs_of(key)) : what_it_is(pem);

    BIO_free(bio);
    ERR_clear_error();
    if (rule)
        EVP_PKEY_free(key);
    else
        *ret = key;
    return rule;
}

const char *mcp_key_rule(const char *pem)
{
    AUTO(key_freep) EVP_PKEY *key = NULL;

    return open_key(pem, &key);
}

static int read_key(const char *pem, EVP_PKEY **ret, struct err *e)
{
    const char *rule = open_key(pem, ret);

    return rule ? err_key(e, rule) : 0;
}

int mcp_key_choose(const char *pem, unsigned offered, int64_t *ret, struct err *e)
{
    AUTO(key_freep) EVP_PKEY *key = NULL;
    int r = read_key(pem, &key, e);
    unsigned algs = r == 0 ? algs_of(key) : 0;

    if (r < 0)
        return r;
    if (offered)
        algs &= offered;
    *ret = algs & MCP_ALG_ES256 ? MCP_ALG_ES256 : algs & MCP_ALG_RS256 ? MCP_ALG_RS256 : algs & MCP_ALG_PS256;
    if (algs)
        return 0;
    return err_set(e, -EPROTO, "MCP_LOGIN_FAILED",
                   "The authorization server takes no signature that the private_key can make: %s.",
                   EVP_PKEY_get_base_id(key) == EVP_PKEY_EC ? "the key makes ES256, an RSA key is needed"
                                                            : "the key makes RS256 and PS256, a P-256 key is needed");
}

/* ---- signatures ---- */

/* RFC 7518 section 3.4: the two numbers, 32 bytes each, instead of OpenSSL's DER. */
static int as_jose(unsigned char *signature, size_t *n)
{
    const unsigned char *at = signature;
    ECDSA_SIG *pair = d2i_ECDSA_SIG(NULL, &at, (long)*n);
    bool is_done = pair && BN_bn2binpad(ECDSA_SIG_get0_r(pair), signature, P256_BYTES) == P256_BYTES &&
                   BN_bn2binpad(ECDSA_SIG_get0_s(pair), signature + P256_BYTES, P256_BYTES) == P256_BYTES;

    ECDSA_SIG_free(pair);
    *n = 2 * P256_BYTES;
    return is_done ? 0 : -EINVAL;
}

static bool is_padded_as(EVP_PKEY_CTX *padding, int64_t alg)
{
    if (alg != MCP_ALG_PS256)
        return true;
    return EVP_PKEY_CTX_set_rsa_padding(padding, RSA_PKCS1_PSS_PADDING) == 1 &&
           EVP_PKEY_CTX_set_rsa_pss_saltlen(padding, RSA_PSS_SALTLEN_DIGEST) == 1;
}

/* to holds LIMIT_MCP_RSA_BITS / 8 bytes. */
static int sign_text(EVP_PKEY *key, int64_t alg, struct slice text, unsigned char *to, size_t *ret_n)
{
    AUTO(signer_freep) EVP_MD_CTX *signer = EVP_MD_CTX_new();
    EVP_PKEY_CTX *padding = NULL; /* of the signer */

    *ret_n = LIMIT_MCP_RSA_BITS / 8;
    if (!signer || EVP_DigestSignInit(signer, &padding, EVP_sha256(), NULL, key) != 1 || !is_padded_as(padding, alg) ||
        EVP_DigestSign(signer, to, ret_n, (const unsigned char *)text.p, text.n) != 1)
        return -EINVAL;
    return alg == MCP_ALG_ES256 ? as_jose(to, ret_n) : 0;
}

/* ---- assertions ---- */

static const char *alg_name(int64_t alg)
{
    return alg == MCP_ALG_ES256 ? "ES256" : alg == MCP_ALG_RS256 ? "RS256" : "PS256";
}

static void add_header(const struct mcp_assertion *what, struct buf *out)
{
    struct json_writer w;

    json_write_init(&w, out);
    json_begin_object(&w);
    json_add_string(&w, "alg", alg_name(what->alg));
    json_add_string(&w, "typ", "JWT");
    if (what->key_id)
        json_add_string(&w, "kid", what->key_id);
    json_end(&w);
}

static void add_claims(const struct mcp_assertion *what, struct buf *out)
{
    char jti[JTI_TEXT];
    struct json_writer w;

    random_token(jti, JTI_BYTES);
    json_write_init(&w, out);
    json_begin_object(&w);
    json_add_string(&w, "iss", what->client_id);
    json_add_string(&w, "sub", what->client_id);
    json_add_string(&w, "aud", what->audience);
    json_add_string(&w, "jti", jti);
    json_add_int(&w, "iat", what->now_s);
    json_add_int(&w, "exp", what->now_s + LIMIT_MCP_ASSERTION_S);
    json_end(&w);
}

static void add_part(struct buf *jwt, const struct mcp_assertion *what,
                     void (*add)(const struct mcp_assertion *what, struct buf *out))
{
    struct buf json;

    buf_init(&json, JWT_BYTES);
    add(what, &json);
    base64url_encode(jwt, buf_slice(&json));
    buf_clear(&json);
}

static int add_signature(struct buf *jwt, EVP_PKEY *key, int64_t alg, struct err *e)
{
    unsigned char signature[LIMIT_MCP_RSA_BITS / 8];
    size_t n;
    int r = algs_of(key) & alg ? sign_text(key, alg, buf_slice(jwt), signature, &n) : -EINVAL;

    ERR_clear_error();
    if (r < 0)
        return err_key(e, "cannot sign in the way that the authorization server wants");
    buf_add_char(jwt, '.');
    base64url_encode(jwt, (struct slice){ (const char *)signature, n });
    return buf_check(jwt, e);
}

int mcp_key_assert(struct arena *a, const struct mcp_assertion *what, const char **ret, struct err *e)
{
    AUTO(key_freep) EVP_PKEY *key = NULL;
    int r = read_key(what->pem, &key, e);
    struct buf jwt;

    if (r < 0)
        return r;
    buf_init(&jwt, JWT_BYTES);
    add_part(&jwt, what, add_header);
    buf_add_char(&jwt, '.');
    add_part(&jwt, what, add_claims);
    r = add_signature(&jwt, key, what->alg, e);
    if (r == 0)
        *ret = buf_to_arena(&jwt, a);
    buf_clear(&jwt);
    return r;
}

#include "backend/hosted/account_login.h"

#include "base/fields.h"
#include "base/hash.h"
#include "base/limits.h"
#include "base/percent.h"
#include "base/secret.h"

#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/param_build.h>
#include <string.h>

enum {
    POINT_BYTES = 65,
    SCALAR_BYTES = 32,
    NONCE_BYTES = 12,
    TAG_BYTES = 16,
    TOKEN_CHARS = 40,
    CIPHER_BYTES_MAX = 256,
    HEX_MAX = 2 * CIPHER_BYTES_MAX,
};

#define HEX_LOWER "0123456789abcdef"

static int err_login(struct err *e, const char *why)
{
    ERR_clear_error();
    return err_set(e, -EPROTO, "HOSTED_LOGIN_FAILED", "The login failed: %s", why);
}

static void key_freep(EVP_PKEY **key)
{
    EVP_PKEY_free(*key);
}

static void context_freep(EVP_PKEY_CTX **context)
{
    EVP_PKEY_CTX_free(*context);
}

static void cipher_freep(EVP_CIPHER_CTX **cipher)
{
    EVP_CIPHER_CTX_free(*cipher);
}

/* Digits of either case; exactly n bytes. */
static bool unhex(const char *hex, unsigned char *out, size_t n)
{
    if (!hex || strlen(hex) != 2 * n || strspn(hex, HEX_LOWER "ABCDEF") != 2 * n)
        return false;
    for (size_t i = 0; i < 2 * n; i++) {
        unsigned char digit = (unsigned char)(hex[i] <= '9' ? hex[i] - '0' : (hex[i] | 0x20) - 'a' + 10);

        out[i / 2] = (unsigned char)(i % 2 ? out[i / 2] << 4 | digit : digit);
    }
    return true;
}

/* --- the key pair --- */

static bool take_private(EVP_PKEY *key, char out[ACCOUNT_PRIVATE_HEX + 1])
{
    unsigned char scalar[SCALAR_BYTES];
    BIGNUM *number = NULL;
    bool is_done = EVP_PKEY_get_bn_param(key, OSSL_PKEY_PARAM_PRIV_KEY, &number) == 1 &&
                   BN_bn2binpad(number, scalar, sizeof(scalar)) == SCALAR_BYTES;

    if (is_done)
        hash_hex(scalar, sizeof(scalar), out);
    BN_clear_free(number);
    secret_wipe(scalar, sizeof(scalar));
    return is_done;
}

static bool take_public(EVP_PKEY *key, char out[ACCOUNT_PUBLIC_HEX + 1])
{
    unsigned char point[POINT_BYTES];
    size_t n = 0;
    bool is_done = EVP_PKEY_get_octet_string_param(key, OSSL_PKEY_PARAM_PUB_KEY, point, sizeof(point), &n) == 1 &&
                   n == POINT_BYTES;

    if (is_done)
        hash_hex(point, sizeof(point), out);
    return is_done;
}

int account_login_make(struct account_login *ret, struct err *e)
{
    AUTO(key_freep) EVP_PKEY *key = EVP_EC_gen("P-256");

    uuid_v4(ret->session);
    if (key && take_public(key, ret->public_hex) && take_private(key, ret->private_hex))
        return 0;
    ERR_clear_error();
    return err_set(e, -ENOMEM, "OUT_OF_MEMORY", "No key pair could be made for the login.");
}

static void add_parameter(struct buf *url, const char *name, const char *value)
{
    buf_printf(url, "%s=", name);
    percent_encode(url, slice_of(value));
}

char *account_login_url(struct arena *a, const char *page, const struct account_login *l, const char *token_name)
{
    struct buf url;

    buf_init(&url, KIB(8));
    buf_printf(&url, "%s/cli/login?", page);
    add_parameter(&url, "session_id", l->session);
    add_parameter(&url, "&token_name", token_name);
    add_parameter(&url, "&public_key", l->public_hex);
    return buf_to_arena(&url, a);
}

/* --- code and token --- */

int account_code_read(struct arena *a, const char *text, const char **ret, struct err *e)
{
    char *code;

    text += strspn(text, " \t\r\n");
    code = arena_strndup(a, text, strcspn(text, " \t\r\n"));
    text += strlen(code);
    for (char *c = code; *c; c++)
        *c = *c >= 'A' && *c <= 'F' ? (char)(*c | 0x20) : *c;
    if (strlen(code) != ACCOUNT_CODE_CHARS || code[strspn(code, HEX_LOWER)] || text[strspn(text, " \t\r\n")])
        return err_add_field(e, "code", "must be the %d characters that the page shows: digits and the letters a to f",
                             (int)ACCOUNT_CODE_CHARS);
    *ret = code;
    return 0;
}

bool account_token_is_valid(const char *token)
{
    static const char start[] = "sbp_", of_oauth[] = "oauth_";

    if (strncmp(token, start, strlen(start)) != 0)
        return false;
    token += strlen(start);
    if (strncmp(token, of_oauth, strlen(of_oauth)) == 0)
        token += strlen(of_oauth);
    return strlen(token) == TOKEN_CHARS && token[strspn(token, HEX_LOWER)] == '\0';
}

/* --- the answer --- */

/* Of P-256; scalar NULL: a public key. OpenSSL refuses a point that is not on the curve. */
static EVP_PKEY *make_key(const unsigned char point[POINT_BYTES], const unsigned char *scalar)
{
    AUTO(context_freep) EVP_PKEY_CTX *context = EVP_PKEY_CTX_new_from_name(NULL, "EC", NULL);
    OSSL_PARAM_BLD *builder = OSSL_PARAM_BLD_new();
    BIGNUM *number = scalar ? BN_bin2bn(scalar, SCALAR_BYTES, BN_secure_new()) : NULL;
    OSSL_PARAM *values = NULL;
    EVP_PKEY *key = NULL;

    if (context && builder && OSSL_PARAM_BLD_push_utf8_string(builder, OSSL_PKEY_PARAM_GROUP_NAME, "prime256v1", 0) &&
        OSSL_PARAM_BLD_push_octet_string(builder, OSSL_PKEY_PARAM_PUB_KEY, point, POINT_BYTES) &&
        (!scalar || (number && OSSL_PARAM_BLD_push_BN(builder, OSSL_PKEY_PARAM_PRIV_KEY, number))))
        values = OSSL_PARAM_BLD_to_param(builder);
    if (values && EVP_PKEY_fromdata_init(context) == 1)
        (void)!EVP_PKEY_fromdata(context, &key, scalar ? EVP_PKEY_KEYPAIR : EVP_PKEY_PUBLIC_KEY, values);
    OSSL_PARAM_free(values);
    OSSL_PARAM_BLD_free(builder);
    BN_clear_free(number);
    return key;
}

static bool is_on_curve(EVP_PKEY *key)
{
    AUTO(context_freep) EVP_PKEY_CTX *context = EVP_PKEY_CTX_new_from_pkey(NULL, key, NULL);

    return context && EVP_PKEY_public_check(context) == 1;
}

/* The x coordinate of the shared point. */
static bool derive(EVP_PKEY *own, EVP_PKEY *of_peer, unsigned char secret[SCALAR_BYTES])
{
    AUTO(context_freep) EVP_PKEY_CTX *context = EVP_PKEY_CTX_new_from_pkey(NULL, own, NULL);
    size_t n = SCALAR_BYTES;

    return context && EVP_PKEY_derive_init(context) == 1 && EVP_PKEY_derive_set_peer(context, of_peer) == 1 &&
           EVP_PKEY_derive(context, secret, &n) == 1 && n == SCALAR_BYTES;
}

struct encrypted {
    unsigned char nonce[NONCE_BYTES], bytes[CIPHER_BYTES_MAX];
    size_t n; /* of bytes, the tag at the end counts */
};

static bool decrypt(const unsigned char key[SCALAR_BYTES], struct encrypted *s, char out[CIPHER_BYTES_MAX + 1])
{
    AUTO(cipher_freep) EVP_CIPHER_CTX *cipher = EVP_CIPHER_CTX_new();
    int n = 0, n_end = 0;

    if (!cipher || EVP_DecryptInit_ex(cipher, EVP_aes_256_gcm(), NULL, key, s->nonce) != 1 ||
        EVP_DecryptUpdate(cipher, (unsigned char *)out, &n, s->bytes, (int)(s->n - TAG_BYTES)) != 1 ||
        EVP_CIPHER_CTX_ctrl(cipher, EVP_CTRL_GCM_SET_TAG, TAG_BYTES, s->bytes + s->n - TAG_BYTES) != 1 ||
        EVP_DecryptFinal_ex(cipher, (unsigned char *)out + n, &n_end) != 1)
        return false;
    out[n + n_end] = '\0';
    if (memchr(out, '\0', (size_t)n + (size_t)n_end)) /* no token */
        out[0] = '\0';
    return true;
}

static int open_encrypted(const struct account_login *l, const unsigned char point[POINT_BYTES], struct encrypted *s,
                          char out[CIPHER_BYTES_MAX + 1], struct err *e)
{
    unsigned char scalar[SCALAR_BYTES], own_point[POINT_BYTES], secret[SCALAR_BYTES];
    bool is_read = unhex(l->private_hex, scalar, sizeof(scalar)) && unhex(l->public_hex, own_point, sizeof(own_point));
    AUTO(key_freep) EVP_PKEY *own = is_read ? make_key(own_point, scalar) : NULL;
    AUTO(key_freep) EVP_PKEY *of_peer = make_key(point, NULL);
    int r = 0;

    if (!own)
        r = err_login(e, "its key pair is damaged.");
    else if (!of_peer || !is_on_curve(of_peer))
        r = err_login(e, "the service's public key is no point of the curve P-256.");
    else if (!derive(own, of_peer, secret))
        r = err_login(e, "no common key with the service came about.");
    else if (!decrypt(secret, s, out))
        r = err_login(e, "what the service sent was not encrypted for this login, or was changed.");
    secret_wipe(scalar, sizeof(scalar));
    secret_wipe(secret, sizeof(secret));
    return r;
}

struct answer {
    const char *access_token, *public_key, *nonce;
};

static const struct field answer_fields[] = {
    FIELD_STRING(struct answer, access_token, "access_token", FIELD_REQUIRED, .min = 2, .max = HEX_MAX),
    FIELD_STRING(struct answer, public_key, "public_key", FIELD_REQUIRED, .min = ACCOUNT_PUBLIC_HEX,
                 .max = ACCOUNT_PUBLIC_HEX),
    FIELD_STRING(struct answer, nonce, "nonce", FIELD_REQUIRED, .min = 2 * NONCE_BYTES, .max = 2 * NONCE_BYTES),
    FIELD_END,
};

static int read_answer(struct slice json, struct arena *a, struct answer *ret, struct err *e)
{
    struct json_value v;
    struct err why = { 0 };

    if (json.n > LIMIT_HOSTED_REPLY || json_parse(a, json, &v, &why) < 0 || json_type(v) != JSON_OBJECT)
        return err_login(e, "the service's answer is no JSON object.");
    if (fields_read(answer_fields, v, ret, a, "", &why) < 0)
        return err_login(e, arena_printf(a, "in the service's answer %s.", why.text));
    return 0;
}

static int read_encrypted(const struct answer *answer, const char *code, struct encrypted *s,
                          unsigned char point[POINT_BYTES], struct err *e)
{
    s->n = strlen(answer->access_token) / 2;
    if (!unhex(answer->nonce, s->nonce, NONCE_BYTES) || !unhex(answer->public_key, point, POINT_BYTES) ||
        s->n <= TAG_BYTES || !unhex(answer->access_token, s->bytes, s->n))
        return err_login(e, "the service's answer is not written in hexadecimal digits.");
    if (strncasecmp(answer->nonce, code, ACCOUNT_CODE_CHARS) != 0)
        return err_login(e, "the service's answer does not belong to the code.");
    return 0;
}

int account_login_open(const struct account_login *l, const char *code, struct slice json, struct arena *a,
                       const char **ret_token, struct err *e)
{
    struct answer answer = { "", "", "" };
    struct encrypted encrypted = { 0 };
    unsigned char point[POINT_BYTES];
    char token[CIPHER_BYTES_MAX + 1] = "";
    int r = read_answer(json, a, &answer, e);

    if (r == 0)
        r = read_encrypted(&answer, code, &encrypted, point, e);
    if (r == 0)
        r = open_encrypted(l, point, &encrypted, token, e);
    if (r == 0 && !account_token_is_valid(token))
        r = err_login(e, "what the service sent is no token of an account.");
    if (r == 0)
        *ret_token = arena_strdup(a, token);
    secret_wipe(token, sizeof(token));
    return r;
}

#include "mcp/oauth_wire.h"

#include "base/buf.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/visible.h"
#include "mcp/oauth_key.h"
#include "net/url.h"

#include <string.h>
#include <strings.h>

enum { SHOWN_BYTES = 300 };

static int err_login(struct err *e, const char *why)
{
    return err_set(e, -EPROTO, "MCP_LOGIN_FAILED", "%s", why);
}

/* ---- challenges ---- */

static bool is_token_char(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
           (c && strchr("!#$%&'*+-.^_`|~", c));
}

static const char *skip_blanks(const char *at)
{
    while (*at == ' ' || *at == '\t' || *at == ',')
        at++;
    return at;
}

static size_t token_length(const char *at)
{
    size_t n = 0;

    while (is_token_char(at[n]))
        n++;
    return n;
}

/* A quoted string (RFC 9110 section 5.6.4) or a token; *ret in the arena. Returns where it ends. */
static const char *read_value(struct arena *a, const char *at, const char **ret)
{
    char *text, *out;

    if (*at != '"') {
        size_t n = strcspn(at, " \t,");

        *ret = arena_strndup(a, at, n);
        return at + n;
    }
    out = text = arena_alloc(a, strlen(at));
    for (at++; *at && *at != '"'; at++) {
        if (*at == '\\' && at[1])
            at++;
        *out++ = *at;
    }
    *ret = text;
    return *at ? at + 1 : at;
}

/* Where the value begins; NULL: the word is no parameter. */
static const char *skip_equals(const char *at)
{
    at += strspn(at, " \t");
    return *at == '=' ? at + 1 + strspn(at + 1, " \t") : NULL;
}

static void take_param(struct mcp_challenge *c, struct slice name, const char *value)
{
    const struct {
        const char *name, **to;
    } known[] = { { "resource_metadata", &c->resource_metadata }, { "scope", &c->scope }, { "error", &c->error } };

    for (size_t i = 0; i < ARRAY_SIZE(known); i++)
        if (name.n == strlen(known[i].name) && strncasecmp(name.p, known[i].name, name.n) == 0 && !*known[i].to)
            *known[i].to = value;
}

void mcp_challenge_read(struct arena *a, const char *text, struct mcp_challenge *ret)
{
    const char *at = skip_blanks(text), *value, *after;
    bool is_bearer = false;

    *ret = (struct mcp_challenge){ 0 };
    while (*at) {
        struct slice word = { at, token_length(at) };

        if (word.n == 0) {
            at = skip_blanks(at + 1);
            continue;
        }
        after = skip_equals(at + word.n);
        if (after && (*after == '"' || is_token_char(*after))) {
            at = read_value(a, after, &value);
            if (is_bearer)
                take_param(ret, word, value);
        } else {
            is_bearer = word.n == 6 && strncasecmp(word.p, "Bearer", 6) == 0;
            at += word.n;
        }
        at = skip_blanks(at);
    }
}

/* ---- JSON ---- */

static int parse_object(struct arena *a, struct slice json, const char *what, struct json_value *ret, struct err *e)
{
    if (json.n > LIMIT_MCP_OAUTH_REPLY || json_parse(a, json, ret, NULL) < 0 || json_type(*ret) != JSON_OBJECT)
        return err_set(e, -EPROTO, "MCP_LOGIN_FAILED", "%s is no JSON object.", what);
    return 0;
}

/* A text without controls of at most max bytes; NULL for everything else. */
static const char *text_of(struct json_value v, const char *name, size_t max)
{
    const char *text = json_cstr(json_get(v, name));
    size_t n = text ? strlen(text) : 0;

    if (n == 0 || n > max)
        return NULL;
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)text[i] < 0x20 || text[i] == 0x7f)
            return NULL;
    return text;
}

/* An http or https URL; NULL for everything else. */
static const char *url_in(struct arena *a, struct json_value v, const char *name)
{
    const char *text = text_of(v, name, LIMIT_MCP_TARGET_URI_BYTES);
    struct url url;

    return text && !strchr(text, '#') && url_parse(a, text, &url, NULL) == 0 ? text : NULL;
}

static bool has_text(struct json_value list, const char *wanted)
{
    struct json_value item;
    struct slice key;

    for (struct json_iter it = json_iter(list); json_type(list) == JSON_ARRAY && json_next(&it, &key, &item);)
        if (slice_eq_str(json_string(item), wanted))
            return true;
    return false;
}

/* RFC 6749 section 3.3. */
static bool is_scope_word(struct slice word)
{
    for (size_t i = 0; i < word.n; i++)
        if (word.p[i] < 0x21 || word.p[i] > 0x7e || word.p[i] == '"' || word.p[i] == '\\')
            return false;
    return word.n > 0;
}

/* A word for which there is no room is left out whole. */
static void add_word(struct buf *out, struct slice word)
{
    size_t n_blank = out->n > 0 ? 1 : 0;

    if (out->n + n_blank + word.n > LIMIT_MCP_SCOPE_BYTES)
        return;
    buf_add(out, " ", n_blank);
    buf_add_slice(out, word);
}

static const char *scopes_of(struct arena *a, struct json_value list)
{
    struct json_value item;
    struct slice key;
    struct buf out;

    if (json_type(list) != JSON_ARRAY)
        return NULL;
    buf_init(&out, LIMIT_MCP_SCOPE_BYTES);
    for (struct json_iter it = json_iter(list); json_next(&it, &key, &item);)
        if (is_scope_word(json_string(item)))
            add_word(&out, json_string(item));
    return buf_to_arena(&out, a);
}

static bool has_word(struct slice list, struct slice word)
{
    for (size_t at = 0; at < list.n;) {
        const char *space = memchr(list.p + at, ' ', list.n - at);
        size_t n = space ? (size_t)(space - list.p) - at : list.n - at;

        if (slice_eq((struct slice){ list.p + at, n }, word))
            return true;
        at += n + 1;
    }
    return false;
}

static void add_words(struct buf *out, const char *list)
{
    size_t n = list ? strnlen(list, LIMIT_MCP_SCOPE_BYTES) : 0;

    for (size_t at = 0; at < n;) {
        size_t length = strcspn(list + at, " ");
        struct slice word = { list + at, length };

        if (at + length <= n && is_scope_word(word) && !has_word(buf_slice(out), word))
            add_word(out, word);
        at += length + 1;
    }
}

const char *mcp_scope_union(struct arena *a, const char *one, const char *other)
{
    struct buf out;

    buf_init(&out, LIMIT_MCP_SCOPE_BYTES);
    add_words(&out, one);
    add_words(&out, other);
    return out.n > 0 ? buf_to_arena(&out, a) : NULL;
}

/* ---- metadata of a resource ---- */

int mcp_origin(struct arena *a, const char *url, const char **ret, struct err *e)
{
    struct url parsed;
    int r = url_parse(a, url, &parsed, e);

    if (r < 0)
        return r;
    *ret = arena_printf(a, strchr(parsed.host, ':') ? "%s://[%s]" : "%s://%s", parsed.scheme, parsed.host);
    if (parsed.port != (parsed.is_tls ? 443 : 80))
        *ret = arena_printf(a, "%s:%u", *ret, parsed.port);
    return 0;
}

bool mcp_is_same_origin(struct arena *a, const char *one, const char *other)
{
    const char *first, *second;

    return mcp_origin(a, one, &first, NULL) == 0 && mcp_origin(a, other, &second, NULL) == 0 &&
           strcasecmp(first, second) == 0;
}

/* The path without query; "/" when there is none. */
static int path_of(struct arena *a, const char *url, char **ret, struct err *e)
{
    int r = url_target(a, url, ret, e);

    if (r == 0)
        (*ret)[strcspn(*ret, "?")] = '\0';
    return r;
}

/* RFC 9728 section 3.3, and as MCP's own clients do: a resource may hold the whole tree below it. */
static bool holds(struct arena *a, const char *resource, const char *url)
{
    char *outer, *inner;
    size_t n;

    if (path_of(a, resource, &outer, NULL) < 0 || path_of(a, url, &inner, NULL) < 0)
        return false;
    n = strlen(outer);
    if (n > 0 && outer[n - 1] == '/')
        n--;
    return mcp_is_same_origin(a, resource, url) && strncmp(outer, inner, n) == 0 &&
           (inner[n] == '\0' || inner[n] == '/');
}

int mcp_resource_read(struct arena *a, struct slice json, const char *url, struct mcp_resource_metadata *ret,
                      struct err *e)
{
    struct mcp_resource_metadata read = { 0 };
    struct json_value v = { 0 }, item;
    struct slice key;
    int r = parse_object(a, json, "The metadata of the MCP server (RFC 9728)", &v, e);

    if (r < 0)
        return r;
    read.resource = url_in(a, v, "resource");
    if (!read.resource || !holds(a, read.resource, url))
        return err_set(e, -EPROTO, "MCP_LOGIN_FAILED",
                       "The metadata of the MCP server is for another server (%.200s): nobody is logged in.",
                       read.resource ? read.resource : "no `resource`");
    read.issuers = arena_array(a, LIMIT_MCP_ISSUERS, sizeof(*read.issuers));
    for (struct json_iter it = json_iter(json_get(v, "authorization_servers"));
         read.n_issuers < LIMIT_MCP_ISSUERS && json_next(&it, &key, &item);) {
        const char *issuer = json_cstr(item);
        struct url parsed;

        if (issuer && strlen(issuer) <= LIMIT_MCP_TARGET_URI_BYTES && !strpbrk(issuer, "?#") &&
            url_parse(a, issuer, &parsed, NULL) == 0)
            read.issuers[read.n_issuers++] = issuer;
    }
    read.scope = scopes_of(a, json_get(v, "scopes_supported"));
    if (read.n_issuers == 0)
        return err_login(e, "The metadata of the MCP server names no authorization server.");
    *ret = read;
    return 0;
}

/* ---- metadata of an authorization server ---- */

static size_t length_without_slash(const char *text)
{
    size_t n = strlen(text);

    return n > 0 && text[n - 1] == '/' ? n - 1 : n;
}

static bool is_same_issuer(const char *one, const char *other)
{
    size_t n = length_without_slash(one);

    return n == length_without_slash(other) && strncmp(one, other, n) == 0;
}

static unsigned methods_of(struct json_value list)
{
    return (has_text(list, "none") ? MCP_AUTH_NONE : 0U) |
           (has_text(list, "client_secret_basic") ? MCP_AUTH_BASIC : 0U) |
           (has_text(list, "client_secret_post") ? MCP_AUTH_POST : 0U) |
           (has_text(list, "private_key_jwt") ? MCP_AUTH_KEY : 0U);
}

static unsigned algs_of(struct json_value list)
{
    return (has_text(list, "ES256") ? MCP_ALG_ES256 : 0U) | (has_text(list, "RS256") ? MCP_ALG_RS256 : 0U) |
           (has_text(list, "PS256") ? MCP_ALG_PS256 : 0U) |
           (json_type(list) == JSON_ARRAY && json_length(list) > 0 ? MCP_ALG_OTHER : 0U);
}

int mcp_issuer_read(struct arena *a, struct slice json, const char *issuer, struct mcp_issuer_metadata *ret,
                    struct err *e)
{
    struct mcp_issuer_metadata read = { 0 };
    struct json_value v = { 0 };
    int r = parse_object(a, json, "The metadata of the authorization server", &v, e);

    if (r < 0)
        return r;
    read.issuer = url_in(a, v, "issuer");
    if (!read.issuer || !is_same_issuer(read.issuer, issuer))
        return err_set(e, -EPROTO, "MCP_LOGIN_FAILED",
                       "The metadata of the authorization server %.200s is for another one (%.200s).", issuer,
                       read.issuer ? read.issuer : "no `issuer`");
    read.authorization_endpoint = url_in(a, v, "authorization_endpoint");
    read.token_endpoint = url_in(a, v, "token_endpoint");
    read.registration_endpoint = url_in(a, v, "registration_endpoint");
    read.revocation_endpoint = url_in(a, v, "revocation_endpoint");
    read.auth_methods = methods_of(json_get(v, "token_endpoint_auth_methods_supported"));
    read.signing_algs = algs_of(json_get(v, "token_endpoint_auth_signing_alg_values_supported"));
    read.has_s256 = has_text(json_get(v, "code_challenge_methods_supported"), "S256");
    read.sends_iss = json_bool(json_get(v, "authorization_response_iss_parameter_supported"));
    read.takes_documents = json_bool(json_get(v, "client_id_metadata_document_supported"));
    read.has_offline_access = has_text(json_get(v, "scopes_supported"), "offline_access");
    if (!read.token_endpoint)
        return err_login(e, "The metadata of the authorization server names no address for tokens.");
    *ret = read;
    return 0;
}

/* ---- registrations and tokens ---- */

static bool is_visible_text(const char *text, size_t max)
{
    size_t n = text ? strlen(text) : 0;

    for (size_t i = 0; i < n; i++)
        if (text[i] < 0x20 || text[i] > 0x7e)
            return false;
    return n > 0 && n <= max;
}

static bool is_token_text(const char *text)
{
    return is_visible_text(text, LIMIT_MCP_TOKEN_BYTES) && !strchr(text, ' ');
}

static unsigned method_of(const char *name)
{
    if (!name)
        return 0;
    if (strcmp(name, "none") == 0)
        return MCP_AUTH_NONE;
    if (strcmp(name, "client_secret_basic") == 0)
        return MCP_AUTH_BASIC;
    return strcmp(name, "client_secret_post") == 0 ? MCP_AUTH_POST : 0;
}

int mcp_registration_read(struct arena *a, struct slice json, struct mcp_registration *ret, struct err *e)
{
    struct mcp_registration read = { 0 };
    struct json_value v = { 0 };
    int r = parse_object(a, json, "The registration at the authorization server", &v, e);

    if (r < 0)
        return r;
    read.client_id = json_cstr(json_get(v, "client_id"));
    read.client_secret = json_cstr(json_get(v, "client_secret"));
    read.auth_method = method_of(json_cstr(json_get(v, "token_endpoint_auth_method")));
    read.secret_expires_s = MAX(json_int(json_get(v, "client_secret_expires_at")), (int64_t)0);
    if (read.client_secret && !*read.client_secret)
        read.client_secret = NULL;
    if (!is_visible_text(read.client_id, LIMIT_MCP_CLIENT_BYTES) ||
        (read.client_secret && !is_visible_text(read.client_secret, LIMIT_MCP_CLIENT_BYTES)))
        return err_login(e, "The authorization server registered this client without a usable `client_id`.");
    *ret = read;
    return 0;
}

static int64_t seconds_of(double s)
{
    static const double longest_s = 10 * 365 * 86400.0;

    return s > 0 ? (int64_t)MIN(s, longest_s) : 0;
}

int mcp_tokens_read(struct arena *a, struct slice json, struct mcp_tokens *ret, struct err *e)
{
    struct mcp_tokens read = { 0 };
    struct json_value v = { 0 };
    const char *type;
    int r = parse_object(a, json, "The answer of the authorization server", &v, e);

    if (r < 0)
        return r;
    read.access_token = json_cstr(json_get(v, "access_token"));
    read.refresh_token = json_cstr(json_get(v, "refresh_token"));
    read.id_token = text_of(v, "id_token", LIMIT_MCP_TOKEN_BYTES);
    read.scope = text_of(v, "scope", LIMIT_MCP_SCOPE_BYTES);
    read.expires_in_s = seconds_of(json_double(json_get(v, "expires_in")));
    type = json_cstr(json_get(v, "token_type"));
    if (!is_token_text(read.access_token) ||
        (read.refresh_token && *read.refresh_token && !is_token_text(read.refresh_token)))
        return err_login(e, "The authorization server sent no usable token.");
    if (type && strcasecmp(type, "Bearer") != 0)
        return err_login(e, "The authorization server sent a token of another type than Bearer.");
    if (read.refresh_token && !*read.refresh_token)
        read.refresh_token = NULL;
    *ret = read;
    return 0;
}

int mcp_exchange_read(struct arena *a, struct slice json, const char **ret_token, struct err *e)
{
    struct json_value v = { 0 };
    const char *token, *type, *issued;
    int r = parse_object(a, json, "The answer of the identity provider", &v, e);

    if (r < 0)
        return r;
    token = json_cstr(json_get(v, "access_token"));
    type = json_cstr(json_get(v, "token_type"));
    issued = json_cstr(json_get(v, "issued_token_type"));
    if (!issued || strcmp(issued, MCP_TYPE_ID_JAG) != 0 || !type || strcasecmp(type, "N_A") != 0)
        return err_login(e, "The identity provider exchanged the id token for another token than an ID-JAG.");
    if (!is_token_text(token))
        return err_login(e, "The identity provider sent no usable ID-JAG.");
    *ret_token = token;
    return 0;
}

static const char *shown(struct arena *a, const char *text)
{
    struct buf out;

    if (!text || !*text)
        return NULL;
    buf_init(&out, 8 * SHOWN_BYTES);
    visible_add(&out, (struct slice){ text, strnlen(text, SHOWN_BYTES) }, VISIBLE_LINE);
    return buf_to_arena(&out, a);
}

void mcp_oauth_error_read(struct arena *a, struct slice json, struct mcp_oauth_error *ret)
{
    struct json_value v;

    *ret = (struct mcp_oauth_error){ 0 };
    if (json.n > LIMIT_MCP_OAUTH_REPLY || json_parse(a, json, &v, NULL) < 0)
        return;
    ret->error = shown(a, json_cstr(json_get(v, "error")));
    ret->description = shown(a, json_cstr(json_get(v, "error_description")));
}

/* ---- where metadata lies ---- */

static void add_place(struct mcp_places *places, const char *url)
{
    places->urls[places->n++] = url;
}

/* Origin and path of a URL; the path is "" instead of "/", and has no slash at its end. */
static int split(struct arena *a, const char *url, const char **ret_origin, char **ret_path, struct err *e)
{
    int r = mcp_origin(a, url, ret_origin, e);

    if (r == 0)
        r = path_of(a, url, ret_path, e);
    if (r == 0)
        (*ret_path)[length_without_slash(*ret_path)] = '\0';
    return r;
}

int mcp_resource_places(struct arena *a, const char *url, struct mcp_places *ret, struct err *e)
{
    static const char known[] = "/.well-known/oauth-protected-resource";
    const char *origin;
    char *path;
    int r = split(a, url, &origin, &path, e);

    if (r < 0)
        return r;
    *ret = (struct mcp_places){ 0 };
    if (*path)
        add_place(ret, arena_printf(a, "%s%s%s", origin, known, path));
    add_place(ret, arena_printf(a, "%s%s", origin, known));
    return 0;
}

int mcp_issuer_places(struct arena *a, const char *issuer, struct mcp_places *ret, struct err *e)
{
    static const char oauth[] = "/.well-known/oauth-authorization-server",
                      openid[] = "/.well-known/openid-configuration";
    const char *origin;
    char *path;
    int r = split(a, issuer, &origin, &path, e);

    if (r < 0)
        return r;
    *ret = (struct mcp_places){ 0 };
    add_place(ret, arena_printf(a, "%s%s%s", origin, oauth, path));
    add_place(ret, arena_printf(a, "%s%s%s", origin, openid, path));
    if (*path)
        add_place(ret, arena_printf(a, "%s%s%s", origin, path, openid));
    return 0;
}

/* Turns an upstream's refusal into this service's codes and a sentence that says what to do (decision D8). */
#include "base/utf8.h"
#include "llm/protocols/wire.h"

#include <ctype.h>
#include <string.h>

enum { SECRET_AT_LEAST = 4 /* shorter secrets occur in ordinary words */ };

static bool is_code(struct json_value root, const char *code)
{
    return slice_eq_str(json_string(json_get(json_get(root, "error"), "code")), code) ||
           slice_eq_str(json_string(json_get(root, "type")), code);
}

static bool is_about_model(int status, struct json_value root, const char *words)
{
    static const char *const signs[] = { "not a valid model", "does not exist", "invalid model", "model not exist",
                                         "unknown model" };

    if (is_code(root, "model_not_found") || is_code(root, "invalid_model") || is_code(root, "DeploymentNotFound"))
        return true;
    if (!strcasestr(words, "model"))
        return false;
    for (size_t i = 0; i < ARRAY_SIZE(signs); i++)
        if (strcasestr(words, signs[i]))
            return true;
    return status == 404;
}

/* The quote is cut at a maximum length: a part of a secret at the cut is hidden too. */
static void hide_at_end(struct err *e, const char *secret, size_t n)
{
    size_t n_text = strlen(e->text);

    for (size_t n_left = MIN(n - 1, n_text); n_left >= SECRET_AT_LEAST; n_left--)
        if (memcmp(e->text + n_text - n_left, secret, n_left) == 0) {
            memcpy(e->text + n_text - n_left, "****", 5);
            return;
        }
}

static void hide(struct err *e, const char *secret)
{
    size_t n = secret ? strlen(secret) : 0;

    for (char *at = e->text; n >= SECRET_AT_LEAST && (at = strstr(at, secret)); at += 4) {
        memmove(at + 4, at + n, strlen(at + n) + 1);
        memcpy(at, "****", 4);
    }
    if (n > SECRET_AT_LEAST)
        hide_at_end(e, secret, n);
}

void llm_hide_secrets(const struct llm_account *acc, struct err *e)
{
    if (!e)
        return;
    hide(e, acc->api_key);
    for (size_t i = 0; i < acc->n_headers; i++)
        hide(e, acc->headers[i].value);
}

/* Apps read this error too, so it does not show the provider's address. */
static int err_no_address(const struct llm_account *acc, const char *words, struct err *e)
{
    const char *url = acc->base_url ? acc->base_url : "", *version = acc->preset->protocol->version_path;

    if (version && !memmem(url, strcspn(url, "?"), version, strlen(version)))
        return err_set(e, -EIO, "LLM_ERROR", "%s has no such address (404): its base URL probably lacks %s at its end.",
                       acc->name, version);
    return err_set(e, -EIO, "LLM_ERROR", "%s has no such address (404): is its base URL right?%s%.*s", acc->name,
                   words ? " It says: " : "", WIRE_QUOTED, words ? words : "");
}

/* The last row is for all other statuses. */
static int err(const struct llm_account *acc, int status, const char *words, struct err *e)
{
    static const struct {
        int from, to, r;
        const char *code, *what;
    } rows[] = {
        { 401, 401, -EIO, "LLM_ERROR", "refuses the API key" },
        { 402, 402, -EIO, "LLM_ERROR", "wants to be paid first" },
        { 403, 403, -EIO, "LLM_ERROR", "says that this API key may not do this" },
        { 408, 408, -EAGAIN, "LLM_ERROR", "fails" },
        { 413, 413, -EIO, "LLM_ERROR", "finds the request too large" },
        { 429, 429, -EBUSY, "RATE_LIMIT", "takes no more requests for now" },
        { 500, 999, -EAGAIN, "LLM_ERROR", "fails" },
        { 0, 999, -EIO, "LLM_ERROR", "refuses the request" },
    };
    size_t i = 0;

    if (status == 404)
        return err_no_address(acc, words, e);
    if (status >= 300 && status < 400)
        return err_set(e, -EIO, "LLM_ERROR",
                       "%s answers with a redirect (%d): give the address it points to as base URL.", acc->name,
                       status);
    while (i + 1 < ARRAY_SIZE(rows) && (status < rows[i].from || status > rows[i].to))
        i++;
    return err_set(e, rows[i].r, rows[i].code, "%s %s (%d)%s%.*s", acc->name, rows[i].what, status,
                   words ? ": " : " and gives no reason.", WIRE_QUOTED, words ? words : "");
}

/* Gateways and small servers answer in plain text, which is quoted; web pages and broken JSON are not. NULL: nothing to
 * quote. */
static const char *plain_words(struct arena *a, struct slice body)
{
    while (body.n > 0 && isspace((unsigned char)body.p[0]))
        body = (struct slice){ body.p + 1, body.n - 1 };
    while (body.n > 0 && isspace((unsigned char)body.p[body.n - 1]))
        body.n--;
    if (body.n == 0 || body.n > WIRE_QUOTED || strchr("<{[\"", body.p[0]) || !utf8_is_valid(body))
        return NULL;
    for (size_t i = 0; i < body.n; i++)
        if (iscntrl((unsigned char)body.p[i]))
            return NULL;
    return arena_strndup(a, body.p, body.n);
}

int llm_refusal(const struct llm_account *acc, int status, struct slice body, struct err *e)
{
    AUTO(arena_freep) struct arena *scratch = arena_new();
    struct json_value root = { 0 };
    const char *words = json_parse(scratch, body, &root, NULL) == 0 ? wire_words(scratch, root) : NULL;
    int r;

    if (status >= 400 && status < 500 && is_about_model(status, root, words ? words : ""))
        r = err_set(e, -EINVAL, "INVALID_MODEL", "%s has no such model: %.*s", acc->name, WIRE_QUOTED,
                    words ? words : "it gives no reason.");
    else
        r = err(acc, status, words ? words : plain_words(scratch, body), e);
    llm_hide_secrets(acc, e);
    return r;
}

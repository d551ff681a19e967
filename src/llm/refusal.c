/* What an upstream says when it does not answer, in this service's codes and in a sentence that says what to do (decision D8). */
#include "llm/wire.h"

#include <string.h>

enum { QUOTED = 300 };

/* The upstream's own words: {error:{message}}, {error:"..."}, {message}, {detail}; NULL when there are none. */
static const char *words_of(struct json_value root)
{
    struct json_value error = json_get(root, "error");
    const char *const found[] = {
        json_cstr(json_get(error, "message")),
        json_cstr(error),
        json_cstr(json_get(root, "message")),
        json_cstr(json_get(root, "detail")),
    };

    for (size_t i = 0; i < ARRAY_SIZE(found); i++)
        if (found[i] && *found[i])
            return found[i];
    return NULL;
}

static bool is_about_model(int status, struct json_value root, const char *words)
{
    if (slice_eq_str(json_string(json_get(json_get(root, "error"), "code")), "model_not_found"))
        return true;
    if (!words || !strcasestr(words, "model"))
        return false;
    return status == 404 || strcasestr(words, "not a valid model") || strcasestr(words, "does not exist");
}

/* A list of codes in the order they are looked for. */
static int tell(const char *name, int status, const char *words, struct err *e)
{
    if (status == 401 || status == 403)
        return err_set(e, -EIO, "LLM_ERROR", "%s refuses the API key or its rights (%d): %.*s", name, status, QUOTED, words);
    if (status == 429)
        return err_set(e, -EBUSY, "RATE_LIMIT", "%s takes no more requests for now: %.*s", name, QUOTED, words);
    if (status == 404)
        return err_set(e, -EIO, "LLM_ERROR", "%s has no such address (404): is the base URL right? %.*s", name, QUOTED, words);
    if (status >= 300 && status < 400)
        return err_set(e, -EIO, "LLM_ERROR", "%s answers with a redirect (%d): give the address it points to as base URL.", name, status);
    if (status == 408 || status >= 500)
        return err_set(e, -EAGAIN, "LLM_ERROR", "%s fails (%d): %.*s", name, status, QUOTED, words);
    return err_set(e, -EIO, "LLM_ERROR", "%s refuses the request (%d): %.*s", name, status, QUOTED, words);
}

int llm_refusal(const struct llm_account *acc, int status, struct slice body, struct err *e)
{
    AUTO(arena_freep) struct arena *scratch = arena_new();
    struct json_value root = { 0 };
    int r = json_parse(scratch, body, &root, NULL);
    const char *words = r == 0 ? words_of(root) : NULL;

    if (status >= 400 && status < 500 && is_about_model(status, root, words))
        return err_set(e, -EINVAL, "INVALID_MODEL", "%s has no such model: %.*s", acc->name, QUOTED, words);
    return tell(acc->name, status, words ? words : "it gives no reason.", e);
}

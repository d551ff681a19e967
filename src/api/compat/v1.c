#include "api/compat/v1.h"

#include "api/api.h"
#include "api/envelope.h"
#include "api/compat/v1_anthropic_form.h"
#include "api/compat/v1_openai_form.h"
#include "api/resources/llm_chat.h"
#include "embed/lexical.h"
#include "llm/accounts.h"

#include <string.h>

#define LATEST ":latest"

const char *v1_provider_end(const struct request *req, const char *name)
{
    const char *slash = strchr(name, '/'), *provider;

    if (!slash || slash == name)
        return NULL;
    provider = arena_strndup(req->arena, name, (size_t)(slash - name));
    return strcmp(provider, LEXICAL_PROVIDER) == 0 || llm_accounts_find(req->api->llm_accounts, req->arena, provider)
               ? slash
               : NULL;
}

static const char *without_latest(struct arena *a, const char *name)
{
    size_t n = strlen(name), n_tag = strlen(LATEST);

    return n > n_tag && strcmp(name + n - n_tag, LATEST) == 0 ? arena_strndup(a, name, n - n_tag) : NULL;
}

const char *v1_other_tag(struct arena *a, const char *name)
{
    const char *bare = without_latest(a, name);

    return bare || strchr(name, ':') ? bare : arena_printf(a, "%s" LATEST, name);
}

/* If no provider lists the name, the name without its tag is used: services other than Ollama know only that name, and
 * Ollama knows it as well. */
static int find_tagged_owner(const struct request *req, enum provider_capability what, const char *name,
                             struct provider_choice *ret, struct err *e)
{
    const char *bare = without_latest(req->arena, name), *other = v1_other_tag(req->arena, name), *owner;
    struct provider_default def = { 0 };
    int r = provider_default_of(metered_call(req), what, &def, e);

    if (r < 0)
        return r;
    *ret = (struct provider_choice){ NULL, name };
    owner = provider_owner(metered_call(req), what, name, &def, bare);
    if (!owner && other) {
        owner = provider_owner(metered_call(req), what, other, &def, bare);
        ret->model = owner || bare ? other : name;
    }
    if (owner && (!def.provider || strcmp(owner, def.provider) != 0))
        ret->provider = owner; /* the default provider is not named, so that other providers answer when it fails */
    return 0;
}

static bool is_default(const char *name)
{
    return !name || !*name || strcmp(name, "default") == 0;
}

int v1_find_model(const struct request *req, enum provider_capability what, const char *name,
                  struct provider_choice *ret, struct err *e)
{
    const char *slash = is_default(name) ? NULL : v1_provider_end(req, name);

    *ret = (struct provider_choice){ NULL, is_default(name) ? NULL : name };
    if (slash)
        *ret = (struct provider_choice){ arena_strndup(req->arena, name, (size_t)(slash - name)),
                                         slash[1] ? slash + 1 : NULL };
    return 0;
}

static bool is_bare(const struct request *req, const char *name)
{
    return !is_default(name) && !v1_provider_end(req, name);
}

bool v1_waits(const struct request *req, enum provider_capability what, const char *name)
{
    struct provider_choice whom = { 0 };

    if (llm_accounts_wait(req->api->llm_accounts, NULL) ||
        (is_bare(req, name) && provider_model_waits(metered_call(req), what, name, false)))
        return true;
    return what == PROVIDER_CHAT && v1_find_model(req, what, name, &whom, NULL) == 0 &&
           chat_waits(metered_call(req), whom.provider, whom.model);
}

bool v1_tagged_waits(const struct request *req, enum provider_capability what, const char *name)
{
    const char *bare = is_bare(req, name) ? without_latest(req->arena, name) : NULL,
               *other = is_bare(req, name) ? v1_other_tag(req->arena, name) : NULL;
    struct provider_choice whom = { 0 };

    if (llm_accounts_wait(req->api->llm_accounts, NULL) ||
        (is_bare(req, name) && provider_model_waits(metered_call(req), what, name, bare)) ||
        (other && provider_model_waits(metered_call(req), what, other, bare)))
        return true;
    return what == PROVIDER_CHAT && v1_find_tagged_model(req, what, name, &whom, NULL) == 0 &&
           chat_waits(metered_call(req), whom.provider, whom.model);
}

int v1_find_tagged_model(const struct request *req, enum provider_capability what, const char *name,
                         struct provider_choice *ret, struct err *e)
{
    if (is_default(name) || v1_provider_end(req, name))
        return v1_find_model(req, what, name, ret, e);
    return find_tagged_owner(req, what, name, ret, e);
}

int v1_error_status(int status, const struct err *e)
{
    bool is_missing = strcmp(e->code, "INVALID_MODEL") == 0 || strcmp(e->code, "PROVIDER_UNAVAILABLE") == 0;

    return status == 400 && is_missing ? 404 : status;
}

const char *v1_error_text(const struct http_exchange *x, const struct err *e)
{
    if (strcmp(e->code, "MISSING_APP_ID") == 0)
        return "This needs a developer key of Hearth as API key (`hearth key new` makes one), or the id of an app in the header x-app-id.";
    if (strcmp(e->code, "NOT_FOUND") == 0 && x)
        return arena_printf(x->arena, "There is no %s %.200s; docs/compatible-api.md lists what there is.",
                            http_method_name(x->request.method), x->request.path);
    for (unsigned i = 0; i < MIN(e->n_extras, ERR_MAX_EXTRAS); i++)
        if (strcmp(e->extras[i].key, "message") == 0)
            return e->extras[i].value; /* this names the permission: `text` is only a word (decision D4) */
    return e->text;
}

static bool is_below(const char *path, const char *head)
{
    size_t n = strlen(head);

    return strncmp(path, head, n) == 0 && (path[n] == '\0' || path[n] == '/');
}

const struct error_form *v1_error_form(const struct http_request *req)
{
    const char *path = req->path;

    if (is_below(path, "/api"))
        path += strlen("/api");
    if (!is_below(path, "/v1"))
        return NULL;
    return is_below(path, "/v1/messages") || http_header(req, "anthropic-version") ? &v1_anthropic_error
                                                                                   : &v1_openai_error;
}

const struct field v1_violation_shape[] = { SHAPE_STRING("field"), SHAPE_STRING("rule"), FIELD_END };

void v1_write_error_details(struct json_writer *w, const struct err *e)
{
    json_add_string(w, "hearth_code", e->code);
    for (unsigned i = 0; i < MIN(e->n_extras, ERR_MAX_EXTRAS); i++)
        if (strcmp(e->extras[i].key, "message") != 0)
            json_add_string(w, e->extras[i].key, e->extras[i].value);
    error_write_fields(w, e);
}

#include "api/v1.h"

#include "api/api.h"
#include "api/envelope.h"
#include "embed/lexical.h"
#include "llm/accounts.h"

#include <string.h>

const char *v1_provider_end(const struct request *req, const char *name)
{
    const char *slash = strchr(name, '/'), *provider;

    if (!slash || slash == name)
        return NULL;
    provider = arena_strndup(req->arena, name, (size_t)(slash - name));
    return strcmp(provider, LEXICAL_PROVIDER) == 0 || llm_accounts_find(req->api->llm_accounts, req->arena, provider) ? slash : NULL;
}

struct candidates { struct llm_seat *seats[LIMIT_LLM_ACCOUNTS]; size_t n; };

/* Those that can do it, the default one first. */
static void find_candidates(const struct request *req, enum provider_capability what, const char *first, struct candidates *ret)
{
    size_t n;
    struct llm_seat **all = llm_accounts_list(req->api->llm_accounts, req->arena, &n);

    ret->n = 0;
    for (size_t i = 0; i < n; i++)
        if (provider_can(req, what, all[i]->account.name))
            ret->seats[ret->n++] = all[i];
    for (size_t i = 1; first && i < ret->n; i++)
        if (strcmp(ret->seats[i]->account.name, first) == 0) {
            struct llm_seat *seat = ret->seats[i];

            memmove(ret->seats + 1, ret->seats, i * sizeof(seat));
            ret->seats[0] = seat;
        }
}

/* What an account was set up with is known without asking it for its list. */
static const char *known_owner(const struct candidates *c, enum provider_capability what, const char *model)
{
    for (size_t i = 0; i < c->n; i++) {
        const struct llm_account *acc = &c->seats[i]->account;
        const char *own = what == PROVIDER_CHAT ? acc->model : acc->embed_model;

        if (own && strcmp(own, model) == 0)
            return acc->name;
    }
    return NULL;
}

static const char *owner_of(struct request *req, enum provider_capability what, const char *model, const char *first)
{
    struct candidates c;
    const char *owner;

    find_candidates(req, what, first, &c);
    owner = known_owner(&c, what, model);
    for (size_t i = 0; !owner && c.n > 1 && i < c.n; i++)
        if (llm_seat_knows_model(c.seats[i], req->api->settings, req->arena, &req->exchange->is_gone, model) > 0)
            owner = c.seats[i]->account.name;
    return owner;
}

/* The default provider is not named, so that others answer when it fails. */
static int find_owner(struct request *req, enum provider_capability what, const char *model, struct provider_choice *ret, struct err *e)
{
    struct provider_default def = { 0 };
    const char *owner;
    int r = provider_default_of(req, what, &def, e);

    if (r < 0)
        return r;
    if (what == PROVIDER_EMBED && strcmp(model, LEXICAL_MODEL) == 0)
        owner = LEXICAL_PROVIDER;
    else
        owner = owner_of(req, what, model, def.provider);
    *ret = (struct provider_choice){ owner && (!def.provider || strcmp(owner, def.provider) != 0) ? owner : NULL, model };
    return 0;
}

static bool is_default(const char *name)
{
    return !name || !*name || strcmp(name, "default") == 0;
}

bool v1_waits(const struct request *req, enum provider_capability what, const char *name)
{
    struct candidates c;

    if (is_default(name) || v1_provider_end(req, name))
        return false;
    find_candidates(req, what, NULL, &c);
    return c.n > 1 && !known_owner(&c, what, name);
}

int v1_find_model(struct request *req, enum provider_capability what, const char *name, struct provider_choice *ret, struct err *e)
{
    const char *slash;

    *ret = (struct provider_choice){ NULL, NULL };
    if (is_default(name))
        return 0;
    slash = v1_provider_end(req, name);
    if (!slash)
        return find_owner(req, what, name, ret, e);
    *ret = (struct provider_choice){ arena_strndup(req->arena, name, (size_t)(slash - name)), slash[1] ? slash + 1 : NULL };
    return 0;
}

int v1_error_status(int status, const struct err *e)
{
    bool is_missing = strcmp(e->code, "INVALID_MODEL") == 0 || strcmp(e->code, "PROVIDER_UNAVAILABLE") == 0;

    return status == 400 && is_missing ? 404 : status;
}

const char *v1_error_text(const struct http_exchange *x, const struct err *e)
{
    bool has_key = x && (http_header(&x->request, "authorization") || http_header(&x->request, "x-api-key"));

    if (strcmp(e->code, "MISSING_APP_ID") == 0 && has_key)
        return "The API key is no developer key of this Hearth, or it was revoked; `hearth key new` makes one.";
    if (strcmp(e->code, "MISSING_APP_ID") == 0)
        return "This needs a developer key of Hearth as API key (`hearth key new` makes one), or the id of an app in the header x-app-id.";
    for (unsigned i = 0; i < MIN(e->n_extras, ERR_MAX_EXTRAS); i++)
        if (strcmp(e->extras[i].key, "message") == 0)
            return e->extras[i].value;  /* which permission: `text` is only a word (decision D4) */
    return e->text;
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

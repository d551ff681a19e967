#include "api/provider_choice.h"

#include "api/api.h"
#include "embed/lexical.h"
#include "store/provider_choices.h"

const char *const provider_capabilities[] = { [PROVIDER_CHAT] = "chat", [PROVIDER_EMBED] = "embed", NULL };

enum provider_capability provider_capability_of(const char *word)
{
    return word && strcmp(word, provider_capabilities[PROVIDER_EMBED]) == 0 ? PROVIDER_EMBED : PROVIDER_CHAT;
}

bool provider_can(const struct request *req, enum provider_capability what, const char *provider)
{
    struct llm_seat *seat = llm_accounts_find(req->api->llm_accounts, req->arena, provider);

    if (what == PROVIDER_EMBED && strcmp(provider, LEXICAL_PROVIDER) == 0)
        return true;
    return seat && (what == PROVIDER_CHAT ? seat->account.preset->can_chat : seat->account.preset->can_embed);
}

/* ---- what counts when nothing is named ---- */

static const char *setting(const struct request *req, enum setting_id id)
{
    const char *text = settings_string(req->api->settings, req->arena, id);

    return *text ? text : NULL;
}

static struct provider_default default_of_chats(const struct request *req)
{
    const char *provider = setting(req, SETTING_LLM_DEFAULT_PROVIDER);
    struct llm_seat **seats;
    size_t n;

    if (provider && provider_can(req, PROVIDER_CHAT, provider))
        return (struct provider_default){ provider, setting(req, SETTING_LLM_DEFAULT_MODEL), "setting" };
    seats = llm_accounts_list(req->api->llm_accounts, req->arena, &n);
    if (n > 0 && seats[0]->account.preset->can_chat)
        return (struct provider_default){ seats[0]->account.name, NULL, "order" };
    return (struct provider_default){ NULL, NULL, "order" };
}

int provider_default_for(const struct request *req, enum provider_capability what, const char *app_id, struct provider_default *ret, struct err *e)
{
    struct provider_choice_row own = { 0 };
    int r = app_id ? store_provider_choices_get(req->api->store, req->arena, app_id, provider_capabilities[what], &own, e) : 0;

    if (r < 0)
        return r;
    if (own.provider)
        *ret = (struct provider_default){ own.provider, own.model, "app" };
    else if (what == PROVIDER_EMBED)
        *ret = (struct provider_default){ setting(req, SETTING_EMBED_PROVIDER), setting(req, SETTING_EMBED_MODEL), "setting" };
    else
        *ret = default_of_chats(req);
    return 0;
}

int provider_default_of(const struct request *req, enum provider_capability what, struct provider_default *ret, struct err *e)
{
    return provider_default_for(req, what, req->caller->app_id, ret, e);
}

/* ---- one request ---- */

static int check_own(const struct request *req, enum provider_capability what, const char *provider, struct err *e)
{
    const char *app = req->caller->app_name ? req->caller->app_name : req->caller->app_id, *flag = what == PROVIDER_EMBED ? " --for embed" : "";

    if (provider_can(req, what, provider))
        return 0;
    return err_set(e, -EINVAL, "PROVIDER_UNAVAILABLE",
                   "The app %.80s is set to use the provider %.80s, which is not configured; `hearth provider default NAME%s --app %.80s` gives it another.",
                   app, provider, flag, req->caller->app_id);
}

int provider_choose(const struct request *req, enum provider_capability what, const char *provider, const char *model, struct provider_choice *ret,
                    struct err *e)
{
    struct provider_choice choice = { provider && *provider ? provider : NULL, model && *model ? model : NULL };
    struct provider_default def = { 0 };
    bool is_default;
    int r = provider_default_of(req, what, &def, e);

    if (r < 0)
        return r;
    if (what == PROVIDER_CHAT && choice.provider && strcmp(choice.provider, LEXICAL_PROVIDER) == 0)
        return err_set(e, -EINVAL, "PROVIDER_UNAVAILABLE",
                       "The provider " LEXICAL_PROVIDER " makes embeddings and has no chats; `hearth provider list` shows those that have.");
    is_default = def.provider && (!choice.provider || strcmp(choice.provider, def.provider) == 0);
    if (is_default && !choice.model)
        choice.model = def.model;
    if (!choice.provider && def.provider && strcmp(def.origin, "app") == 0) {
        choice.provider = def.provider;
        r = check_own(req, what, def.provider, e);
    } else if (!choice.provider && what == PROVIDER_EMBED)
        choice.provider = def.provider;
    if (r == 0)
        *ret = choice;
    return r;
}

#include "models/provider_choice.h"

#include "embed/lexical.h"
#include "store/tables/provider_choices.h"

const char *const provider_capabilities[] = { [PROVIDER_CHAT] = "chat", [PROVIDER_EMBED] = "embed", NULL };

enum provider_capability provider_capability_of(const char *word)
{
    return word && strcmp(word, provider_capabilities[PROVIDER_EMBED]) == 0 ? PROVIDER_EMBED : PROVIDER_CHAT;
}

static bool can(const struct llm_account *acc, enum provider_capability what)
{
    return what == PROVIDER_CHAT ? acc->preset->can_chat : acc->preset->can_embed;
}

bool provider_can(const struct models_call *call, enum provider_capability what, const char *provider)
{
    struct llm_account_state *state = llm_accounts_find(call->models->llm_accounts, call->arena, provider);

    if (what == PROVIDER_EMBED && strcmp(provider, LEXICAL_PROVIDER) == 0)
        return true;
    return state && can(&state->account, what);
}

/* ---- the default, for requests that name nothing ---- */

static const char *setting(const struct models_call *call, enum setting_id id)
{
    const char *text = settings_string(call->models->settings, call->arena, id);

    return *text ? text : NULL;
}

static struct provider_default default_of_chats(const struct models_call *call)
{
    const char *provider = setting(call, SETTING_LLM_DEFAULT_PROVIDER);
    struct llm_account_state **states;
    size_t n;

    if (provider && provider_can(call, PROVIDER_CHAT, provider))
        return (struct provider_default){ provider, setting(call, SETTING_LLM_DEFAULT_MODEL), "setting" };
    states = llm_accounts_list(call->models->llm_accounts, call->arena, &n);
    if (n > 0 && states[0]->account.preset->can_chat)
        return (struct provider_default){ states[0]->account.name, NULL, "order" };
    return (struct provider_default){ NULL, NULL, "order" };
}

int provider_default_for(const struct models_call *call, enum provider_capability what, const char *app_id,
                         struct provider_default *ret, struct err *e)
{
    struct provider_choice_row own = { 0 };
    int r = app_id ? store_provider_choices_get(call->models->store, call->arena, app_id, provider_capabilities[what],
                                                &own, e)
                   : 0;

    if (r < 0)
        return r;
    if (own.provider)
        *ret = (struct provider_default){ own.provider, own.model, "app" };
    else if (what == PROVIDER_EMBED)
        *ret = (struct provider_default){ setting(call, SETTING_EMBED_PROVIDER), setting(call, SETTING_EMBED_MODEL),
                                          "setting" };
    else
        *ret = default_of_chats(call);
    return 0;
}

int provider_default_of(const struct models_call *call, enum provider_capability what, struct provider_default *ret,
                        struct err *e)
{
    return provider_default_for(call, what, call->caller->app_id, ret, e);
}

/* ---- a model without a provider ---- */

struct llm_account_state **provider_account_states(const struct models_call *call, enum provider_capability what,
                                                   const char *first, size_t *ret_n)
{
    size_t n_all, n = 0;
    struct llm_account_state **states = llm_accounts_list(call->models->llm_accounts, call->arena, &n_all);

    for (size_t i = 0; i < n_all; i++)
        if (can(&states[i]->account, what))
            states[n++] = states[i];
    for (size_t i = 1; first && i < n; i++)
        if (strcmp(states[i]->account.name, first) == 0) {
            struct llm_account_state *state = states[i];

            memmove(states + 1, states, i * sizeof(state));
            states[0] = state;
        }
    *ret_n = n;
    return states;
}

struct search {
    enum provider_capability what;
    const char *model;
    struct provider_default def;
    struct llm_account_state **states;
    size_t n;
};

static void begin_search(const struct models_call *call, enum provider_capability what, const char *model,
                         const struct provider_default *def, struct search *ret)
{
    *ret = (struct search){ .what = what, .model = model, .def = *def };
    ret->states = provider_account_states(call, what, def->provider, &ret->n);
}

static bool is_own_model(const struct llm_account *acc, enum provider_capability what, const char *model)
{
    const char *own = what == PROVIDER_CHAT ? acc->model
                      : acc->embed_model    ? acc->embed_model
                                            : acc->preset->default_embed_model;

    return own && strcmp(own, model) == 0;
}

/* The provider as far as settings and accounts name it, without a request for a list. */
static const char *known_owner(const struct search *s)
{
    if (s->what == PROVIDER_EMBED && strcmp(s->model, LEXICAL_MODEL) == 0)
        return LEXICAL_PROVIDER;
    if (s->def.provider && s->def.model && strcmp(s->def.model, s->model) == 0)
        return s->def.provider;
    for (size_t i = 0; i < s->n; i++)
        if (is_own_model(&s->states[i]->account, s->what, s->model))
            return s->states[i]->account.name;
    return NULL;
}

/* With only one provider no list is needed. For embeddings the built-in provider, which has one other model, counts as
 * a provider. */
static bool needs_lists(const struct search *s)
{
    return s->n > (s->what == PROVIDER_EMBED ? 0 : 1);
}

const char *provider_owner(const struct models_call *call, enum provider_capability what, const char *model,
                           const struct provider_default *def, bool must_look)
{
    const char *owner;
    struct search s;

    begin_search(call, what, model, def, &s);
    owner = known_owner(&s);
    for (size_t i = 0; !owner && (must_look || needs_lists(&s)) && i < s.n; i++)
        if (llm_account_state_knows_model(s.states[i], call->models->settings, call->arena, call->is_gone, model) > 0)
            owner = s.states[i]->account.name;
    return owner;
}

bool provider_model_waits(const struct models_call *call, enum provider_capability what, const char *model,
                          bool must_look)
{
    struct provider_default def = { 0 };
    struct search s;

    if (llm_accounts_wait(call->models->llm_accounts, NULL))
        return true;
    if (provider_default_of(call, what, &def, NULL) < 0)
        return false;
    begin_search(call, what, model, &def, &s);
    if ((!must_look && !needs_lists(&s)) || known_owner(&s))
        return false;
    for (size_t i = 0; i < s.n; i++)
        if (llm_account_state_models_wait(s.states[i]))
            return true;
    return false;
}

/* NULL stands for the default provider: it is not named, so that other providers answer when it fails. */
static const char *provider_of_model(const struct models_call *call, enum provider_capability what, const char *model,
                                     const struct provider_default *def)
{
    const char *owner = provider_owner(call, what, model, def, false);

    return owner && (!def->provider || strcmp(owner, def->provider) != 0) ? owner : NULL;
}

/* ---- one request ---- */

static int check_own(const struct models_call *call, enum provider_capability what, const char *provider, struct err *e)
{
    const char *app = call->caller->app_name ? call->caller->app_name : call->caller->app_id,
               *flag = what == PROVIDER_EMBED ? " --for embed" : "";

    if (provider_can(call, what, provider))
        return 0;
    return err_set(
        e, -EINVAL, "PROVIDER_UNAVAILABLE",
        "The app %.80s is set to use the provider %.80s, which is not configured; `hearth provider default NAME%s --app %.80s` gives it another.",
        app, provider, flag, call->caller->app_id);
}

int provider_choose(const struct models_call *call, enum provider_capability what, const char *provider,
                    const char *model, struct provider_choice *ret, struct err *e)
{
    struct provider_choice choice = { provider && *provider ? provider : NULL, model && *model ? model : NULL };
    struct provider_default def = { 0 };
    bool is_default;
    int r = provider_default_of(call, what, &def, e);

    if (r < 0)
        return r;
    if (what == PROVIDER_CHAT && choice.provider && strcmp(choice.provider, LEXICAL_PROVIDER) == 0)
        return err_set(e, -EINVAL, "PROVIDER_UNAVAILABLE",
                       "The provider " LEXICAL_PROVIDER
                       " makes embeddings and has no chats; `hearth provider list` shows those that have.");
    if (!choice.provider && choice.model)
        choice.provider = provider_of_model(call, what, choice.model, &def);
    is_default = def.provider && (!choice.provider || strcmp(choice.provider, def.provider) == 0);
    if (is_default && !choice.model)
        choice.model = def.model;
    if (!choice.provider && def.provider && strcmp(def.origin, "app") == 0) {
        choice.provider = def.provider;
        r = check_own(call, what, def.provider, e);
    } else if (!choice.provider && what == PROVIDER_EMBED)
        choice.provider = def.provider;
    if (r == 0)
        *ret = choice;
    return r;
}

/* Chooses provider and model for a request: the named provider, else the provider of the named model, else the app's
 * own choice, else the settings' default, else the first of the list. Nothing else decides this. On a worker.
 *
 *     r = provider_choose(call, PROVIDER_CHAT, body->provider, body->model, &choice, e);
 */
#pragma once

#include "models/models.h"

enum provider_capability { PROVIDER_CHAT, PROVIDER_EMBED };
extern const char *const provider_capabilities[]; /* "chat", "embed"; ended by NULL */
/* The capability of one of those words; NULL or "": chat. */
enum provider_capability provider_capability_of(const char *word);

struct provider_choice {
    const char *provider; /* NULL, for chats only: the default provider and its fallbacks */
    const char *model;    /* NULL: the provider's own */
};

/* provider and model are the caller's and may be NULL. A model without a provider belongs to the default provider if
 * that lists it, else to the first provider that lists it, else to the default provider. The model of a default is used
 * with its provider only, even when the caller names that provider. -EINVAL PROVIDER_UNAVAILABLE when the app's choice
 * is a provider that is not configured: no other provider is used instead. */
int provider_choose(const struct models_call *call, enum provider_capability what, const char *provider,
                    const char *model, struct provider_choice *ret, struct err *e) MUST_CHECK;
/* True when finding the provider of a model named alone may wait for the lists of providers: the request then belongs
 * in the long pool. */
bool provider_model_waits(const struct models_call *call, enum provider_capability what, const char *model,
                          bool must_look);
/* The accounts with this capability; the account named `first`, if any, comes first. In the request's arena. */
struct llm_account_state **provider_account_states(const struct models_call *call, enum provider_capability what,
                                                   const char *first, size_t *ret_n);

struct provider_default {
    const char *provider; /* NULL: there is none */
    const char *model;    /* NULL: the provider's own */
    const char *origin;   /* app, setting, order (first of the list) */
};
/* The provider of a model named alone; NULL: unknown. must_look: look it up in lists even when only one provider could
 * have it. */
const char *provider_owner(const struct models_call *call, enum provider_capability what, const char *model,
                           const struct provider_default *def, bool must_look);

/* The default for a caller that names nothing; an app's choice is returned even if that provider is not configured. */
int provider_default_of(const struct models_call *call, enum provider_capability what, struct provider_default *ret,
                        struct err *e) MUST_CHECK;
/* The same for an app; app_id NULL: for apps without their own choice. */
int provider_default_for(const struct models_call *call, enum provider_capability what, const char *app_id,
                         struct provider_default *ret, struct err *e) MUST_CHECK;

/* Is there a provider with this name and capability? The built-in provider can embed. */
bool provider_can(const struct models_call *call, enum provider_capability what, const char *provider);

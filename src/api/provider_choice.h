/* Which provider and model a request gets: the app's own choice, else the settings' default, else the first of the list. The one place
 * that decides; for handlers, on their worker.
 *
 *     r = provider_choose(req, PROVIDER_CHAT, body->provider, body->model, &choice, e);
 */
#pragma once

#include "api/route.h"
#include "llm/accounts.h"

enum provider_capability { PROVIDER_CHAT, PROVIDER_EMBED };
extern const char *const provider_capabilities[];       /* "chat", "embed"; ended by NULL */
/* Of one of those words, NULL or "": chat. */
enum provider_capability provider_capability_of(const char *word);

struct provider_choice {
    const char *provider;               /* NULL, of chats only: the default and those it falls back on */
    const char *model;                  /* NULL: the provider's own */
};

/* What the caller said may be NULL. A model that belongs to a default goes with that provider only, also when the caller names it.
 * -EINVAL PROVIDER_UNAVAILABLE when the app is set to use a provider that is not configured: it is asked nothing else instead. */
int provider_choose(const struct request *req, enum provider_capability what, const char *provider, const char *model, struct provider_choice *ret,
                    struct err *e) MUST_CHECK;

struct provider_default {
    const char *provider;               /* NULL: there is none */
    const char *model;                  /* NULL: the provider's own */
    const char *origin;                 /* app, setting, order (first of the list) */
};
/* What counts for this caller when it names nothing; an app's choice also when it is not configured. */
int provider_default_of(const struct request *req, enum provider_capability what, struct provider_default *ret, struct err *e) MUST_CHECK;
/* The same for an app; app_id NULL: for those without a choice of their own. */
int provider_default_for(const struct request *req, enum provider_capability what, const char *app_id, struct provider_default *ret,
                         struct err *e) MUST_CHECK;

/* Is there a provider of this name that can do this? The built-in one embeds. */
bool provider_can(const struct request *req, enum provider_capability what, const char *provider);

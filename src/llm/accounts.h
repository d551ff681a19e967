/* The configured providers, in memory: found by name, in their order, with what is known of each (does it answer, which models has it).
 *
 * Any thread. A seat is one account in the registry; it is shared (ref/unref) and its account never changes: a changed account is a new
 * seat. Filled from the environment variables of the presets at start; llm_accounts_put() replaces by name.
 *
 *     r = llm_accounts_pick(accounts, arena, "openai", &picks, e);       picks.seats[0]->account
 */
#pragma once

#include "base/limits.h"
#include "llm/llm.h"
#include "settings/settings.h"

#include <pthread.h>

struct llm_seat {
    struct llm_account account;
    struct arena *arena;                /* owned: the account's strings */
    bool may_not_stream;                /* GENERIC_LLM_STREAMING_DISABLED */
    atomic_size_t n_refs;
    pthread_mutex_t lock;               /* guards what follows */
    unsigned n_failures;                /* in a row */
    int64_t open_until_ms;              /* clock_mono_ms(): not asked before; 0: as usual */
    struct arena *models_arena;         /* owned */
    struct llm_models models;
    int64_t models_until_ms;            /* as good as new until then */
};

struct llm_seat *llm_seat_ref(struct llm_seat *s);
struct llm_seat *llm_seat_unref(struct llm_seat *s);
/* The circuit breaker: after rest_after failed requests in a row (0: never) an account rests for 15 s, then one request tries again. */
bool llm_seat_may_ask(struct llm_seat *s);
void llm_seat_succeeded(struct llm_seat *s);
void llm_seat_failed(struct llm_seat *s, unsigned rest_after);
/* The account's models, from its list (cached, setting llm.models_ttl_s) and its own model. Blocks a worker. A list that cannot be had gives
 * the own model alone; -E only when there is none either. */
int llm_seat_models(struct llm_seat *s, struct settings *settings, struct arena *a, const atomic_bool *is_gone, struct llm_models *ret, struct err *e) MUST_CHECK;

/* The model to ask for when the caller names none: the account's, else the first of its list. -EINVAL INVALID_MODEL when there is none. */
int llm_seat_model(struct llm_seat *s, struct settings *settings, struct arena *a, const atomic_bool *is_gone, const char **ret, struct err *e) MUST_CHECK;

struct llm_accounts;
struct llm_picks { struct llm_seat *seats[LIMIT_LLM_FALLBACKS + 1]; size_t n; };        /* references end with the arena */

/* env: NULL-ended "NAME=value". A variable that makes no account is told through the log at debug level and left out. */
int llm_accounts_new(struct settings *settings, const char *const *env, struct llm_accounts **ret, struct err *e) MUST_CHECK;
struct llm_accounts *llm_accounts_free(struct llm_accounts *accounts);
/* Copies. -EINVAL BAD_URL, BAD_ACCOUNT when something it needs is missing. */
int llm_accounts_put(struct llm_accounts *accounts, const struct llm_account *account, struct err *e) MUST_CHECK;
bool llm_accounts_remove(struct llm_accounts *accounts, const char *name);
/* All that can chat, the default first; at most LIMIT_LLM_ACCOUNTS. */
struct llm_seat **llm_accounts_list(struct llm_accounts *accounts, struct arena *a, size_t *ret_n);
/* provider NULL: the default, then the accounts of llm.fallbacks. -EINVAL PROVIDER_UNAVAILABLE for a name that is not configured,
 * -EAGAIN PROVIDER_UNAVAILABLE saying what to do when nothing is. */
int llm_accounts_pick(struct llm_accounts *accounts, struct arena *a, const char *provider, struct llm_picks *ret, struct err *e) MUST_CHECK;
struct settings *llm_accounts_settings(struct llm_accounts *accounts);

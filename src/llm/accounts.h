/* The configured providers, in memory: found by name, in their order, with what is known of each (does it answer, which models has it).
 *
 * Any thread. A seat is one account in the registry; it is shared (ref/unref) and its account never changes: a changed account is a new
 * seat. Filled from the environment variables of the presets at start; llm_accounts_put() replaces by source and name. Of accounts with
 * one name the stored one counts; when it is removed, the one of the environment shows again.
 *
 *     r = llm_accounts_pick(accounts, arena, "openai", &picks, e);       picks.seats[0]->account
 */
#pragma once

#include "base/limits.h"
#include "llm/llamacpp.h"
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
    bool has_list;                      /* the provider's own list is among models */
    int models_r; char models_code[40], models_text[640];       /* why the last list could not be had; 0: it could */
};

struct llm_seat *llm_seat_ref(struct llm_seat *s);
struct llm_seat *llm_seat_unref(struct llm_seat *s);
/* The circuit breaker: after rest_after failed requests in a row (0: never) an account rests for 15 s, then one request tries again. */
bool llm_seat_may_ask(struct llm_seat *s);
int64_t llm_seat_rest_ms(struct llm_seat *s);          /* for how long yet; 0: it does not rest */
int llm_seat_tell_rest(struct llm_seat *s, int64_t rest_ms, struct err *e);    /* -EAGAIN PROVIDER_UNAVAILABLE */
void llm_seat_succeeded(struct llm_seat *s);
void llm_seat_failed(struct llm_seat *s, unsigned rest_after);
/* The account's models, from its list (cached, setting llm.models_ttl_s) and its own model. Blocks a worker. A list that cannot be had gives
 * the own model alone; -E only when there is none either. */
int llm_seat_models(struct llm_seat *s, struct settings *settings, struct arena *a, const atomic_bool *is_gone, struct llm_models *ret, struct err *e) MUST_CHECK;

/* 1: the provider lists it (or its owner wrote it down); 0: it does not; -1: there is no list to look into. Blocks a worker. */
int llm_seat_knows_model(struct llm_seat *s, struct settings *settings, struct arena *a, const atomic_bool *is_gone, const char *model) MUST_CHECK;

/* The model to ask for when the caller names none: the account's, else the first of its list whose name is not that of an embedding model.
 * -EINVAL INVALID_MODEL when there is none. */
int llm_seat_model(struct llm_seat *s, struct settings *settings, struct arena *a, const atomic_bool *is_gone, const char **ret, struct err *e) MUST_CHECK;

/* The account as it can be asked now: itself, or with the address and key of a server that was started for it and runs until the arena ends.
 * Blocks a worker. Errors as llamacpp_hold(). */
int llm_seat_ready(struct llm_seat *s, const struct llamacpp_wish *wish, struct arena *a, const struct llm_account **ret, struct err *e) MUST_CHECK;

struct llm_accounts;
struct llm_local;
struct llm_picks { struct llm_seat *seats[LIMIT_LLM_FALLBACKS + 1]; size_t n; };        /* references end with the arena */

/* env: NULL-ended "NAME=value". A variable that makes no account is told through the log at debug level and left out. */
int llm_accounts_new(struct settings *settings, const char *const *env, struct llm_accounts **ret, struct err *e) MUST_CHECK;
struct llm_accounts *llm_accounts_free(struct llm_accounts *accounts);
/* From now on what this machine offers (llm/local.h) is among the accounts: models that are run here, and servers that listen, these while no
 * account is configured or when they are named. Once, before the first request; borrowed. The functions below that read the list may then
 * block for llm.find_local_wait_s. */
void llm_accounts_set_local(struct llm_accounts *accounts, struct llm_local *local);
/* Copies; behind the others of its source. -EINVAL BAD_URL, BAD_ACCOUNT when something it needs is missing. */
int llm_accounts_put(struct llm_accounts *accounts, const struct llm_account *account, struct err *e) MUST_CHECK;
/* What llm_accounts_put() would say of it. */
int llm_account_check(const struct llm_account *account, struct err *e) MUST_CHECK;
bool llm_accounts_remove(struct llm_accounts *accounts, enum llm_source source, const char *name);
/* The address as people write it ("127.0.0.1:11434", "http://box:4000") with scheme, port and path that the preset implies. -EINVAL BAD_URL. */
int llm_account_address(struct arena *a, const struct llm_preset *preset, const char *text, const char **ret, struct err *e) MUST_CHECK;
/* Every name once, the default of chats first, then stored ones, the environment's, found ones; at most LIMIT_LLM_ACCOUNTS. Some only embed. */
struct llm_seat **llm_accounts_list(struct llm_accounts *accounts, struct arena *a, size_t *ret_n);
/* The account of that name, held by the arena; NULL. */
struct llm_seat *llm_accounts_find(struct llm_accounts *accounts, struct arena *a, const char *name);
/* provider NULL: the default, then the accounts of llm.fallbacks. -EINVAL PROVIDER_UNAVAILABLE for a name that is not configured or has no
 * chats, -ENODEV PROVIDER_UNAVAILABLE saying what to do when nothing is configured. */
int llm_accounts_pick(struct llm_accounts *accounts, struct arena *a, const char *provider, struct llm_picks *ret, struct err *e) MUST_CHECK;
/* Servers of this machine that are found and not used (llm/local.h); looks for them first. */
struct llm_waiting;
size_t llm_accounts_waiting(struct llm_accounts *accounts, struct llm_waiting *ret /* LLM_N_PROBES */);
/* For a name that is no account's: e gets what to do so that it is. False, and e as it is, when that is not known. */
bool llm_accounts_explain(struct llm_accounts *accounts, const char *name, struct err *e);
struct settings *llm_accounts_settings(struct llm_accounts *accounts);

/* The configured providers, in memory: found by name, kept in their order, each with its state (whether it answers,
 * which models it has).
 *
 * Any thread. An account state is one account of the registry; it is shared (ref/unref) and its account never changes:
 * a changed account gets a new state. The registry is filled from the environment variables of the presets at start;
 * llm_accounts_put() replaces by source and name. Of several accounts with one name the stored one counts; after its
 * removal the one from the environment counts again.
 *
 *     r = llm_accounts_pick(accounts, arena, "openai", &picks, e);       picks.states[0]->account
 */
#pragma once

#include "base/limits.h"
#include "llm/breaker.h"
#include "llm/local/llamacpp.h"
#include "settings/settings.h"

#include <pthread.h>

struct llm_account_state {
    struct llm_account account;
    struct arena *arena; /* owned: the account's strings */
    bool may_not_stream; /* GENERIC_LLM_STREAMING_DISABLED */
    atomic_size_t n_refs;
    pthread_mutex_t lock; /* guards the members below */
    struct breaker breaker;
    struct arena *models_arena; /* owned */
    struct llm_models models;
    int64_t models_until_ms; /* the list is fresh until this time */
    bool is_renewing;        /* a caller is fetching the list */
    bool has_list;           /* models contains the provider's own list */
    int models_r;
    char models_code[40], models_text[640]; /* why the last fetch of the list failed; 0: it succeeded */
    int64_t failed_wall_ms;                 /* of the last failure since the last success; 0: none */
    char failed_text[640];
};

struct llm_account_state *llm_account_state_ref(struct llm_account_state *s);
struct llm_account_state *llm_account_state_unref(struct llm_account_state *s);
/* The circuit breaker (llm/breaker.h): after rest_after failed requests in a row (0: never) an account or one model of
 * it rests for 15 s, then one request tries again. model NULL: the account alone. The stand-in never rests. */
bool llm_account_state_may_try(struct llm_account_state *s, const char *model);
int64_t llm_account_state_rest_ms(struct llm_account_state *s, const char *model); /* the time left; 0: neither rests */
int llm_account_state_err_rest(struct llm_account_state *s, const char *model, int64_t rest_ms,
                               struct err *e); /* -EAGAIN PROVIDER_UNAVAILABLE */
void llm_account_state_succeeded(struct llm_account_state *s, const char *model);
void llm_account_state_failed(struct llm_account_state *s, const char *model, enum llm_fault fault,
                              unsigned rest_after);
/* The last failure, until the next success; only for people to read. */
void llm_account_state_keep_failure(struct llm_account_state *s, const char *text);
struct llm_failure {
    const char *text, *at; /* in the arena; NULL: the last request succeeded, or there was none */
};
struct llm_failure llm_account_state_failure(struct llm_account_state *s, struct arena *a);
/* The resting models, in the arena. */
struct field_strings llm_account_state_resting_models(struct llm_account_state *s, struct arena *a);
/* The account's models, from its list (cached, setting llm.models_ttl_s) and its own model. Blocks a worker. When the
 * list cannot be fetched, the result is the account's own model alone; -E only when the account has none. */
int llm_account_state_models(struct llm_account_state *s, struct settings *settings, struct arena *a,
                             const atomic_bool *is_gone, struct llm_models *ret, struct err *e) MUST_CHECK;

/* Asks for the list when it is old, and returns how the last request for it ended: an error of http_call() or of the
 * provider. Waits at most wait_ms: -ETIMEDOUT when the provider has not answered by then, which others are not told.
 * Blocks a worker. */
int llm_account_state_check(struct llm_account_state *s, struct settings *settings, int64_t wait_ms,
                            const atomic_bool *is_gone, struct err *e) MUST_CHECK;

/* Would llm_account_state_models() ask the provider now? While one caller fetches the list, the others get the previous
 * list. */
bool llm_account_state_models_wait(struct llm_account_state *s);

/* 1: the model is in the provider's list or was configured by hand; 0: it is in neither; -1: there is no list. Blocks a
 * worker. */
int llm_account_state_knows_model(struct llm_account_state *s, struct settings *settings, struct arena *a,
                                  const atomic_bool *is_gone, const char *model) MUST_CHECK;

/* The model for a request that names none: the account's, else the first of its list whose name is not that of an
 * embedding model. -EINVAL INVALID_MODEL when there is none. */
int llm_account_state_model(struct llm_account_state *s, struct settings *settings, struct arena *a,
                            const atomic_bool *is_gone, const char **ret, struct err *e) MUST_CHECK;

/* The account to send requests to: the account itself, or a copy with the address and key of a server that was started
 * for it and runs until the arena ends. Blocks a worker. Errors as llamacpp_hold(). */
int llm_account_state_ready(struct llm_account_state *s, const struct llamacpp_start_request *start_request,
                            struct arena *a, const struct llm_account **ret, struct err *e) MUST_CHECK;

struct llm_accounts;
struct llm_local;
struct llm_picks {
    struct llm_account_state *states[LIMIT_LLM_FALLBACKS + 1];
    size_t n;
}; /* the references end with the arena */

/* env: NULL-ended "NAME=value". A variable that makes no valid account is logged at debug level and left out. */
int llm_accounts_new(struct settings *settings, const char *const *env, struct llm_accounts **ret,
                     struct err *e) MUST_CHECK;
struct llm_accounts *llm_accounts_free(struct llm_accounts *accounts);
/* From now on the accounts include what this machine offers (llm/local/local.h): models that this service runs, and
 * listening servers, the latter only while no account is configured or when a caller names them. Called once, before
 * the first request; local is borrowed. The functions below that read the list may then block for
 * llm.find_local_wait_s. */
void llm_accounts_set_local(struct llm_accounts *accounts, struct llm_local *local);
/* Would those functions block now, for this account or for any (NULL)? */
bool llm_accounts_wait(struct llm_accounts *accounts, const char *name);
/* Would those functions look at this machine now? On the loop they never do, and read the list as it is. */
bool llm_accounts_must_look(struct llm_accounts *accounts, const char *name);
/* Copies the account; a new one comes after the others of its source. -EINVAL BAD_URL, BAD_ACCOUNT when something the
 * account needs is missing. */
int llm_accounts_put(struct llm_accounts *accounts, const struct llm_account *account, struct err *e) MUST_CHECK;
/* A state that belongs to no registry; one reference. Errors of llm_accounts_put(). */
int llm_account_make(const struct llm_account *from, bool is_streaming_disabled, struct llm_account_state **ret,
                     struct err *e) MUST_CHECK;
/* The checks of llm_accounts_put() alone. */
int llm_account_check(const struct llm_account *account, struct err *e) MUST_CHECK;
bool llm_accounts_remove(struct llm_accounts *accounts, enum llm_source source, const char *name);
/* Completes an address as people write it ("127.0.0.1:11434", "http://box:4000") with the scheme, port and path that
 * the preset implies. -EINVAL BAD_URL. */
int llm_account_address(struct arena *a, const struct llm_preset *preset, const char *text, const char **ret,
                        struct err *e) MUST_CHECK;
/* Every name once: the default for chats first, then stored accounts, those from the environment, found ones; at most
 * LIMIT_LLM_ACCOUNTS. Some accounts have embeddings only. */
struct llm_account_state **llm_accounts_list(struct llm_accounts *accounts, struct arena *a, size_t *ret_n);
/* The accounts that speak or hear, in the order of the list. Looks for servers on this machine; blocks a worker for
 * llm.find_local_wait_s. */
struct llm_account_state **llm_accounts_of_speech(struct llm_accounts *accounts, struct arena *a, size_t *ret_n);
/* The number of accounts, or of models of accounts, that rest now. Any thread. */
size_t llm_accounts_count_resting(struct llm_accounts *accounts, enum llm_fault of);
/* The account of that name, held by the arena; NULL when there is none. */
struct llm_account_state *llm_accounts_find(struct llm_accounts *accounts, struct arena *a, const char *name);
/* provider NULL: the default, then the accounts of llm.fallbacks. -EINVAL PROVIDER_UNAVAILABLE when the name is not
 * configured or its provider has no chats, -ENODEV PROVIDER_UNAVAILABLE with a remedy when nothing is configured. */
int llm_accounts_pick(struct llm_accounts *accounts, struct arena *a, const char *provider, struct llm_picks *ret,
                      struct err *e) MUST_CHECK;
/* Looks for servers on this machine; returns those that are found and not used (llm/local/local.h). */
struct llm_waiting;
size_t llm_accounts_waiting(struct llm_accounts *accounts, struct llm_waiting *ret /* LLM_N_PROBES */);
/* For a name without an account: writes into e how to get that account. False, and e unchanged, when no way is known.
 */
bool llm_accounts_explain(struct llm_accounts *accounts, const char *name, struct err *e);
struct settings *llm_accounts_settings(struct llm_accounts *accounts);

/* Shared by the routes about providers. For handlers, on their worker. */
#pragma once

#include "api/resources/metered.h"
#include "llm/stored.h"
#include "models/provider_choice.h"

struct llm_vault provider_vault(const struct request *req);
/* The account with that name. -ENOENT PROVIDER_NOT_FOUND names the existing providers. */
int provider_find(const struct request *req, const char *name, struct llm_account_state **ret,
                  struct err *e) MUST_CHECK;
/* All names, separated by commas; "none" when there are none. */
const char *provider_names(const struct request *req);
/* Why a provider cannot have this name: routes or the built-in embeddings use it; NULL: the name is allowed. */
const char *provider_name_rule(const char *name);

/* One small real request for speech (provider_test_speech.c). */
struct provider_speech_trial {
    const char *text;  /* a sentence; in the arena */
    const char *model; /* who spoke; NULL: not known */
    int64_t began_ms, ms;
};
int provider_try_speech(struct request *req, const struct llm_account *acc, const char *model,
                        struct provider_speech_trial *ret, struct err *e) MUST_CHECK;

/* Writes one account as an object under `name`, without secrets. row: the row of a stored account, else NULL. */
extern const struct field provider_shape[];
void provider_write(const struct request *req, struct json_writer *w, const char *name,
                    const struct llm_account_state *state, const struct provider_account_row *row);

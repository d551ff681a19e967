/* What was learnt about a provider's models from its refusals (table model_facts): how they take tools, whether they
 * take images, how much they read. Any thread; texts live in the arena.
 *
 *     r = store_model_facts_set(store, "ollama", "gemma", "tools", "schema", e);
 *     r = store_model_facts_get(store, arena, "ollama", "gemma", "tools", &value, e);      NULL: nothing is known
 */
#pragma once

#include "store/store.h"

enum { MODEL_FACTS_AGE_S = 30 * 86400 }; /* older facts are unknown: servers and models are renewed under one name */

struct model_fact_row {
    const char *provider, *model, *fact, *value, *learnt_at;
};

int store_model_facts_get(struct store *s, struct arena *a, const char *provider, const char *model, const char *fact,
                          const char **ret, struct err *e) MUST_CHECK;
/* By provider, model and fact. */
int store_model_facts_list(struct store *s, struct arena *a, struct model_fact_row **ret, size_t *ret_n,
                           struct err *e) MUST_CHECK;
/* model NULL: of all models of the provider. -ENOENT FACT_NOT_FOUND. */
int store_model_facts_forget(struct store *s, const char *provider, const char *model, int64_t *ret_n,
                             struct err *e) MUST_CHECK;
/* Replaces an earlier value. */
int store_model_facts_set(struct store *s, const char *provider, const char *model, const char *fact, const char *value,
                          struct err *e) MUST_CHECK;

/* What was learnt about a provider's models from its refusals (table model_facts): how they take tools, whether they
 * take images, how much they read. Any thread; texts live in the arena.
 *
 *     r = store_model_facts_set(store, "ollama", "gemma", "tools", "schema", e);
 *     r = store_model_facts_get(store, arena, "ollama", "gemma", "tools", &value, e);      NULL: nothing is known
 */
#pragma once

#include "store/store.h"

/* Facts older than max_age_s are unknown, because models change; 0: of any age. */
int store_model_facts_get(struct store *s, struct arena *a, const char *provider, const char *model, const char *fact,
                          int64_t max_age_s, const char **ret, struct err *e) MUST_CHECK;
/* Replaces an earlier value. */
int store_model_facts_set(struct store *s, const char *provider, const char *model, const char *fact, const char *value,
                          struct err *e) MUST_CHECK;

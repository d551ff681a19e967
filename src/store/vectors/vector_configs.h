/* The vector store registered by each data scope, and the model that made a namespace's vectors (tables vector_configs
 * and vector_models). Any thread; row texts live in the arena. */
#pragma once

#include "store/store.h"

struct vector_config_row {
    const char *scope, *provider;
    struct slice config; /* sealed JSON */
};

/* Replaces an earlier registration. */
int store_vector_configs_set(struct store *s, const struct vector_config_row *row, struct err *e) MUST_CHECK;
/* -ENOENT VECTOR_CONFIG_NOT_FOUND: nothing is registered. */
int store_vector_configs_get(struct store *s, struct arena *a, const char *scope, struct vector_config_row *ret,
                             struct err *e) MUST_CHECK;

/* Stores the model unless the namespace has one already; *ret_kept is the stored model. */
int store_vector_models_keep(struct store *s, struct arena *a, const char *provider, const char *ns, const char *model,
                             const char **ret_kept, struct err *e) MUST_CHECK;
/* *ret NULL: no model is known. */
int store_vector_models_get(struct store *s, struct arena *a, const char *provider, const char *ns, const char **ret,
                            struct err *e) MUST_CHECK;
/* Whether a model is known for any namespace. */
int store_vector_models_any(struct store *s, bool *ret, struct err *e) MUST_CHECK;
int store_vector_models_forget(struct store *s, const char *provider, const char *ns, struct err *e) MUST_CHECK;

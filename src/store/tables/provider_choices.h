/* The provider that an app gets instead of the default (table provider_choices): one row for each capability. Any
 * thread; row texts live in the arena. The rows of an app are deleted with it.
 *
 *     r = store_provider_choices_get(store, arena, app_id, "chat", &choice, e);     choice.provider NULL: the default
 */
#pragma once

#include "store/store.h"

struct provider_choice_row {
    const char *app_id, *app_name; /* the name is only read */
    const char *capability;        /* chat, embed */
    const char *provider;
    const char *model; /* NULL: the provider's own */
};

/* Replaces an earlier choice. The app must exist. */
int store_provider_choices_set(struct store *s, const struct provider_choice_row *row, struct err *e) MUST_CHECK;
/* When there is no choice, ret->provider is NULL. */
int store_provider_choices_get(struct store *s, struct arena *a, const char *app_id, const char *capability,
                               struct provider_choice_row *ret, struct err *e) MUST_CHECK;
/* Ordered by the app's name and the capability. */
int store_provider_choices_list(struct store *s, struct arena *a, struct provider_choice_row **ret, size_t *ret_n,
                                struct err *e) MUST_CHECK;
/* Succeeds also when there is no choice. */
int store_provider_choices_clear(struct store *s, const char *app_id, const char *capability, struct err *e) MUST_CHECK;

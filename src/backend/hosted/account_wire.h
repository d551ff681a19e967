/* What the management API of the hosted service answers. Pure functions over foreign bytes; any thread. Texts are in
 * the arena and may hold any character: they are shown through cli/out.h, and checked here where they become a part of
 * an address. */
#pragma once

#include "base/json.h"

struct account_profile {
    const char *email, *username; /* NULL: not said */
};
/* -EPROTO HOSTED_INVALID: not what the interface says. */
int account_profile_read(struct arena *a, struct slice json, struct account_profile *ret, struct err *e) MUST_CHECK;

struct account_project {
    const char *ref;  /* 1 to 40 lower-case letters and digits: a part of addresses */
    const char *name; /* at most 256 characters */
    const char *region, *status, *created_at;
};
struct account_projects {
    const struct account_project *items;
    size_t n;
};
int account_projects_read(struct arena *a, struct slice json, struct account_projects *ret, struct err *e) MUST_CHECK;
bool account_ref_is_valid(const char *ref);

struct account_keys {
    const char *publishable; /* or the legacy key of anonymous callers; NULL: the project has neither */
    const char *secret;      /* of the service role, new form or legacy; NULL: none is shown */
    bool is_legacy;          /* publishable is the legacy one */
};
int account_keys_read(struct arena *a, struct slice json, struct account_keys *ret, struct err *e) MUST_CHECK;
/* Visible ASCII, so that it can stand in a header. */
bool account_key_is_valid(const char *key);

/* The rows that the last statement of a query returned. */
int account_rows_read(struct arena *a, struct slice json, struct json_value *ret, struct err *e) MUST_CHECK;
/* `message` of a refusal, fit to be shown in one line; NULL: none. */
const char *account_message_read(struct arena *a, struct slice json);

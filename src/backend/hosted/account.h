/* The account at the hosted service, by which a person chooses a project and sets it up, and the project that
 * backend.kind hosted works with.
 *
 * The account's token and the project's secret key are in <data>/backend.account (0600), sealed under
 * <data>/master.key; they are never shown. Address and publishable key of the project are settings, so that a project
 * may also be named without an account. Every address here is named by the administrator: https, or loopback. Calls
 * block; any thread.
 *
 *     r = hosted_project_read(settings, data_dir, arena, &project, e);
 */
#pragma once

#include "backend/backend_providers.h"
#include "backend/hosted/account_call.h"
#include "backend/hosted/account_wire.h"

/* --- the project --- */

struct hosted_project {
    const char *url;    /* https://REF.supabase.co, without a slash at the end; never NULL */
    const char *ref;    /* the project's name at the service; NULL: the address does not tell it */
    const char *key;    /* publishable, or the legacy key of anonymous callers; never NULL */
    const char *secret; /* of the service role, for the service's own work; NULL: none is kept for this url */
};
/* -EINVAL HOSTED_UNSET when a setting is missing; -EBADMSG UNSEAL_FAILED. */
int hosted_project_read(struct settings *s, const char *data_dir, struct arena *a, struct hosted_project *ret,
                        struct err *e) MUST_CHECK;
/* The project's name in an address of the service's own form; NULL: another address. */
const char *hosted_ref_of_url(struct arena *a, const char *url);

/* Of the project that was chosen last: a running service works with it after its next start. NULL: none. */
const char *hosted_chosen_ref(const struct backend_place *place, struct arena *a);

/* --- login --- */

/* Begins a login, which waits LIMIT_HOSTED_CODE_MS for its code; an earlier one that waits is forgotten. The address
 * is for the person's browser. */
int account_begin(const struct backend_place *place, struct arena *a, const char **ret_url, struct err *e) MUST_CHECK;
/* Ends it with the code that the page showed. -ENOENT HOSTED_NO_LOGIN: none waits; -EINVAL HOSTED_CODE_REFUSED: the
 * service knows no such code, of which LIMIT_HOSTED_LOGIN_TRIES may be given; errors of account_login_open() and
 * account_call(). */
int account_finish(const struct backend_place *place, const char *code, const struct net_wait *wait, struct arena *a,
                   struct err *e) MUST_CHECK;
/* Logs in with a personal token instead. -EINVAL VALIDATION_ERROR: it is none. */
int account_take_token(const struct backend_place *place, const char *token, const struct net_wait *wait,
                       struct arena *a, struct err *e) MUST_CHECK;
/* Forgets the account, a login that waits and the project's secret key. */
int account_forget(const struct backend_place *place, struct arena *a, struct err *e) MUST_CHECK;

struct account_status {
    bool is_logged_in, is_waiting, has_secret; /* has_secret: for the project of the settings */
    const char *email, *username, *since;      /* NULL: not known */
    const char *url, *ref;                     /* of the project; url "": none is chosen; ref NULL: not known */
};
int account_status_read(const struct backend_place *place, struct arena *a, struct account_status *ret,
                        struct err *e) MUST_CHECK;

/* --- projects --- */

/* Fills the address and the token; the wait is borrowed. -EACCES HOSTED_LOGIN_REQUIRED: nobody is logged in at the
 * service of the settings. */
int account_api_open(const struct backend_place *place, const struct net_wait *wait, struct arena *a,
                     struct account_api *ret, struct err *e) MUST_CHECK;
int account_projects(const struct backend_place *place, const struct net_wait *wait, struct arena *a,
                     struct account_projects *ret, struct err *e) MUST_CHECK;

struct account_choice {
    const char *url, *ref, *name, *key; /* url and key: for the settings */
    bool is_legacy;                     /* the key is the legacy one */
    bool has_secret;
};
/* Finds the project by its ref or its name, and its keys; keeps its secret key, unless leaves_secret. -ENOENT
 * PROJECT_NOT_FOUND; -EINVAL HOSTED_NO_KEY: the project has no key for apps; errors of account_call(). */
int account_choose(const struct backend_place *place, const char *which, bool leaves_secret,
                   const struct net_wait *wait, struct arena *a, struct account_choice *ret, struct err *e) MUST_CHECK;
/* Keeps the secret key of a project that was named by hand; NULL: forgets the one that is kept. -EINVAL
 * VALIDATION_ERROR. */
int account_keep_secret(const struct backend_place *place, const char *url, const char *secret, struct arena *a,
                        struct err *e) MUST_CHECK;

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

#include "net/wait.h"
#include "settings/settings.h"

struct hosted_project {
    const char *url;    /* https://REF.supabase.co, without a slash at the end; never NULL */
    const char *ref;    /* the project's name at the service; NULL: the address does not tell it */
    const char *key;    /* publishable, or the legacy key of anonymous callers; never NULL */
    const char *secret; /* of the service role, for the service's own work; NULL: none is kept for this url */
};
/* -EINVAL HOSTED_UNSET when a setting is missing; -EBADMSG UNSEAL_FAILED. */
int hosted_project_read(struct settings *s, const char *data_dir, struct arena *a, struct hosted_project *ret,
                        struct err *e) MUST_CHECK;
/* The project's name in the service's own form of address; NULL: another address. */
const char *hosted_ref_of_url(struct arena *a, const char *url);

/* A backend whose rows are in a hosted project, reached over its REST interface and its realtime service. One backend
 * is for every thread.
 *
 *     const struct backend_hosted_config config = { .url = "https://ref.supabase.co", .key = key, .abbr = "svc" };
 *     r = backend_hosted_open(&config, &backend, e);
 */
#pragma once

#include "backend/backend.h"
#include "backend/hosted/hosted_realtime.h"
#include "base/limits.h"

#include <stdatomic.h>

/* Copied, with its texts. */
struct backend_hosted_config {
    const char *url;           /* of the project, without a path */
    const char *key;           /* publishable, secret, or the older anon and service_role keys */
    const char *user_key;      /* publishable or anon: of requests with the rights of users; NULL: there are none */
    const char *abbr;          /* "svc": names svc_activities */
    const struct guard *guard; /* borrowed; NULL: the administrator named the address */
    int64_t call_ms;           /* the deadline of one call; 0: LIMIT_BACKEND_CALL_MS */
    bool has_no_realtime;      /* events come by the sweep alone */

    /* The access token of the signed-in user, as in hosted_realtime.h; NULL: always anonymous. */
    int (*token)(void *arg, const struct net_wait *wait, struct arena *a, struct hosted_token *ret, struct err *e);
    /* Makes a table with the columns of the Activities table; NULL: a missing table is refused in words. */
    int (*make_table)(void *arg, const char *table, const struct net_wait *wait, struct err *e);
    /* Makes a table with columns of its own and lists it as declared, or adds the columns that `existing` lacks, and
     * publishes it; existing without columns: there is none. NULL: it is refused in words. */
    int (*declare)(void *arg, const struct table_shape *declared, const struct table_shape *existing,
                   const struct net_wait *wait, struct err *e);
    void (*release)(void *arg); /* when the backend closes, or could not be opened; NULL: nothing is owned */
    void *arg;
};

/* A project that cannot be reached is told in the log, and is no error: its tables are read by the first call that
 * needs them. -EINVAL BAD_SETTING or VALIDATION_ERROR; -ENOENT SCHEMA_MISSING: the project is not set up; other errors
 * of a call. */
int backend_hosted_open(const struct backend_hosted_config *c, struct backend **ret, struct err *e) MUST_CHECK;

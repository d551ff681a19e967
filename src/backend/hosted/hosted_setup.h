/* The set-up of a project of the hosted service through its management API: the tables and functions of the PostgreSQL
 * backend without its outbox (postgres_pieces.h), row-level security (a user's rows are those with its user_id; the
 * service role sees all, anonymous callers nothing), the publication for realtime. Each step is one request with SQL
 * that may be run again; a step that fails is named, and the set-up may be repeated.
 *
 *     r = hosted_setup_run(&place, &(struct backend_setup){ .tables = names, .n_tables = n }, arena, e);
 */
#pragma once

#include "backend/backend_providers.h"
#include "backend/query.h"
#include "net/wait.h"

/* Set-up, check and text only: works whatever backend.kind says. */
extern const struct backend_provider hosted_setup_provider;

/* The whole as one transaction for the project's SQL editor or psql. */
char *hosted_setup_text(const struct backend_place *place, const struct backend_setup *setup, struct arena *a);
/* -EPERM HOSTED_DENIED "Access Denied": the account may not write to the project; -EINVAL HOSTED_UNSET: no project of
 * the service is chosen; errors of account_call(), each with the step before it. */
int hosted_setup_run(const struct backend_place *place, const struct backend_setup *setup, struct arena *a,
                     struct err *e);
int hosted_setup_lacks(const struct backend_place *place, const struct backend_setup *setup, struct arena *a,
                       struct backend_lacks *ret, struct err *e);
/* Makes one more table of an app, as backend_table_name() returns its name, in a project that is set up. */
int hosted_setup_table(const struct backend_place *place, const char *table, const struct net_wait *wait,
                       struct err *e) MUST_CHECK;
/* Makes a table with columns of its own with its rules and rights, or adds the columns that `existing` lacks, whose
 * rules stay; lists and publishes it. One transaction. */
int hosted_setup_declare(const struct backend_place *place, const struct table_shape *declared,
                         const struct table_shape *existing, const struct net_wait *wait, struct err *e) MUST_CHECK;

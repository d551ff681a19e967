/* Custom Mode: the tables that apps own, with columns of their own and a lock that the app keeps (docs/custom-mode.md).
 *
 * A backend around another one. Calls that name a table of Custom Mode are carried out here: claims through the app
 * (custom_lock.h), ends through its webhook (custom_delivery.h), everything else as statements about the table
 * (backend/query.h), whose columns decide. All other calls go to the inner backend, which is owned. Any thread; a claim
 * waits for the app, so it is nothing for the loop or a pool that must not wait.
 *
 * A row is shown with raw_data = its record, the app that owns the table, and attempt = the time at which its lease was
 * first seen, in milliseconds. A row whose end is stored but not yet delivered is shown with that end.
 *
 *     r = custom_open(&config, &backend, e);
 *     r = custom_set_tables(backend, tables, n, e);
 */
#pragma once

#include "backend/backend.h"
#include "backend/custom/custom_delivery.h"
#include "settings/settings.h"

struct backend_lacks; /* backend/backend_providers.h */

/* Called on any thread; may wait for the store, not for a peer. */
struct custom_calls {
    /* Where the app answers now: 0, with base_url NULL while it does not run; it may be started. -ENOENT: unknown. */
    int (*place)(void *arg, const char *app_id, struct arena *a, struct custom_place *ret, struct err *e);
    /* As of struct custom_delivery_calls; may be NULL. */
    void (*on_delivery)(void *arg, const struct backend_lease *l, enum custom_delivery_state state, const char *error);
};

struct custom_config {
    struct backend *inner; /* owned from a success on */
    struct store *store;
    struct settings *settings;
    struct custom_net net;
    struct custom_calls calls;
    void *arg;
};

int custom_open(const struct custom_config *c, struct backend **ret, struct err *e) MUST_CHECK;
/* A service begins: stored ends go to their apps. */
int custom_start(struct backend *b, struct err *e) MUST_CHECK;

/* The last call but close(): the callbacks are not called any more, and no row of Custom Mode is touched. */
void custom_stop(struct backend *b);

struct custom_table {
    const char *table;  /* as backend_table_name() returns it */
    const char *app_id; /* the only app that may work on it */
    unsigned events;    /* mask of enum backend_op that the app lists */
};
/* Replaces the set of tables; what was read of their columns is forgotten. */
void custom_set_tables(struct backend *b, const struct custom_table *tables, size_t n);
bool custom_has_tables(struct backend *b);
bool custom_has_table(struct backend *b, const char *table);

/* The backend without Custom Mode, for those who want tables as they are (realtime channels). */
struct backend *custom_inner(struct backend *b);
struct custom_deliveries *custom_backend_deliveries(struct backend *b);

/* What this table lacks for Custom Mode, each with the statement that mends it: the table, a key of one column, the
 * columns and their types, its place among the reported tables, its replica identity. Any table may be named. */
int custom_check(struct backend *b, const char *table, struct arena *a, struct backend_lacks *ret,
                 struct err *e) MUST_CHECK;

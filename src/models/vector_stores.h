/* The vector store of each data scope: the service's embedded store, or the store that the scope has registered.
 *
 * One per process, opened and closed by service/. Registered stores are opened on first use, kept open for a while and
 * shared by the requests of their scope; each request holds a reference, so that a new registration does not disturb
 * running requests. Any worker; blocking.
 *
 *     AUTO(vector_store_unrefp) struct vector_store *use = NULL;
 *     r = vector_stores_of(models->vector_stores, caller->scope, &use, e);
 *     r = use->vectors->ops->count(use->vectors, &wait, ns, &n, &n_dimensions, e);
 */
#pragma once

#include "identity/identity.h"
#include "vector/vector.h"

struct vector_stores;

struct vector_store {
    struct vectors *vectors; /* owned by the reference counts */
    const char *provider;    /* of vectors_providers[] */
};

struct vector_stores_config {
    struct store *store;
    struct identity *identity;
    const struct guard *guard;               /* for the addresses that apps register; borrowed */
    struct vectors_embedded_config embedded; /* strings borrowed as long as the stores are open */
    bool is_lazy;                            /* the embedded store is opened on first use */
};

#define VECTORS_EMBEDDED "embedded"

/* `sdk_<scope>_`: what every namespace of the scope begins with (decision D9). */
const char *vector_scope_prefix(struct arena *a, const char *scope);

int vector_stores_open(const struct vector_stores_config *c, struct vector_stores **ret, struct err *e) MUST_CHECK;
struct vector_stores *vector_stores_close(struct vector_stores *s); /* all references must be gone */

/* Does the scope use a store other than the embedded one? Also true when the scope's store cannot be opened. Quick:
 * sends no request to a store. vector_stores_of() does not read the same row again. */
bool vector_stores_is_registered(struct vector_stores *s, const char *scope);
/* -EAGAIN VECTOR_STORE_UNAVAILABLE when the registered store cannot be opened. */
int vector_stores_of(struct vector_stores *s, const char *scope, struct vector_store **ret, struct err *e) MUST_CHECK;
void vector_store_unref(struct vector_store *use);
void vector_store_unrefp(struct vector_store **use);

/* The registration of a scope; config is an object, {} for the embedded store. */
struct vector_registration {
    const char *provider;
    struct json_value config;
};
int vector_stores_registered(struct vector_stores *s, struct arena *a, const char *scope,
                             struct vector_registration *ret, struct err *e) MUST_CHECK;
/* Connects to the store, saves the registration, then uses the store. -EINVAL without a code (specification, Errors)
 * "Failed to connect to <provider>: <reason>": nothing was changed. -ECANCELED SHUTTING_DOWN. */
int vector_stores_register(struct vector_stores *s, const struct net_wait *wait, struct arena *a, const char *scope,
                           const struct vector_registration *reg, struct err *e) MUST_CHECK;
/* The size of the scope's vectors in the embedded store: ids, metadata and vectors. Quick. */
int vector_stores_bytes(struct vector_stores *s, const char *scope, int64_t *ret, struct err *e) MUST_CHECK;
/* Forgets a removed scope: closes its registered store and, if with_vectors, deletes its vectors in the embedded store.
 */
int vector_stores_forget(struct vector_stores *s, const char *scope, bool with_vectors, struct err *e) MUST_CHECK;

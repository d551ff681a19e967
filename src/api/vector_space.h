/* The namespace a request means: the store of the caller's scope and `sdk_<scope>_<workspace>` in it (decisions D3, D9). */
#pragma once

#include "api/api.h"
#include "api/route.h"
#include "api/vector_stores.h"

#define VECTOR_WORKSPACE_DEFAULT "default"

struct vector_space {
    struct vector_store *use;           /* owned: vector_space_clear() */
    struct vectors *vectors;            /* borrowed from use */
    const char *ns;                     /* in the request's arena */
    struct net_wait wait;               /* of all that the request asks of the store */
};

/* How long a registered store is waited for, by the setting, and for whom. */
struct net_wait vector_wait_of(const struct request *req);

/* workspace NULL: none, only the store. */
int vector_space_of(const struct request *req, const char *workspace, struct vector_space *ret, struct err *e) MUST_CHECK;
void vector_space_clear(struct vector_space *space);

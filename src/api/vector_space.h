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
};

/* workspace NULL: none, only the store. */
int vector_space_of(const struct request *req, const char *workspace, struct vector_space *ret, struct err *e) MUST_CHECK;
void vector_space_clear(struct vector_space *space);

/* The body of a bulk upsert (docs/vectors.md, "Bulk"): one line of JSON, a line feed, and the vectors' numbers as
 * float32, little end first, row after row. Any thread; results are in the arena and borrow nothing of the body.
 *
 *     struct vector_bulk bulk = { 0 };
 *     r = vector_bulk_read(arena, body, &bulk, e);
 *     r = vector_space_upsert(&space, &bulk.batch, bulk.model, e);
 */
#pragma once

#include "models/vector_space.h"

enum { VECTOR_WORKSPACE_CHARS = 128, VECTOR_MODEL_CHARS = 200 };

/* Rows of the tables of all bodies that name a namespace. */
#define FIELD_WORKSPACE(type)                                                                                          \
    FIELD_STRING(type, workspace, "workspaceId", .min = 1, .max = VECTOR_WORKSPACE_CHARS,                              \
                 .def_str = VECTOR_WORKSPACE_DEFAULT, .help = "each value is a namespace of its own")
#define FIELD_MODEL(type)                                                                                              \
    FIELD_STRING(type, model, "embeddingModel", .min = 1, .max = VECTOR_MODEL_CHARS,                                   \
                 .help = "what made the vector; refused when the namespace holds those of another model")

extern const struct field vector_bulk_head[]; /* of the line of JSON */

struct vector_bulk {
    const char *workspace, *model; /* model NULL: not given */
    struct vector_batch batch;
};

/* -EINVAL INVALID_JSON, VALIDATION_ERROR; -E2BIG BODY_TOO_LARGE for a line beyond LIMIT_VECTOR_HEAD. That numbers are
 * finite and ids short is for the store to check (vector/vector_check.h). */
int vector_bulk_read(struct arena *a, struct slice body, struct vector_bulk *ret, struct err *e) MUST_CHECK;

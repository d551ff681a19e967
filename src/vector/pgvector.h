/* The row of vectors_providers[] for PostgreSQL with pgvector. Private to src/vector. */
#pragma once

#include "vector/vector.h"

extern const struct vectors_field pgvector_fields[];
int pgvector_open(const char *scope, struct json_value config, const struct guard *guard, struct vectors **ret, struct err *e) MUST_CHECK;

/* Weaviate over REST and GraphQL: the interface to vector.c. Private to src/vector. */
#pragma once

#include "vector/vector.h"

extern const struct vectors_field weaviate_fields[];
int weaviate_open(const char *scope, struct json_value config, const struct guard *guard, struct vectors **ret,
                  struct err *e) MUST_CHECK;

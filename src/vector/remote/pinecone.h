/* Pinecone over REST: the interface to vector.c. Private to src/vector. */
#pragma once

#include "vector/vector.h"

extern const struct vectors_field pinecone_fields[];
int pinecone_open(const char *scope, struct json_value config, const struct guard *guard, struct vectors **ret,
                  struct err *e) MUST_CHECK;

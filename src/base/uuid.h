/* UUIDs (RFC 9562). */
#pragma once

#include "base/slice.h"

enum { UUID_LEN = 36, UUID_SIZE = 37 };

void uuid_v4(char out[UUID_SIZE]); /* random, lower case, NUL-terminated */
/* A version 8 UUID from the BLAKE2b hash of a text: the same text gives the same id on every machine. */
void uuid_of_text(struct slice text, char out[UUID_SIZE]);
bool uuid_is_valid(struct slice s); /* 8-4-4-4-12 hex digits, either case */

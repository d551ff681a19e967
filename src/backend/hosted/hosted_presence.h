/* Who is present on a channel of the realtime protocol (facts A5): kept from a state and the differences after it.
 *
 * At most LIMIT_LIST records are kept, of a message as many joins and leaves are read; their texts have at most
 * LIMIT_NAME_CHARS * 4 bytes. One thread at a time.
 *
 *     hosted_presence_state(p, payload);
 *     changed = hosted_presence_diff(p, payload);
 */
#pragma once

#include "backend/backend.h"

struct hosted_presence;

struct hosted_presence *hosted_presence_new(void) MUST_CHECK;
struct hosted_presence *hosted_presence_free(struct hosted_presence *p);
void hosted_presence_clear(struct hosted_presence *p);
/* False: the payload is none. */
bool hosted_presence_state(struct hosted_presence *p, struct json_value payload);
bool hosted_presence_diff(struct hosted_presence *p, struct json_value payload);
/* In the order of online_at and machine_id. */
void hosted_presence_list(const struct hosted_presence *p, struct arena *a, struct backend_presences *ret);
/* The record of the contract as it is tracked, JSON. */
char *hosted_presence_record(const struct backend_presence *p) MUST_CHECK;

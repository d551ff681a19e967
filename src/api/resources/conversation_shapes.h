/* What threads hold, as routes show it: turns with their messages. For handlers.
 *
 *     r = conversation_write(req, res, thread.id, query, e);
 */
#pragma once

#include "api/route.h"

struct conversation_query {
    int64_t limit, before;
};
extern const struct field conversation_query_fields[], conversation_turn_shape[];

/* Writes "turns", the newest first, with all their messages. */
int conversation_write(struct request *req, struct response *res, int64_t thread_id,
                       const struct conversation_query *query, struct err *e) MUST_CHECK;

/* Reasons to refuse a request before it becomes an exchange, and the bytes of the refusal.
 *
 * Parsers return one of these names; 0 means the bytes are fine. Status, code and sentence are rows of one table
 * (refusal.c). After a refusal the connection is closed, because the start of the next request is no longer certain.
 *
 *     why = http_head_parse(arena, text, n, &request, &framing);
 *     if (why)
 *         http_connection_refuse(c, why);
 */
#pragma once

#include "http/reply.h"

enum http_refusal {
    REFUSE_NONE,
    REFUSE_REQUEST_LINE,
    REFUSE_LINE_END,
    REFUSE_TARGET,
    REFUSE_TARGET_LENGTH,
    REFUSE_PATH,
    REFUSE_VERSION,
    REFUSE_METHOD,
    REFUSE_HEADER_NAME,
    REFUSE_HEADER_VALUE,
    REFUSE_HEADER_FOLDED,
    REFUSE_HEADER_BYTES,
    REFUSE_HEADER_COUNT,
    REFUSE_HOST_MISSING,
    REFUSE_HOST_TWICE,
    REFUSE_HOST,
    REFUSE_HOST_DIFFERS,
    REFUSE_LENGTH,
    REFUSE_LENGTH_TWICE,
    REFUSE_LENGTH_AND_CODING,
    REFUSE_CODING,
    REFUSE_CODING_TWICE,
    REFUSE_CODING_VERSION,
    REFUSE_CHUNK,
    REFUSE_TRAILER,
    REFUSE_BODY_BYTES,
    REFUSE_EXPECTATION,
    REFUSE_HEAD_SLOW,
    REFUSE_BODY_SLOW,
    REFUSE_CONNECTIONS,
    REFUSE_MEMORY,
    REFUSALS
};

struct http_refusal_row {
    int status;
    const char *code, *text;
};

const struct http_refusal_row *http_refusal_row(enum http_refusal why);
/* Writes the complete reply: JSON envelope (or the bytes already in out->body), x-request-id, `connection: close`. */
void http_refusal_write(const struct http_refusal_row *row, const char *request_id, bool is_head,
                        struct http_reply *out);

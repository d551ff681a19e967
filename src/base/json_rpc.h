/* JSON-RPC 2.0 frames, as the Model Context Protocol uses them: params are an object, an id is an integer or a text.
 *
 * Reading: json_rpc_read() takes one frame as text, json_rpc_read_value() one that is parsed already (an element of a
 * batch, the body of a request). Texts and values of a frame lie in the arena. An array is no frame: the caller decides
 * whether it takes batches. Writing: begin the frame, add its `params` or `result`, then json_end(). The size of what
 * is written is bounded by the buffer. Pure functions; any thread.
 *
 *     struct json_rpc_frame frame;
 *     r = json_rpc_read(arena, line, LIMIT_X, &frame, e);
 *     if (r == 0 && frame.kind == JSON_RPC_REQUEST && strcmp(frame.method, "ping") == 0) {
 *         json_rpc_begin(&w, &out, &frame.id);
 *         json_begin_object_as(&w, "result");
 *         json_end(&w);
 *         json_end(&w);
 *     }
 *
 * A frame that cannot be read is answered with json_rpc_write_error(out, &id, json_rpc_code(e), e->text, absent), where
 * id is json_rpc_id_of(value), or the absent id when the text was not JSON. A client that waits for answers compares
 * ids with json_rpc_id_eq(); 0 and "" are ids like all others.
 */
#pragma once

#include "base/json.h"
#include "base/json_write.h"

enum {
    JSON_RPC_PARSE_ERROR = -32700,
    JSON_RPC_INVALID_REQUEST = -32600,
    JSON_RPC_METHOD_NOT_FOUND = -32601,
    JSON_RPC_INVALID_PARAMS = -32602,
    JSON_RPC_INTERNAL_ERROR = -32603,
};

enum json_rpc_id_kind { JSON_RPC_ID_ABSENT, JSON_RPC_ID_INT, JSON_RPC_ID_STRING };

struct json_rpc_id {
    enum json_rpc_id_kind kind;
    int64_t number;
    struct slice text; /* borrowed; may hold NUL */
};

enum json_rpc_kind { JSON_RPC_REQUEST, JSON_RPC_NOTIFICATION, JSON_RPC_RESULT, JSON_RPC_ERROR };

struct json_rpc_error {
    int64_t code;
    struct slice message;
    struct json_value data; /* absent when there is none */
};

struct json_rpc_frame {
    enum json_rpc_kind kind;
    struct json_rpc_id id;       /* absent in notifications, and in errors whose sender could not read our id */
    const char *method;          /* requests and notifications; otherwise NULL */
    struct json_value params;    /* an object, or absent */
    struct json_value result;    /* RESULT: any value */
    struct json_rpc_error error; /* ERROR */
};

/* -E2BIG BODY_TOO_LARGE above max_bytes, the errors of json_parse(), those of json_rpc_read_value(). */
int json_rpc_read(struct arena *a, struct slice text, size_t max_bytes, struct json_rpc_frame *ret,
                  struct err *e) MUST_CHECK;

/* -EINVAL INVALID_REQUEST, naming the member and its rule: not an object, `jsonrpc` is not "2.0", an `id` that is no
 * integer of 64 bits and no text of at most LIMIT_RPC_ID_BYTES (null counts as absent in errors only), a `method` that
 * is empty, holds NUL or is longer than LIMIT_RPC_METHOD_BYTES, `params` that are no object, not exactly one of
 * `method`, `result` and `error`, an `error` without integer `code` and text `message`. */
int json_rpc_read_value(struct json_value v, struct json_rpc_frame *ret, struct err *e) MUST_CHECK;

/* The id of a frame that may be wrong otherwise; absent when there is no valid one. */
struct json_rpc_id json_rpc_id_of(struct json_value v);
/* The id that this value is (`requestId` of notifications/cancelled); absent when it is none. */
struct json_rpc_id json_rpc_id_from(struct json_value id);
bool json_rpc_id_eq(const struct json_rpc_id *one, const struct json_rpc_id *other);
/* A copy whose text lies in the arena. */
struct json_rpc_id json_rpc_id_copy(struct arena *a, const struct json_rpc_id *id);
/* Adds the id as a member (name NULL: as an element); an absent id is written as null. */
void json_rpc_add_id(struct json_writer *w, const char *name, const struct json_rpc_id *id);

/* The JSON-RPC code for an error of this reader: JSON_RPC_PARSE_ERROR for text that is not JSON or too long, otherwise
 * JSON_RPC_INVALID_REQUEST. */
int json_rpc_code(const struct err *e);

/* Each begins a frame; the caller adds `params` (or `result`) and ends the frame with json_end(). */
void json_rpc_begin(struct json_writer *w, struct buf *out, const struct json_rpc_id *id); /* an answer */
void json_rpc_begin_request(struct json_writer *w, struct buf *out, const struct json_rpc_id *id, const char *method);
void json_rpc_begin_notification(struct json_writer *w, struct buf *out, const char *method);

/* A whole frame. data absent: no member. */
void json_rpc_write_error(struct buf *out, const struct json_rpc_id *id, int code, const char *message,
                          struct json_value data);

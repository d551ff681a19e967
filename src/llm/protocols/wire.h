/* The common parts of the protocols: requests with JSON bodies and credentials, JSON from events, errors inside a
 * stream. Private to src/llm. Any thread, one at a time per arena. */
#pragma once

#include "llm/llm.h"
#include "net/line_reader.h"
#include "net/sse_reader.h"

enum { WIRE_QUOTED = 300 }; /* bytes of an upstream's words in an error */

/* A JSON body under construction: wire_body_begin(), json_add_..., wire_request(). Temporary texts are made in the
 * scratch arena. */
struct wire_body {
    struct buf text;
    struct json_writer json;
    struct arena *scratch;
};

void wire_body_begin(struct wire_body *b);
/* POST base/path with the body, credentials and the account's own headers; or GET when b is NULL. Clears b. */
int wire_request(const struct llm_account *acc, const char *path, struct wire_body *b, struct arena *a,
                 struct http_call_request *ret, struct err *e) MUST_CHECK;

/* A body that is expected to be a stream of events, but need not be: services that do not stream send their whole JSON,
 * and a wrong address sends a web page. Embedded. */
struct wire_events {
    struct sse_reader sse;
    struct buf whole;
    bool is_begun; /* something else than white space came */
    char first;
};

void wire_events_init(struct wire_events *s, int (*on_event)(void *arg, const struct sse_event *ev), void *arg);
void wire_events_clear(struct wire_events *s);
int wire_events_feed(struct wire_events *s, struct slice bytes, struct err *e) MUST_CHECK;
/* The whole JSON that came in place of events; empty when events came. */
struct slice wire_events_whole(const struct wire_events *s);

/* The base of every protocol's reader: a stream of events or lines, or one JSON value in its place, and the end of
 * both. A protocol defines its handling of each piece in one const table and uses wire_on_bytes() and wire_on_close()
 * as its functions. */
struct wire_reading {
    size_t size; /* of its struct llm_reader, whose first member is a struct wire_reader */
    bool is_lines;
    int (*on_data)(struct llm_reader *r, struct slice data);                 /* an event's, or a line */
    int (*on_whole)(struct llm_reader *r, struct slice body, struct err *e); /* as the protocol's */
    int (*on_last)(struct llm_reader *r); /* the stream closed without its last event; NULL: it closed too early */
};

struct wire_reader {
    const struct wire_reading *how;
    struct arena *arena; /* borrowed */
    struct llm_sink sink;
    struct err *e; /* of the current call */
    bool has_ended;
    union {
        struct wire_events events;
        struct line_reader lines;
    };
};

struct llm_reader *wire_reader_new(const struct wire_reading *how, struct arena *a, const struct llm_sink *sink);
int wire_on_bytes(struct llm_reader *r, struct slice bytes, struct err *e) MUST_CHECK;
int wire_on_close(struct llm_reader *r, struct err *e) MUST_CHECK;

const char *wire_role(enum llm_role role); /* system, user, assistant, tool */
const char *wire_data_url(struct arena *a, const struct llm_block *block);
/* All text of the message in one string, blocks separated by an empty line; "" when there is none. */
const char *wire_text(struct arena *a, const struct llm_message *m);
/* The text of a tool's result, for a protocol that cannot mark a failure: a failed one starts with "Error: ". */
const char *wire_result_text(struct arena *a, const struct llm_message *m);
/* -EINVAL UNSUPPORTED_CONTENT when a message names a file by an address that this protocol does not take. */
int wire_check_addresses(const struct llm_account *acc, const struct llm_request *request, struct err *e) MUST_CHECK;
/* -EINVAL UNSUPPORTED_CONTENT when the result of a tool is more than text. */
int wire_check_tool_results(const struct llm_request *request, struct err *e) MUST_CHECK;
/* The id of a tool call in the form this account takes: letters, digits, - and _ only; nine characters where required.
 * Other ids are translated, the same id always to the same result. */
const char *wire_tool_id(struct arena *a, const struct llm_account *acc, const char *id);
bool wire_is_plain(const struct llm_message *m); /* at most one block, which is text */
/* The prefix of a thought's signature that holds an item of OpenAI's Responses as JSON; no other protocol reads it. */
#define WIRE_RESPONSES_SIGNATURE "openai-responses:"
bool wire_is_responses_signature(const char *signature);
/* The pieces of an assistant's turn, one after the other: pieces->index counts within the kind. false: no more. */
struct wire_pieces {
    const struct llm_message *m;
    size_t at, n_reported[LLM_PIECE_CALL + 1], index;
    enum llm_piece kind;
};
bool wire_next_piece(struct wire_pieces *pieces);
void wire_add_sampling(struct json_writer *w, const struct llm_request *request, const char *max_tokens_name);

/* -EBADMSG UPSTREAM_INVALID when the text is no JSON object. */
int wire_parse(struct arena *a, struct slice text, struct json_value *ret, struct err *e) MUST_CHECK;
/* The upstream's message in an error's JSON, wherever the service puts it; NULL when there is none. The same for
 * refusals and for errors inside an answer. */
const char *wire_words(struct arena *a, struct json_value error);
/* An error inside an answer (a string or an object): -EIO LLM_ERROR, -EAGAIN when a retry may help, -EBUSY RATE_LIMIT.
 */
int wire_reported_error(struct json_value error, struct err *e);
int wire_too_early(struct err *e); /* -ECONNRESET UPSTREAM_CLOSED */
int wire_no_answer(struct err *e); /* -EBADMSG UPSTREAM_INVALID: JSON, but no answer in it */
/* Passes a text to a sink's function, unless it is empty or not a string. */
int wire_put(int (*on)(void *arg, struct slice text), void *arg, struct json_value text);
/* A count of tokens: `otherwise` when there is none; clamped to `otherwise` .. LIMIT_TOKENS, so that sums do not
 * overflow. */
int64_t wire_tokens(struct json_value count, int64_t otherwise);
/* {data: [{id, name|display_name, created}]} or {models: [...]}: the name of the list, and the names of its objects'
 * members. */
struct wire_list {
    const char *list, *id, *name, *created;
};
int wire_models(struct slice body, const struct wire_list *of, struct arena *a, struct llm_models *ret,
                struct err *e) MUST_CHECK;
/* Seconds since 1970 from a number (seconds or milliseconds) or an ISO 8601 text; 0: not a time. */
int64_t wire_time_s(struct json_value time);

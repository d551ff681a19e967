/* What the protocols have in common: requests with JSON bodies and credentials, JSON out of events, errors told inside a stream. Private
 * to src/llm. Any thread, one at a time per arena.
 */
#pragma once

#include "llm/llm.h"
#include "net/sse_reader.h"

enum { WIRE_QUOTED = 300 };             /* bytes of an upstream's words in an error */

/* A JSON body under construction: wire_body_begin(), json_add_..., wire_ask(). Texts on their way into it are made in the scratch arena. */
struct wire_body { struct buf text; struct json_writer json; struct arena *scratch; };

void wire_body_begin(struct wire_body *b);
/* POST base/path with the body, credentials and the account's own headers; or GET when b is NULL. Clears b. */
int wire_ask(const struct llm_account *acc, const char *path, struct wire_body *b, struct arena *a, struct http_ask *ret, struct err *e) MUST_CHECK;

/* A stream of events that may be none: services that do not stream answer with their whole JSON, misdirected requests with a web page. Embedded. */
struct wire_events { struct sse_reader sse; struct buf whole; char first; };

void wire_events_init(struct wire_events *s, int (*on_event)(void *arg, const struct sse_event *ev), void *arg);
void wire_events_clear(struct wire_events *s);
int wire_events_feed(struct wire_events *s, struct slice bytes, struct err *e) MUST_CHECK;
/* The whole JSON that came in place of events; empty when events came. */
struct slice wire_events_whole(const struct wire_events *s);

const char *wire_role(enum llm_role role);              /* system, user, assistant, tool */
const char *wire_data_url(struct arena *a, const struct llm_block *block);
/* All text of the message in one string, blocks parted by an empty line; "" when there is none. */
const char *wire_text(struct arena *a, const struct llm_message *m);
/* -EINVAL UNSUPPORTED_CONTENT when the result of a tool is more than text. */
int wire_check_tool_results(const struct llm_ask *ask, struct err *e) MUST_CHECK;
/* The id of a tool call as this account takes it: in letters, digits, - and _ alone, of nine where it must be. Others are translated, always to the same. */
const char *wire_tool_id(struct arena *a, const struct llm_account *acc, const char *id);
bool wire_is_plain(const struct llm_message *m);        /* at most one block, and that of text */
/* A thought's seal that is an item of OpenAI's Responses, as JSON behind this word: nobody else reads it. */
#define WIRE_RESPONSES_SEAL "openai-responses:"
bool wire_is_responses_seal(const char *seal);
/* The pieces of an assistant's turn, one behind the other: pieces->index counts within the kind. false: no more. */
struct wire_pieces { const struct llm_message *m; size_t at, n_told[LLM_PIECE_CALL + 1], index; enum llm_piece kind; };
bool wire_next_piece(struct wire_pieces *pieces);
void wire_add_sampling(struct json_writer *w, const struct llm_ask *ask, const char *max_tokens_name);

/* -EBADMSG UPSTREAM_INVALID when the text is no JSON object. */
int wire_parse(struct arena *a, struct slice text, struct json_value *ret, struct err *e) MUST_CHECK;
/* What an error's JSON says in the upstream's own words, wherever the services put them; NULL when it says nothing. Refusals and errors
 * told inside an answer are alike. */
const char *wire_words(struct arena *a, struct json_value error);
/* An error told inside an answer (a string or an object): -EIO LLM_ERROR, -EAGAIN when it may pass, -EBUSY RATE_LIMIT. */
int wire_told_error(struct json_value error, struct err *e);
int wire_too_early(struct err *e);                      /* -ECONNRESET UPSTREAM_CLOSED */
int wire_no_answer(struct err *e);                      /* -EBADMSG UPSTREAM_INVALID: JSON, but no answer in it */
/* A text on its way into a sink, unless it is empty or no text. */
int wire_put(int (*on)(void *arg, struct slice text), void *arg, struct json_value text);
/* A count of tokens: `otherwise` when there is none, never below it nor above LIMIT_TOKENS, so that sums hold. */
int64_t wire_tokens(struct json_value count, int64_t otherwise);
/* {data: [{id, name|display_name}]} or {models: [...]}: the list of objects under `list`. */
int wire_models(struct slice body, const char *list, const char *id, const char *name, struct arena *a, struct llm_models *ret, struct err *e) MUST_CHECK;

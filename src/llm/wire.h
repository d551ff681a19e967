/* What the protocols have in common: requests with JSON bodies and credentials, JSON out of events, errors told inside a stream. Private
 * to src/llm. Any thread, one at a time per arena.
 */
#pragma once

#include "llm/llm.h"
#include "net/sse_reader.h"

/* A JSON body under construction: wire_body_begin(), json_add_..., wire_body_end(). */
struct wire_body { struct buf text; struct json_writer json; };

void wire_body_begin(struct wire_body *b);
/* POST base/path with the body, credentials and the account's own headers; or GET when b is NULL. Clears b. */
int wire_ask(const struct llm_account *acc, const char *path, struct wire_body *b, struct arena *a, struct http_ask *ret, struct err *e) MUST_CHECK;

const char *wire_role(enum llm_role role);              /* system, user, assistant, tool */
const char *wire_data_url(struct arena *a, const struct llm_block *block);
/* All text of the message in one string, blocks parted by an empty line; "" when there is none. */
const char *wire_text(struct arena *a, const struct llm_message *m);
bool wire_is_plain(const struct llm_message *m);        /* at most one block, and that of text */
void wire_add_sampling(struct json_writer *w, const struct llm_ask *ask, const char *max_tokens_name);

/* -EBADMSG UPSTREAM_INVALID when the text is no JSON object. */
int wire_parse(struct arena *a, struct slice text, struct json_value *ret, struct err *e) MUST_CHECK;
/* -EIO LLM_ERROR with what `error` says (a string, or an object with message). */
int wire_told_error(struct json_value error, struct err *e);
int wire_too_early(struct err *e);                      /* -ECONNRESET UPSTREAM_CLOSED */
int wire_no_answer(struct err *e);                      /* -EBADMSG UPSTREAM_INVALID: JSON, but no answer in it */
/* The string, or an empty slice; never NULL text for a present string. */
int wire_put(int (*on)(void *arg, struct slice text), void *arg, struct json_value text);
/* {data: [{id, name|display_name}]} or {models: [...]}: the list of objects under `list`. */
int wire_models(struct slice body, const char *list, const char *id, const char *name, struct arena *a, struct llm_models *ret, struct err *e) MUST_CHECK;

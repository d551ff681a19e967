/* Items of OpenAI's Responses as messages of the neutral request: texts, tool calls and their results, thoughts,
 * references to kept items. Everything is in the arena and points into the JSON. Any thread.
 *
 *     r = v1_items_read(body->input, body->instructions, &before, arena, &request, e);
 */
#pragma once

#include "llm/llm.h"

/* The items before the input: lists of items, oldest turn first; n_bytes: their text together. find: returns the item
 * that an item_reference names; NULL: no item is kept. */
struct v1_items {
    const struct json_value *lists;
    size_t n_lists, n_bytes;
    int (*find)(void *arg, const char *id, const char *path, struct json_value *ret, struct err *e);
    void *arg;
};

/* Sets the messages of ret. All violations are reported; -E2BIG TOO_LARGE when one request may not have so many parts.
 */
int v1_items_read(struct json_value input, const char *instructions, const struct v1_items *before, struct arena *a,
                  struct llm_request *ret, struct err *e) MUST_CHECK;
/* Does the input name a file by its address, so that the service may have to fetch it? */
bool v1_items_name_address(struct json_value input);
/* Prints the input as an array of items, with references replaced by their items. Call after v1_items_read() has
 * succeeded. */
void v1_items_print(struct json_value input, const struct v1_items *before, struct buf *out);

/* The prefixes of `encrypted_content` in this service's answers, before the signature of a thought: for a thought that
 * was sent, and for one that only its provider can read. */
#define V1_SIGNATURE_SIGNED "hearth.signed."
#define V1_SIGNATURE_HIDDEN "hearth.hidden."

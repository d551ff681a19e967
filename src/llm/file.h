/* The file of a message's block: from a data URL, or from bytes that were fetched.
 *
 * From either source a text becomes a text block (every model reads one) and an image becomes an image block. When the
 * type says nothing (application/octet-stream), the first bytes decide, then the name. Everything lands in the arena.
 * Any thread.
 *
 *     r = llm_file_of_data_url(arena, "data:application/pdf;base64,...", "messages[0].content[1]", &block, e);
 */
#pragma once

#include "llm/llm.h"

/* block->file_name helps to find the type. -EINVAL VALIDATION_ERROR names the path. */
int llm_file_of_data_url(struct arena *a, const char *url, const char *path, struct llm_block *block,
                         struct err *e) MUST_CHECK;
/* type: the value of the HTTP header; NULL: none. */
int llm_file_of_bytes(struct arena *a, struct slice bytes, const char *type, const char *path, struct llm_block *block,
                      struct err *e) MUST_CHECK;
/* The same for an image: -EINVAL VALIDATION_ERROR for everything else. */
int llm_image_of_bytes(struct arena *a, struct slice bytes, const char *type, const char *path, struct llm_block *block,
                       struct err *e) MUST_CHECK;
/* "data:image/png;base64,QUJD" split into its parts, for any type. */
int llm_split_data_url(struct arena *a, const char *url, const char *path, struct llm_block *block,
                       struct err *e) MUST_CHECK;
/* http:// or https://; no connection is made. */
bool llm_is_web_address(const char *text);
/* -EINVAL VALIDATION_ERROR: not an address, or an address with a password. */
int llm_file_of_address(const char *url, const char *path, struct llm_block *block, struct err *e) MUST_CHECK;
/* Never NULL: services require a name; a made-up one ends as its type does. */
const char *llm_file_name(struct arena *a, const struct llm_block *block);

/* Reads the head of a GGUF file: the model's sizes, for an estimate of memory, and whether it makes vectors instead of
 * text.
 *
 * Reads metadata only, as far as the first key of the tokenizer, of files of versions 2 and 3 with little-endian
 * numbers. Any thread.
 *
 *     r = gguf_read("/models/llama.gguf", &info, e);      gguf_context_bytes(&info, 8192)
 */
#pragma once

#include "base/err.h"
#include "base/slice.h"

struct gguf_info {
    char architecture[48];
    int64_t n_context; /* tokens the model was trained for; this and all below: 0 when the file lacks the value */
    int64_t n_layers, n_embedding, n_heads, n_heads_kv, key_length, value_length;
    int64_t pooling; /* how token vectors are pooled; 0: the model makes text */
};

/* head: the first bytes of a file. -EBADMSG BAD_MODEL_FILE; its text lacks the file's name. */
int gguf_parse(struct slice head, struct gguf_info *ret, struct err *e) MUST_CHECK;
/* The same for a file, whose name is in the error's text; -errno when the file cannot be read. */
int gguf_read(const char *path, struct gguf_info *ret, struct err *e) MUST_CHECK;
bool gguf_is_embedding(const struct gguf_info *info);
/* Memory for the keys and values (16 bits each) of n_tokens tokens; a guess when the file lacks the sizes. */
int64_t gguf_context_bytes(const struct gguf_info *info, int64_t n_tokens);

/* What the head of a GGUF file tells of the model in it: sizes for an estimate of memory, and whether it makes vectors instead of text.
 *
 * Reads metadata only, as far as the first key of the tokenizer, of files of versions 2 and 3 with little-endian numbers. Any thread.
 *
 *     r = gguf_read("/models/llama.gguf", &info, e);      gguf_context_bytes(&info, 8192)
 */
#pragma once

#include "base/err.h"
#include "base/slice.h"

struct gguf_info {
    char architecture[48];
    int64_t n_context;                  /* tokens the model was trained for; this and all below 0 when the file does not tell */
    int64_t n_layers, n_embedding, n_heads, n_heads_kv, key_length, value_length;
    int64_t pooling;                    /* how vectors are made of tokens; 0: the model makes text */
};

/* head: the first bytes of a file. -EBADMSG BAD_MODEL_FILE; its text is "... is no GGUF file" without the name. */
int gguf_parse(struct slice head, struct gguf_info *ret, struct err *e) MUST_CHECK;
/* The same of a file, named in the text; -errno when it cannot be read. */
int gguf_read(const char *path, struct gguf_info *ret, struct err *e) MUST_CHECK;
bool gguf_is_embedding(const struct gguf_info *info);
/* Memory for the keys and values (16 bits each) of so many tokens; a guess when the file tells too little. */
int64_t gguf_context_bytes(const struct gguf_info *info, int64_t n_tokens);

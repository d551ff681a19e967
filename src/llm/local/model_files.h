/* The models folder: each GGUF file in it is a model.
 *
 * The id of a model is its file's name without ".gguf". The parts of a split file (-00001-of-00003) are one model;
 * projectors (mmproj) and subfolders are not models. Every call reads the files again. Any thread; blocking.
 *
 *     r = model_files_list("/data/models", arena, &files, e);     model_files_find(&files, "llama-3.2-3b")
 */
#pragma once

#include "base/arena.h"
#include "llm/local/gguf.h"

struct model_file {
    const char *id;
    const char *path;  /* of the first part */
    int64_t n_bytes;   /* of all parts */
    int64_t created_s; /* when the first part was written last */
    unsigned n_parts, n_missing;
    struct gguf_info info; /* all 0 when the head is unreadable */
};

struct model_files {
    struct model_file *items;
    size_t n;
}; /* models for chats first, each group by name */

/* A missing folder has no models. */
int model_files_list(const char *dir, struct arena *a, struct model_files *ret, struct err *e) MUST_CHECK;
const struct model_file *model_files_find(const struct model_files *files, const char *id); /* NULL */

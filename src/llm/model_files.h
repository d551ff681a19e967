/* The models folder: GGUF files a person put there, as models.
 *
 * The id of a model is its file's name without ".gguf". The parts of a split file (-00001-of-00003) are one model; projectors (mmproj) and
 * subfolders are none. Files are looked at anew each time. Any thread; blocking.
 *
 *     r = model_files_list("/data/models", arena, &files, e);     model_files_find(&files, "llama-3.2-3b")
 */
#pragma once

#include "base/arena.h"
#include "llm/gguf.h"

struct model_file {
    const char *id;
    const char *path;                   /* of the first part */
    int64_t n_bytes;                    /* of all parts */
    unsigned n_parts, n_missing;
    struct gguf_info info;              /* all 0 when the head cannot be read */
};

struct model_files { struct model_file *items; size_t n; };     /* those for chats first, each by name */

/* A folder that is not there has no models. */
int model_files_list(const char *dir, struct arena *a, struct model_files *ret, struct err *e) MUST_CHECK;
const struct model_file *model_files_find(const struct model_files *files, const char *id);     /* NULL */

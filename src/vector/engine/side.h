/* Side files: the codes and sketches of a namespace's rows beside vectors.db, so that a start reads them in one go
 * instead of making them from the floats of every row. A cache: vectors.db has everything, and a side file that is
 * missing, damaged or of another state is made again.
 *
 * A file holds chunks of SIDE_CHUNK_ROWS rows in order of their numbers. Each chunk has a random mark, and vectors.db
 * keeps the mark of the last chunk that belongs to it: chunks behind it, and files without it, do not count, however
 * old or new they are. Chunks are read into memory of our own, because a mapped file that somebody cuts short ends the
 * process with SIGBUS. Their checksums and contents are checked there, before the first use.
 *
 * Appended by one thread at a time; read by any. All calls block.
 *
 *     r = side_open(&place, mark, &side);                                   the chunks up to the mark: side->state
 *     for (i = 0; r == 0 && i < side->state.n_chunks; i++)  r = side_read(side, i, &chunk);
 *     side_close(side);
 *     r = side_append(&place, &state, n, fill, arg);                        then note state.mark in vectors.db
 */
#pragma once

#include "base/err.h"
#include "vector/engine/sketch.h"

enum { SIDE_CHUNK_ROWS = SKETCH_UNIT_ROWS };

/* Which file. */
struct side_place {
    int folder;                            /* borrowed; -1: there are no side files */
    int64_t space_id, first_row, last_row; /* of the namespace: its rows lie between */
    size_t n_dimensions;
};

/* What of a file counts. */
struct side_state {
    uint64_t mark; /* of the last chunk; 0: there is none */
    size_t n_chunks;
    int64_t last_row; /* of the last chunk */
};

/* Valid until the next chunk is read. */
struct side_chunk {
    const int64_t *rows;
    const float *scales;
    const uint8_t *codes;
    const uint8_t *sketch; /* an image (sketch.h); NULL: none */
    uint64_t mark;
};

/* Where a chunk to be written is put together. */
struct side_draft {
    int64_t *rows;
    float *scales;
    uint8_t *codes, *sketch;
    bool has_sketch;
};

struct side {
    struct side_state state;
    struct side_place place;
    int fd;
    uint8_t *memory;      /* owned; the content of one chunk */
    int64_t before_row;   /* the last row of the chunk read before */
    uint64_t before_mark; /* its mark */
};

/* The folder, made when it is missing; negative: side files cannot be kept there. */
int side_folder_open(const char *path) MUST_CHECK;
/* -ENOENT: there is no file; -EBADMSG: it lacks the mark, or is no side file of this namespace. */
int side_open(const struct side_place *place, uint64_t mark, struct side **ret) MUST_CHECK;
/* Chunks are read in order. -EBADMSG: this one is damaged. */
int side_read(struct side *side, size_t i, struct side_chunk *ret) MUST_CHECK;
struct side *side_close(struct side *side);

typedef void side_fill(void *arg, size_t i, struct side_draft *ret);
/* Writes n chunks behind those of *state, or a new file when it has none, and changes *state once they are on disk. */
int side_append(const struct side_place *place, struct side_state *state, size_t n, side_fill *fill,
                void *arg) MUST_CHECK;
void side_remove(int folder, int64_t space_id);
/* Removes the files of namespaces that are not wanted; files of other names stay. */
void side_sweep(int folder, bool (*is_wanted)(void *arg, int64_t space_id), void *arg);

/* The rows of the embedded vector engine (<data>/vectors.db): namespaces ("spaces"), their vectors and metadata.
 *
 * Opened by src/vector and used by any thread; every call blocks. A row's number is never given twice while the file is
 * open and numbers of one space rise in the order of commits, so that memory can be matched with the file by number.
 * Changes go through a writer (store/writer.h): durable when the call returns, whole or not at all.
 *
 *     struct vectors_db_change c = { .space = "sdk_app_default", .n_dimensions = 384, .puts = puts, .n_puts = n };
 *     r = vectors_db_put(db, &c, e);                   puts[i] has the number c.first_row + i
 *     vectors_db_change_clear(&c);
 */
#pragma once

#include "base/fields.h"
#include "store/sql.h"

struct vectors_db;

/* id 0: there is none of that name. n_bytes: ids, metadata and vectors of its rows. */
struct vectors_db_space { int64_t id, n_dimensions, n_rows, n_bytes; };

struct vectors_db_put {
    const char *id, *metadata;
    const char *document_id;            /* may be NULL */
    const float *vector;
};

struct vectors_db_change {
    const char *space;
    size_t n_dimensions;                /* of puts */
    const struct vectors_db_put *puts;
    size_t n_puts;
    const char *const *ids;             /* to be removed */
    size_t n_ids;
    const int64_t *rows;                /* to be removed, when they are still there */
    size_t n_rows;
    /* Called inside the transaction once all went well, so in the order of commits; the commit itself may still fail.
     * May be NULL; must not wait. */
    void (*on_stored)(struct vectors_db_change *c);
    void *arg;
    /* what came of it */
    struct vectors_db_space found;      /* the space after the change */
    int64_t text_row;                   /* rows up to it are in the full-text index; -1: there is none */
    bool is_new, is_dropped;            /* the space was made by it; went with it */
    int64_t first_row;                  /* of puts */
    int64_t *removed;                   /* owned; rows that went, replaced ones among them */
    size_t n_removed;
};

int vectors_db_open(const char *path, struct vectors_db **ret, struct err *e) MUST_CHECK;
struct vectors_db *vectors_db_close(struct vectors_db *db);

/* Later puts of an id replace earlier ones, also within the call. The first put of a space decides its dimensions; others:
 * -EINVAL DIMENSION_MISMATCH. -E2BIG TOO_MANY_NAMESPACES. */
int vectors_db_put(struct vectors_db *db, struct vectors_db_change *c, struct err *e) MUST_CHECK;
/* ids and rows; a space that is not there has none of them, one that is empty then is dropped. */
int vectors_db_remove(struct vectors_db *db, struct vectors_db_change *c, struct err *e) MUST_CHECK;
/* The whole space with its name and dimensions; found.n_rows is how many rows it had. The rows go from the file by and by
 * (vectors_db_sweep). */
int vectors_db_drop(struct vectors_db *db, struct vectors_db_change *c, struct err *e) MUST_CHECK;
void vectors_db_change_clear(struct vectors_db_change *c);
/* Deletes at most max_rows rows of dropped spaces; *ret_has_more false: nothing is left. */
int vectors_db_sweep(struct vectors_db *db, int64_t max_rows, bool *ret_has_more, struct err *e) MUST_CHECK;

int vectors_db_find(struct vectors_db *db, const char *space, struct vectors_db_space *ret, struct err *e) MUST_CHECK;
/* n_bytes of all spaces whose names begin with the prefix. */
int vectors_db_bytes(struct vectors_db *db, const char *prefix, int64_t *ret, struct err *e) MUST_CHECK;
int vectors_db_names(struct vectors_db *db, const char *prefix, struct arena *a, struct field_strings *ret,
                     struct err *e) MUST_CHECK;
/* Notes that the space is in use, and names those used last, latest first. */
int vectors_db_touch(struct vectors_db *db, const char *space, struct err *e) MUST_CHECK;
int vectors_db_recent(struct vectors_db *db, int64_t limit, struct arena *a, struct field_strings *ret,
                      struct err *e) MUST_CHECK;

/* What follows reads one state of the file between begin and end, on this thread's connection. */
int vectors_db_begin(struct vectors_db *db, struct err *e) MUST_CHECK;
void vectors_db_end(struct vectors_db *db);

/* vector: not aligned, gone when the visitor returns. */
typedef int vectors_db_visit(void *arg, int64_t row, const void *vector, struct err *e);
typedef int vectors_db_visit_metadata(void *arg, int64_t row, const char *metadata, struct err *e);

/* All vectors of a space in order of their rows. A row whose vector has another length: -EUCLEAN STORE_DAMAGED. */
int vectors_db_load(struct vectors_db *db, const struct vectors_db_space *space, vectors_db_visit *visit, void *arg,
                    struct err *e) MUST_CHECK;
/* Those of rows that are there. */
int vectors_db_each(struct vectors_db *db, const struct vectors_db_space *space, const int64_t *rows, size_t n,
                    vectors_db_visit *visit, void *arg, struct err *e) MUST_CHECK;
/* Metadata of the space's rows above after_row, in order. */
int vectors_db_each_metadata(struct vectors_db *db, int64_t space_id, int64_t after_row, vectors_db_visit_metadata *visit,
                             void *arg, struct err *e) MUST_CHECK;
/* Rows with this documentId, by its index. */
int vectors_db_each_of_document(struct vectors_db *db, int64_t space_id, const char *document_id,
                                vectors_db_visit_metadata *visit, void *arg, struct err *e) MUST_CHECK;

/* Brings the space's full-text index of metadata.text up to date, and makes it the first time; not inside begin/end. */
int vectors_db_text_ready(struct vectors_db *db, int64_t space_id, struct err *e) MUST_CHECK;
typedef int vectors_db_visit_row(void *arg, int64_t row, struct err *e);
/* Rows whose text has any of the words, best first, until the visitor returns 1. */
int vectors_db_text_search(struct vectors_db *db, int64_t space_id, const char *text, vectors_db_visit_row *visit, void *arg,
                           struct err *e) MUST_CHECK;

/* vector: n_dimensions numbers as the row holds them, or NULL and 0. */
struct vectors_db_item { const char *id, *metadata; const float *vector; size_t n_dimensions; };

/* -ENOENT when there is no such row. vector only when asked for. */
int vectors_db_get(struct vectors_db *db, int64_t row, bool with_vector, struct arena *a, struct vectors_db_item *ret,
                   struct err *e) MUST_CHECK;
/* In order of their ids. */
int vectors_db_list(struct vectors_db *db, int64_t space_id, int64_t limit, int64_t offset, bool with_vectors,
                    struct arena *a, struct vectors_db_item **ret, size_t *ret_n, struct err *e) MUST_CHECK;

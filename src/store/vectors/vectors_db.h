/* The rows of the embedded vector engine (<data>/vectors.db): namespaces ("spaces"), their vectors and metadata.
 *
 * Opened by src/vector and used by any thread; every call blocks. While the file is open, a row number is never reused,
 * and the numbers of one space rise in the order of commits, so that memory can be matched with the file by number.
 * Changes go through a writer (store/writer.h): each is durable when the call returns, and stored completely or not at
 * all.
 *
 *     struct vectors_db_change c = { .space = "sdk_app_default", .n_dimensions = 384, .puts = puts, .n_puts = n };
 *     r = vectors_db_put(db, &c, e);                   puts[i] has the number c.first_row + i
 *     vectors_db_change_clear(&c);
 */
#pragma once

#include "base/fields.h"
#include "store/sql.h"

struct vectors_db;
struct instance;

/* id 0: no space has that name. n_bytes: ids, metadata and vectors of its rows. side_mark: what was noted last. */
struct vectors_db_space {
    int64_t id, n_dimensions, n_rows, n_bytes, side_mark;
};

struct vectors_db_put {
    const char *id, *metadata;
    const char *document_id; /* may be NULL */
    const float *vector;
};

struct vectors_db_change {
    const char *space;
    size_t n_dimensions; /* of puts */
    const struct vectors_db_put *puts;
    size_t n_puts;
    const char *const *ids; /* to remove */
    size_t n_ids;
    const int64_t *rows; /* to remove, if they still exist */
    size_t n_rows;
    /* Called inside the transaction after its last statement succeeded, so in the order of commits; the commit itself
     * may still fail. May be NULL; must not block. */
    void (*on_stored)(struct vectors_db_change *c);
    void *arg;
    /* the result */
    struct vectors_db_space found; /* the space after the change */
    int64_t text_row;              /* rows up to this one are in the full-text index; -1: there is no index */
    bool is_new, is_dropped;       /* this change made the space; removed the space */
    int64_t first_row;             /* of puts */
    int64_t *removed;              /* owned; removed rows, including replaced ones */
    size_t n_removed;
};

/* instance: the instance that admitted the file; NULL: none. */
int vectors_db_open(const char *path, struct instance *instance, struct vectors_db **ret, struct err *e) MUST_CHECK;
extern const size_t vectors_db_n_migrations; /* the schema version of this program */

/* Checks PRAGMA integrity_check and the schema of a file that may be in use; patience NULL: without a time limit. */
struct backup_patience;
int vectors_db_check(const char *path, const struct backup_patience *patience, struct err *e) MUST_CHECK;
struct vectors_db *vectors_db_close(struct vectors_db *db);

/* A later put of an id replaces an earlier one, also within one call. The first put of a space sets its dimensions; a
 * different number: -EINVAL DIMENSION_MISMATCH. -E2BIG TOO_MANY_NAMESPACES. */
int vectors_db_put(struct vectors_db *db, struct vectors_db_change *c, struct err *e) MUST_CHECK;
/* Removes ids and rows; a missing space has no rows; a space that becomes empty is dropped. */
int vectors_db_remove(struct vectors_db *db, struct vectors_db_change *c, struct err *e) MUST_CHECK;
/* Drops the whole space with its name and dimensions; found.n_rows is the number of its rows. vectors_db_sweep()
 * deletes the rows from the file later. */
int vectors_db_drop(struct vectors_db *db, struct vectors_db_change *c, struct err *e) MUST_CHECK;
void vectors_db_change_clear(struct vectors_db_change *c);
/* Deletes at most max_rows rows of dropped spaces; *ret_has_more false: none are left. */
int vectors_db_sweep(struct vectors_db *db, int64_t max_rows, bool *ret_has_more, struct err *e) MUST_CHECK;

int vectors_db_find(struct vectors_db *db, const char *space, struct vectors_db_space *ret, struct err *e) MUST_CHECK;
/* The sum of n_bytes of all spaces whose names begin with the prefix. */
int vectors_db_bytes(struct vectors_db *db, const char *prefix, int64_t *ret, struct err *e) MUST_CHECK;
int vectors_db_names(struct vectors_db *db, const char *prefix, struct arena *a, struct field_strings *ret,
                     struct err *e) MUST_CHECK;
/* vectors_db_touch() records the use of the space; vectors_db_recent() lists the last used spaces, latest first. */
int vectors_db_touch(struct vectors_db *db, const char *space, struct err *e) MUST_CHECK;
int vectors_db_recent(struct vectors_db *db, int64_t limit, struct arena *a, struct field_strings *ret,
                      struct err *e) MUST_CHECK;

/* The lowest and highest number that a row of the space may have. */
void vectors_db_row_range(int64_t space_id, int64_t *ret_first, int64_t *ret_last);
/* Notes the mark of the space's side file (vector/engine/side.h). -ENOENT: there is no such space any more. */
int vectors_db_note_side(struct vectors_db *db, int64_t space_id, int64_t mark, struct err *e) MUST_CHECK;
/* The ids of all spaces that have such a mark, in order; free() the array. */
int vectors_db_sides(struct vectors_db *db, int64_t **ret, size_t *ret_n, struct err *e) MUST_CHECK;

/* Folds the write-ahead log into the file, as far as readers allow, so that readers need it no longer. */
int vectors_db_fold(struct vectors_db *db, struct err *e) MUST_CHECK;

/* vector: n_dimensions numbers as stored in the row, or NULL and 0. */
struct vectors_db_item {
    const char *id, *metadata;
    const float *vector;
    size_t n_dimensions;
};

/* Between begin and end, the following functions read one state of the file, on this thread's connection. */
int vectors_db_begin(struct vectors_db *db, struct err *e) MUST_CHECK;
void vectors_db_end(struct vectors_db *db);

/* vector: unaligned, invalid after the visitor returns. */
typedef int vectors_db_visit(void *arg, int64_t row, const void *vector, struct err *e);
/* text: id and metadata, which become invalid after the visitor returns, as the vector does. */
typedef int vectors_db_visit_item(void *arg, int64_t row, const struct vectors_db_item *text, const void *vector,
                                  struct err *e);
typedef int vectors_db_visit_metadata(void *arg, int64_t row, const char *metadata, struct err *e);
typedef int vectors_db_visit_row(void *arg, int64_t row, struct err *e);

/* The vectors of a space's rows above after_row, in order of their rows. A row whose vector has another length:
 * -EUCLEAN STORE_DAMAGED. */
int vectors_db_load(struct vectors_db *db, const struct vectors_db_space *space, int64_t after_row,
                    vectors_db_visit *visit, void *arg, struct err *e) MUST_CHECK;
/* Visits the numbers of all rows of a space, in order of their ids, from an index alone. */
int vectors_db_each_row(struct vectors_db *db, int64_t space_id, vectors_db_visit_row *visit, void *arg,
                        struct err *e) MUST_CHECK;
/* Visits the rows that exist. */
int vectors_db_each(struct vectors_db *db, const struct vectors_db_space *space, const int64_t *rows, size_t n,
                    vectors_db_visit_item *visit, void *arg, struct err *e) MUST_CHECK;
/* Visits the metadata of the space's rows above after_row, in order. */
int vectors_db_each_metadata(struct vectors_db *db, int64_t space_id, int64_t after_row,
                             vectors_db_visit_metadata *visit, void *arg, struct err *e) MUST_CHECK;
/* Visits the rows with this documentId, through the index. */
int vectors_db_each_of_document(struct vectors_db *db, int64_t space_id, const char *document_id,
                                vectors_db_visit_metadata *visit, void *arg, struct err *e) MUST_CHECK;

/* Updates the space's full-text index of metadata.text, or makes it at the first call; not between begin and end. */
int vectors_db_text_ready(struct vectors_db *db, int64_t space_id, struct err *e) MUST_CHECK;
/* Visits rows whose text contains any of the words, best first, until the visitor returns 1. */
int vectors_db_text_search(struct vectors_db *db, int64_t space_id, const char *text, vectors_db_visit_row *visit,
                           void *arg, struct err *e) MUST_CHECK;

/* -ENOENT when the row does not exist. Reads the vector only when with_vector is set. */
int vectors_db_get(struct vectors_db *db, int64_t row, bool with_vector, struct arena *a, struct vectors_db_item *ret,
                   struct err *e) MUST_CHECK;
/* A page of a space's items. */
struct vectors_db_list_request {
    int64_t space_id;
    int64_t limit, offset; /* limit: at least 1 */
    bool with_vectors;     /* false: items have no vector */
};
/* Ordered by id. */
int vectors_db_list(struct vectors_db *db, const struct vectors_db_list_request *request, struct arena *a,
                    struct vectors_db_item **ret, size_t *ret_n, struct err *e) MUST_CHECK;

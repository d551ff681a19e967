/* One namespace as the embedded engine holds it: its rows in memory, once loaded, in step with the file.
 *
 * Changes are made in the file first. Their order is that of the commits: space_expect() is called on the writer's
 * thread inside the transaction, space_settle() by the caller after the transaction; it applies the settled changes in
 * that order. A change is in memory when space_settle() returns. Callers hold the gate shared meanwhile, so that
 * unloading and the end of a load, which hold it exclusively, see no change on its way. Changes go on while rows are
 * loaded.
 */
#pragma once

#include "store/vectors/vectors_db.h"
#include "vector/engine/columns.h"
#include "vector/engine/scan.h"
#include "vector/engine/side.h"
#include "vector/engine/slab.h"

struct metric;
struct pace;

enum {
    SPACE_STEP_ROWS = 4096, /* a replacement lets changes wait once no more rows have changed meanwhile */
    SPACE_QUIET_MS = 1000,
    SPACE_MISSED_ROWS = 262144, /* rows removed while others are loaded; with more of them, changes wait for the load */
};

/* Where rows are read from. */
struct space_source {
    struct vectors_db *db; /* borrowed */
    int side_folder;       /* -1: none */
    bool has_sketches;
    struct metric *n_refused;           /* side files that were missing, damaged or of another state */
    atomic_int_least64_t changed_at_ms; /* clock_mono_ms() of the last change of any namespace */
    atomic_bool is_hurried;             /* do not wait for a quiet moment */
};

/* No namespace has changed for a while: time for work that would take turns with changes at the disk. */
bool space_is_quiet(const struct space_source *from);

/* A change on its way, on its caller's stack. */
struct space_op {
    struct space_op *next;
    bool is_expected, is_settled, is_stored, is_applied;
    struct vectors_db_change *change; /* borrowed */
    uint8_t *codes;                   /* owned; of the change's puts */
    float *scales;                    /* owned */
};

/* Rows that were removed while the file was read. */
struct space_missed {
    int64_t *rows; /* owned */
    size_t n, cap, max;
    bool is_lost; /* there were more, or the namespace was dropped */
};

struct space {
    struct space *next;     /* of the engine's table, under its lock */
    char *name;             /* owned */
    int n_refs;             /* under the table's lock */
    int64_t used_at_ms;     /* under the table's lock */
    atomic_size_t *account; /* borrowed */

    pthread_rwlock_t gate;
    pthread_mutex_t line_lock; /* of the line, is_applying and n_applied */
    pthread_cond_t line_moved;
    struct space_op *first, *last; /* expected, not yet applied */
    bool is_applying;
    uint64_t n_applied;

    pthread_mutex_t load_lock; /* one thread loads at a time */

    pthread_mutex_t lock; /* of the members below */
    bool is_loaded;
    int64_t id;        /* in the file; 0: there is no such namespace, or it is not loaded */
    struct slab *slab; /* owned reference; NULL: no rows */
    struct side_state side;
    size_t side_wait_n;          /* rows before the next try to write the side file */
    size_t most_waited_rows;     /* the most rows that were copied, read or removed while changes waited */
    struct space_missed *missed; /* of the thread that loads; NULL: none does */

    struct scan_batcher batcher;
    struct columns columns;
};

struct space *space_new(const char *name, atomic_size_t *account) MUST_CHECK;
struct space *space_free(struct space *s);

void space_op_init(struct space_op *op, struct vectors_db_change *change);
void space_op_clear(struct space_op *op);
void space_expect(struct space *s, struct space_op *op);
/* Call it for every op, even without a space_expect(). */
void space_settle(struct space *s, struct space_op *op, bool is_stored);

/* How many changes were applied, or failed, so far. */
uint64_t space_n_applied(struct space *s);
/* Waits until there are more than n_seen, or none is on its way: what the file shows before memory does is on its way
 * then. */
void space_await_change(struct space *s, uint64_t n_seen);

/* Reads the rows of the file, if they are not loaded; without the gate. */
int space_load(struct space *s, const struct space_source *from, struct err *e) MUST_CHECK;
void space_unload(struct space *s); /* with the gate held exclusively */
/* A change of a namespace that is not loaded. */
void space_note_missed(struct space *s, const struct vectors_db_change *c);

bool space_is_loaded(struct space *s);
bool space_has_rows(struct space *s);        /* in memory: unloading would free some */
double space_recall(struct space *s);        /* of its lists; 1 when it has none */
double space_sketch_recall(struct space *s); /* of its sketches; 1 when it is not measured */
/* Do the rows need sketches, a place in the side file, a measurement of their recall, or a new order: lists, or
 * compaction? */
enum space_need {
    SPACE_NEEDS_NOTHING,
    SPACE_NEEDS_SKETCHES,
    SPACE_NEEDS_SIDE,
    SPACE_NEEDS_RECALL,
    SPACE_NEEDS_LISTS,
    SPACE_NEEDS_COMPACTION
};
enum space_need space_need(struct space *s, const struct space_source *from, int64_t list_above_rows);
/* Makes the sketches of the view's next unit; queries and changes continue meanwhile. One thread at a time. -ENOENT:
 * there is none to make. */
int space_add_sketches(struct space *s, const struct slab_view *view, struct pace *pace) MUST_CHECK;
/* Adds rows of the view to the side file; queries and changes continue meanwhile. One thread at a time. */
int space_save_side(struct space *s, const struct space_source *from, const struct slab_view *view,
                    const struct vectors_db_space *of) MUST_CHECK;
/* Replaces the view's slab by `fresh`, made from the view, and adds the changes since; queries continue meanwhile,
 * changes wait during the last part. order: of the view's live rows in fresh, to which filters' columns are moved;
 * NULL: they are read again. Takes ownership of fresh. -ESTALE: the namespace has another slab by now. */
int space_replace(struct space *s, const struct slab_view *view, struct slab *fresh, const uint32_t *order) MUST_CHECK;
/* Notes the recall of the view's sketches. */
void space_note_recall(struct space *s, const struct slab_view *view, double recall);
/* Notes that lists were of no use for the view's rows. */
void space_note_tried(struct space *s, const struct slab_view *view);

/* The present rows and their namespace; false: not loaded. */
bool space_view(struct space *s, struct slab_view *ret, struct vectors_db_space *ret_of);

/* --- of space_load.c, the two halves of space_load() --- */

struct space_load {
    struct space *space; /* borrowed */
    const struct space_source *from;
    struct vectors_db_space of; /* as the slab has it */
    struct slab *slab;          /* owned; NULL: there is no such namespace */
    struct side_state side;
    struct space_missed missed;
};

/* Reads what the file has; call the end whatever it returns. */
int space_load_begin(struct space_load *l, struct space *s, const struct space_source *from, struct err *e) MUST_CHECK;
/* Adds what has changed since and publishes the rows, when r is 0. -ESTALE: too much has changed. */
int space_load_end(struct space_load *l, int r, struct err *e) MUST_CHECK;

/* --- of space_side.c, for space*.c --- */

/* Adds what counts of the side file to an empty slab; *ret: nothing, when there is none. */
int space_side_load(const struct space_source *from, const struct vectors_db_space *of, struct slab *slab,
                    struct side_state *ret, struct err *e) MUST_CHECK;
/* Kills the rows of a complete slab that vectors.db has no longer. -ESTALE: the slab lacks a row. */
int space_side_settle(const struct space_source *from, const struct vectors_db_space *of, struct slab *slab,
                      struct err *e) MUST_CHECK;
bool space_side_is_due(const struct space *s, const struct space_source *from); /* under the lock */

/* One namespace as the embedded engine holds it: its rows in memory, once loaded, in step with the file.
 *
 * Changes are made in the file first. Their order is that of the commits: space_expect() is called on the writer's thread
 * inside the transaction, space_settle() by the caller when the transaction is through, and applies all that is settled
 * in that order. A change is in memory when space_settle() returns. Callers hold the gate meanwhile, so that loading
 * and unloading, which take it alone, see memory and file at rest.
 */
#pragma once

#include "store/vectors_db.h"
#include "vector/columns.h"
#include "vector/scan.h"
#include "vector/slab.h"

/* A change on its way, on its caller's stack. */
struct space_op {
    struct space_op *next;
    bool is_expected, is_settled, is_stored, is_applied;
    struct vectors_db_change *change;   /* borrowed */
    uint8_t *codes;                     /* owned; of the change's puts */
    float *scales;                      /* owned */
};

struct space {
    struct space *next;                 /* of the engine's table, under its lock */
    char *name;                         /* owned */
    int n_refs;                         /* under the table's lock */
    int64_t used_at_ms;                 /* under the table's lock */
    atomic_size_t *account;             /* borrowed */

    pthread_rwlock_t gate;
    pthread_mutex_t line_lock;          /* of the line and is_applying */
    pthread_cond_t line_moved;
    struct space_op *first, *last;      /* expected, not yet applied */
    bool is_applying;

    pthread_mutex_t lock;               /* of what follows */
    bool is_loaded;
    int64_t id;                         /* in the file; 0: there is no such namespace, or it is not loaded */
    struct slab *slab;                  /* owned reference; NULL: no rows */

    struct scan_desk desk;
    struct columns columns;
};

struct space *space_new(const char *name, atomic_size_t *account) MUST_CHECK;
struct space *space_free(struct space *s);

void space_op_init(struct space_op *op, struct vectors_db_change *change);
void space_op_clear(struct space_op *op);
void space_expect(struct space *s, struct space_op *op);
/* Call it for every op, also one that was never expected. */
void space_settle(struct space *s, struct space_op *op, bool is_stored);

/* With the gate held alone. */
int space_load(struct space *s, struct vectors_db *db, struct err *e) MUST_CHECK;
void space_unload(struct space *s);

bool space_is_loaded(struct space *s);
bool space_has_rows(struct space *s);   /* in memory: unloading would free some */
double space_recall(struct space *s);   /* of its lists; 1 when it has none */
/* Whether the rows want a new order: lists, or no gaps. */
enum space_need { SPACE_NEEDS_NOTHING, SPACE_NEEDS_LISTS, SPACE_NEEDS_COMPACTION };
enum space_need space_need(struct space *s, int64_t list_above_rows);
/* Puts `fresh`, made from the view, in the place of its slab, with what changed since; queries go on meanwhile, changes
 * wait for the last of it. Takes over fresh. -ESTALE: the namespace has other rows by now. */
int space_replace(struct space *s, const struct slab_view *view, struct slab *fresh) MUST_CHECK;
/* Notes that lists were of no use for the view's rows. */
void space_note_tried(struct space *s, const struct slab_view *view);

/* The rows of this moment and the namespace they belong to; false: not loaded. */
bool space_view(struct space *s, struct slab_view *ret, struct vectors_db_space *ret_of);

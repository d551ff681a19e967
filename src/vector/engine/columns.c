#include "vector/engine/columns.h"
#include "base/limits.h"
#include "vector/engine/column.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

void columns_init(struct columns *c, atomic_size_t *account)
{
    *c = (struct columns){ .account = account };
    pthread_mutex_init(&c->lock, NULL);
}

static void free_column(struct columns *c, struct column *column)
{
    atomic_fetch_sub(c->account, column_bytes(column));
    column_free(column);
}

/* Under the lock. */
static void forget_all(struct columns *c)
{
    while (c->first) {
        struct column *column = c->first;

        c->first = column->next;
        free_column(c, column);
    }
    c->slab_serial = 0;
}

void columns_forget(struct columns *c)
{
    pthread_mutex_lock(&c->lock);
    forget_all(c);
    pthread_mutex_unlock(&c->lock);
}

void columns_clear(struct columns *c)
{
    forget_all(c);
    pthread_mutex_destroy(&c->lock);
}

/* --- making columns --- */

/* Columns of one filter that are extended together. */
struct reading {
    struct slab_view all; /* all rows of the slab, dead rows too */
    struct column *columns[LIMIT_VECTOR_CONDITIONS];
    size_t n;
};

static struct column *find_or_make(struct columns *c, const char *key)
{
    struct column **at = &c->first, *column;

    while (*at && strcmp((*at)->key, key) != 0)
        at = &(*at)->next;
    column = *at;
    if (column)
        *at = column->next;
    else
        column = column_new(key);
    column->next = c->first;
    c->first = column;
    return column;
}

/* Frees the columns used least recently. The present filter's columns are at the head of the list, at most
 * LIMIT_VECTOR_CONDITIONS. */
static void drop_beyond_limit(struct columns *c)
{
    struct column **at = &c->first;

    for (size_t n = 0; *at && n < LIMIT_VECTOR_CONDITIONS; n++)
        at = &(*at)->next;
    while (*at) {
        struct column *column = *at;

        *at = column->next;
        free_column(c, column);
    }
}

static int read_row(void *arg, int64_t row, const char *metadata, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct reading *reading = arg;
    struct json_value value = { 0 };
    size_t slot;
    int r;

    if (!slab_view_find(&reading->all, row, &slot))
        return 0; /* the row is newer than the view */
    r = json_parse(a, slice_of(metadata), &value, e);
    for (size_t i = 0; r == 0 && i < reading->n; i++)
        r = column_set(reading->columns[i], slot, value);
    return r;
}

/* Reads the slots from n_known on, for columns that all have n_known slots. */
static int read_up(struct reading *reading, struct vectors_db *db, const struct vectors_db_space *of, size_t n_known,
                   struct err *e)
{
    const struct slab *slab = reading->all.slab;
    int64_t after = n_known > 0 ? slab_row(slab, slab_slot_in_order(slab, n_known - 1)) : 0;
    int r;

    r = vectors_db_each_metadata(db, of->id, after, read_row, reading, e);
    for (size_t i = 0; i < reading->n; i++)
        column_extend(reading->columns[i], reading->all.n);
    return r;
}

/* Extends each column of the filter's keys once. Columns with the same number of known slots form a group, which needs
 * one pass over the file. */
static int make_known(struct columns *c, struct vectors_db *db, const struct slab_view *view,
                      const struct vectors_db_space *of, struct err *e)
{
    struct reading reading = { .all = { .slab = view->slab, .n = view->n } };
    int r = 0;

    while (r == 0) {
        size_t n_known = 0;

        reading.n = 0;
        for (struct column *column = c->first; column; column = column->next) {
            if (column->n_slots >= view->n || !column->is_wanted || (reading.n > 0 && column->n_slots != n_known))
                continue;
            n_known = column->n_slots;
            reading.columns[reading.n++] = column;
        }
        if (reading.n == 0)
            break;
        r = read_up(&reading, db, of, n_known, e);
    }
    return r;
}

static size_t bytes_of(const struct columns *c)
{
    size_t n = 0;

    for (struct column *column = c->first; column; column = column->next)
        n += column_bytes(column);
    return n;
}

static int extend_wanted(struct columns *c, struct vectors_db *db, const struct slab_view *view,
                         const struct vectors_db_space *of, size_t bytes_before, struct err *e)
{
    int r = make_known(c, db, view, of, e);

    atomic_fetch_add(c->account, bytes_of(c) - bytes_before);
    if (r < 0)
        forget_all(c); /* some columns are incomplete */
    return r;
}

static int prepare(struct columns *c, struct vectors_db *db, const struct slab_view *view,
                   const struct vectors_db_space *of, const struct vector_filter *filter, struct err *e)
{
    size_t before;
    int r;

    if (c->slab_serial > view->slab->serial)
        return -ESTALE; /* they would be read again for each view of either slab */
    if (c->slab_serial != view->slab->serial)
        forget_all(c);
    c->slab_serial = view->slab->serial;
    before = bytes_of(c);
    for (struct column *column = c->first; column; column = column->next)
        column->is_wanted = false;
    for (size_t i = 0; i < filter->n; i++)
        find_or_make(c, filter->items[i].key)->is_wanted = true;
    r = extend_wanted(c, db, view, of, before, e);
    drop_beyond_limit(c);
    return r;
}

/* --- using columns --- */

static size_t start_with_live(const struct slab_view *view, uint64_t *mask)
{
    size_t n_words = slab_n_words(view->n);

    for (size_t i = 0; i < n_words; i++)
        mask[i] = view->live ? view->live[i] : ~UINT64_C(0);
    if (view->n % SLAB_BLOCK_ROWS)
        mask[n_words - 1] &= ~UINT64_C(0) >> (SLAB_BLOCK_ROWS - view->n % SLAB_BLOCK_ROWS);
    return n_words;
}

static int apply(struct columns *c, const struct slab_view *view, const struct vector_filter *filter, uint64_t *mask,
                 size_t *ret_n)
{
    size_t n_words = start_with_live(view, mask);
    int r = 0;

    for (size_t i = 0; r == 0 && i < filter->n; i++)
        r = column_apply(find_or_make(c, filter->items[i].key), &filter->items[i], mask, view->n);
    if (r < 0)
        return r;
    *ret_n = 0;
    for (size_t i = 0; i < n_words; i++)
        *ret_n += (size_t)__builtin_popcountll(mask[i]);
    return 0;
}

int columns_match(struct columns *c, const struct columns_match_request *request, uint64_t *mask, size_t *ret_n,
                  struct err *e)
{
    int r;

    pthread_mutex_lock(&c->lock);
    r = prepare(c, request->db, request->view, request->of, request->filter, e);
    if (r == 0)
        r = apply(c, request->view, request->filter, mask, ret_n);
    pthread_mutex_unlock(&c->lock);
    return r;
}

/* --- another slab --- */

enum { MOVE_SPARE_SLOTS = 65536, MOVE_PATIENCE_MS = 20 };

static int extend_in(struct columns *c, struct vectors_db *db, const struct slab_view *view,
                     const struct vectors_db_space *of)
{
    for (struct column *column = c->first; column; column = column->next)
        column->is_wanted = true;
    return c->slab_serial == view->slab->serial ? extend_wanted(c, db, view, of, bytes_of(c), NULL) : 0;
}

void columns_extend(struct columns *c, struct vectors_db *db, const struct slab_view *view,
                    const struct vectors_db_space *of)
{
    if (vectors_db_begin(db, NULL) < 0)
        return; /* a query that needs them reports the error */
    pthread_mutex_lock(&c->lock);
    if (extend_in(c, db, view, of) < 0)
        assert(!c->first);
    pthread_mutex_unlock(&c->lock);
    vectors_db_end(db);
}

static struct column *find(const struct columns *c, const char *key)
{
    struct column *column = c->first;

    while (column && strcmp(column->key, key) != 0)
        column = column->next;
    return column;
}

/* The key and a copy of the slots of a column that is not moved yet. false: there is none. */
static bool take_next(struct columns *c, const struct slab_view *view, char **ret_key, uint32_t **ret_slots)
{
    struct column *column = NULL;

    pthread_mutex_lock(&c->lock);
    if (c->slab_serial == view->slab->serial)
        column = c->first;
    while (column && (column->moved || column->n_slots < view->n))
        column = column->next;
    if (column) {
        *ret_key = xstrdup(column->key);
        *ret_slots = xcalloc(view->n + 1, sizeof(**ret_slots));
        memcpy(*ret_slots, column->slots, view->n * sizeof(**ret_slots));
    }
    pthread_mutex_unlock(&c->lock);
    return column;
}

/* Takes ownership of moved. */
static void note_moved(struct columns *c, const char *key, uint32_t *moved, const struct slab_view *view)
{
    struct column *column;

    pthread_mutex_lock(&c->lock);
    column = c->slab_serial == view->slab->serial ? find(c, key) : NULL;
    if (column && !column->moved) {
        column->moved = TAKE(moved);
        column->n_moved = view->n_live;
        column->cap_moved = view->n_live + MOVE_SPARE_SLOTS;
    }
    pthread_mutex_unlock(&c->lock);
    free(moved);
}

/* Of an exchange that did not come. */
static void forget_moved(struct columns *c)
{
    pthread_mutex_lock(&c->lock);
    for (struct column *column = c->first; column; column = column->next) {
        free(TAKE(column->moved));
        column->n_moved = column->cap_moved = 0;
    }
    pthread_mutex_unlock(&c->lock);
}

/* The lock is held for the copy of one column at a time. */
void columns_prepare_move(struct columns *c, const struct columns_move *move)
{
    const struct slab_view *view = move->view;
    uint32_t *slots = NULL;
    char *key = NULL;

    forget_moved(c);
    while (take_next(c, view, &key, &slots)) {
        uint32_t *moved = xcalloc(view->n_live + MOVE_SPARE_SLOTS, sizeof(*moved));

        for (size_t i = 0; i < view->n_live; i++)
            moved[i] = slots[move->order[i]];
        note_moved(c, key, moved, view);
        free(slots);
        free(key);
    }
}

bool columns_begin_move(struct columns *c)
{
    struct timespec until;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += MOVE_PATIENCE_MS * 1000000L;
    if (until.tv_nsec >= 1000000000) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000;
    }
    return pthread_mutex_timedlock(&c->lock, &until) == 0;
}

void columns_end_move(struct columns *c, const struct columns_move *move, uint64_t slab_serial)
{
    bool is_same = c->slab_serial == move->view->slab->serial;

    for (struct column **at = &c->first, *column; (column = *at);) {
        atomic_fetch_sub(c->account, column_bytes(column));
        if (is_same && column->moved) {
            column_move(column, move->view->n);
            atomic_fetch_add(c->account, column_bytes(column));
            at = &column->next;
        } else {
            *at = column->next;
            column_free(column);
        }
    }
    c->slab_serial = slab_serial;
    pthread_mutex_unlock(&c->lock);
}

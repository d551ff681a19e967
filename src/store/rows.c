#include "store/rows.h"
#include "base/limits.h"

enum { ROWS_FIRST = 16 };

static void *grow(struct arena *a, void *items, size_t n, size_t item_size)
{
    void *more = arena_array(a, n ? 2 * n : ROWS_FIRST, item_size);

    if (n)
        memcpy(more, items, n * item_size);
    return more;
}

static bool is_full(size_t n)
{
    return n == 0 || (n >= ROWS_FIRST && (n & (n - 1)) == 0);
}

int rows_some(struct sql_rows *rows, struct arena *a, size_t item_size, rows_read_fn *read, size_t max_bytes,
              void *ret_items, size_t *ret_n, struct err *e)
{
    size_t n_before = arena_bytes(a), n = 0;
    char *items = NULL;
    int r;

    while ((r = sql_step(rows, e)) > 0 && arena_bytes(a) - n_before < max_bytes) {
        if (is_full(n))
            items = grow(a, items, n, item_size);
        read(rows, a, items + n * item_size);
        n++;
    }
    if (r < 0)
        return r;
    memcpy(ret_items, &items, sizeof(items));
    *ret_n = n;
    return r;
}

int rows_all(struct sql_rows *rows, struct arena *a, size_t item_size, rows_read_fn *read, void *ret_items,
             size_t *ret_n, struct err *e)
{
    int r = rows_some(rows, a, item_size, read, LIMIT_LIST_BYTES, ret_items, ret_n, e);

    if (r > 0)
        return err_set(e, -E2BIG, "TOO_LARGE", "These rows are larger than %d MiB together: ask for fewer with limit.",
                       LIMIT_LIST_BYTES >> 20);
    return r;
}

static int refuse_missing(const struct rows_missing *m, struct err *e)
{
    if (m->what)
        return err_set(e, -ENOENT, m->code, "There is no %s %.200s.", m->what, m->name ? m->name : "of this name");
    return err_set(e, -ENOENT, m->code, "%s", m->text);
}

int rows_one(struct sql_rows *rows, struct arena *a, rows_read_fn *read, void *ret, const struct rows_missing *missing,
             struct err *e)
{
    int r = sql_step(rows, e);

    if (r < 0)
        return r;
    if (r == 0)
        return refuse_missing(missing, e);
    read(rows, a, ret);
    return 0;
}

int rows_changed(int r, int64_t n_changes, const struct rows_missing *missing, struct err *e)
{
    if (r < 0 || n_changes > 0)
        return r;
    return refuse_missing(missing, e);
}

int rows_int(struct sql_rows *rows, int64_t *ret, struct err *e)
{
    int r = sql_step(rows, e);

    if (r < 0)
        return r;
    *ret = r > 0 ? sql_int(rows, 0) : 0;
    return 0;
}

int64_t rows_limit(int64_t requested)
{
    return requested <= 0 ? LIMIT_LIST_DEFAULT : MIN(requested, LIMIT_LIST);
}

#include "backend/hosted/hosted.h"
#include "backend/refusals.h"
#include "backend/status.h"
#include "base/clock.h"
#include "base/uuid.h"

#include <stdlib.h>
#include <string.h>

enum {
    AHEAD_MS = 60000, /* a lease that is later than now by less may have been taken after the clock was read */
    PAGE_ROWS = 1000  /* what a hosted project gives at most in one answer */
};

/* ---- the database's clock ---- */

int hosted_now(struct hosted *h, struct arena *a, int64_t *ret_wall_ms, struct err *e)
{
    struct hosted_path path;
    const struct hosted_call call = { .method = "POST", .path = &path, .body = SLICE_LIT("{}"), .is_repeatable = true };
    struct hosted_reply reply = { 0 };
    struct err why = { 0 };
    int r;

    hosted_path_init_function(&path, arena_printf(a, "%s_fn_now", h->abbr));
    r = hosted_rest_call(h->rest, &call, a, &reply, &why);
    hosted_path_clear(&path);
    if (r == 0 && json_cstr(reply.body) && clock_parse(json_string(reply.body), ret_wall_ms) == 0)
        return 0;
    if (r == 0 || r == -ENOENT) {
        *ret_wall_ms = reply.date_ms ? reply.date_ms : clock_wall_ms();
        return 0;
    }
    if (e)
        *e = why;
    return r;
}

void hosted_add_stale(struct buf *out, int64_t now_ms, int64_t stale_after_ms)
{
    char before[TIME_TEXT_SIZE], after[TIME_TEXT_SIZE];

    clock_format(MAX(now_ms - stale_after_ms, 0), before);
    clock_format(now_ms + MAX(stale_after_ms, (int64_t)AHEAD_MS), after);
    buf_printf(out, "locked_at.lt.\"%s\",locked_at.gt.\"%s\",locked_at.is.null", before, after);
}

static void add_stale(struct hosted_path *path, int64_t now_ms, int64_t stale_after_ms)
{
    struct buf stale;

    buf_init(&stale, LIMIT_HOSTED_PATH);
    buf_add_char(&stale, '(');
    hosted_add_stale(&stale, now_ms, stale_after_ms);
    buf_add_char(&stale, ')');
    hosted_path_add(path, "or", buf_str(&stale));
    buf_clear(&stale);
}

/* ---- leases without a living holder ---- */

int hosted_release_machine(struct backend *b, const char *table, const char *machine_id, size_t *ret_n, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct hosted *h = hosted_of(b);
    struct hosted_rows rows = { 0 };
    struct hosted_table *t;
    struct hosted_patch c;
    int r = hosted_find_table(h, table, &t, e);

    if (r < 0)
        return r;
    hosted_patch_begin(&c, t, NULL);
    c.is_repeatable = c.is_slim = true;
    hosted_path_filter(&c.path, "locked_by", "eq", machine_id);
    hosted_path_filter(&c.path, "status", "in", HOSTED_LEASED);
    hosted_patch_set_free(&c);
    r = hosted_patch_run(h, &c, SIZE_MAX, a, &rows, e);
    if (r == 0 && ret_n)
        *ret_n = rows.n;
    return r;
}

/* A list that is lost, or too large to be read, is no loss: the sweep finds the rows. */
int hosted_recover_stale(struct backend *b, const char *table, int64_t stale_after_ms, struct arena *a,
                         struct backend_rows *ret, struct err *e)
{
    struct hosted *h = hosted_of(b);
    struct hosted_rows rows = { 0 };
    struct hosted_table *t;
    struct hosted_patch c;
    int64_t now_ms = 0;
    int r = hosted_find_table(h, table, &t, e);

    if (r == 0)
        r = hosted_now(h, a, &now_ms, e);
    if (r < 0)
        return r;
    hosted_patch_begin(&c, t, NULL);
    hosted_path_filter(&c.path, "status", "in", HOSTED_LEASED);
    add_stale(&c.path, now_ms, stale_after_ms);
    hosted_patch_set_free(&c);
    r = hosted_patch_run(h, &c, LIMIT_HOSTED_SCAN_ROWS, a, &rows, e);
    if (r == 0)
        *ret = hosted_plain_rows(&rows, a);
    return r;
}

/* ---- rearm and replay ---- */

static void choose_dirty(struct hosted_patch *c)
{
    hosted_path_filter(&c->path, "status", "in", "(completed,failed)");
    hosted_path_filter(&c->path, "is_dirty", "is", "true");
    if (hosted_has(c->table, HOSTED_EVENT_TYPE))
        json_add_string(&c->w, "event_type", backend_op_name(BACKEND_UPDATE));
}

static void choose_not_leased(struct hosted_patch *c)
{
    hosted_path_filter(&c->path, "status", "not.in", HOSTED_LEASED);
}

struct again {
    void (*choose)(struct hosted_patch *c); /* adds the conditions */
    unsigned needs;                         /* columns without which no row fulfils them */
};

/* The row waits for every machine again. 1: changed; 0: it does not fulfil the conditions, and *ret has it as it is. */
static int run_again(struct backend *b, const char *table, const char *id, const struct again *again, struct arena *a,
                     struct hosted_row *ret, struct err *e)
{
    struct hosted *h = hosted_of(b);
    struct hosted_rows rows = { 0 };
    struct hosted_table *t;
    struct hosted_patch c;
    int r = hosted_find_table(h, table, &t, e);

    if (r == 0 && !uuid_is_valid(slice_of(id)))
        r = refusals_no_row(e);
    if (r < 0)
        return r;
    if (!again->needs || hosted_has(t, again->needs)) {
        hosted_patch_begin(&c, t, id);
        again->choose(&c);
        hosted_patch_set_new(&c);
        c.is_slim = true;
        r = hosted_patch_run(h, &c, 1, a, &rows, e);
    }
    if (r < 0 || rows.n)
        return r < 0 ? r : 1;
    return hosted_get_row(h, t, id, NULL, a, ret, e);
}

int hosted_rearm(struct backend *b, const char *table, const char *id, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct hosted_row row = { 0 };
    int r = run_again(b, table, id, &(struct again){ choose_dirty, HOSTED_IS_DIRTY }, a, &row, e);

    return r == 0 ? refusals_not_dirty(e) : MIN(r, 0);
}

int hosted_replay(struct backend *b, const char *table, const char *id, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct hosted_row row = { 0 };
    int r = run_again(b, table, id, &(struct again){ choose_not_leased, 0 }, a, &row, e);

    return r == 0 ? refusals_replay(&row.row, e) : MIN(r, 0);
}

/* ---- claimable rows ---- */

struct sweep {
    struct hosted *h;
    struct hosted_table *table;
    const struct backend_claim *as;
    struct arena *arena;
    int64_t now_ms, limit, n_page, n_passed_over;
    const char *before_at;    /* created_at of the place; NULL: from the newest row */
    const char *before_key;   /* its seq or id; NULL: every row of that time is older */
    struct backend_rows rows; /* newest first */
};

/* The number of machines that failed a row is no condition of the REST interface: may_try() looks at it. */
static void add_tree(struct buf *out, const struct sweep *s)
{
    const char *machine = hosted_array_of(s->arena, s->as->machine_id);

    buf_add_str(out, "(or(and(status.in.(pending,failed),attempted_by.not.cs.");
    hosted_quote(out, machine);
    buf_add_str(out, "),and(status.in." HOSTED_LEASED ",attempted_by.not.cs.");
    hosted_quote(out, machine);
    buf_add_str(out, ",or(");
    hosted_add_stale(out, s->now_ms, s->as->stale_after_ms);
    buf_add_str(out, "))");
    if (hosted_has(s->table, HOSTED_IS_DIRTY))
        buf_add_str(out, ",and(is_dirty.is.true,status.in.(completed,failed))");
    buf_add_char(out, ')');
}

static void add_place(struct buf *out, const struct sweep *s)
{
    buf_printf(out, ",or(created_at.%s.", s->before_key ? "lt" : "lte");
    hosted_quote(out, s->before_at);
    if (s->before_key) {
        buf_add_str(out, ",and(created_at.eq.");
        hosted_quote(out, s->before_at);
        buf_printf(out, ",%s.lt.%s)", hosted_has(s->table, HOSTED_SEQ) ? "seq" : "id", s->before_key);
    }
    buf_add_char(out, ')');
}

static void set_place(struct sweep *s, const struct hosted_row *row)
{
    s->before_at = row->row.created_at;
    s->before_key =
        hosted_has(s->table, HOSTED_SEQ) ? arena_printf(s->arena, "%lld", (long long)row->seq) : row->row.id;
}

/* The row of the place may have been deleted. */
static int find_place(struct sweep *s, const struct backend_position *before, struct err *e)
{
    struct hosted_row row = { 0 };
    struct err why = { 0 };
    int r = hosted_get_row(s->h, s->table, before->id, NULL, s->arena, &row, &why);

    s->before_at = before->created_at;
    if (r == 0)
        set_place(s, &row);
    if (r < 0 && r != -ENOENT && e)
        *e = why;
    return r == -ENOENT ? 0 : r;
}

static int read_page(struct sweep *s, const char *columns, struct hosted_rows *ret, struct err *e)
{
    struct hosted_path path;
    struct buf tree;

    buf_init(&tree, LIMIT_HOSTED_PATH);
    add_tree(&tree, s);
    if (s->before_at)
        add_place(&tree, s);
    buf_add_char(&tree, ')');
    hosted_path_init(&path, s->table->name);
    hosted_path_add(&path, "and", buf_str(&tree));
    hosted_path_add(&path, "order", hosted_newest_first(s->table));
    hosted_path_number(&path, "limit", s->n_page);
    buf_clear(&tree);
    return hosted_select_columns(s->h, s->table, &path, columns, (size_t)s->n_page, s->arena, ret, e);
}

static int64_t first_page(const struct sweep *s)
{
    return MIN(s->limit, (int64_t)PAGE_ROWS);
}

/* Whoever may write a row may make it too large to be read; the rows beyond it are read all the same. */
static int pass_over(struct sweep *s, struct err *e)
{
    struct hosted_rows page = { 0 };
    int r = read_page(s, hosted_has(s->table, HOSTED_SEQ) ? "id,created_at,seq" : "id,created_at", &page, e);

    if (r == 0 && page.n)
        set_place(s, &page.items[0]);
    s->n_page = first_page(s);
    s->n_passed_over++;
    return r;
}

/* 0: there may be more to read. Pages of fewer rows are asked for when their rows are large, down to one. */
static int shrink(struct sweep *s, struct err *e)
{
    if (s->n_page > 1) {
        s->n_page = MAX(s->n_page / 4, (int64_t)1);
        return 0;
    }
    return s->n_passed_over == LIMIT_BACKEND_SET_ASIDE ? -E2BIG : pass_over(s, e);
}

static bool may_try(const struct sweep *s, const struct backend_row *row)
{
    bool has_attempted;

    if (row->is_dirty && status_is_finished(row->status))
        return true;
    return (int64_t)backend_count_machines(row->attempted_by, s->as->machine_id, &has_attempted) <
               backend_max_machines(s->as) &&
           !has_attempted;
}

static void take_page(struct sweep *s, const struct hosted_rows *page)
{
    for (size_t i = 0; i < page->n && s->rows.n < (size_t)s->limit; i++)
        if (may_try(s, &page->items[i].row))
            s->rows.items[s->rows.n++] = page->items[i].row;
    if (page->n)
        set_place(s, &page->items[page->n - 1]);
}

static int read_pages(struct sweep *s, struct err *e)
{
    for (int64_t n_read = 0; n_read < LIMIT_HOSTED_SCAN_ROWS;) {
        struct hosted_rows page = { 0 };
        struct err why = { 0 };
        int r = read_page(s, hosted_columns(s->table, s->arena), &page, &why);

        if (r == -E2BIG && s->rows.n)
            return 0;
        if (r == -E2BIG && shrink(s, &why) == 0)
            continue;
        if (r < 0) {
            if (e)
                *e = why;
            return r;
        }
        take_page(s, &page);
        n_read += (int64_t)page.n;
        if ((int64_t)page.n < s->n_page || s->rows.n >= (size_t)s->limit)
            return 0;
    }
    return 0;
}

static void reverse(struct backend_rows *rows)
{
    for (size_t i = 0; i < rows->n / 2; i++) {
        struct backend_row row = rows->items[i];

        rows->items[i] = rows->items[rows->n - 1 - i];
        rows->items[rows->n - 1 - i] = row;
    }
}

int hosted_claimable(struct backend *b, const char *table, const struct backend_claim *as,
                     const struct backend_position *before, int64_t limit, struct arena *a, struct backend_rows *ret,
                     struct err *e)
{
    struct sweep s = { .h = hosted_of(b), .as = as, .arena = a, .limit = MAX(limit, 0) };
    int r = hosted_find_table(s.h, table, &s.table, e);

    if (r == 0 && s.h->realtime)
        hosted_events_settle(s.h);
    if (r == 0 && before)
        r = find_place(&s, before, e);
    s.n_page = first_page(&s);
    s.rows.items = arena_array(a, (size_t)s.limit + 1, sizeof(*s.rows.items));
    if (r == 0)
        r = hosted_now(s.h, a, &s.now_ms, e);
    if (r == 0 && s.limit > 0)
        r = read_pages(&s, e);
    if (r < 0)
        return r;
    reverse(&s.rows);
    *ret = s.rows;
    return 0;
}

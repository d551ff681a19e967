/* Calls of a lease's holder. The fence is the machine with the attempt; in a table without attempts it is the machine
 * with the time of its claim, which a later claim by the same machine fulfils as well. */
#include "backend/hosted/hosted.h"
#include "backend/refusals.h"
#include "backend/status.h"
#include "base/clock.h"
#include "base/utf8.h"
#include "base/uuid.h"

#include <string.h>

const char *hosted_cut_message(struct arena *a, const char *message)
{
    struct slice rest = slice_of(message);

    for (size_t n = 0; rest.n && n < LIMIT_STRING_DEFAULT; n++) {
        size_t bytes = MAX(utf8_char_bytes(rest), (size_t)1);

        rest = (struct slice){ rest.p + bytes, rest.n - bytes };
    }
    return arena_strndup(a, message, (size_t)(rest.p - message));
}

/* ---- the fence ---- */

static void add_fence(struct hosted_patch *c, const struct backend_lease *l, struct arena *a)
{
    char since[TIME_TEXT_SIZE];

    hosted_path_filter(&c->path, "locked_by", "eq", l->machine_id);
    hosted_path_filter(&c->path, "status", "in", HOSTED_LEASED);
    if (l->attempt == BACKEND_ANY_ATTEMPT)
        return;
    clock_format(l->attempt, since);
    if (hosted_has(c->table, HOSTED_ATTEMPT))
        hosted_path_filter(&c->path, "attempt", "eq", arena_printf(a, "%lld", (long long)l->attempt));
    else
        hosted_path_filter(&c->path, "locked_at", "gte", since);
}

static int find(struct hosted *h, const struct backend_lease *l, struct hosted_table **ret, struct err *e)
{
    int r = hosted_find_table(h, l->table, ret, e);

    return r == 0 && !uuid_is_valid(slice_of(l->row_id)) ? refusals_lease_lost(l, e) : r;
}

/* Whether this very attempt has ended so already: a repeated call is a success. */
static int check_repeat(struct hosted *h, struct hosted_table *t, const struct backend_lease *l, const char *end_status,
                        struct arena *a, struct err *e)
{
    struct hosted_row row = { 0 };
    bool is_same;
    int r;

    if (!end_status)
        return refusals_lease_lost(l, e);
    r = hosted_get_row(h, t, l->row_id, NULL, a, &row, e);
    if (r < 0 && r != -ENOENT)
        return r;
    is_same = row.claimed_by && strcmp(row.claimed_by, l->machine_id) == 0 &&
              (row.row.attempt == l->attempt || l->attempt == BACKEND_ANY_ATTEMPT) &&
              strcmp(row.row.status, end_status) == 0;
    return r == 0 && is_same ? 0 : refusals_lease_lost(l, e);
}

static int run(struct hosted *h, struct hosted_patch *c, const struct backend_lease *l, const char *end_status,
               struct arena *a, struct err *e)
{
    struct hosted_rows rows = { 0 };
    struct hosted_table *t = c->table;
    int r;

    add_fence(c, l, a);
    c->is_repeatable = c->is_slim = true;
    r = hosted_patch_run(h, c, 1, a, &rows, e);
    return r < 0 || rows.n ? r : check_repeat(h, t, l, end_status, a, e);
}

/* ---- heartbeat and release ---- */

static void set_alive(struct hosted_patch *c)
{
    json_add_string(&c->w, "locked_at", "now");
}

static int change(struct backend *b, const struct backend_lease *l, void (*set)(struct hosted_patch *c), struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct hosted *h = hosted_of(b);
    struct hosted_table *t;
    struct hosted_patch c;
    int r = find(h, l, &t, e);

    if (r < 0)
        return r;
    hosted_patch_begin(&c, t, l->row_id);
    set(&c);
    return run(h, &c, l, NULL, a, e);
}

int hosted_heartbeat(struct backend *b, const struct backend_lease *l, struct err *e)
{
    return change(b, l, set_alive, e);
}

/* A release whose answer was lost and that is repeated finds no lease: the caller then knows as much as before. */
int hosted_release(struct backend *b, const struct backend_lease *l, struct err *e)
{
    return change(b, l, hosted_patch_set_free, e);
}

/* ---- complete and fail ---- */

struct ending {
    enum hosted_function function;
    const char *name, *status, *member, *value; /* value: JSON text; NULL: null */
};

static int call_ending(struct hosted *h, const struct backend_lease *l, const struct ending *end, struct arena *a,
                       struct err *e)
{
    struct json_value answer = { 0 };
    struct json_writer w;
    struct buf body;
    int r;

    buf_init(&body, LIMIT_BACKEND_ROW_BYTES);
    json_write_init(&w, &body);
    json_begin_object(&w);
    json_add_string(&w, "task_id", l->row_id);
    json_add_string(&w, "machine_id", l->machine_id);
    json_add_string(&w, "table_name", l->table);
    if (l->attempt != BACKEND_ANY_ATTEMPT)
        json_add_int(&w, "attempt", l->attempt);
    json_add_raw(&w, end->member, end->value);
    json_end(&w);
    r = hosted_call_function(h, &(struct hosted_function_call){ end->function, end->name, &body, true }, a, &answer, e);
    buf_clear(&body);
    return r < 0 || json_bool(json_get(answer, "success")) ? r : refusals_lease_lost(l, e);
}

static void add_ending(struct hosted_patch *c, const struct ending *end)
{
    json_add_string(&c->w, "status", end->status);
    json_add_null(&c->w, "locked_by");
    json_add_null(&c->w, "locked_at");
    if (strcmp(end->status, STATUS_FAILED) == 0) {
        json_add_raw(&c->w, "error_message", end->value);
        return;
    }
    json_add_raw(&c->w, "result", end->value);
    json_add_string(&c->w, "completed_at", "now");
    json_add_null(&c->w, "error_message");
}

/* The list of machines is changed only by the holder, so what was read while the lease lasts is right. */
static int patch_ending(struct hosted *h, struct hosted_table *t, const struct backend_lease *l,
                        const struct ending *end, struct arena *a, struct err *e)
{
    struct hosted_row row = { 0 };
    struct hosted_patch c;
    int r = hosted_get_row(h, t, l->row_id, NULL, a, &row, e);

    if (r < 0)
        return r == -ENOENT ? refusals_lease_lost(l, e) : r;
    hosted_patch_begin(&c, t, l->row_id);
    add_ending(&c, end);
    if (strcmp(end->status, STATUS_FAILED) == 0) {
        json_add_raw(&c.w, "attempted_by", backend_add_machine(a, row.row.attempted_by, l->machine_id));
        json_add_int(&c.w, "retry_count", row.row.retry_count + 1);
    }
    return run(h, &c, l, end->status, a, e);
}

static int finish(struct backend *b, const struct backend_lease *l, const struct ending *end, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct hosted *h = hosted_of(b);
    struct hosted_table *t;
    int r = find(h, l, &t, e);

    if (r < 0)
        return r;
    r = hosted_has_function(h, t, end->function) ? call_ending(h, l, end, a, e) : -ENOSYS;
    return r == -ENOSYS ? patch_ending(h, t, l, end, a, e) : r;
}

int hosted_complete(struct backend *b, const struct backend_lease *l, const char *result_json, struct err *e)
{
    const struct ending end = { HOSTED_COMPLETE, "complete_task", STATUS_COMPLETED, "result", result_json };
    int r = refusals_check_result(result_json, e);

    return r < 0 ? r : finish(b, l, &end, e);
}

int hosted_fail(struct backend *b, const struct backend_lease *l, const char *message, struct err *e)
{
    struct ending end = { HOSTED_FAIL, "fail_task", STATUS_FAILED, "error", NULL };
    AUTO(arena_freep) struct arena *a = arena_new();
    struct buf text;

    buf_init(&text, LIMIT_BACKEND_ROW_BYTES);
    json_quote(&text, slice_of(hosted_cut_message(a, message)));
    end.value = buf_to_arena(&text, a);
    return finish(b, l, &end, e);
}

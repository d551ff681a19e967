/* How long a query of the embedded backend may work: in one comparison, in one statement. */
#include "query_rig.h"

#include "backend/embedded/embedded_functions.h"

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { TEXT_CHARS = 40000, PATTERN_CHARS = 1000, N_ROWS = 100, BATCH = 10 };

/* n times c, NUL-terminated */
static char *repeated(struct arena *a, char c, size_t n)
{
    char *text = arena_alloc(a, n + 1);

    memset(text, c, n);
    text[n] = '\0';
    return text;
}

/* A pattern that is tried again at each character of a text of TEXT_CHARS. */
static const char *costly_pattern(struct arena *a)
{
    char *pattern = repeated(a, 'a', PATTERN_CHARS);

    pattern[0] = '%';
    return pattern;
}

static struct table_column columns[] = {
    { .name = "id", .type = TABLE_INT4, .is_key = true },
    { .name = "text", .type = TABLE_TEXT },
    { .name = "seen", .type = TABLE_BOOL, .default_text = "false" },
};
static const struct table_shape texts = { .table = "texts", .columns = columns, .n_columns = 3 };

static void insert_text(struct rig *rig, int first, int n, size_t n_chars)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    const char *text = repeated(a, 'a', n_chars);
    struct query q = { .kind = QUERY_INSERT, .table = "texts", .limit = -1, .max_affected = -1 };
    struct query_reply reply = { 0 };
    struct err e;
    struct buf rows;

    buf_init(&rows, MIB(8));
    for (int i = 0; i < n; i++)
        buf_printf(&rows, "%c{\"id\":%d,\"text\":\"%s\"}", i ? ',' : '[', first + i, text);
    buf_add_char(&rows, ']');
    must(json_parse(a, buf_slice(&rows), &q.rows, &e), &e);
    must(run(rig, &q, &reply, &e), &e);
    buf_clear(&rows);
}

static struct query_condition like(struct rig *rig)
{
    const char **value = arena_array(rig->arena, 1, sizeof(*value));

    *value = costly_pattern(rig->arena);
    return (struct query_condition){
        .junction = QUERY_TEST, .path = { .column = "text" }, .op = QUERY_LIKE, .values = value, .n_values = 1
    };
}

static void a_comparison_has_so_many_steps(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct slice text = slice_of(repeated(a, 'a', 2000)), pattern = slice_of(costly_pattern(a));
    size_t left = LIMIT_QUERY_STEPS, needed;

    assert_true(embedded_like(text, pattern, false, &left));
    needed = LIMIT_QUERY_STEPS - left;
    left = needed + 1;
    assert_true(embedded_like(text, pattern, false, &left));
    assert_int_equal(left, 1);
    left = needed;
    assert_false(embedded_like(text, pattern, false, &left));
    assert_int_equal(left, 0);
}

static void a_comparison_that_needs_more_is_refused(void **state)
{
    struct rig *rig = *state;
    struct query_condition where = like(rig);
    struct query q = select_all();
    struct query_item id = { .path = { .column = "id" } };

    declare(rig, &texts);
    q.table = "texts";
    q.where = &where;
    q.items = &id;
    q.n_items = 1;
    insert_text(rig, 1, 1, TEXT_CHARS); /* 39 million steps */
    assert_string_equal(rows_of(rig, q), "[{\"id\":1}]");
    insert_text(rig, 2, 1, 2 * TEXT_CHARS);
    refused(rig, q, -ETIMEDOUT, "QUERY_TIMEOUT");
}

static void fill_with_work(struct rig *rig)
{
    declare(rig, &texts);
    for (int i = 0; i < N_ROWS; i += BATCH)
        insert_text(rig, i, BATCH, TEXT_CHARS);
}

/* Each comparison is permitted, all together are not: the clock is looked at often enough. */
static void a_change_ends_at_its_time_and_changes_nothing(void **state)
{
    struct rig *rig = *state;
    struct query_condition where = like(rig), seen = query_text_read(rig->arena, "seen=is.true");
    struct query q = { .kind = QUERY_UPDATE, .table = "texts", .limit = -1, .max_affected = -1, .where = &where };

    fill_with_work(rig);
    q.rows = rig_json(rig, "{\"seen\":true}");
    refused(rig, q, -ETIMEDOUT, "QUERY_TIMEOUT");
    q = select_all();
    q.table = "texts";
    q.where = &seen;
    assert_string_equal(rows_of(rig, q), "[]");
}

static void reading_ends_at_its_time(void **state)
{
    struct rig *rig = *state;
    struct query_condition where = like(rig);
    struct query q = select_all();

    fill_with_work(rig);
    q.table = "texts";
    q.where = &where;
    refused(rig, q, -ETIMEDOUT, "QUERY_TIMEOUT");
}

/* Of a thread that has set standstill_s, the machine stands still for so long between two looks at the clock. */
static _Thread_local time_t standstill_s, stood_s;

int clock_gettime(clockid_t id, struct timespec *ret)
{
    int r = (int)syscall(SYS_clock_gettime, id, ret);

    if (r == 0 && id == CLOCK_MONOTONIC && standstill_s > 0)
        ret->tv_sec += stood_s += standstill_s;
    return r;
}

static void a_query_is_not_refused_because_the_machine_stood_still(void **state)
{
    struct rig *rig = *state;
    struct query q = select_all();
    struct query_reply reply = { 0 };
    struct query_item id = { .path = { .column = "id" } };
    struct err e;
    int r;

    declare(rig, &texts);
    for (int i = 0; i < N_ROWS; i += BATCH)
        insert_text(rig, i, BATCH, 1);
    q.table = "texts";
    q.items = &id;
    q.n_items = 1;
    standstill_s = 1000;
    r = run(rig, &q, &reply, &e);
    standstill_s = 0;
    must(r, &e);
    assert_true(stood_s > 1000); /* the clock was looked at more than once */
    assert_non_null(strstr(reply.rows.p, "{\"id\":99}"));
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_comparison_has_so_many_steps),
        TEST(a_comparison_that_needs_more_is_refused),
        TEST(a_change_ends_at_its_time_and_changes_nothing),
        TEST(reading_ends_at_its_time),
        TEST(a_query_is_not_refused_because_the_machine_stood_still),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

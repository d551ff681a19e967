/* Rows with values that nobody expects: whoever may write a row of the own may store them, and they hide no other row.
 */
#include "contract.h"
#include "../skip.h"
#include "../tsan.h"

static bool is_claimable(struct rig *rig, const char *id)
{
    const struct backend_claim as = { .machine_id = "lin-a", .stale_after_ms = STALE_MS };
    struct backend_rows rows = { 0 };
    struct err e = { 0 };
    bool is_there = false;

    must(OPS(rig)->claimable(rig->backend, TABLE, &as, NULL, 10, rig->arena, &rows, &e), &e);
    for (size_t i = 0; i < rows.n; i++)
        is_there |= strcmp(rows.items[i].id, id) == 0;
    return is_there;
}

static void a_row_with_a_strange_value_hides_no_other(void **state)
{
    struct rig *rig = *state;
    const char *id = rig_insert(rig);

    rig_set(rig, rig_insert(rig), "retry_count", "-1");
    assert_true(is_claimable(rig, id));
}

/* Whoever may write a row of the own may make it so. */
static void a_row_too_large_to_be_read_hides_no_other(void **state)
{
    struct rig *rig = *state;
    const char *id = rig_insert(rig);
    char *text;

    if (IS_UNDER_TSAN)
        SKIP_TEST("a size at its limit is tested under ASan");
    text = arena_alloc(rig->arena, LIMIT_BACKEND_ROW_BYTES + 2);
    memset(text, 'x', LIMIT_BACKEND_ROW_BYTES + 1);
    text[LIMIT_BACKEND_ROW_BYTES + 1] = '\0';
    rig_set(rig, rig_insert(rig), "locked_by", text);
    assert_true(is_claimable(rig, id));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_row_with_a_strange_value_hides_no_other),
        TEST(a_row_too_large_to_be_read_hides_no_other),
    };

    return contract_run(tests, ARRAY_SIZE(tests));
}

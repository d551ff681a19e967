#include "backend/filter.h"
#include "base/limits.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static const struct backend_row row = {
    .table = "svc_activities",
    .id = "6f9619ff-8b86-4d01-b42d-00c04fc964ff",
    .raw_data = "{\"n\":10,\"big\":9007199254740993,\"half\":0.5,\"minus\":-3,\"yes\":true,\"no\":false,\"none\":null,"
                "\"name\":\"Ada Lovelace\",\"digits\":\"10\",\"quote\":\"say \\\"hi\\\"\",\"city\":\"Z\\u00fcrich\","
                "\"emoji\":\"\\ud83d\\ude00\",\"private\":\"\\uffff\",\"due\":\"2026-03-01T12:00:00+02:00\",\"day\":"
                "\"2026-03-01\","
                "\"empty\":\"\",\"a\":{\"b\":{\"c\":7}},\"list\":[{\"k\":\"x\"},5],\"a b\":1,\"e\":2.5e1}",
    .status = "pending",
    .retry_count = 9,
    .attempt = 2,
    .attempted_by = "[\"lin-1\",\"lin-2\"]",
    .created_at = "2026-02-03T04:05:06.789Z",
    .event = BACKEND_INSERT,
};

static const struct {
    const char *filter;
    bool matches;
} cases[] = {
    { "status=eq.pending", true },
    { "status=eq.failed", false },
    { "status=neq.failed", true },
    { "status=neq.pending", false },
    { " status = eq.pending ", true },
    { "status=eq.\"pending\"", true },
    { "status=gt.pendinf", true },
    { "status=lt.pending ", false },
    { "status=lte.pending", true },
    { "id=eq.6f9619ff-8b86-4d01-b42d-00c04fc964ff", true },
    { "event_type=eq.INSERT", true },
    /* integers are numbers, not text: 9 < 10 */
    { "retry_count=lt.10", true },
    { "retry_count=gt.10", false },
    { "retry_count=eq.9.0", true },
    { "retry_count=eq.nine", false },
    { "retry_count=neq.nine", true },
    { "retry_count=gt.nine", false },
    { "attempt=gte.2", true },
    { "raw_data->>n=gt.9", true },
    { "raw_data->>n=gt.9.5", true },
    { "raw_data->>n=lt.9", false },
    { "raw_data->>n=eq.\"10\"", true },
    { "raw_data->>n=eq.1e1", true },
    { "raw_data->>n=eq.", false },
    { "raw_data->>minus=lt.-2", true },
    { "raw_data->>half=eq.0.5", true },
    { "raw_data->>half=gt.0", true },
    { "raw_data->>e=eq.25", true },
    { "raw_data->>big=eq.9007199254740993", true },
    { "raw_data->>big=gt.9007199254740992", true },
    { "raw_data->>big=gt.9007199254740992.0", true },
    /* digits in a string are text: "10" < "9" */
    { "raw_data->>digits=gt.9", false },
    { "raw_data->>digits=lt.9", true },
    { "raw_data->>digits=eq.10", true },
    { "raw_data->>yes=eq.true", true },
    { "raw_data->>yes=eq.false", false },
    { "raw_data->>no=eq.false", true },
    { "raw_data->>yes=gt.false", true },
    { "raw_data->>yes=eq.1", false },
    { "raw_data->>yes=neq.1", true },
    /* NULL and missing match nothing */
    { "raw_data->>none=eq.null", false },
    { "raw_data->>none=neq.x", false },
    { "raw_data->>missing=eq.x", false },
    { "raw_data->>missing=neq.x", false },
    { "locked_by=neq.x", false },
    { "old_data->>n=eq.1", false },
    { "raw_data->>name=eq.Ada Lovelace", true },
    { "raw_data->>name=eq.\"Ada Lovelace\"", true },
    { "raw_data->>name=eq.Ada  Lovelace", false },
    { "raw_data->>name=eq.\" Ada Lovelace\"", false },
    { "raw_data->>quote=eq.say \"hi\"", true },
    { "raw_data->>quote=eq.\"say \\\"hi\\\"\"", true },
    { "raw_data->>empty=eq.", true },
    { "raw_data->>empty=eq.\"\"", true },
    { "raw_data->>name=gt.", true },
    { "raw_data->>city=eq.Zürich", true },
    { "raw_data->>city=gt.Zurich", true },
    { "raw_data->>emoji=gt.\xEF\xBF\xBF", true }, /* by code point, not by UTF-16 unit */
    { "raw_data->>private=lt.\xF0\x90\x80\x80", true },
    /* times compare as instants whatever their zone */
    { "raw_data->>due=eq.2026-03-01T10:00:00Z", true },
    { "raw_data->>due=gt.2026-03-01T11:59:00Z", false },
    { "raw_data->>due=lt.2026-03-01T13:00:00+01:00", true },
    { "raw_data->>due=lt.2026-03-01T11:00:00+01:00", false },
    { "raw_data->>day=gte.2026-03-01T00:00:00Z", true },
    { "raw_data->>day=gt.tomorrow", false },
    { "created_at=gte.2026-02-03", true },
    { "created_at=lt.2026-02-03T05:05:06.790+01:00", true },
    { "completed_at=lt.2030-01-01", false },
    { "raw_data->a->b->>c=eq.7", true },
    { "raw_data->a->>b=eq.{\"c\":7}", true },
    { "raw_data->a->b->c->>d=eq.7", false },
    { "raw_data->list->0->>k=eq.x", true },
    { "raw_data->list->>1=eq.5", true },
    { "raw_data->list->>2=neq.5", false },
    { "raw_data->list->>-1=neq.5", false },
    { "raw_data->>a b=eq.1", true },
    { "attempted_by->>1=eq.lin-2", true },
    { "raw_data->>n=eq.=.=", false },
};

static const struct {
    const char *filter, *part_of_text;
} bad[] = {
    { "status", "not one condition" },
    { "status=pending", "not one condition" },
    { "=eq.x", "column \"\" does not exist" },
    { "colour=eq.red", "column \"colour\" does not exist" },
    { "Status=eq.x", "column \"Status\" does not exist" },
    { "status=like.x", "operator \"like\" does not exist" },
    { "status=EQ.x", "operator \"EQ\" does not exist" },
    { "status=.x", "operator \"\" does not exist" },
    { "status=in.(a,b)", "operator \"in\" does not exist" },
    { "status=not.eq.x", "operator \"not\" does not exist" },
    { "raw_data=eq.{}", "holds JSON" },
    { "status->>x=eq.1", "has no members" },
    { "raw_data->x=eq.1", "must end its path with ->>" },
    { "raw_data->>=eq.1", "empty member" },
    { "raw_data->->>b=eq.1", "empty member" },
    { "raw_data->>a->>b=eq.1", "before the end" },
    { "raw_data->>'n'=eq.1", "without quotes" },
    { "status=eq.\"open", "closing quote" },
    { "status=eq.\"open\\", "closing quote" },
    { "status=eq.\"a\" b", "after the closing quote" },
    { "status=eq.\xFF", "UTF-8" },
};

static void conditions_compare_by_the_type_of_the_rows_value(void **state)
{
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        AUTO(arena_freep) struct arena *a = arena_new();
        struct filter *f = NULL;
        struct err e = { 0 };

        if (filter_parse(a, cases[i].filter, &f, &e) < 0)
            fail_msg("%s: %s", cases[i].filter, e.text);
        if (filter_matches(f, &row) != cases[i].matches)
            fail_msg("%s should%s match", cases[i].filter, cases[i].matches ? "" : " not");
    }
}

static void anything_else_is_refused_and_says_why(void **state)
{
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        AUTO(arena_freep) struct arena *a = arena_new();
        struct filter *f = NULL;
        struct err e = { 0 };

        if (filter_parse(a, bad[i].filter, &f, &e) != -EINVAL)
            fail_msg("%s was taken", bad[i].filter);
        if (strcmp(e.code, "INVALID_FILTER") != 0 || !strstr(e.text, bad[i].part_of_text))
            fail_msg("%s: %s %s", bad[i].filter, e.code, e.text);
        assert_null(f);
    }
}

static void no_filter_matches_every_row(void **state)
{
    static const char *const empty[] = { NULL, "", "  \t\n" };

    for (size_t i = 0; i < ARRAY_SIZE(empty); i++) {
        AUTO(arena_freep) struct arena *a = arena_new();
        struct filter *f = NULL;

        assert_int_equal(filter_parse(a, empty[i], &f, NULL), 0);
        assert_null(f);
        assert_true(filter_matches(f, &row));
    }
}

static void a_filter_is_bounded_in_bytes(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    const char start[] = "status=eq.";
    size_t n_value = LIMIT_FILTER_BYTES - strlen(start);
    char *text = arena_alloc(a, LIMIT_FILTER_BYTES + 2);
    struct filter *f = NULL;

    memcpy(text, start, strlen(start));
    memset(text + strlen(start), 'x', n_value);
    assert_int_equal(filter_parse(a, text, &f, NULL), 0);
    text[LIMIT_FILTER_BYTES] = 'x';
    assert_int_equal(filter_parse(a, text, &f, NULL), -EINVAL);
}

static void a_path_is_bounded_in_members(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct filter *f = NULL;
    const char *path = "raw_data";

    for (int i = 0; i < LIMIT_FILTER_PATH - 1; i++)
        path = arena_printf(a, "%s->m", path);
    assert_int_equal(filter_parse(a, arena_printf(a, "%s->>m=eq.1", path), &f, NULL), 0);
    assert_int_equal(filter_parse(a, arena_printf(a, "%s->m->>m=eq.1", path), &f, NULL), -EINVAL);
}

static void broken_json_in_a_row_matches_nothing(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    const struct backend_row broken = { .raw_data = "{\"n\":" };
    struct filter *f = NULL;

    assert_int_equal(filter_parse(a, "raw_data->>n=neq.1", &f, NULL), 0);
    assert_false(filter_matches(f, &broken));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(conditions_compare_by_the_type_of_the_rows_value),
        cmocka_unit_test(anything_else_is_refused_and_says_why),
        cmocka_unit_test(no_filter_matches_every_row),
        cmocka_unit_test(a_filter_is_bounded_in_bytes),
        cmocka_unit_test(a_path_is_bounded_in_members),
        cmocka_unit_test(broken_json_in_a_row_matches_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

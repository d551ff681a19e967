#include "rig.h"

static const float east[] = { 1, 0 }, north[] = { 0, 1 }, west[] = { -1, 0 };

static void put(struct rig *x, const char *id, const float *vector, const char *text)
{
    rig_put(x, "ns", id, vector, 2, arena_printf(x->a, "{\"text\":\"%s\",\"half\":%d}", text, id[0] % 2));
}

/* The ids of an answer, concatenated. */
static const char *request(struct rig *x, const float *vector, const char *text, int64_t top_k, const char *filter)
{
    struct vector_query q = { .vector = vector, .n_dimensions = 2, .top_k = top_k, .min_score = -2, .text = text };
    struct vector_hits hits;
    char *ids = arena_strdup(x->a, "");

    if (filter)
        q.filter = rig_json(x, filter);
    hits = rig_query(x, "ns", &q);
    for (size_t i = 0; i < hits.n; i++)
        ids = arena_printf(x->a, "%s%s", ids, hits.items[i].id);
    return ids;
}

static struct rig *open_library(void)
{
    struct rig *x = rig_open();

    put(x, "a", east, "the invoice of January");
    put(x, "b", (float[]){ 1, 0.1F }, "the weather of today");
    put(x, "c", (float[]){ 1, 0.2F }, "a letter to the tax office");
    put(x, "d", west, "invoice and reminder, an invoice once more");
    rig_put(x, "ns", "e", north, 2, "{\"text\":7}");
    rig_put(x, "ns", "f", north, 2, NULL);
    return x;
}

static void words_lift_what_vectors_put_last(void **state)
{
    struct rig *x = open_library();

    assert_string_equal(request(x, east, NULL, 3, NULL), "abc");
    assert_string_equal(request(x, east, "invoice", 2, NULL), "ad");          /* in both rankings */
    assert_string_equal(request(x, east, "nothing of that", 3, NULL), "abc"); /* "of" is in a and b */
    assert_string_equal(request(x, east, "zebra", 3, NULL), "abc");
    rig_close(x);
}

/* t is first by text and third by vector: 1/61 + 1/63; b second in both: 1/62 + 1/62, a little less; v first by vector.
 */
static void ranks_are_fused_by_their_reciprocals(void **state)
{
    struct rig *x = rig_open();
    struct vector_query q = { .vector = east, .n_dimensions = 2, .top_k = 3, .min_score = -2, .text = "apple" };
    struct vector_hits hits;

    put(x, "v", east, "pear");
    put(x, "b", (float[]){ 1, 0.1F }, "pear pear pear pear and one apple");
    put(x, "t", west, "apple");
    hits = rig_query(x, "ns", &q);
    assert_int_equal(hits.n, 3);
    assert_string_equal(hits.items[0].id, "t");
    assert_string_equal(hits.items[1].id, "b");
    assert_string_equal(hits.items[2].id, "v");
    assert_true(hits.items[0].score == -1 && hits.items[2].score == 1); /* scores are still cosines */
    q.min_score = 0;
    assert_int_equal(rig_query(x, "ns", &q).n, 2);
    rig_close(x);
}

static void replaced_and_removed_rows_leave_the_index(void **state)
{
    struct rig *x = open_library();
    const char *ids[] = { "a" };
    int64_t n;

    assert_string_equal(request(x, north, "invoice", 2, "{\"half\":{\"$in\":[0,1]}}"), "da");
    put(x, "d", west, "nothing any more");
    MUST(x->v->ops->remove(x->v, NULL, "ns", &(struct vector_removal){ .ids = ids, .n_ids = 1 }, &n, &x->e));
    put(x, "g", west, "late invoice");
    assert_string_equal(request(x, west, "invoice", 1, NULL), "g");
    assert_string_equal(request(x, east, "january", 3, NULL), "bce");
    rig_reopen(x);
    assert_string_equal(request(x, west, "invoice", 1, NULL), "g");
    rig_close(x);
}

static void a_filter_holds_for_both_rankings(void **state)
{
    struct rig *x = open_library();

    assert_string_equal(request(x, east, "invoice", 9, "{\"half\":0}"), "db"); /* b and d are tied */
    assert_string_equal(request(x, east, "invoice", 9, "{\"half\":5}"), "");
    rig_close(x);
}

static void no_text_is_an_expression(void **state)
{
    static const char *const texts[] = { "",
                                         "   ",
                                         "\"",
                                         "invoice\"",
                                         "a AND (b",
                                         "text:invoice",
                                         "^invoice",
                                         "NEAR(a b)",
                                         "*",
                                         "-",
                                         "inv\\oice",
                                         "'; DROP TABLE vectors",
                                         "ünïcödé \xf0\x9f\xa6\x93" };
    struct rig *x = open_library();

    for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
        assert_int_equal(strlen(request(x, east, texts[i], 9, NULL)), 6);
    assert_string_equal(request(x, west, "INVOICE!", 1, NULL), "d");
    rig_close(x);
}

static void text_is_limited(void **state)
{
    struct rig *x = open_library();
    struct vector_query q = { .vector = east, .n_dimensions = 2, .top_k = 3, .min_score = -2 };
    struct vector_hits hits;
    char *text = arena_alloc(x->a, LIMIT_VECTOR_TEXT_BYTES + 2);

    for (size_t i = 0; i < LIMIT_VECTOR_TEXT_BYTES; i++)
        text[i] = i % 3 ? 'w' : ' ';
    q.text = text;
    assert_int_equal(rig_query(x, "ns", &q).n, 3);
    text[LIMIT_VECTOR_TEXT_BYTES] = 'w';
    MUST_FAIL(x->v->ops->query(x->v, NULL, "ns", &q, x->a, &hits, &x->e), -EINVAL, "VALIDATION_ERROR");
    rig_close(x);
}

static void text_alone_gives_the_best_by_text(void **state)
{
    struct rig *x = open_library();
    struct vector_query q = { .top_k = 3, .min_score = -2, .text = "invoice" };
    struct vector_hits hits = rig_query(x, "ns", &q);

    assert_int_equal(hits.n, 2);
    assert_string_equal(hits.items[0].id, "d");
    assert_true(hits.items[0].score == 1 && fabs(hits.items[1].score - 61.0 / 62) < 1e-12);
    q.filter = rig_json(x, "{\"half\":1}");
    q.with_vectors = true;
    hits = rig_query(x, "ns", &q);
    assert_int_equal(hits.n, 1);
    assert_string_equal(hits.items[0].id, "a");
    assert_true(hits.items[0].vector[0] == 1 && hits.items[0].vector[1] == 0);
    q.text = "zebra";
    assert_int_equal(rig_query(x, "ns", &q).n, 0);
    assert_int_equal(rig_query(x, "nowhere", &q).n, 0);
    q.text = NULL;
    MUST_FAIL(x->v->ops->query(x->v, NULL, "ns", &q, x->a, &hits, &x->e), -EINVAL, "VALIDATION_ERROR");
    rig_close(x);
}

static void a_namespace_made_anew_has_an_index_of_its_own(void **state)
{
    struct rig *x = open_library();
    int64_t n;

    assert_string_equal(request(x, west, "invoice", 1, NULL), "d");
    MUST(x->v->ops->remove(x->v, NULL, "ns", &(struct vector_removal){ .all = true }, &n, &x->e));
    assert_string_equal(request(x, west, "invoice", 1, NULL), "");
    put(x, "n", east, "another invoice");
    put(x, "o", west, "x");
    assert_string_equal(request(x, west, "invoice", 1, NULL), "n");
    rig_close(x);
}

/* More rows than are indexed in one step. */
static void an_index_is_made_of_many_rows(void **state)
{
    struct rig *x = rig_open();

    for (size_t i = 0; i < 1203; i++)
        put(x, arena_printf(x->a, "%04zu.", i), i % 2 ? east : north, i == 1202 ? "needle" : "hay");
    assert_string_equal(request(x, east, "needle", 2, NULL), "0001.1202."); /* each is first in one ranking */
    rig_close(x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_lift_what_vectors_put_last),
        cmocka_unit_test(ranks_are_fused_by_their_reciprocals),
        cmocka_unit_test(replaced_and_removed_rows_leave_the_index),
        cmocka_unit_test(a_filter_holds_for_both_rankings),
        cmocka_unit_test(no_text_is_an_expression),
        cmocka_unit_test(text_is_limited),
        cmocka_unit_test(text_alone_gives_the_best_by_text),
        cmocka_unit_test(a_namespace_made_anew_has_an_index_of_its_own),
        cmocka_unit_test(an_index_is_made_of_many_rows),
    };

    return cmocka_run_group_tests_name("hybrid", tests, NULL, NULL);
}

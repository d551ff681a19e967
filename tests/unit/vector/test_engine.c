#include "vector/engine/rerank.h"
#include "rig.h"

#include <pthread.h>
#include <sqlite3.h>

static const float east[] = { 1, 0, 0 }, north[] = { 0, 2, 0 }, northeast[] = { 1, 1, 0 }, west[] = { -3, 0, 0 };

static struct vector_query near(const float *vector, int64_t top_k)
{
    return (struct vector_query){ .vector = vector, .n_dimensions = 3, .top_k = top_k, .min_score = -2 };
}

static void put_compass(struct rig *x)
{
    rig_put(x, "ns", "east", east, 3, "{\"documentId\":\"a\",\"text\":\"where the sun rises\"}");
    rig_put(x, "ns", "north", north, 3, "{\"documentId\":\"a\"}");
    rig_put(x, "ns", "northeast", northeast, 3, NULL);
    rig_put(x, "ns", "west", west, 3, "{\"documentId\":\"b\"}");
}

static void nearest_come_first_with_their_cosine(void **state)
{
    struct rig *x = rig_open();
    struct vector_query q = near(east, 3);
    struct vector_hits hits;

    put_compass(x);
    hits = rig_query(x, "ns", &q);
    assert_int_equal(hits.n, 3);
    assert_string_equal(hits.items[0].id, "east");
    assert_true(hits.items[0].score == 1);
    assert_string_equal(hits.items[0].metadata, "{\"documentId\":\"a\",\"text\":\"where the sun rises\"}");
    assert_null(hits.items[0].vector);
    assert_string_equal(hits.items[1].id, "northeast");
    assert_true(fabs(hits.items[1].score - sqrt(0.5)) < 1e-9);
    assert_string_equal(hits.items[1].metadata, "{}");
    assert_true(hits.items[2].score == 0);
    q.top_k = 10;
    hits = rig_query(x, "ns", &q);
    assert_int_equal(hits.n, 4);
    assert_true(hits.items[3].score == -1);
    rig_close(x);
}

static void a_threshold_a_filter_and_vectors_may_be_asked_for(void **state)
{
    struct rig *x = rig_open();
    struct vector_query q = near(east, 10);
    struct vector_hits hits;

    put_compass(x);
    q.min_score = 0.5;
    assert_int_equal(rig_query(x, "ns", &q).n, 2);
    q.min_score = -2;
    q.filter = rig_json(x, "{\"documentId\":\"a\"}");
    q.with_vectors = true;
    hits = rig_query(x, "ns", &q);
    assert_int_equal(hits.n, 2);
    assert_string_equal(hits.items[1].id, "north");
    assert_memory_equal(hits.items[1].vector, north, sizeof(north));
    q.filter = rig_json(x, "{\"documentId\":\"nobody\"}");
    assert_int_equal(rig_query(x, "ns", &q).n, 0);
    rig_close(x);
}

/* Metadata of up to RERANK_TEXT_BYTES is read together with the vector. */
static void metadata_of_any_length_is_in_the_answer(void **state)
{
    const struct {
        const char *id;
        size_t n;
    } rows[] = { { "below", RERANK_TEXT_BYTES - 1 },
                 { "edge", RERANK_TEXT_BYTES },
                 { "above", RERANK_TEXT_BYTES + 1 },
                 { "long", 60 * RERANK_TEXT_BYTES } };
    struct rig *x = rig_open();

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        AUTO(freep) char *text = xcalloc(1, rows[i].n + 1);

        snprintf(text, rows[i].n + 1, "{\"t\":\"%0*zu\"}", (int)(rows[i].n - strlen("{\"t\":\"\"}")), i);
        assert_int_equal(strlen(text), rows[i].n);
        rig_put(x, "ns", rows[i].id, (float[]){ 1, (float)i / 10, 0 }, 3, text);
        for (int with_vectors = 0; with_vectors < 2; with_vectors++) {
            struct vector_query q = near((float[]){ 1, (float)i / 10, 0 }, 1);
            struct vector_hits hits;

            q.with_vectors = with_vectors;
            hits = rig_query(x, "ns", &q);
            assert_int_equal(hits.n, 1);
            assert_string_equal(hits.items[0].id, rows[i].id);
            assert_string_equal(hits.items[0].metadata, text);
            assert_int_equal(hits.items[0].n_dimensions, with_vectors ? 3 : 0);
        }
    }
    rig_close(x);
}

static void a_namespace_that_is_not_there_is_empty(void **state)
{
    struct rig *x = rig_open();
    struct vector_query q = near(east, 1);
    struct vector_hits hits = { 0 };
    int64_t n = -1, n_dimensions = -1;

    assert_int_equal(rig_query(x, "nowhere", &q).n, 0);
    MUST(x->v->ops->count(x->v, NULL, "nowhere", &n, &n_dimensions, &x->e));
    assert_int_equal(n, 0);
    MUST(x->v->ops->remove(x->v, NULL, "nowhere", &(struct vector_removal){ .all = true }, &n, &x->e));
    assert_int_equal(n, 0);
    MUST(x->v->ops->list(x->v, NULL, "nowhere", &(struct vector_list_request){ .limit = 10 }, x->a, &hits, &x->e));
    assert_int_equal(hits.n, 0);
    rig_close(x);
}

static void an_upsert_replaces_and_the_last_of_equal_ids_wins(void **state)
{
    struct rig *x = rig_open();
    struct vector_record records[] = { { "a", east, "{\"v\":1}" }, { "b", north, NULL }, { "a", west, "{\"v\":2}" } };
    struct vector_query q = near(west, 5);
    struct vector_hits hits;

    rig_put(x, "ns", "b", east, 3, NULL);
    MUST(x->v->ops->upsert(x->v, NULL, "ns", &(struct vector_batch){ records, 3, 3 }, &x->e));
    assert_int_equal(rig_count(x, "ns"), 2);
    hits = rig_query(x, "ns", &q);
    assert_int_equal(hits.n, 2);
    assert_string_equal(hits.items[0].id, "a");
    assert_string_equal(hits.items[0].metadata, "{\"v\":2}");
    assert_true(hits.items[1].score == 0);
    rig_close(x);
}

static void the_first_batch_decides_the_dimensions_until_all_is_deleted(void **state)
{
    struct rig *x = rig_open();
    struct vector_record record = { "a", east, NULL };
    struct vector_query q = near(east, 1);
    struct vector_hits hits;
    int64_t n = 0;

    rig_put(x, "ns", "a", east, 3, NULL);
    MUST_FAIL(x->v->ops->upsert(x->v, NULL, "ns", &(struct vector_batch){ &record, 1, 2 }, &x->e), -EINVAL,
              "DIMENSION_MISMATCH");
    q.n_dimensions = 2;
    MUST_FAIL(x->v->ops->query(x->v, NULL, "ns", &q, x->a, &hits, &x->e), -EINVAL, "DIMENSION_MISMATCH");
    assert_int_equal(rig_count(x, "ns"), 1);
    MUST(x->v->ops->remove(x->v, NULL, "ns", &(struct vector_removal){ .all = true }, &n, &x->e));
    assert_int_equal(n, 1);
    rig_put(x, "ns", "a", east, 2, NULL);
    assert_int_equal(rig_query(x, "ns", &q).n, 1);
    rig_close(x);
}

static void a_namespace_emptied_by_ids_or_filter_is_forgotten(void **state)
{
    struct rig *x = rig_open();
    const struct vector_removal removals[] = { { .ids = (const char *[]){ "a", "b", "none" }, .n_ids = 3 },
                                               { .filter = rig_json(x, "{\"kind\":\"k\"}") } };
    struct field_strings names = { 0 };
    int64_t n = 0, n_dimensions = -1;
    float vector[8] = { 1 };

    for (size_t i = 0; i < ARRAY_SIZE(removals); i++) {
        rig_put(x, "ns", "a", vector, 3 + i, "{\"kind\":\"k\"}");
        rig_put(x, "ns", "b", vector, 3 + i, "{\"kind\":\"k\"}");
        MUST(x->v->ops->remove(x->v, NULL, "ns", &removals[i], &n, &x->e));
        assert_int_equal(n, 2);
        MUST(x->v->ops->count(x->v, NULL, "ns", &n, &n_dimensions, &x->e));
        assert_int_equal(n + n_dimensions, 0);
        MUST(x->v->ops->namespaces(x->v, NULL, "", x->a, &names, &x->e));
        assert_int_equal(names.n, 0);
    }
    rig_put(x, "ns", "a", vector, 8, NULL);
    rig_reopen(x);
    assert_int_equal(rig_count(x, "ns"), 1);
    rig_close(x);
}

static void namespaces_are_listed_by_prefix_and_keep_apart(void **state)
{
    struct rig *x = rig_open();
    struct field_strings names = { 0 };
    struct vector_query q = near(east, 9);
    int64_t n;

    rig_put(x, "sdk_a_two", "1", east, 3, NULL);
    rig_put(x, "sdk_a_one", "1", west, 3, NULL);
    rig_put(x, "sdk_b_one", "1", west, 3, NULL);
    rig_put(x, "sdk%a", "1", west, 3, NULL);
    MUST(x->v->ops->namespaces(x->v, NULL, "sdk_a_", x->a, &names, &x->e));
    assert_int_equal(names.n, 2);
    assert_string_equal(names.items[0], "sdk_a_one");
    assert_string_equal(names.items[1], "sdk_a_two");
    assert_int_equal(rig_query(x, "sdk_a_one", &q).n, 1);
    MUST(x->v->ops->remove(x->v, NULL, "sdk_a_one", &(struct vector_removal){ .all = true }, &n, &x->e));
    MUST(x->v->ops->namespaces(x->v, NULL, "sdk_", x->a, &names, &x->e));
    assert_int_equal(names.n, 2);
    rig_close(x);
}

static void a_list_goes_page_by_page_in_order_of_ids(void **state)
{
    struct rig *x = rig_open();
    struct vector_hits hits = { 0 };

    put_compass(x);
    MUST(x->v->ops->list(x->v, NULL, "ns",
                         &(struct vector_list_request){ .limit = 2, .offset = 1, .with_vectors = true }, x->a, &hits,
                         &x->e));
    assert_int_equal(hits.n, 2);
    assert_string_equal(hits.items[0].id, "north");
    assert_string_equal(hits.items[1].id, "northeast");
    assert_memory_equal(hits.items[1].vector, northeast, sizeof(northeast));
    MUST(x->v->ops->list(x->v, NULL, "ns",
                         &(struct vector_list_request){ .limit = 2, .offset = 4, .with_vectors = true }, x->a, &hits,
                         &x->e));
    assert_int_equal(hits.n, 0);
    rig_close(x);
}

static void what_was_acknowledged_is_there_after_reopening(void **state)
{
    struct rig *x = rig_open();
    struct vector_query q = near(north, 1);
    int64_t n;

    put_compass(x);
    MUST(x->v->ops->remove(x->v, NULL, "ns",
                           &(struct vector_removal){ .ids = (const char *[]){ "east", "no such" }, .n_ids = 2 }, &n,
                           &x->e));
    assert_int_equal(n, 1);
    rig_reopen(x);
    assert_int_equal(rig_count(x, "ns"), 3);
    assert_string_equal(rig_query(x, "ns", &q).items[0].id, "north");
    rig_close(x);
}

/* --- what is refused --- */

static void numbers_that_are_none_are_refused_and_nothing_is_stored(void **state)
{
    const float bad[][3] = { { 1, NAN, 0 }, { INFINITY, 0, 0 }, { 0, 0, -INFINITY } };
    struct rig *x = rig_open();
    struct vector_hits hits;

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        struct vector_record records[] = { { "a", east, NULL }, { "b", bad[i], NULL } };
        struct vector_query q = near(bad[i], 1);

        MUST_FAIL(x->v->ops->upsert(x->v, NULL, "ns", &(struct vector_batch){ records, 2, 3 }, &x->e), -EINVAL,
                  "VALIDATION_ERROR");
        assert_string_equal(x->e.fields[0].field, "vectors[1].vector");
        assert_int_equal(rig_count(x, "ns"), 0);
        MUST_FAIL(x->v->ops->query(x->v, NULL, "ns", &q, x->a, &hits, &x->e), -EINVAL, "VALIDATION_ERROR");
    }
    rig_close(x);
}

static char *text_of(struct rig *x, size_t n, const char *before, const char *after)
{
    char *text = arena_alloc(x->a, n + 1);

    memset(text, 'x', n);
    memcpy(text, before, strlen(before));
    memcpy(text + n - strlen(after), after, strlen(after));
    return text;
}

static int put_one(struct rig *x, const char *ns, const char *id, size_t n_dimensions, const char *metadata)
{
    float *vector = arena_array(x->a, n_dimensions + 1, sizeof(float));
    struct vector_record record = { id, vector, metadata };

    x->e = (struct err){ 0 };
    vector[0] = 1;
    return x->v->ops->upsert(x->v, NULL, ns, &(struct vector_batch){ &record, 1, n_dimensions }, &x->e);
}

static void limits_hold_at_their_edges(void **state)
{
    struct rig *x = rig_open();

    assert_int_equal(put_one(x, "big", "a", LIMIT_DIMENSIONS, NULL), 0);
    assert_int_equal(put_one(x, "bigger", "a", LIMIT_DIMENSIONS + 1, NULL), -EINVAL);
    assert_int_equal(put_one(x, "none", "a", 0, NULL), -EINVAL);
    assert_int_equal(put_one(x, "ns", text_of(x, LIMIT_VECTOR_ID_BYTES, "", ""), 1, NULL), 0);
    assert_int_equal(put_one(x, "ns", text_of(x, LIMIT_VECTOR_ID_BYTES + 1, "", ""), 1, NULL), -EINVAL);
    assert_int_equal(put_one(x, "ns", "", 1, NULL), -EINVAL);
    assert_int_equal(put_one(x, text_of(x, LIMIT_VECTOR_NAMESPACE_BYTES, "", ""), "a", 1, NULL), 0);
    assert_int_equal(put_one(x, text_of(x, LIMIT_VECTOR_NAMESPACE_BYTES + 1, "", ""), "a", 1, NULL), -EINVAL);
    assert_int_equal(put_one(x, "ns", "m", 1, text_of(x, LIMIT_VECTOR_METADATA, "{\"a\":\"", "\"}")), 0);
    assert_int_equal(put_one(x, "ns", "m", 1, text_of(x, LIMIT_VECTOR_METADATA + 1, "{\"a\":\"", "\"}")), -EINVAL);
    assert_int_equal(put_one(x, "ns", "m", 1, "[]"), -EINVAL);
    assert_string_equal(x->e.text, "`vectors[0].metadata` must be an object");
    assert_int_equal(put_one(x, "ns", "m", 1, "{"), -EINVAL);
    assert_int_equal(rig_count(x, "ns"), 2);
    rig_close(x);
}

static int put_many(struct rig *x, size_t n)
{
    struct vector_record *records = arena_array(x->a, n, sizeof(*records));

    for (size_t i = 0; i < n; i++)
        records[i] = (struct vector_record){ arena_printf(x->a, "%zu", i), east, NULL };
    x->e = (struct err){ 0 };
    return x->v->ops->upsert(x->v, NULL, "many", &(struct vector_batch){ records, n, 3 }, &x->e);
}

static void a_call_holds_as_many_vectors_as_the_limit(void **state)
{
    struct rig *x = rig_open();

    assert_int_equal(put_many(x, LIMIT_VECTORS_PER_CALL), 0);
    assert_int_equal(put_many(x, LIMIT_VECTORS_PER_CALL + 1), -EINVAL);
    assert_int_equal(rig_count(x, "many"), LIMIT_VECTORS_PER_CALL);
    assert_int_equal(put_many(x, 0), 0);
    rig_close(x);
}

static void top_k_is_1_to_1000(void **state)
{
    struct rig *x = rig_open();
    struct vector_query q = near(east, LIMIT_TOP_K);
    struct vector_hits hits;

    assert_int_equal(put_many(x, LIMIT_TOP_K + 5), 0);
    assert_int_equal(rig_query(x, "many", &q).n, LIMIT_TOP_K);
    q.top_k = LIMIT_TOP_K + 1;
    MUST_FAIL(x->v->ops->query(x->v, NULL, "many", &q, x->a, &hits, &x->e), -EINVAL, "VALIDATION_ERROR");
    q.top_k = 0;
    MUST_FAIL(x->v->ops->query(x->v, NULL, "many", &q, x->a, &hits, &x->e), -EINVAL, "VALIDATION_ERROR");
    rig_close(x);
}

static void a_removal_says_one_thing(void **state)
{
    struct rig *x = rig_open();
    const char *ids[] = { "a" };
    int64_t n;

    MUST_FAIL(x->v->ops->remove(x->v, NULL, "ns", &(struct vector_removal){ 0 }, &n, &x->e), -EINVAL,
              "VALIDATION_ERROR");
    MUST_FAIL(x->v->ops->remove(x->v, NULL, "ns", &(struct vector_removal){ .all = true, .ids = ids, .n_ids = 1 }, &n,
                                &x->e),
              -EINVAL, "VALIDATION_ERROR");
    MUST_FAIL(x->v->ops->remove(x->v, NULL, "ns",
                                &(struct vector_removal){ .filter = rig_json(x, "{\"a\":{\"$x\":1}}") }, &n, &x->e),
              -EINVAL, "VALIDATION_ERROR"); /* also when no row could match */
    put_compass(x);
    MUST_FAIL(x->v->ops->remove(x->v, NULL, "ns",
                                &(struct vector_removal){ .filter = rig_json(x, "{\"a\":{\"$x\":1}}") }, &n, &x->e),
              -EINVAL, "VALIDATION_ERROR");
    rig_close(x);
}

static int64_t bytes_of(struct rig *x, const char *prefix)
{
    int64_t n = -1;

    MUST(x->v->ops->bytes(x->v, prefix, &n, &x->e));
    return n;
}

static void remove_some(struct rig *x, const char *ns, struct vector_removal removal)
{
    int64_t n = 0;

    MUST(x->v->ops->remove(x->v, NULL, ns, &removal, &n, &x->e));
    assert_true(n > 0);
}

/* "id" or "ot", 12 bytes of vector, and the metadata. */
static void bytes_follow_what_is_stored(void **state)
{
    struct rig *x = rig_open();
    const struct vector_record twice[] = { { "id", east, "{\"much\":\"more\"}" }, { "id", east, "{}" } };

    assert_int_equal(bytes_of(x, "sdk_a_"), 0);
    rig_put(x, "sdk_a_one", "id", east, 3, "{\"t\":\"\xc3\xa9\"}");
    rig_put(x, "sdk_a_two", "id", east, 3, NULL);
    rig_put(x, "sdk_ab_one", "id", east, 3, NULL);
    rig_put(x, "sdk_a", "id", east, 3, NULL);
    assert_int_equal(bytes_of(x, "sdk_a_"), (2 + 12 + 10) + (2 + 12 + 2));
    assert_int_equal(bytes_of(x, "sdk_ab_"), 2 + 12 + 2);
    MUST(x->v->ops->upsert(x->v, NULL, "sdk_a_one", &(struct vector_batch){ twice, 2, 3 }, &x->e));
    assert_int_equal(bytes_of(x, "sdk_a_"), 2 * (2 + 12 + 2));
    rig_put(x, "sdk_a_one", "ot", north, 3, "{\"kind\":1}");
    rig_put(x, "sdk_a_one", "ou", north, 3, NULL);
    remove_some(x, "sdk_a_one", (struct vector_removal){ .filter = rig_json(x, "{\"kind\":1}") });
    remove_some(x, "sdk_a_one", (struct vector_removal){ .ids = (const char *[]){ "ou" }, .n_ids = 1 });
    rig_reopen(x);
    assert_int_equal(bytes_of(x, "sdk_a_"), 2 * (2 + 12 + 2));
    remove_some(x, "sdk_a_two", (struct vector_removal){ .all = true });
    remove_some(x, "sdk_a_one", (struct vector_removal){ .ids = (const char *[]){ "id" }, .n_ids = 1 });
    assert_int_equal(bytes_of(x, "sdk_a_"), 0);
    rig_close(x);
}

static void a_file_from_before_bytes_were_counted_is_counted_once(void **state)
{
    struct rig *x = rig_open();
    sqlite3 *file = NULL;

    rig_put(x, "sdk_a_one", "id", east, 3, "{\"t\":\"\xc3\xa9\"}");
    rig_put(x, "sdk_a_two", "id", east, 3, NULL);
    x->v = x->v->ops->close(x->v);
    assert_int_equal(sqlite3_open(x->folder.file, &file), SQLITE_OK);
    assert_int_equal(sqlite3_exec(file,
                                  "ALTER TABLE spaces DROP COLUMN n_bytes; ALTER TABLE spaces DROP COLUMN side_mark;"
                                  " PRAGMA user_version = 1",
                                  NULL, NULL, NULL),
                     SQLITE_OK);
    sqlite3_close(file);
    rig_reopen(x);
    assert_int_equal(bytes_of(x, "sdk_a_"), (2 + 12 + 10) + (2 + 12 + 2));
    rig_close(x);
}

static void a_zero_vector_is_stored_and_scores_nothing(void **state)
{
    static const float zero[3] = { 0 };
    struct rig *x = rig_open();
    struct vector_query q = near(east, 5);
    struct vector_hits hits;

    put_compass(x);
    rig_put(x, "ns", "zero", zero, 3, NULL);
    hits = rig_query(x, "ns", &q);
    assert_int_equal(hits.n, 5);
    assert_true(hits.items[2].score == 0 && hits.items[3].score == 0);
    q.vector = zero;
    hits = rig_query(x, "ns", &q);
    assert_int_equal(hits.n, 5);
    assert_true(hits.items[0].score == 0);
    rig_close(x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nearest_come_first_with_their_cosine),
        cmocka_unit_test(a_threshold_a_filter_and_vectors_may_be_asked_for),
        cmocka_unit_test(metadata_of_any_length_is_in_the_answer),
        cmocka_unit_test(a_namespace_that_is_not_there_is_empty),
        cmocka_unit_test(an_upsert_replaces_and_the_last_of_equal_ids_wins),
        cmocka_unit_test(the_first_batch_decides_the_dimensions_until_all_is_deleted),
        cmocka_unit_test(a_namespace_emptied_by_ids_or_filter_is_forgotten),
        cmocka_unit_test(namespaces_are_listed_by_prefix_and_keep_apart),
        cmocka_unit_test(a_list_goes_page_by_page_in_order_of_ids),
        cmocka_unit_test(what_was_acknowledged_is_there_after_reopening),
        cmocka_unit_test(numbers_that_are_none_are_refused_and_nothing_is_stored),
        cmocka_unit_test(limits_hold_at_their_edges),
        cmocka_unit_test(a_call_holds_as_many_vectors_as_the_limit),
        cmocka_unit_test(top_k_is_1_to_1000),
        cmocka_unit_test(a_removal_says_one_thing),
        cmocka_unit_test(bytes_follow_what_is_stored),
        cmocka_unit_test(a_file_from_before_bytes_were_counted_is_counted_once),
        cmocka_unit_test(a_zero_vector_is_stored_and_scores_nothing),
    };

    return cmocka_run_group_tests_name("engine", tests, NULL, NULL);
}

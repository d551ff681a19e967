#include "vector/remote/remote.h"

#include "base/hash.h"
#include "vector/remote/chroma.h"
#include "vector/remote/qdrant.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

/* A peer that applies no filter: row i has the score 1 - i/n and {"i": i}. */
struct peer {
    int64_t n_rows, n_requested, n_calls;
};

static int request(void *arg, int64_t n, struct arena *a, struct vector_hits *ret, struct err *e)
{
    struct peer *p = arg;
    size_t n_hits = (size_t)MIN(n, p->n_rows);
    struct vector_hit *hits = arena_array(a, n_hits + 1, sizeof(*hits));

    p->n_calls++;
    p->n_requested = n;
    for (size_t i = 0; i < n_hits; i++)
        hits[i] = (struct vector_hit){ arena_printf(a, "%zu", i), 1 - (double)i / (double)p->n_rows,
                                       arena_printf(a, "{\"i\": %zu}", i), NULL, 0 };
    *ret = (struct vector_hits){ hits, n_hits };
    return 0;
}

static int search(struct peer *p, const char *filter, int64_t top_k, double min_score, struct arena *a,
                  struct vector_hits *ret, struct err *e)
{
    const struct vector_query q = { .n_dimensions = 1, .top_k = top_k, .min_score = min_score };
    struct vector_filter f = { 0 };
    struct json_value value = { 0 };

    assert_int_equal(json_parse(a, slice_of(filter), &value, NULL), 0);
    assert_int_equal(vector_filter_parse(a, value, &f, NULL), 0);
    p->n_calls = 0;
    return remote_nearest(&(struct remote_looking){ &q, &f, f.n == 0, REMOTE_CANDIDATES, request, p }, a, ret, e);
}

static void more_is_asked_for_until_enough_match(void **state)
{
    static const struct {
        const char *filter;
        int64_t n_rows, top_k;
        double min_score;
        size_t n_hits;
        const char *first;
        int64_t n_calls;
    } cases[] = {
        { "{}", 50, 5, -2, 5, "0", 1 },
        { "{}", 3, 5, -2, 3, "0", 1 },
        { "{}", 50, 5, 0.97, 2, "0", 1 },
        { "{\"i\": {\"$ne\": 0}}", 50000, 5, -2, 5, "1", 1 },
        { "{\"i\": {\"$gte\": 300}}", 50000, 5, -2, 5, "300", 2 },
        { "{\"i\": {\"$gte\": 5000}}", 50000, 5, -2, 5, "5000", 3 },
        { "{\"i\": {\"$gte\": 5000}}", 5003, 5, -2, 3, "5000", 3 },
        { "{\"i\": 7}", 400, 5, -2, 1, "7", 2 },
        { "{\"i\": {\"$in\": []}}", 50000, 5, -2, 0, NULL, 0 },
        { "{\"i\": {\"$gte\": 300}}", 50000, 5, 0.999, 0, NULL, 1 },
        { "{}", 50000, 1000, -2, 1000, "0", 1 },
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        AUTO(arena_freep) struct arena *a = arena_new();
        struct peer p = { .n_rows = cases[i].n_rows };
        struct vector_hits hits = { 0 };
        struct err e = { 0 };

        assert_int_equal(search(&p, cases[i].filter, cases[i].top_k, cases[i].min_score, a, &hits, &e), 0);
        if (hits.n != cases[i].n_hits || p.n_calls != cases[i].n_calls)
            fail_msg("%s: %zu hits after %d calls", cases[i].filter, hits.n, (int)p.n_calls);
        if (cases[i].first)
            assert_string_equal(hits.items[0].id, cases[i].first);
    }
}

static void too_few_matches_among_the_nearest_are_reported_and_not_answered(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct peer p = { .n_rows = 50000 };
    struct vector_hits hits = { 0 };
    struct err e = { 0 };

    assert_int_equal(search(&p, "{\"i\": {\"$gte\": 9998}}", 3, -2, a, &hits, NULL), -ERANGE);
    assert_int_equal(p.n_requested, REMOTE_CANDIDATES);
    assert_int_equal(hits.n, 0);
    assert_int_equal(search(&p, "{\"i\": {\"$gte\": 9998}}", 2, -2, a, &hits, NULL), 0);
    assert_int_equal(hits.n, 2);
    assert_int_equal(remote_undecided(&e), -EIO);
    assert_string_equal(e.code, "VECTOR_STORE_FAILED");
}

/* ---- a whole store with a peer that decides only equality ---- */

enum { NS_DIMENSIONS = 1 };

struct double_store {
    struct remote_store store;
    int64_t n_rows, n_counted;
    int n_collected;
    size_t n_among;
};

static struct double_store *double_of(const struct remote_op *op)
{
    return CONTAINER_OF(op->remote, struct double_store, store.remote);
}

static int double_find(const struct remote_op *op, struct arena *a, const char *ns, struct remote_collection *ret,
                       struct err *e)
{
    *ret =
        (struct remote_collection){ .name = ns, .is_there = double_of(op)->n_rows > 0, .n_dimensions = NS_DIMENSIONS };
    return 0;
}

static int double_count(const struct remote_op *op, struct arena *a, const struct remote_collection *col, int64_t *ret,
                        struct err *e)
{
    assert_true(col->is_there);
    *ret = double_of(op)->n_counted;
    return 0;
}

static int request_matching(struct peer *p, const struct vector_filter *f, struct arena *a, struct vector_hits *ret,
                            struct err *e)
{
    struct vector_hits all = { 0 };
    size_t n = 0;

    assert_int_equal(request(p, p->n_rows, a, &all, e), 0);
    for (size_t i = 0; i < all.n; i++)
        if (remote_is_match(f, all.items[i].metadata, a))
            all.items[n++] = all.items[i];
    *ret = (struct vector_hits){ all.items, n };
    return 0;
}

static int double_nearest(const struct remote_op *op, const struct remote_collection *col,
                          const struct remote_search *search, int64_t n, struct arena *a, struct vector_hits *ret,
                          struct err *e)
{
    struct double_store *d = double_of(op);
    struct peer all = { .n_rows = d->n_rows };
    struct vector_hits hits = { arena_array(a, search->among.n + 1, sizeof(struct vector_hit)), 0 };

    if (search->among.n == 0)
        return remote_is_reported(d->store.peer->dialect, search->filter)
                   ? request_matching(&all, search->filter, a, ret, e)
                   : request(&all, n, a, ret, e);
    d->n_among = search->among.n;
    for (size_t i = 0; i < MIN(search->among.n, (size_t)n); i++)
        hits.items[hits.n++] = (struct vector_hit){ search->among.items[i], 0.5,
                                                    arena_printf(a, "{\"i\": %s}", search->among.items[i]), NULL, 0 };
    *ret = hits;
    return 0;
}

static int double_collect_ids(const struct remote_op *op, const struct remote_collection *col,
                              const struct vector_filter *filter, struct remote_ids *ids, struct err *e)
{
    struct double_store *d = double_of(op);

    d->n_collected++;
    for (int64_t from = 0; from < d->n_rows; from += REMOTE_ROWS_A_READ) {
        AUTO(arena_freep) struct arena *scratch = arena_new();
        struct vector_hits hits = { arena_array(scratch, REMOTE_ROWS_A_READ, sizeof(struct vector_hit)), 0 };

        for (int64_t i = from; i < MIN(from + REMOTE_ROWS_A_READ, d->n_rows); i++)
            hits.items[hits.n++] = (struct vector_hit){ arena_printf(scratch, "%d", (int)i), 0,
                                                        arena_printf(scratch, "{\"i\": %d}", (int)i), NULL, 0 };
        assert_int_equal(remote_ids_add_hits(ids, &hits, filter, scratch, NULL), 0);
    }
    return 0;
}

static bool is_equality(const struct vector_condition *c)
{
    return c->op == VECTOR_EQ;
}

static const struct remote_dialect equality = { .member = "where", .all = "all", .can_express = is_equality };
static const struct remote_peer double_peer = {
    .dialect = &equality,
    .find = double_find,
    .count = double_count,
    .nearest = double_nearest,
    .collect_ids = double_collect_ids,
};

static void what_the_nearest_do_not_show_is_looked_for_among_those_that_match(void **state)
{
    static const struct {
        const char *filter;
        int64_t n_rows, n_counted;
        int r, n_collected;
        size_t n_hits, n_among;
        const char *first;
    } cases[] = {
        { "{\"i\": {\"$gte\": 19998}}", 20000, 20000, 0, 1, 2, 2, "19998" },
        { "{\"i\": {\"$gte\": 99998}}", 20000, 20000, 0, 1, 0, 0, NULL },
        { "{\"i\": {\"$gte\": 9998}}", 20000, 20000, -EIO, 1, 0, 0,
          NULL }, /* 10002 rows match: more than a query can be restricted to */
        { "{\"i\": {\"$gte\": 19998}}", 20000, REMOTE_SCAN_ROWS + 1, -EIO, 0, 0, 0, NULL },
        { "{\"i\": 0}", 20000, 20000, 0, 0, 1, 0, "0" },
        { "{}", 0, 0, 0, 0, 0, 0, NULL },
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        AUTO(arena_freep) struct arena *a = arena_new();
        struct double_store d = { .store.peer = &double_peer,
                                  .n_rows = cases[i].n_rows,
                                  .n_counted = cases[i].n_counted };
        struct vector_query q = {
            .vector = (const float[]){ 1 }, .n_dimensions = NS_DIMENSIONS, .top_k = 5, .min_score = -2
        };
        struct vector_hits hits = { 0 };
        struct err e = { 0 };

        assert_int_equal(json_parse(a, slice_of(cases[i].filter), &q.filter, NULL), 0);
        if (remote_query(&d.store.vectors, NULL, "sdk_a_b", &q, a, &hits, &e) != cases[i].r)
            fail_msg("%s of %d rows: %s", cases[i].filter, (int)cases[i].n_rows, e.text);
        assert_int_equal(hits.n, cases[i].n_hits);
        assert_int_equal(d.n_collected, cases[i].n_collected);
        assert_int_equal(d.n_among, cases[i].n_among);
        if (cases[i].first)
            assert_string_equal(hits.items[0].id, cases[i].first);
        if (cases[i].r < 0)
            assert_string_equal(e.code, "VECTOR_STORE_FAILED");
    }
}

static void a_search_is_checked_before_a_peer_is_asked(void **state)
{
    static const struct {
        struct vector_query q;
        const char *rule;
    } cases[] = {
        { { .n_dimensions = 1, .top_k = 0 }, "topK" },
        { { .n_dimensions = 0, .top_k = 5 }, "vector" },
        { { .n_dimensions = 1, .top_k = 5, .text = "words" }, "keeps no full text" },
    };
    AUTO(arena_freep) struct arena *a = arena_new();
    struct double_store d = { .store.peer = &(const struct remote_peer){ 0 } };
    struct vector_hits hits = { 0 };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct vector_query q = cases[i].q;
        struct err e = { 0 };

        q.vector = (const float[]){ 1 };
        assert_int_equal(remote_query(&d.store.vectors, NULL, "sdk_a_b", &q, a, &hits, &e), -EINVAL);
        assert_string_equal(e.code, "VALIDATION_ERROR");
        assert_non_null(strstr(e.text, cases[i].rule));
    }
}

static struct json_value json_of(struct arena *a, const char *text)
{
    struct json_value v = { 0 };

    if (text)
        assert_int_equal(json_parse(a, slice_of(text), &v, NULL), 0);
    return v;
}

static const struct remote_op no_op = { &(const struct remote){ .label = "Peer" }, NULL };

static int read_back(struct arena *a, const char *unit, double length, size_t n, struct vector_hit *ret, struct err *e)
{
    const struct remote_raw raw = { .id = json_of(a, "\"a\""),
                                    .id_name = "id",
                                    .unit = json_of(a, unit),
                                    .length = json_of(a, arena_printf(a, "%.17g", length)) };

    return remote_read_record(&no_op, a, &raw, n, ret, e);
}

static void every_vector_is_brought_to_length_one_and_back(void **state)
{
    static const float vectors[][2] = { { 3, 4 }, { 3e38f, -3e38f }, { 1e-38f, 1e-38f }, { 0, -7 }, { 0, 0 } };

    for (size_t i = 0; i < ARRAY_SIZE(vectors); i++) {
        AUTO(arena_freep) struct arena *a = arena_new();
        float unit[2];
        double length = remote_unit(vectors[i], 2, unit), sum = (double)unit[0] * unit[0] + (double)unit[1] * unit[1];
        struct vector_hit hit;

        assert_true(length == 0 ? sum == 0 : fabs(sum - 1) < 1e-6);
        assert_int_equal(
            read_back(a, arena_printf(a, "[%.9g, %.9g]", (double)unit[0], (double)unit[1]), length, 2, &hit, NULL), 0);
        assert_int_equal(hit.n_dimensions, 2);
        for (size_t k = 0; k < 2; k++)
            assert_true(fabs((double)hit.vector[k] - (double)vectors[i][k]) <= 1e-6 * length);
    }
}

static void a_vector_that_is_not_as_announced_is_an_error_that_names_the_rule(void **state)
{
    static const struct {
        const char *unit;
        double length;
        size_t n;
        const char *rule;
    } cases[] = {
        { "[1]", 1, 2, "1 dimensions where the collection has 2" },
        { "[1,2,3]", 1, 2, "3 dimensions" },
        { "[]", 1, 1, "0 dimensions" },
        { "7", 1, 1, "0 dimensions" },
        { "{\"a\":1}", 1, 1, "1 dimensions" },
        { NULL, 1, 1, "0 dimensions" },
        { "[1,\"x\"]", 1, 2, "numbers" },
        { "[1e300]", 1, 1, "numbers" },
        { "[1]", 1e300, 1, "beyond 32 bits" },
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        AUTO(arena_freep) struct arena *a = arena_new();
        struct vector_hit hit;
        struct err e = { 0 };

        assert_int_equal(read_back(a, cases[i].unit, cases[i].length, cases[i].n, &hit, &e), -EIO);
        assert_string_equal(e.code, "VECTOR_STORE_FAILED");
        if (!strstr(e.text, cases[i].rule) || strncmp(e.text, "Peer: ", 6) != 0)
            fail_msg("%s: %s", cases[i].unit, e.text);
    }
}

static void ids_scores_and_metadata_of_a_peer_are_checked(void **state)
{
    static const struct {
        const char *id, *score, *metadata, *rule, *wanted;
    } cases[] = {
        { "\"a\"", "0.5", "{\"k\" : 1}", NULL, "{\"k\":1}" },
        { "\"a\"", "7", "\"{\\\"k\\\" : 1}\"", NULL, "{\"k\":1}" },
        { "\"a\"", NULL, NULL, NULL, "{}" },
        { "\"a\"", "null", "null", NULL, "{}" },
        { "7", NULL, NULL, "id", NULL },
        { "\"\"", NULL, NULL, "id", NULL },
        { "null", NULL, NULL, "id", NULL },
        { "\"a\\u0000b\"", NULL, NULL, "id", NULL },
        { "\"a\"", "\"near\"", NULL, "score", NULL },
        { "\"a\"", NULL, "[1]", "metadata", NULL },
        { "\"a\"", NULL, "\"{}},\\\"x\\\":{\"", "metadata", NULL },
        { "\"a\"", NULL, "\"7\"", "metadata", NULL },
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        AUTO(arena_freep) struct arena *a = arena_new();
        const struct remote_raw raw = { .id = json_of(a, cases[i].id),
                                        .id_name = "id",
                                        .score = json_of(a, cases[i].score),
                                        .metadata = json_of(a, cases[i].metadata) };
        struct vector_hit hit;
        struct err e = { 0 };
        int r = remote_read_record(&no_op, a, &raw, 0, &hit, &e);

        if (cases[i].rule ? r != -EIO || !strstr(e.text, cases[i].rule) : r != 0)
            fail_msg("case %zu: %d %s", i, r, e.text);
        if (r == 0)
            assert_string_equal(hit.metadata, cases[i].wanted);
    }
}

static void the_longest_id_is_taken_and_one_byte_more_is_not(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct vector_hit hit;

    for (int n = LIMIT_VECTOR_ID_BYTES; n <= LIMIT_VECTOR_ID_BYTES + 1; n++) {
        const struct remote_raw raw = { .id = json_of(a, arena_printf(a, "\"%0*d\"", n, 1)), .id_name = "id" };

        assert_int_equal(remote_read_record(&no_op, a, &raw, 0, &hit, NULL), n <= LIMIT_VECTOR_ID_BYTES ? 0 : -EIO);
    }
}

static void counts_and_dimensions_have_limits(void **state)
{
    static const struct {
        const char *text;
        bool is_count, is_dimensions;
    } cases[] = {
        { "0", true, false },
        { "1", true, true },
        { "8192", true, true },
        { "8193", true, false },
        { "100000000", true, false },
        { "-1", false, false },
        { "9223372036854775807", true, false },
        { "18446744073709551615", false, false },
        { "1.0", false, false },
        { "\"1\"", false, false },
        { "null", false, false },
    };
    AUTO(arena_freep) struct arena *a = arena_new();
    int64_t n = 0;

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct json_value v = json_of(a, cases[i].text);

        if ((remote_read_count(&no_op, v, &n, NULL) == 0) != cases[i].is_count ||
            (remote_read_dimensions(&no_op, v, &n, NULL) == 0) != cases[i].is_dimensions)
            fail_msg("%s", cases[i].text);
    }
}

static void a_list_has_no_more_elements_than_were_asked_for_and_an_operation_no_more_pages_than_its_limit(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    size_t n = 0, n_pages = LIMIT_STORE_PAGES - 1;

    assert_int_equal(remote_read_list(&no_op, "ids", json_of(a, "[1,2]"), 2, &n, NULL), 0);
    assert_int_equal(n, 2);
    assert_int_equal(remote_read_list(&no_op, "ids", json_of(a, "[1,2,3]"), 2, &n, NULL), -EIO);
    assert_int_equal(remote_read_list(&no_op, "ids", json_of(a, "{}"), 2, &n, NULL), -EIO);
    assert_int_equal(remote_count_page(&no_op, &n_pages, NULL), 0);
    assert_int_equal(remote_count_page(&no_op, &n_pages, NULL), -EIO);
}

static void no_two_namespaces_have_one_collection(void **state)
{
    static const char *const namespaces[] = { "sdk_a_b",
                                              "sdk_a_B",
                                              "sdk_A_b",
                                              "sdk_a_b_",
                                              "sdk_a_b-",
                                              "sdk_a_b ",
                                              "sdk_a_b/",
                                              "sdk_a_..",
                                              "other",
                                              "hearth_x",
                                              "sdk_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa1",
                                              "sdk_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa" };
    AUTO(arena_freep) struct arena *a = arena_new();

    for (size_t i = 0; i < ARRAY_SIZE(namespaces); i++) {
        const char *name = remote_collection_name(a, namespaces[i]);

        assert_in_range(strlen(name), 3, 63);
        assert_int_equal(strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_-"), strlen(name));
        for (size_t k = 0; k < i; k++)
            assert_string_not_equal(name, remote_collection_name(a, namespaces[k]));
    }
    assert_string_equal(remote_collection_name(a, "sdk_a_b"), "sdk_a_b");
}

static void numbers_are_asked_for_in_every_form_a_peer_may_hold_them(void **state)
{
    static const struct {
        const char *filter, *chroma, *qdrant;
    } cases[] = {
        { "{\"k\": 2}", "{\"where\":{\"$and\":[{\"$or\":[{\"k\":{\"$eq\":2}},{\"k\":{\"$eq\":2.0}}]}]}}",
          "{\"filter\":{\"must\":[{\"key\":\"metadata.k\",\"range\":{\"gte\":2,\"lte\":2}}]}}" },
        { "{\"k\": {\"$gt\": 2.5}}", "{\"where\":{\"$and\":[{\"$or\":[{\"k\":{\"$gte\":2}},{\"k\":{\"$gt\":2.5}}]}]}}",
          "{\"filter\":{\"must\":[{\"key\":\"metadata.k\",\"range\":{\"gt\":2.5}}]}}" },
        { "{\"k\": {\"$lt\": 9007199254740993}}",
          "{\"where\":{\"$and\":[{\"$or\":[{\"k\":{\"$lt\":9007199254740993}},{\"k\":{\"$lte\":9007199254740992.0}}]}]}}",
          "{\"filter\":{\"must\":[{\"key\":\"metadata.k\",\"range\":{\"lte\":9007199254740992}}]}}" },
        { "{\"k\": {\"$ne\": 2}, \"s\": {\"$gt\": \"a\"}}", "{}", "{}" },
        { "{\"k\": null}", "{}", "{\"filter\":{\"must\":[{\"is_empty\":{\"key\":\"metadata.k\"}}]}}" },
        { "{\"hearth_json\": \"x\", \"#document\": \"x\", \"a\\\"b\": true}",
          "{\"where\":{\"$and\":[{\"a\\\"b\":{\"$eq\":true}}]}}",
          "{\"filter\":{\"must\":[{\"key\":\"metadata.hearth_json\",\"match\":{\"value\":\"x\"}},{\"key\":\"metadata.\\\"#document\\\"\",\"match\":{\"value\":\"x\"}}]}}" },
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        AUTO(arena_freep) struct arena *a = arena_new();
        struct vector_filter f = { 0 };
        struct json_value value = { 0 };

        assert_int_equal(json_parse(a, slice_of(cases[i].filter), &value, NULL), 0);
        assert_int_equal(vector_filter_parse(a, value, &f, NULL), 0);
        for (int is_qdrant = 0; is_qdrant < 2; is_qdrant++) {
            struct json_writer w;
            struct buf out;

            buf_init(&out, LIMIT_BODY_DEFAULT);
            json_write_init(&w, &out);
            json_begin_object(&w);
            remote_add_filter(is_qdrant ? &qdrant_dialect : &chroma_dialect, &w, &f);
            json_end(&w);
            assert_string_equal(buf_str(&out), is_qdrant ? cases[i].qdrant : cases[i].chroma);
            buf_clear(&out);
        }
    }
}

static void ids_are_collected_as_long_as_there_is_room(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct remote_ids ids = { .arena = a };
    struct err e = { 0 };

    for (int i = 0; i < 1000; i++)
        assert_int_equal(remote_ids_add(&ids, arena_printf(a, "%03d", 999 - i), &e), 0);
    remote_ids_sort(&ids);
    assert_int_equal(ids.n, 1000);
    assert_string_equal(ids.items[0], "000");
    arena_alloc(a, LIMIT_ARENA_BYTES / 2);
    assert_int_equal(remote_ids_add(&ids, "one more", &e), -EMSGSIZE);
    assert_string_equal(e.code, "VECTOR_STORE_FAILED");
    assert_int_equal(ids.n, 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(more_is_asked_for_until_enough_match),
        cmocka_unit_test(too_few_matches_among_the_nearest_are_reported_and_not_answered),
        cmocka_unit_test(what_the_nearest_do_not_show_is_looked_for_among_those_that_match),
        cmocka_unit_test(a_search_is_checked_before_a_peer_is_asked),
        cmocka_unit_test(a_vector_that_is_not_as_announced_is_an_error_that_names_the_rule),
        cmocka_unit_test(ids_scores_and_metadata_of_a_peer_are_checked),
        cmocka_unit_test(the_longest_id_is_taken_and_one_byte_more_is_not),
        cmocka_unit_test(counts_and_dimensions_have_limits),
        cmocka_unit_test(a_list_has_no_more_elements_than_were_asked_for_and_an_operation_no_more_pages_than_its_limit),
        cmocka_unit_test(every_vector_is_brought_to_length_one_and_back),
        cmocka_unit_test(no_two_namespaces_have_one_collection),
        cmocka_unit_test(ids_are_collected_as_long_as_there_is_room),
        cmocka_unit_test(numbers_are_asked_for_in_every_form_a_peer_may_hold_them),
    };

    if (hash_init(NULL) < 0)
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}

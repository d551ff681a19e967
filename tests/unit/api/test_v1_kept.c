/* Kept answers: their owners, their lifetime, and which answers are dropped at the limits of number and bytes. */
#include "api/compat/v1_kept.h"

#include "../metric.h"
#include "base/hash.h"
#include "base/limits.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

struct rig {
    struct settings *settings;
    struct v1_kept *kept;
};

static struct rig rig_open(void)
{
    struct rig rig;

    assert_int_equal(hash_init(NULL), 0);
    assert_int_equal(settings_load(&(struct settings_sources){ 0 }, &rig.settings, NULL), 0);
    rig.kept = v1_kept_open(NULL, rig.settings);
    return rig;
}

static void rig_close(struct rig *rig)
{
    v1_kept_close(rig->kept);
    settings_free(rig->settings);
}

static void count(size_t *ret_n, size_t *ret_bytes)
{
    *ret_n = (size_t)metric_of("hearth_kept_responses");
    *ret_bytes = (size_t)metric_of("hearth_kept_response_bytes");
}

static const char *id_of(size_t n, char out[V1_KEPT_ID_SIZE])
{
    snprintf(out, V1_KEPT_ID_SIZE, "%032zx", n);
    return out;
}

static char *text_of(size_t n)
{
    char *text = xcalloc(n + 1, 1);

    memset(text, 'x', n);
    return text;
}

static bool add(struct rig *rig, const char *caller, size_t id, size_t n_bytes, const struct v1_kept_turn *previous)
{
    char text[V1_KEPT_ID_SIZE];

    return v1_kept_add(rig->kept, &(struct v1_kept_new){ caller, id_of(id, text), text_of(n_bytes / 2),
                                                         text_of(n_bytes - n_bytes / 2), previous, n_bytes / 2, 1 });
}

static const struct v1_kept_turn *find(struct rig *rig, const char *caller, size_t id)
{
    char text[V1_KEPT_ID_SIZE];

    return v1_kept_find(rig->kept, caller, slice_of(id_of(id, text)));
}

static bool has(struct rig *rig, const char *caller, size_t id)
{
    const struct v1_kept_turn *turn = find(rig, caller, id);

    v1_kept_unref(rig->kept, turn);
    return turn != NULL;
}

static void an_answer_is_found_by_its_caller_alone(void **state)
{
    AUTO(rig_close) struct rig rig = rig_open();
    char id[V1_KEPT_ID_SIZE];

    assert_true(add(&rig, "key:a -", 1, 10, NULL));
    assert_true(has(&rig, "key:a -", 1));
    assert_false(has(&rig, "key:b -", 1));
    assert_false(has(&rig, "key:a -", 2));
    assert_false(v1_kept_remove(rig.kept, "key:b -", slice_of(id_of(1, id))));
    assert_true(v1_kept_remove(rig.kept, "key:a -", slice_of(id_of(1, id))));
    assert_false(has(&rig, "key:a -", 1));
}

static void the_setting_says_how_long(void **state)
{
    AUTO(rig_close) struct rig rig = rig_open();

    assert_true(add(&rig, "a", 1, 10, NULL));
    assert_true(has(&rig, "a", 1));
    assert_int_equal(settings_set(rig.settings, "llm.responses_keep_s", "0", NULL), 0);
    assert_false(has(&rig, "a", 1));
    assert_false(add(&rig, "a", 2, 10, NULL));
    assert_int_equal(settings_set(rig.settings, "llm.responses_keep_s", "3600", NULL), 0);
    assert_true(add(&rig, "a", 3, 10, NULL));
    assert_false(has(&rig, "a", 1));
}

static void a_turn_lives_as_long_as_what_continues_it(void **state)
{
    AUTO(rig_close) struct rig rig = rig_open();
    const struct v1_kept_turn *last;
    size_t n, n_bytes, n_bytes_after;
    char id[V1_KEPT_ID_SIZE];

    assert_true(add(&rig, "a", 1, 1000, NULL));
    assert_true(add(&rig, "a", 2, 1000, find(&rig, "a", 1)));
    count(&n, &n_bytes);
    assert_true(v1_kept_remove(rig.kept, "a", slice_of(id_of(1, id))));
    last = find(&rig, "a", 2);
    assert_int_equal(last->previous->n_input, 500);
    count(&n, &n_bytes_after);
    assert_int_equal(n, 1);
    assert_int_equal(n_bytes, n_bytes_after);
    assert_true(v1_kept_remove(rig.kept, "a", slice_of(id_of(2, id))));
    assert_int_equal(last->previous->n_response, 500); /* kept alive by the reference */
    v1_kept_unref(rig.kept, last);
    count(&n, &n_bytes);
    assert_int_equal(n + n_bytes, 0);
}

static void the_oldest_of_a_caller_leaves_at_its_limit(void **state)
{
    AUTO(rig_close) struct rig rig = rig_open();

    add(&rig, "b", 1, 10, NULL);
    for (size_t i = 2; i < 2 + LIMIT_CALLER_RESPONSES; i++)
        assert_true(add(&rig, "a", i, 10, NULL));
    assert_true(has(&rig, "a", 2));
    assert_true(add(&rig, "a", 99999, 10, NULL));
    assert_false(has(&rig, "a", 2));
    assert_true(has(&rig, "a", 3));
    assert_true(has(&rig, "b", 1));
}

static void the_oldest_of_all_leaves_at_the_limit_of_all(void **state)
{
    AUTO(rig_close) struct rig rig = rig_open();
    char caller[16];
    size_t n, n_bytes;

    for (size_t i = 0; i < LIMIT_KEPT_RESPONSES; i++) {
        snprintf(caller, sizeof(caller), "%zu", i / (LIMIT_CALLER_RESPONSES / 2));
        assert_true(add(&rig, caller, i, 10, NULL));
    }
    assert_true(has(&rig, "0", 0));
    assert_true(add(&rig, "last", 99999, 10, NULL));
    assert_false(has(&rig, "0", 0));
    assert_true(has(&rig, "0", 1));
    count(&n, &n_bytes);
    assert_int_equal(n, LIMIT_KEPT_RESPONSES);
}

static size_t bytes_of_empty(struct rig *rig)
{
    size_t n, n_bytes;
    char id[V1_KEPT_ID_SIZE];

    add(rig, "measure", 77777, 0, NULL);
    count(&n, &n_bytes);
    v1_kept_remove(rig->kept, "measure", slice_of(id_of(77777, id)));
    return n_bytes;
}

static void bytes_of_a_caller_are_bounded_with_the_threads_they_hold(void **state)
{
    AUTO(rig_close) struct rig rig = rig_open();
    size_t own = bytes_of_empty(&rig), half = LIMIT_CALLER_RESPONSE_BYTES / 2 - own;

    assert_true(add(&rig, "a", 1, 2 * (half + own) - own, NULL)); /* exactly the limit */
    assert_false(add(&rig, "a", 2, 2 * (half + own) - own + 1, NULL));
    assert_false(has(&rig, "a", 1));
    assert_true(add(&rig, "a", 3, half, NULL));
    assert_true(add(&rig, "a", 4, half, NULL));
    assert_true(has(&rig, "a", 3));
    assert_true(add(&rig, "a", 5, 1, NULL));
    assert_false(has(&rig, "a", 3));
    assert_true(has(&rig, "a", 4));
    assert_false(add(&rig, "a", 6, half + own, find(&rig, "a", 4))); /* the answer that it continues counts too */
}

static void bytes_of_all_are_bounded_and_the_largest_caller_pays(void **state)
{
    AUTO(rig_close) struct rig rig = rig_open();
    size_t own = bytes_of_empty(&rig), n, n_bytes;
    static const char *const callers[] = { "a", "b", "c", "d" };

    assert_int_equal(LIMIT_KEPT_RESPONSE_BYTES / LIMIT_CALLER_RESPONSE_BYTES, ARRAY_SIZE(callers));
    for (size_t i = 0; i < ARRAY_SIZE(callers); i++)
        for (size_t k = 0; k < 2; k++)
            assert_true(
                add(&rig, callers[i], 10 * i + k, LIMIT_CALLER_RESPONSE_BYTES / 2 - own - (i == 1 ? 0 : 1), NULL));
    assert_true(add(&rig, "e", 99, 0, NULL) == has(&rig, "e", 99));
    count(&n, &n_bytes);
    assert_true(n_bytes <= LIMIT_KEPT_RESPONSE_BYTES);
    assert_true(has(&rig, "e", 99));
    assert_false(has(&rig, "b", 10));
    assert_true(has(&rig, "a", 0) && has(&rig, "c", 20) && has(&rig, "d", 30));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_answer_is_found_by_its_caller_alone),
        cmocka_unit_test(the_setting_says_how_long),
        cmocka_unit_test(a_turn_lives_as_long_as_what_continues_it),
        cmocka_unit_test(the_oldest_of_a_caller_leaves_at_its_limit),
        cmocka_unit_test(the_oldest_of_all_leaves_at_the_limit_of_all),
        cmocka_unit_test(bytes_of_a_caller_are_bounded_with_the_threads_they_hold),
        cmocka_unit_test(bytes_of_all_are_bounded_and_the_largest_caller_pays),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Running models: the behaviour without a program that runs models (tests/peers/local_models.test.mjs tests the rest).
 */
#include "llm/local/llamacpp.h"

#include "os/files.h"

#include <stdlib.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static void the_rest_after_crashes_doubles_up_to_a_minute(void **state)
{
    static const int64_t wanted_ms[] = { 0, 1000, 2000, 4000, 8000, 16000, 32000, 60000, 60000 };

    for (unsigned i = 0; i < ARRAY_SIZE(wanted_ms); i++)
        assert_int_equal(llamacpp_rest_ms(i), wanted_ms[i]);
    assert_int_equal(llamacpp_rest_ms(UINT32_MAX), 60000);
}

/* ---- a runner without a running loop ---- */

struct scene {
    struct arena *a;
    char dir[64];
    struct loop *loop;
    struct settings *settings;
    struct llamacpp *llamacpp;
};

static void set_up(struct scene *s, const char *const *flags, size_t n_flags)
{
    const struct settings_sources from = { .flags = flags, .n_flags = n_flags };
    struct llamacpp_config c = { .data_dir = s->dir };

    s->a = arena_new();
    snprintf(s->dir, sizeof(s->dir), "/tmp/hearth-llama-XXXXXX");
    assert_non_null(mkdtemp(s->dir));
    assert_int_equal(loop_new(&s->loop, NULL), 0);
    assert_int_equal(settings_load(&from, &s->settings, NULL), 0);
    c.loop = s->loop;
    c.settings = s->settings;
    assert_int_equal(llamacpp_new(&c, &s->llamacpp, NULL), 0);
}

static void tear_down(struct scene *s)
{
    llamacpp_stop(s->llamacpp);
    s->llamacpp = llamacpp_free(s->llamacpp);
    settings_free(s->settings);
    loop_free(s->loop);
    assert_int_equal(dir_remove(s->dir, NULL), 0);
    arena_free(s->a);
}

static void put_model(struct scene *s, const char *name)
{
    assert_int_equal(dir_make(arena_printf(s->a, "%s/models", s->dir), NULL), 0);
    assert_int_equal(file_write(arena_printf(s->a, "%s/models/%s", s->dir, name), slice_of("not yet"), 0600, NULL), 0);
}

static void it_is_offered_with_a_program_and_a_model(void **state)
{
    static const char *const flags[] = { "llamacpp.server=/bin/sh" };
    struct llm_models models = { 0 };
    struct scene s;
    struct err e = { 0 };

    set_up(&s, flags, 1);
    assert_false(llamacpp_is_offered(s.llamacpp, true));
    assert_int_equal(llamacpp_explain(s.llamacpp, &e), -EINVAL);
    assert_string_equal(e.text, arena_printf(s.a, "llamacpp has no model yet: put a model file (.gguf) into %s/models.",
                                             s.dir));
    put_model(&s, "one.gguf");
    assert_false(llamacpp_is_offered(s.llamacpp, false)); /* the last check is too recent to be repeated */
    assert_true(llamacpp_is_offered(s.llamacpp, true));
    assert_true(llamacpp_is_offered(s.llamacpp, false));
    assert_int_equal(llamacpp_models(s.llamacpp, s.a, &models, NULL), 0);
    assert_int_equal(models.n, 1);
    assert_string_equal(models.items[0].id, "one");
    tear_down(&s);
}

static void without_a_program_it_says_what_to_install_and_where_to_put_a_model(void **state)
{
    static const char *const flags[] = { "llamacpp.server=/nowhere/llama-server" };
    struct llamacpp_start_request start_request = { .model = "one", .may_wait = true };
    struct llamacpp_place place = { NULL, NULL };
    struct scene s;
    struct err e = { 0 };

    set_up(&s, flags, 1);
    put_model(&s, "one.gguf");
    assert_false(llamacpp_is_offered(s.llamacpp, true));
    assert_int_equal(llamacpp_hold(s.llamacpp, &start_request, s.a, &place, &e), -EINVAL);
    assert_string_equal(e.code, "PROVIDER_UNAVAILABLE");
    assert_non_null(strstr(e.text, "/nowhere/llama-server"));
    assert_non_null(strstr(e.text, "https://github.com/ggml-org/llama.cpp"));
    assert_non_null(strstr(e.text, arena_printf(s.a, "%s/models.", s.dir)));
    tear_down(&s);
}

static void nothing_is_started_for_who_may_not_wait_or_has_no_time_or_while_it_stops(void **state)
{
    static const char *const flags[] = { "llamacpp.server=/bin/sh" };
    static const char head[] =
        "GGUF\3\0\0\0\0\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0\24\0\0\0\0\0\0\0general.architecture\10\0\0\0\5\0\0\0\0\0\0\0llama";
    struct llamacpp_start_request start_request = { .model = "one" };
    struct llamacpp_place place = { NULL, NULL };
    struct scene s;
    struct err e = { 0 };

    set_up(&s, flags, 1);
    put_model(&s, "other.gguf");
    assert_int_equal(file_write(arena_printf(s.a, "%s/models/one.gguf", s.dir),
                                (struct slice){ head, sizeof(head) - 1 }, 0600, NULL),
                     0);
    assert_int_equal(llamacpp_hold(s.llamacpp, &start_request, s.a, &place, &e), -EAGAIN);
    assert_string_equal(e.text, "The model one is not loaded.");
    start_request = (struct llamacpp_start_request){ .model = "one", .may_wait = true, .ready_by_ms = 1 };
    assert_int_equal(llamacpp_hold(s.llamacpp, &start_request, s.a, &place, &e), -EAGAIN);
    assert_string_equal(e.code, "PROVIDER_UNAVAILABLE");
    assert_string_equal(e.text, "The model one is still being loaded; ask again.");
    start_request.model = "other";
    assert_int_equal(llamacpp_hold(s.llamacpp, &start_request, s.a, &place, &e), -EBADMSG);
    start_request = (struct llamacpp_start_request){ .model = "one", .may_wait = true };
    llamacpp_stop(s.llamacpp);
    assert_int_equal(llamacpp_hold(s.llamacpp, &start_request, s.a, &place, &e), -ECANCELED);
    assert_string_equal(e.code, "SHUTTING_DOWN");
    tear_down(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_rest_after_crashes_doubles_up_to_a_minute),
        cmocka_unit_test(it_is_offered_with_a_program_and_a_model),
        cmocka_unit_test(without_a_program_it_says_what_to_install_and_where_to_put_a_model),
        cmocka_unit_test(nothing_is_started_for_who_may_not_wait_or_has_no_time_or_while_it_stops),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

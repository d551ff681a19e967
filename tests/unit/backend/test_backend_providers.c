#include "fixtures.h"
#include "backend/backend_providers.h"

static struct settings *load(const char *flag, struct err *e)
{
    struct settings_sources from = { .flags = &flag, .n_flags = flag ? 1 : 0 };
    struct settings *s = NULL;

    return settings_load(&from, &s, e) < 0 ? NULL : s;
}

static void the_setting_takes_exactly_the_providers(void **state)
{
    const char *const *names = settings_rules[SETTING_BACKEND_KIND].one_of;
    size_t n = 0;

    for (; names[n]; n++)
        assert_non_null(backend_provider_find(names[n]));
    for (const struct backend_provider *p = backend_providers; p->name; p++)
        n--;
    assert_int_equal(n, 0);
    assert_null(backend_provider_find("no such provider"));
}

static void every_provider_is_under_the_contract(void **state)
{
    for (const struct backend_provider *p = backend_providers; p->name; p++) {
        size_t n = 0;

        for (size_t i = 0; i < ARRAY_SIZE(fixtures); i++)
            n += strcmp(fixtures[i].provider, p->name) == 0;
        if (n == 0)
            fail_msg("%s has no fixture", p->name);
    }
}

static void an_unknown_provider_is_refused_with_those_that_are_known(void **state)
{
    struct err e = { 0 };

    assert_null(load("backend.kind=postgress", &e));
    assert_string_equal(e.code, "BAD_SETTING");
    assert_non_null(strstr(e.text, "must be one of embedded"));
}

static void the_chosen_provider_opens_where_its_setting_says(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct folder f = folder_make();
    AUTO(settings_freep) struct settings *s = load(arena_printf(a, "backend.file=%s", f.file), NULL);
    const struct backend_place place = { .settings = s, .data_dir = "/nowhere" };
    struct backend *b = NULL;
    struct err e = { 0 };

    must(backend_provider_open(&place, a, &b, &e), &e);
    assert_string_equal(b->ops->name, "embedded");
    assert_string_equal(b->abbr, "svc");
    assert_int_equal(access(f.file, F_OK), 0);
    backend_close(b);
    folder_remove(&f);
}

static void a_file_lies_in_the_data_folder_or_elsewhere(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    AUTO(settings_freep) struct settings *s = load(NULL, NULL);
    struct settings *other;
    struct backend_file file = backend_provider_file(s, "/data", a);

    assert_string_equal(file.path, "/data/backend.db");
    assert_false(file.is_elsewhere);
    other = load("backend.file=/srv/work.db", NULL);
    file = backend_provider_file(other, "/data", a);
    settings_free(other);
    assert_string_equal(file.path, "/srv/work.db");
    assert_true(file.is_elsewhere);
}

/* Hearth's own log and PostgreSQL's outbox and stream notice each loss. */
static void only_the_hosted_service_may_lose_events_unnoticed(void **state)
{
    for (const struct backend_provider *p = backend_providers; p->name; p++)
        assert_int_equal(p->may_lose_events, strcmp(p->name, "hosted") == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_setting_takes_exactly_the_providers),
        cmocka_unit_test(every_provider_is_under_the_contract),
        cmocka_unit_test(an_unknown_provider_is_refused_with_those_that_are_known),
        cmocka_unit_test(the_chosen_provider_opens_where_its_setting_says),
        cmocka_unit_test(a_file_lies_in_the_data_folder_or_elsewhere),
        cmocka_unit_test(only_the_hosted_service_may_lose_events_unnoticed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

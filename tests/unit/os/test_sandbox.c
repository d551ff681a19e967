#include "os/sandbox.h"

#include "base/limits.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#define DATA "/srv/hearth"

static struct sandbox_definition definition_of(struct arena *a, const char *json)
{
    struct sandbox_definition definition = { 0 };
    struct json_value object;

    assert_int_equal(json_parse(a, slice_of(json), &object, NULL), 0);
    assert_int_equal(fields_read(sandbox_definition_fields, object, &definition, a, "", NULL), 0);
    return definition;
}

static void assert_refused(const char *json, const char *field)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct sandbox_definition definition = definition_of(a, json);
    struct err e = { 0 };

    assert_int_equal(sandbox_definition_check(&definition, "sandbox", DATA, &e), -EINVAL);
    assert_string_equal(e.fields[0].field, field);
    assert_int_equal(e.n_fields, 1);
}

static void assert_fine(const char *json)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct sandbox_definition definition = definition_of(a, json);

    assert_int_equal(sandbox_definition_check(&definition, "sandbox", DATA, NULL), 0);
}

static void folders_are_whole_paths_outside_of_the_service(void **state)
{
    assert_refused("{\"read\":[\"/srv/hearth\"]}", "sandbox.read[0]");
    assert_refused("{\"read\":[\"/srv/hearth/local-apps\"]}", "sandbox.read[0]");
    assert_refused("{\"write\":[\"/opt\",\"/srv\"]}", "sandbox.write[1]");
    assert_refused("{\"read\":[\"/\"]}", "sandbox.read[0]");
    assert_refused("{\"read\":[\"\"]}", "sandbox.read[0]");
    assert_refused("{\"read\":[\"~\"]}", "sandbox.read[0]");
    assert_refused("{\"read\":[\"/opt/../srv\"]}", "sandbox.read[0]");
    assert_refused("{\"read\":[\"/dev/sda\"]}", "sandbox.read[0]");
    assert_refused("{\"read\":[\"/sys\"]}", "sandbox.read[0]");
    assert_fine("{\"read\":[\"/srv\",\"/srv/hearth-not\",\"/device\",\"~/..hidden\"],\"write\":[\"/srv/out\"]}");
}

static void what_contradicts_itself_is_refused(void **state)
{
    assert_refused("{\"profile\":\"strict\",\"network\":true}", "sandbox.network");
    assert_refused("{\"profile\":\"none\",\"read\":[\"/opt\"]}", "sandbox.profile");
    assert_refused("{\"profile\":\"none\",\"network\":false}", "sandbox.profile");
    assert_fine("{\"profile\":\"none\",\"network\":true}");
    assert_fine("{\"profile\":\"standard\",\"network\":false}");
}

static void a_person_is_reported_in_plain_words(void **state)
{
    static const struct {
        const char *json, *words;
    } rows[] = {
        { "{\"read\":[\"~/Documents\"],\"write\":[\"~/out\",\"/srv/x\"]}",
          "may read ~/Documents, may write ~/out, /srv/x, may use the network" },
        { "{\"profile\":\"strict\",\"read\":[\"/opt\"]}", "may read /opt, may not use the network" },
        { "{\"profile\":\"none\"}",
          "runs without a sandbox: may read, change and delete everything that you can, and may use the network" },
        { "{}", "may use the network, sees none of your files but its own folder and the one it is started in" },
    };
    AUTO(arena_freep) struct arena *a = arena_new();

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct sandbox_definition definition = definition_of(a, rows[i].json);

        assert_string_equal(sandbox_words(a, NULL, &definition), rows[i].words);
    }
}

static void the_canonical_text_changes_with_every_field(void **state)
{
    static const char *const others[] = {
        "{\"profile\":\"strict\"}", "{\"profile\":\"none\"}", "{\"read\":[\"/a\"]}",        "{\"write\":[\"/a\"]}",
        "{\"network\":true}",       "{\"network\":false}",    "{\"read\":[\"/a\",\"/b\"]}", "{\"read\":[\"/a, /b\"]}",
    };
    AUTO(arena_freep) struct arena *a = arena_new();
    const char *texts[ARRAY_SIZE(others)];

    for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
        struct sandbox_definition definition = definition_of(a, others[i]), again = definition_of(a, others[i]);

        texts[i] = sandbox_canonical(a, &definition);
        assert_string_equal(texts[i], sandbox_canonical(a, &again));
        for (size_t k = 0; k < i; k++)
            assert_string_not_equal(texts[i], texts[k]);
    }
}

static void a_path_is_at_most_as_long_as_the_kernel_allows(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    char path[LIMIT_SANDBOX_PATH + 2];
    const char *folder = path;
    struct sandbox_definition definition = { .read = { &folder, 1 } };

    memset(path, 'a', sizeof(path));
    path[0] = '/';
    path[LIMIT_SANDBOX_PATH] = '\0';
    assert_int_equal(sandbox_definition_check(&definition, "sandbox", DATA, NULL), 0);
    path[LIMIT_SANDBOX_PATH] = 'a';
    path[LIMIT_SANDBOX_PATH + 1] = '\0';
    assert_int_equal(sandbox_definition_check(&definition, "sandbox", DATA, NULL), -EINVAL);
}

static void a_machine_without_bubblewrap_says_so(void **state)
{
    struct sandbox *box =
        sandbox_new(&(struct sandbox_config){ .bwrap = "/nonexistent/bwrap", .data_dir = DATA, .profile = "standard" });
    struct sandbox_means means;

    sandbox_means(box, &means);
    assert_false(means.has_bwrap);
    assert_false(means.has_namespaces);
    assert_string_equal(means.why, "bubblewrap is not installed");
    assert_int_equal(sandbox_level_of(box, SANDBOX_NONE), SANDBOX_LEVEL_TREE);
    assert_int_equal(sandbox_level_of(box, SANDBOX_STANDARD),
                     means.landlock_abi > 0 ? SANDBOX_LEVEL_LANDLOCK : SANDBOX_LEVEL_TREE);
    sandbox_free(box);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(folders_are_whole_paths_outside_of_the_service),
        cmocka_unit_test(what_contradicts_itself_is_refused),
        cmocka_unit_test(a_person_is_reported_in_plain_words),
        cmocka_unit_test(the_canonical_text_changes_with_every_field),
        cmocka_unit_test(a_path_is_at_most_as_long_as_the_kernel_allows),
        cmocka_unit_test(a_machine_without_bubblewrap_says_so),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

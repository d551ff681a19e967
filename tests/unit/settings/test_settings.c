#include "settings/settings.h"
#include "base/limits.h"
#include "../store/folder.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <pthread.h>

static struct settings *load(const struct settings_sources *from)
{
    struct settings *s = NULL;
    struct err e = { 0 };

    if (settings_load(from, &s, &e) < 0)
        fail_msg("%s", e.text);
    return s;
}

static struct settings *load_flag(const char *flag)
{
    return load(&(struct settings_sources){ .flags = &flag, .n_flags = 1 });
}

/* Fails to load, with each of the words in the error text. */
static void refuse(const struct settings_sources *from, const char *const *words)
{
    struct settings *s = NULL;
    struct err e = { 0 };

    assert_int_equal(settings_load(from, &s, &e), -EINVAL);
    assert_string_equal(e.code, "BAD_SETTING");
    for (; *words; words++)
        if (!strstr(e.text, *words))
            fail_msg("\"%s\" is not in: %s", *words, e.text);
    assert_null(s);
}

static void write_file(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");

    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

/* --- the table --- */

static void every_rule_is_whole(void **state)
{
    for (size_t i = 0; i < N_SETTINGS; i++) {
        const struct setting_rule *rule = &settings_rules[i];
        enum setting_id id;

        assert_non_null(rule->key);
        assert_true(settings_find(rule->key, &id));
        assert_int_equal(id, i); /* keys are unique */
        assert_non_null(strchr(rule->key, '.'));
        assert_true(rule->help && rule->help[strlen(rule->help) - 1] == '.');
        assert_non_null(rule->def);
        assert_int_equal(rule->type == SETTING_ENUM, rule->one_of != NULL);
        if (rule->type != SETTING_ENUM && rule->type != SETTING_BOOL)
            assert_true(rule->max > 0 && rule->max >= rule->min);
        for (size_t j = 0; j < i; j++) { /* "a.b_c" and "a_b.c" would be the same variable */
            char a[64], b[64];

            snprintf(a, sizeof(a), "%s", rule->key);
            snprintf(b, sizeof(b), "%s", settings_rules[j].key);
            *strchr(a, '.') = '_';
            *strchr(b, '.') = '_';
            assert_string_not_equal(a, b);
        }
    }
}

static void without_any_source_the_defaults_hold(void **state)
{
    AUTO(settings_freep) struct settings *s = load(&(struct settings_sources){ 0 });
    AUTO(arena_freep) struct arena *a = arena_new();
    const char *const *listen;
    size_t n;

    assert_int_equal(settings_int(s, SETTING_TASKS_RECOVERY_ROWS), 50); /* specification, Limits */
    assert_int_equal(settings_int(s, SETTING_TASKS_MAX_MACHINES), LIMIT_ATTEMPT_MACHINES);
    assert_int_equal(settings_ms(s, SETTING_TASKS_HEARTBEAT_S), 120000);
    assert_int_equal(settings_ms(s, SETTING_TASKS_STALE_AFTER_S), 300000);
    assert_int_equal(settings_int(s, SETTING_HTTP_MAX_CONNECTIONS), LIMIT_CONNECTIONS);
    assert_false(settings_bool(s, SETTING_HTTP_ALLOW_REMOTE));
    assert_string_equal(settings_string(s, a, SETTING_LOG_LEVEL), "info");
    listen = settings_list(s, a, SETTING_HTTP_LISTEN, &n);
    assert_int_equal(n, 2);
    assert_string_equal(listen[0], "127.0.0.1:3001");
    assert_string_equal(listen[1], "[::1]:3001");
    assert_null(listen[2]);
    assert_int_equal(settings_origin(s, SETTING_LOG_LEVEL), ORIGIN_DEFAULT);
}

/* --- layers --- */

static void each_layer_stands_above_the_one_before(void **state)
{
    AUTO(folder_remove) struct folder f = folder_make();
    AUTO(arena_freep) struct arena *a = arena_new();
    static const char *const env[] = { "PATH=/bin", "HEARTH_IDENTITY_USER_EMAIL=env", "HEARTH_INSTANCE=x", NULL };
    static const struct setting_row row = { .key = "identity.user_email", .value = "database" };
    static const char *const flag = "identity.user_email=flag";
    static const char *const names[] = { "default", "file", "environment", "database", "flag" };
    static const char *const values[] = { "", "file", "env", "database", "flag" };

    write_file(f.file, "identity.user_email = file\n");
    for (int o = ORIGIN_DEFAULT; o < N_ORIGINS; o++) {
        AUTO(settings_freep)
        struct settings *s = load(&(struct settings_sources){
            .config_path = o >= ORIGIN_FILE ? f.file : NULL,
            .env = o >= ORIGIN_ENV ? env : NULL,
            .rows = &row,
            .n_rows = o >= ORIGIN_DATABASE,
            .flags = &flag,
            .n_flags = o >= ORIGIN_FLAG,
        });

        assert_string_equal(settings_string(s, a, SETTING_IDENTITY_USER_EMAIL), values[o]);
        assert_string_equal(settings_origin_name(settings_origin(s, SETTING_IDENTITY_USER_EMAIL)), names[o]);
    }
}

static void rows_that_come_later_do_not_pass_a_flag(void **state)
{
    static const struct setting_row rows[] = { { .key = "log.level", .value = "error" },
                                               { .key = "tasks.sweep_s", .value = "7" } };
    AUTO(settings_freep) struct settings *s = load_flag("log.level=debug");
    AUTO(arena_freep) struct arena *a = arena_new();
    struct err e = { 0 };

    assert_int_equal(settings_apply_rows(s, rows, 2, &e), 0);
    assert_string_equal(settings_string(s, a, SETTING_LOG_LEVEL), "debug");
    assert_int_equal(settings_ms(s, SETTING_TASKS_SWEEP_S), 7000);
}

static void an_empty_variable_is_not_set(void **state)
{
    static const char *const env[] = { "HEARTH_LOG_LEVEL=", NULL };
    AUTO(settings_freep) struct settings *s = load(&(struct settings_sources){ .env = env });

    assert_int_equal(settings_origin(s, SETTING_LOG_LEVEL), ORIGIN_DEFAULT);
}

static void an_empty_abbreviation_is_the_token(void **state)
{
    static const char *const flags[] = { "identity.token=acme", "identity.abbr=ac" };
    AUTO(arena_freep) struct arena *a = arena_new();

    for (size_t n = 1; n <= 2; n++) {
        AUTO(settings_freep) struct settings *s = load(&(struct settings_sources){ .flags = flags, .n_flags = n });

        assert_string_equal(settings_string(s, a, SETTING_IDENTITY_ABBR), n == 1 ? "acme" : "ac");
    }
}

static void the_dialect_sets_the_words_that_are_not_set(void **state)
{
    static const struct {
        const char *flags[3];
        size_t n;
        const char *token, *abbr;
    } cases[] = {
        { { "identity.dialect=svc" }, 1, "svc", "svc" },
        { { "identity.dialect=realtimex" }, 1, "realtimex", "rtx" },
        { { "identity.dialect=realtimex", "identity.token=svc" }, 2, "svc", "svc" },
        { { "identity.dialect=realtimex", "identity.abbr=ac" }, 2, "realtimex", "ac" },
        { { "identity.dialect=realtimex", "identity.token=acme", "identity.abbr=ac" }, 3, "acme", "ac" },
    };
    AUTO(arena_freep) struct arena *a = arena_new();

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        AUTO(settings_freep)
        struct settings *s = load(&(struct settings_sources){ .flags = cases[i].flags, .n_flags = cases[i].n });

        for (size_t turn = 0; turn < 2; turn++) {
            assert_string_equal(settings_string(s, a, SETTING_IDENTITY_TOKEN), cases[i].token);
            assert_string_equal(settings_string(s, a, SETTING_IDENTITY_ABBR), cases[i].abbr);
            assert_string_equal(settings_show(s, a, SETTING_IDENTITY_ABBR), cases[i].abbr);
            settings_begin(s);
        }
    }
}

/* --- bad values --- */

static const struct {
    const char *flag, *rule;
} bad_values[] = {
    { "http.listen=127.0.0.1", "addresses with a port" },
    { "http.listen=", "must have 1 to" },
    { "http.listen= , ", "at least one" },
    { "http.listen=localhost:3001", "addresses with a port" },
    { "http.listen=::1:3001", "addresses with a port" },
    { "http.listen=[::1]", "addresses with a port" },
    { "http.listen=[::1:3001", "addresses with a port" },
    { "http.listen=1.2.3.4:65536", "addresses with a port" },
    { "http.listen=1.2.3.4:-1", "addresses with a port" },
    { "http.listen=1.2.3.4:80,x", "addresses with a port" },
    { "http.allow_remote=2", "must be true or false" },
    { "http.allow_remote=", "must be true or false" },
    { "http.allow_remote=TRUE", "must be true or false" },
    { "http.allowed_hosts=a b", "must be host names" },
    { "http.allowed_origins=example.org", "must be origins" },
    { "http.allowed_origins=ftp://x", "must be origins" },
    { "http.allowed_origins=http://", "must be origins" },
    { "http.allowed_origins=http://x/path", "must be origins" },
    { "http.max_connections=0", "whole number from 1 to 8192" },
    { "http.max_connections=8193", "whole number from 1 to 8192" },
    { "http.max_connections=1.5", "whole number" },
    { "http.max_connections=0x10", "whole number" },
    { "http.max_connections=", "whole number" },
    { "http.max_connections= 5", "whole number" },
    { "http.max_connections=99999999999999999999", "whole number" },
    { "identity.token=", "1 to 32" },
    { "identity.token=Svc", "lower-case word" },
    { "identity.token=9a", "lower-case word" },
    { "identity.token=a-b", "lower-case word" },
    { "identity.token=a234567890123456789012345678901234", "1 to 32" },
    { "identity.machine_id=a b", "letters, digits" },
    { "identity.user_email=a\nb", "control characters" },
    { "identity.user_email=\xff", "UTF-8" },
    { "tasks.heartbeat_s=0.04", "from 0.05 to 86400" },
    { "tasks.heartbeat_s=86401", "from 0.05 to 86400" },
    { "tasks.heartbeat_s=inf", "number of seconds" },
    { "tasks.heartbeat_s=nan", "number of seconds" },
    { "tasks.heartbeat_s=1e1", "number of seconds" },
    { "tasks.heartbeat_s=-1", "number of seconds" },
    { "tasks.heartbeat_s=1.2.3", "number of seconds" },
    { "llm.models_dir=models", "whole path" },
    { "http.ui_folder=dist", "whole path" },
    { "llm.local_ports=ollama", "elements like ollama=11500" },
    { "llm.local_ports=ollama=0", "elements like ollama=11500" },
    { "llm.local_ports=ollama=65536", "elements like ollama=11500" },
    { "llm.local_ports=ollama=1,openai=2", "elements like ollama=11500" },
    { "llamacpp.args=--n-gpu-layers,99,--host,0.0.0.0", "must not have options" },
    { "llamacpp.args=--api-key-file,/x", "must not have options" },
    { "llamacpp.args=--port=1", "must not have options" },
    { "llamacpp.args=-hfr,some/model", "must not have options" },
    { "llamacpp.args=-m,/other.gguf", "must not have options" },
    { "tasks.keep_days=-1", "whole number from 0 to 36500" },
    { "audit.keep_days=36501", "whole number from 0 to 36500" },
    { "log.level=loud", "one of error, warn, info, debug" },
    { "log.level=", "one of error" },
    { "htp.listen=1", "there is no setting htp.listen; did you mean http.listen?" },
    { "nosuch.key=1", "there is no setting nosuch.key" },
    { "=1", "there is no setting" },
    { "log.level", "KEY=VALUE" },
    { "tasks.stale_after_s=120", "above tasks.heartbeat_s" },
    { "apps.port_min=24000", "must not be below" },
};

static void a_bad_value_is_refused_with_its_rule(void **state)
{
    for (size_t i = 0; i < ARRAY_SIZE(bad_values); i++)
        refuse(&(struct settings_sources){ .flags = &bad_values[i].flag, .n_flags = 1 },
               (const char *const[]){ bad_values[i].rule, NULL });
}

static void values_at_the_edge_are_taken(void **state)
{
    static const char *const flags[] = {
        "http.listen=0.0.0.0:0",
        "http.listen=[::]:65535,127.0.0.1:1",
        "http.max_connections=8192",
        "http.max_connections=1",
        "tasks.heartbeat_s=0.05",
        "tasks.sweep_s=86400",
        "tasks.sweep_s=.5",
        "identity.token=a2345678901234567890123456789012",
        "http.allowed_origins=http://[::1]:80, https://a.b",
        "http.allowed_hosts=my-host:8080,other",
        "log.format=json",
        "http.allow_remote=on",
        "backend.file=/a b/c#d",
        "consent.wait_s=0",
        "llm.models_dir=",
        "llm.models_dir=/a b",
        "llm.local_ports=ollama=1, localai=65535",
        "llamacpp.args=--n-gpu-layers, 99,-mm,/x.gguf,--mlock",
    };

    for (size_t i = 0; i < ARRAY_SIZE(flags); i++)
        settings_free(load_flag(flags[i]));
}

static void the_longest_value_is_taken_and_one_more_is_not(void **state)
{
    char flag[LIMIT_SETTING_BYTES + 64];
    const char *flags = flag;
    size_t n = (size_t)snprintf(flag, sizeof(flag), "backend.file=");

    memset(flag + n, 'x', LIMIT_SETTING_BYTES);
    flag[n + LIMIT_SETTING_BYTES] = '\0';
    settings_free(load_flag(flag));
    flag[n + LIMIT_SETTING_BYTES] = 'x';
    flag[n + LIMIT_SETTING_BYTES + 1] = '\0';
    refuse(&(struct settings_sources){ .flags = &flags, .n_flags = 1 }, (const char *const[]){ "backend.file", NULL });
}

static void a_refusal_says_where_the_value_came_from(void **state)
{
    AUTO(folder_remove) struct folder f = folder_make();
    static const char *const env[] = { "HEARTH_LOG_LEVEL=loud", NULL };
    static const char *const slip[] = { "HEARTH_TASKS_HEARTBAET_S=1", NULL };
    static const struct setting_row row = { .key = "log.level", .value = "loud" };
    static const char *const flag = "log.level=loud";

    write_file(f.file, "\nlog.level = loud\n");
    refuse(&(struct settings_sources){ .config_path = f.file },
           (const char *const[]){ f.file, ":2:", "log.level", NULL });
    write_file(f.file, "nosuch = 1\n");
    refuse(&(struct settings_sources){ .config_path = f.file }, (const char *const[]){ ":1:", "nosuch", NULL });
    write_file(f.file, "log.level = info\nlog.level = info\n");
    refuse(&(struct settings_sources){ .config_path = f.file }, (const char *const[]){ ":2:", "twice", NULL });
    refuse(&(struct settings_sources){ .env = env }, (const char *const[]){ "HEARTH_LOG_LEVEL", "log.level", NULL });
    refuse(&(struct settings_sources){ .env = slip }, (const char *const[]){ "HEARTH_TASKS_HEARTBAET_S", NULL });
    refuse(&(struct settings_sources){ .rows = &row, .n_rows = 1 },
           (const char *const[]){ "database", "log.level", NULL });
    refuse(&(struct settings_sources){ .flags = &flag, .n_flags = 1 },
           (const char *const[]){ "--set", "log.level", NULL });
}

static void a_file_that_is_missing_or_too_long_is_refused(void **state)
{
    AUTO(folder_remove) struct folder f = folder_make();
    struct settings_sources from = { .config_path = f.file };
    struct settings *s = NULL;
    struct err e = { 0 };
    FILE *file;

    assert_int_equal(settings_load(&from, &s, &e), -ENOENT);
    file = fopen(f.file, "w");
    for (size_t i = 0; i < LIMIT_CONFIG_BYTES; i++)
        fputc('\n', file);
    fclose(file);
    settings_free(load(&from));
    file = fopen(f.file, "a");
    fputc('\n', file);
    fclose(file);
    assert_int_equal(settings_load(&from, &s, &e), -EFBIG);
}

/* --- run time --- */

static void a_change_at_run_time_holds_at_once_and_can_be_taken_back(void **state)
{
    AUTO(settings_freep) struct settings *s = load(&(struct settings_sources){ 0 });
    struct err e = { 0 };

    assert_int_equal(settings_set(s, "tasks.sweep_s", "0.2", &e), 0);
    assert_int_equal(settings_ms(s, SETTING_TASKS_SWEEP_S), 200);
    assert_int_equal(settings_origin(s, SETTING_TASKS_SWEEP_S), ORIGIN_DATABASE);
    assert_int_equal(settings_set(s, "tasks.sweep_s", NULL, &e), 0);
    assert_int_equal(settings_ms(s, SETTING_TASKS_SWEEP_S), 60000);
}

static void what_needs_a_restart_stays_until_then_and_the_rest_does_not(void **state)
{
    AUTO(settings_freep) struct settings *s = load(&(struct settings_sources){ 0 });
    AUTO(arena_freep) struct arena *a = arena_new();
    struct err e = { 0 };

    settings_begin(s);
    assert_int_equal(settings_set(s, "identity.token", "other", &e), 0);
    assert_int_equal(settings_set(s, "tasks.stale_after_s", "200", &e), 0);
    assert_int_equal(settings_set(s, "tasks.max_machines", "4", &e), 0);
    assert_string_equal(settings_string(s, a, SETTING_IDENTITY_TOKEN), "svc");
    assert_string_equal(settings_string(s, a, SETTING_IDENTITY_ABBR), "svc");
    assert_int_equal(settings_ms(s, SETTING_TASKS_STALE_AFTER_S), 300000);
    assert_int_equal(settings_int(s, SETTING_TASKS_MAX_MACHINES), 4);
    assert_string_equal(settings_show(s, a, SETTING_IDENTITY_TOKEN), "other");
    assert_string_equal(settings_show(s, a, SETTING_IDENTITY_ABBR), "other");
}

static void a_bad_change_leaves_the_value_as_it_was(void **state)
{
    static const char *const flags[] = { "tasks.heartbeat_s=1" };
    AUTO(settings_freep) struct settings *s = load(&(struct settings_sources){ .flags = flags, .n_flags = 1 });
    struct err e = { 0 };

    assert_int_equal(settings_set(s, "tasks.stale_after_s", "200", &e), 0);
    assert_int_equal(settings_set(s, "tasks.stale_after_s", "x", &e), -EINVAL);
    assert_int_equal(settings_set(s, "tasks.stale_after_s", "0.5", &e), -EINVAL); /* below the heartbeat */
    assert_int_equal(settings_set(s, "nosuch.key", "1", &e), -EINVAL);
    assert_int_equal(settings_ms(s, SETTING_TASKS_STALE_AFTER_S), 200000);
}

static void what_a_start_without_flags_would_refuse_is_not_kept(void **state)
{
    static const char *const flags[] = { "tasks.heartbeat_s=1", "http.allow_remote=true" };
    AUTO(settings_freep) struct settings *s = load(&(struct settings_sources){ .flags = flags, .n_flags = 2 });
    struct err e = { 0 };

    assert_int_equal(settings_set(s, "tasks.stale_after_s", "5", &e), -EINVAL);
    assert_non_null(strstr(e.text, "5 (database) and 120 (default)"));
    assert_int_equal(settings_set(s, "http.listen", "0.0.0.0:3001", &e), -EINVAL);
    assert_non_null(strstr(e.text, "http.allow_remote (default) is false"));
    assert_int_equal(settings_set(s, "http.allow_remote", "true", &e), 0);
    assert_int_equal(settings_set(s, "http.listen", "127.0.0.1:3001, [::1]:3001, 0.0.0.0:3001", &e), 0);
    assert_int_equal(settings_set(s, "http.allow_remote", NULL, &e), -EINVAL);
    assert_int_equal(settings_set(s, "http.listen", NULL, &e), 0);
    assert_int_equal(settings_set(s, "http.allow_remote", NULL, &e), 0);
}

static void stored_values_that_cannot_be_used_are_named_and_the_rest_counts(void **state)
{
    static const struct setting_row rows[] = {
        { "tasks.stale_after_s", "2", NULL },
        { "tasks.sweep_s", "soon", NULL },
        { "of.a_newer_version", "1", NULL },
        { "tasks.max_machines", "4", NULL },
    };
    AUTO(settings_freep) struct settings *s = load(&(struct settings_sources){ 0 });
    struct err e = { 0 };

    assert_int_equal(settings_apply_rows(s, rows, ARRAY_SIZE(rows), &e), -EINVAL);
    assert_non_null(strstr(e.text, "`hearth settings unset tasks.sweep_s` removes it"));
    assert_non_null(strstr(settings_fault(s, 1), "of.a_newer_version"));
    assert_non_null(strstr(settings_fault(s, 2), "`hearth settings unset tasks.stale_after_s`"));
    assert_null(settings_fault(s, 3));
    assert_int_equal(settings_int(s, SETTING_TASKS_MAX_MACHINES), 4);
    assert_int_equal(settings_ms(s, SETTING_TASKS_STALE_AFTER_S), 300000);
    assert_int_equal(settings_ms(s, SETTING_TASKS_SWEEP_S), 60000);
}

static void *flip(void *arg)
{
    struct settings *s = arg;
    struct err e = { 0 };

    for (int i = 0; i < 500; i++)
        if (settings_set(s, "identity.user_email", i % 2 ? "first@example.org" : "second@example.org.example", &e) < 0)
            return arg;
    return NULL;
}

static void readers_see_whole_values_while_they_change(void **state)
{
    static const char *const flag = "identity.user_email=first@example.org";
    AUTO(settings_freep) struct settings *s = load(&(struct settings_sources){ .rows = NULL });
    pthread_t thread;
    void *failed = NULL;
    struct err e = { 0 };

    assert_int_equal(settings_set(s, "identity.user_email", strchr(flag, '=') + 1, &e), 0);
    assert_int_equal(pthread_create(&thread, NULL, flip, s), 0);
    for (int i = 0; i < 500; i++) {
        AUTO(arena_freep) struct arena *a = arena_new();
        const char *text = settings_string(s, a, SETTING_IDENTITY_USER_EMAIL);

        assert_true(strcmp(text, "first@example.org") == 0 || strcmp(text, "second@example.org.example") == 0);
    }
    pthread_join(thread, &failed);
    assert_null(failed);
}

/* --- listing --- */

static void the_listing_reports_value_and_origin_of_all(void **state)
{
    AUTO(settings_freep) struct settings *s = load_flag("identity.token=acme");
    AUTO(arena_freep) struct arena *a = arena_new();
    struct json_value list = { 0 }, item;
    struct json_writer w;
    struct err e = { 0 };
    struct buf out;

    buf_init(&out, LIMIT_REPLY);
    json_write_init(&w, &out);
    settings_write_json(s, &w, NULL);
    assert_int_equal(json_parse(a, buf_slice(&out), &list, &e), 0);
    buf_clear(&out);
    assert_int_equal(json_length(list), N_SETTINGS);
    for (struct json_iter it = json_iter(list); json_next(&it, NULL, &item);) {
        if (strcmp(json_cstr(json_get(item, "key")), "identity.token") != 0)
            continue;
        assert_string_equal(json_cstr(json_get(item, "value")), "acme");
        assert_string_equal(json_cstr(json_get(item, "origin")), "flag");
        assert_string_equal(json_cstr(json_get(item, "default")), "svc");
        return;
    }
    fail_msg("identity.token is not listed");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_rule_is_whole),
        cmocka_unit_test(without_any_source_the_defaults_hold),
        cmocka_unit_test(each_layer_stands_above_the_one_before),
        cmocka_unit_test(rows_that_come_later_do_not_pass_a_flag),
        cmocka_unit_test(an_empty_variable_is_not_set),
        cmocka_unit_test(an_empty_abbreviation_is_the_token),
        cmocka_unit_test(the_dialect_sets_the_words_that_are_not_set),
        cmocka_unit_test(a_bad_value_is_refused_with_its_rule),
        cmocka_unit_test(values_at_the_edge_are_taken),
        cmocka_unit_test(the_longest_value_is_taken_and_one_more_is_not),
        cmocka_unit_test(a_refusal_says_where_the_value_came_from),
        cmocka_unit_test(a_file_that_is_missing_or_too_long_is_refused),
        cmocka_unit_test(a_change_at_run_time_holds_at_once_and_can_be_taken_back),
        cmocka_unit_test(what_needs_a_restart_stays_until_then_and_the_rest_does_not),
        cmocka_unit_test(what_a_start_without_flags_would_refuse_is_not_kept),
        cmocka_unit_test(stored_values_that_cannot_be_used_are_named_and_the_rest_counts),
        cmocka_unit_test(a_bad_change_leaves_the_value_as_it_was),
        cmocka_unit_test(readers_see_whole_values_while_they_change),
        cmocka_unit_test(the_listing_reports_value_and_origin_of_all),
    };

    return cmocka_run_group_tests_name("settings", tests, NULL, NULL);
}

#include "base/limits.h"
#include "fixture.h"
#include "store/tables/apps.h"
#include "store/tables/provider_accounts.h"
#include "store/tables/provider_choices.h"

static struct provider_account_row account(const char *name, const char *sealed)
{
    return (struct provider_account_row){
        .name = name, .preset = "openai", .sealed = slice_of(sealed), .model = "m", .models = "[]"
    };
}

static void put(struct fixture *x, const char *name, const char *sealed)
{
    struct provider_account_row row = account(name, sealed);

    assert_int_equal(store_provider_accounts_put(x->store, &row, &x->e), 0);
}

static const char *names(struct fixture *x)
{
    struct provider_account_row *rows = NULL;
    const char *all = "";
    size_t n = 0;

    assert_int_equal(store_provider_accounts_list(x->store, x->a, &rows, &n, &x->e), 0);
    for (size_t i = 0; i < n; i++)
        all = arena_printf(x->a, "%s%s ", all, rows[i].name);
    return all;
}

static void an_account_that_is_replaced_keeps_its_place(void **state)
{
    struct fixture x = fixture_open();
    struct provider_account_row got = { 0 };

    put(&x, "b", "1");
    put(&x, "a", "2");
    put(&x, "b", "3");
    assert_string_equal(names(&x), "b a ");
    MUST(store_provider_accounts_get(x.store, x.a, "b", &got, &x.e));
    assert_true(slice_eq_str(got.sealed, "3"));
    assert_string_equal(got.model, "m");
    assert_null(got.embed_model);
    assert_string_equal(got.models, "[]");
    assert_non_null(got.created_at);
    fixture_close(&x);
}

static void an_account_that_is_removed_is_gone(void **state)
{
    struct fixture x = fixture_open();
    struct provider_account_row got = { 0 };

    put(&x, "a", "1");
    MUST(store_provider_accounts_delete(x.store, "a", &x.e));
    MUST_FAIL(store_provider_accounts_delete(x.store, "a", &x.e), -ENOENT, "PROVIDER_NOT_FOUND");
    MUST_FAIL(store_provider_accounts_get(x.store, x.a, "a", &got, &x.e), -ENOENT, "PROVIDER_NOT_FOUND");
    put(&x, "b", "1");
    put(&x, "a", "1");
    assert_string_equal(names(&x), "b a ");
    fixture_close(&x);
}

static void as_many_accounts_as_the_limit_says(void **state)
{
    struct fixture x = fixture_open();
    struct provider_account_row one_more = account("one more", "1");

    for (int i = 0; i < LIMIT_PROVIDER_ACCOUNTS; i++)
        put(&x, arena_printf(x.a, "a%d", i), "1");
    MUST_FAIL(store_provider_accounts_put(x.store, &one_more, &x.e), -EDQUOT, "TOO_MANY_ACCOUNTS");
    put(&x, "a0", "2"); /* replacing does not add a row */
    fixture_close(&x);
}

/* ---- choices of apps ---- */

static void add_app(struct fixture *x, const char *id, const char *name)
{
    struct app_row app = {
        .app_id = id, .name = name, .display_name = "N", .app_type = "custom", .config = "{}", .permissions = "[]"
    };

    assert_int_equal(store_apps_insert(x->store, &app, &x->e), 0);
}

static void choose(struct fixture *x, const char *app_id, const char *capability, const char *provider,
                   const char *model)
{
    struct provider_choice_row row = {
        .app_id = app_id, .capability = capability, .provider = provider, .model = model
    };

    assert_int_equal(store_provider_choices_set(x->store, &row, &x->e), 0);
}

static void each_app_has_one_choice_a_capability(void **state)
{
    struct fixture x = fixture_open();
    struct provider_choice_row got = { 0 }, *rows = NULL;
    size_t n = 0;

    add_app(&x, "1", "zebra");
    add_app(&x, "2", "ant");
    choose(&x, "1", "chat", "openai", NULL);
    choose(&x, "1", "embed", "ollama", "nomic");
    choose(&x, "2", "chat", "groq", NULL);
    choose(&x, "1", "chat", "xai", "grok");
    MUST(store_provider_choices_get(x.store, x.a, "1", "chat", &got, &x.e));
    assert_string_equal(got.provider, "xai");
    assert_string_equal(got.model, "grok");
    MUST(store_provider_choices_list(x.store, x.a, &rows, &n, &x.e));
    assert_int_equal(n, 3);
    assert_string_equal(rows[0].app_name, "ant");
    assert_string_equal(rows[2].capability, "embed");
    MUST(store_provider_choices_clear(x.store, "1", "chat", &x.e));
    MUST(store_provider_choices_clear(x.store, "1", "chat", &x.e));
    MUST(store_provider_choices_get(x.store, x.a, "1", "chat", &got, &x.e));
    assert_null(got.provider);
    fixture_close(&x);
}

static void an_app_takes_its_choices_along(void **state)
{
    struct fixture x = fixture_open();
    struct provider_choice_row *rows = NULL;
    size_t n = 0;

    add_app(&x, "1", "a");
    choose(&x, "1", "chat", "openai", NULL);
    MUST(store_apps_delete(x.store, "1", &x.e));
    add_app(&x, "1", "a");
    MUST(store_provider_choices_list(x.store, x.a, &rows, &n, &x.e));
    assert_int_equal(n, 0);
    fixture_close(&x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_account_that_is_replaced_keeps_its_place),
        cmocka_unit_test(an_account_that_is_removed_is_gone),
        cmocka_unit_test(as_many_accounts_as_the_limit_says),
        cmocka_unit_test(each_app_has_one_choice_a_capability),
        cmocka_unit_test(an_app_takes_its_choices_along),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

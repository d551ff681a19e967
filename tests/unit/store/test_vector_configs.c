#include "fixture.h"
#include "store/tables/apps.h"
#include "store/vectors/vector_configs.h"

static struct vector_config_row row_of(const char *scope, const char *provider, const char *config)
{
    return (struct vector_config_row){ scope, provider, slice_of(config) };
}

static void a_registration_is_bytes_and_replaced(void **state)
{
    struct fixture x = fixture_open();
    struct vector_config_row first = row_of("app", "qdrant", "1"), second = { "app", "chroma", { "a\0b", 3 } }, got;

    MUST_FAIL(store_vector_configs_get(x.store, x.a, "app", &got, &x.e), -ENOENT, "VECTOR_CONFIG_NOT_FOUND");
    MUST(store_vector_configs_set(x.store, &first, &x.e));
    MUST(store_vector_configs_set(x.store, &second, &x.e));
    MUST(store_vector_configs_get(x.store, x.a, "app", &got, &x.e));
    assert_string_equal(got.provider, "chroma");
    assert_true(slice_eq(got.config, second.config));
    assert_int_equal(store_vector_configs_get(x.store, x.a, "another", &got, NULL), -ENOENT);
    fixture_close(&x);
}

static void an_app_takes_its_registration_along(void **state)
{
    struct fixture x = fixture_open();
    struct app_row app = {
        .app_id = "app", .name = "n", .display_name = "N", .app_type = "custom", .config = "{}", .permissions = "[]"
    };
    struct vector_config_row row = row_of("app", "qdrant", "1"), got;

    MUST(store_apps_insert(x.store, &app, &x.e));
    MUST(store_vector_configs_set(x.store, &row, &x.e));
    MUST(store_apps_delete(x.store, "app", &x.e));
    assert_int_equal(store_vector_configs_get(x.store, x.a, "app", &got, NULL), -ENOENT);
    fixture_close(&x);
}

static void the_first_model_of_a_namespace_is_kept_until_it_is_forgotten(void **state)
{
    struct fixture x = fixture_open();
    const char *model = "unset";

    MUST(store_vector_models_get(x.store, x.a, "embedded", "ns", &model, &x.e));
    assert_null(model);
    MUST(store_vector_models_keep(x.store, x.a, "embedded", "ns", "one", &model, &x.e));
    assert_string_equal(model, "one");
    MUST(store_vector_models_keep(x.store, x.a, "embedded", "ns", "two", &model, &x.e));
    assert_string_equal(model, "one");
    MUST(store_vector_models_keep(x.store, x.a, "qdrant", "ns", "two", &model, &x.e));
    assert_string_equal(model, "two");
    MUST(store_vector_models_forget(x.store, "embedded", "ns", &x.e));
    MUST(store_vector_models_forget(x.store, "embedded", "ns", &x.e));
    MUST(store_vector_models_keep(x.store, x.a, "embedded", "ns", "three", &model, &x.e));
    assert_string_equal(model, "three");
    fixture_close(&x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_registration_is_bytes_and_replaced),
        cmocka_unit_test(an_app_takes_its_registration_along),
        cmocka_unit_test(the_first_model_of_a_namespace_is_kept_until_it_is_forgotten),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

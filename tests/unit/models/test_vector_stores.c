/* The store that a scope uses, with the test's own provider in place of the table's: registration during requests, and
 * which stores stay open. */
#include "models/vector_known.h"
#include "models/vector_stores.h"
#include "store/vectors/vector_configs.h"

#include "../identity/fixture.h"

#include <pthread.h>
#include <stdatomic.h>

/* --- a provider that counts --- */

enum { FAKE_DIMENSIONS = 7 };

struct fake {
    struct vectors base;
    atomic_bool is_closed;
};

static atomic_int n_open, n_opened;
static atomic_bool is_refusing;

static struct vectors *fake_close(struct vectors *v)
{
    struct fake *fake = CONTAINER_OF(v, struct fake, base);

    assert_false(atomic_exchange(&fake->is_closed, true));
    atomic_fetch_sub(&n_open, 1);
    free(fake);
    return NULL;
}

static int fake_check(struct vectors *v, const struct net_wait *wait, struct err *e)
{
    return atomic_load(&is_refusing) ? err_set(e, -EIO, "VECTOR_STORE_FAILED", "Fake: it is not in the mood.") : 0;
}

static int fake_count(struct vectors *v, const struct net_wait *wait, const char *ns, int64_t *ret_n,
                      int64_t *ret_dimensions, struct err *e)
{
    assert_false(atomic_load(&CONTAINER_OF(v, struct fake, base)->is_closed));
    *ret_n = 1;
    *ret_dimensions = FAKE_DIMENSIONS;
    return 0;
}

static const struct vectors_ops fake_ops = {
    .name = "fake", .close = fake_close, .check = fake_check, .count = fake_count
};

static int fake_open(const char *scope, struct json_value config, const struct guard *guard, struct vectors **ret,
                     struct err *e)
{
    struct fake *fake = xcalloc(1, sizeof(*fake));

    fake->base.ops = &fake_ops;
    atomic_fetch_add(&n_open, 1);
    atomic_fetch_add(&n_opened, 1);
    *ret = &fake->base;
    return 0;
}

/* Replaces the providers of vector/vector.c. */
const struct vectors_provider vectors_providers[] = { { .name = "embedded", .label = "Embedded" },
                                                      { .name = "fake", .label = "Fake (a double)", .open = fake_open },
                                                      { NULL } };

const struct vectors_provider *vectors_provider_find(const char *name)
{
    for (const struct vectors_provider *p = vectors_providers; p->name; p++)
        if (strcmp(p->name, name) == 0)
            return p;
    return NULL;
}

/* --- the rig --- */

struct rig {
    struct fixture f;
    struct vector_stores *stores;
};

static void open_stores(struct rig *x)
{
    struct vector_stores_config c = {
        .store = x->f.store,
        .identity = x->f.id,
        .embedded = { .path = arena_printf(x->f.a, "%s/vectors.db", x->f.path),
                      .list_above_rows = 1000,
                      .target_recall = 0.9,
                      .memory_bytes = 1 << 20 },
    };
    struct err e = { 0 };

    must(vector_stores_open(&c, &x->stores, &e), &e);
}

static struct rig rig_open(void)
{
    struct rig x = { .f = fixture_open() };

    atomic_store(&n_open, 0);
    atomic_store(&n_opened, 0);
    atomic_store(&is_refusing, false);
    open_stores(&x);
    return x;
}

static void rig_close(struct rig *x)
{
    x->stores = vector_stores_close(x->stores);
    assert_int_equal(atomic_load(&n_open), 0);
    fixture_close(&x->f);
}

static int register_one(struct vector_stores *stores, const char *scope, const char *provider, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    const struct net_wait wait = net_wait_of(60000, NULL, NULL);
    struct vector_registration reg = { .provider = provider };
    int r = json_parse(a, SLICE_LIT("{\"url\":\"https://h\"}"), &reg.config, e);

    return r < 0 ? r : vector_stores_register(stores, &wait, a, scope, &reg, e);
}

/* Dimensions of the scope's namespace in the store that the scope uses: FAKE_DIMENSIONS, or 0 for the embedded store.
 */
static int64_t dimensions_of(struct vector_stores *stores, const char *scope)
{
    AUTO(vector_store_unrefp) struct vector_store *use = NULL;
    int64_t n, n_dimensions = -1;
    struct err e = { 0 };

    must(vector_stores_of(stores, scope, &use, &e), &e);
    must(use->vectors->ops->count(use->vectors, NULL, "sdk_x_default", &n, &n_dimensions, &e), &e);
    return n_dimensions;
}

static bool is_registered(struct rig *x, const char *scope)
{
    return vector_stores_is_registered(x->stores, scope);
}

static void a_registered_store_is_used_until_another_is_registered_also_after_a_restart(void **state)
{
    AUTO(rig_close) struct rig x = rig_open();
    struct err e = { 0 };

    assert_int_equal(dimensions_of(x.stores, "a"), 0);
    assert_false(is_registered(&x, "a"));
    must(register_one(x.stores, "a", "fake", &e), &e);
    assert_int_equal(dimensions_of(x.stores, "a"), FAKE_DIMENSIONS);
    assert_int_equal(dimensions_of(x.stores, "b"), 0);
    assert_true(is_registered(&x, "a") && !is_registered(&x, "b"));
    x.stores = vector_stores_close(x.stores);
    assert_int_equal(atomic_load(&n_open), 0);
    open_stores(&x);
    assert_true(is_registered(&x, "a"));
    assert_int_equal(atomic_load(&n_opened), 2);
    assert_int_equal(dimensions_of(x.stores, "a"), FAKE_DIMENSIONS);
    assert_int_equal(dimensions_of(x.stores, "a"), FAKE_DIMENSIONS);
    assert_int_equal(atomic_load(&n_opened), 2); /* stays open in between */
    must(register_one(x.stores, "a", "embedded", &e), &e);
    assert_int_equal(dimensions_of(x.stores, "a"), 0);
    assert_false(is_registered(&x, "a"));
    assert_int_equal(atomic_load(&n_open), 0);
}

/* Rows that bypass the stores are not seen: nothing is read again. */
static void a_registration_is_read_once(void **state)
{
    AUTO(rig_close) struct rig x = rig_open();
    struct err e = { 0 };

    assert_false(is_registered(&x, "a"));
    must(store_vector_configs_set(x.f.store, &(struct vector_config_row){ "a", "fake", SLICE_LIT("{}") }, &e), &e);
    assert_int_equal(dimensions_of(x.stores, "a"), 0);
    must(register_one(x.stores, "b", "fake", &e), &e);
    x.stores = vector_stores_close(x.stores);
    open_stores(&x);
    assert_true(is_registered(&x, "b"));
    must(store_vector_configs_set(x.f.store, &(struct vector_config_row){ "b", "unknown", SLICE_LIT("{}") }, &e), &e);
    assert_int_equal(dimensions_of(x.stores, "b"), FAKE_DIMENSIONS);
    must(vector_stores_forget(x.stores, "b", false, &e), &e);
    assert_true(is_registered(&x, "b"));
}

/* Above the limit all known scopes are forgotten and read again. */
static void scopes_without_a_store_are_known_up_to_a_limit(void **state)
{
    struct known_scopes *k = xcalloc(1, sizeof(*k));
    char scope[32];

    for (int i = 0; i < LIMIT_KNOWN_SCOPES; i++) {
        snprintf(scope, sizeof(scope), "s%d", i);
        known_scopes_add(k, scope);
        known_scopes_add(k, scope);
    }
    assert_int_equal(k->n, LIMIT_KNOWN_SCOPES);
    assert_true(known_scopes_has(k, "s0") && known_scopes_has(k, scope));
    known_scopes_remove(k, "s0");
    known_scopes_remove(k, "nobody");
    assert_false(known_scopes_has(k, "s0"));
    known_scopes_add(k, "s0");
    known_scopes_add(k, "one more");
    assert_int_equal(k->n, 1);
    assert_true(known_scopes_has(k, "one more") && !known_scopes_has(k, "s0"));
    known_scopes_clear(k);
    free(k);
}

static void a_store_that_refuses_is_not_registered(void **state)
{
    AUTO(rig_close) struct rig x = rig_open();
    struct err e = { 0 };

    must(register_one(x.stores, "a", "fake", &e), &e);
    atomic_store(&is_refusing, true);
    assert_int_equal(register_one(x.stores, "a", "fake", &e), -EINVAL);
    assert_string_equal(e.text, "Failed to connect to fake: it is not in the mood.");
    assert_int_equal(register_one(x.stores, "b", "fake", NULL), -EINVAL);
    assert_int_equal(atomic_load(&n_open), 1);
    assert_int_equal(dimensions_of(x.stores, "a"), FAKE_DIMENSIONS);
    assert_int_equal(dimensions_of(x.stores, "b"), 0);
}

static void a_store_in_use_outlives_its_registration(void **state)
{
    AUTO(rig_close) struct rig x = rig_open();
    AUTO(vector_store_unrefp) struct vector_store *use = NULL;
    int64_t n, n_dimensions;
    struct err e = { 0 };

    must(register_one(x.stores, "a", "fake", &e), &e);
    must(vector_stores_of(x.stores, "a", &use, &e), &e);
    must(vector_stores_forget(x.stores, "a", false, &e), &e);
    assert_int_equal(atomic_load(&n_open), 1);
    must(use->vectors->ops->count(use->vectors, NULL, "n", &n, &n_dimensions, &e), &e);
    vector_store_unref(TAKE(use));
    assert_int_equal(atomic_load(&n_open), 0);
}

static void those_used_least_recently_are_closed(void **state)
{
    enum { N_SCOPES = 40, N_KEPT = 32 };
    AUTO(rig_close) struct rig x = rig_open();
    struct err e = { 0 };

    for (int i = 0; i < N_SCOPES; i++)
        must(register_one(x.stores, arena_printf(x.f.a, "s%d", i), "fake", &e), &e);
    assert_int_equal(atomic_load(&n_open), N_KEPT);
    for (int i = N_SCOPES - N_KEPT; i < N_SCOPES; i++)
        assert_int_equal(dimensions_of(x.stores, arena_printf(x.f.a, "s%d", i)), FAKE_DIMENSIONS);
    assert_int_equal(atomic_load(&n_opened), N_SCOPES);
    assert_int_equal(dimensions_of(x.stores, "s0"), FAKE_DIMENSIONS);
    assert_int_equal(atomic_load(&n_opened), N_SCOPES + 1);
    assert_int_equal(atomic_load(&n_open), N_KEPT);
}

/* --- all at once --- */

enum { N_USERS = 4, N_SCOPES_SHARED = 3, N_SWITCHES = 40 };

struct crowd {
    struct vector_stores *stores;
    atomic_bool is_over;
    atomic_int n_answers;
};

static const char *const scopes[N_SCOPES_SHARED] = { "a", "b", "c" };

static void *keep_requesting(void *arg)
{
    struct crowd *crowd = arg;

    for (int i = 0; i == 0 || !atomic_load(&crowd->is_over); i++) {
        const char *scope = scopes[i % N_SCOPES_SHARED];
        int64_t n_dimensions = dimensions_of(crowd->stores, scope);

        vector_stores_is_registered(crowd->stores, scope);
        assert_true(n_dimensions == 0 || n_dimensions == FAKE_DIMENSIONS);
        atomic_fetch_add(&crowd->n_answers, 1);
    }
    return NULL;
}

static void *keep_switching(void *arg)
{
    struct crowd *crowd = arg;
    struct err e = { 0 };

    for (int i = 0; i < N_SWITCHES; i++) {
        const char *scope = scopes[i % N_SCOPES_SHARED];

        must(register_one(crowd->stores, scope, i % 2 ? "fake" : "embedded", &e), &e);
        if (i % 7 == 0)
            must(vector_stores_forget(crowd->stores, scope, i % 2 == 0, &e), &e);
    }
    return NULL;
}

static void stores_may_be_switched_while_they_are_used(void **state)
{
    AUTO(rig_close) struct rig x = rig_open();
    struct crowd crowd = { .stores = x.stores };
    pthread_t users[N_USERS], switchers[2];
    struct err e = { 0 };

    for (int i = 0; i < N_USERS; i++)
        assert_int_equal(pthread_create(&users[i], NULL, keep_requesting, &crowd), 0);
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&switchers[i], NULL, keep_switching, &crowd), 0);
    for (int i = 0; i < 2; i++)
        pthread_join(switchers[i], NULL);
    for (int i = 0; i < N_SCOPES_SHARED;
         i++) { /* the last registration counts, whichever thread opened an earlier one in the meantime */
        must(register_one(x.stores, scopes[i], i % 2 ? "embedded" : "fake", &e), &e);
        assert_int_equal(dimensions_of(x.stores, scopes[i]), i % 2 ? 0 : FAKE_DIMENSIONS);
    }
    atomic_store(&crowd.is_over, true);
    for (int i = 0; i < N_USERS; i++)
        pthread_join(users[i], NULL);
    assert_true(atomic_load(&crowd.n_answers) > 0);
    for (int i = 0; i < N_SCOPES_SHARED; i++)
        assert_int_equal(dimensions_of(x.stores, scopes[i]), i % 2 ? 0 : FAKE_DIMENSIONS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_registered_store_is_used_until_another_is_registered_also_after_a_restart),
        cmocka_unit_test(a_registration_is_read_once),
        cmocka_unit_test(scopes_without_a_store_are_known_up_to_a_limit),
        cmocka_unit_test(a_store_that_refuses_is_not_registered),
        cmocka_unit_test(a_store_in_use_outlives_its_registration),
        cmocka_unit_test(those_used_least_recently_are_closed),
        cmocka_unit_test(stores_may_be_switched_while_they_are_used),
    };

    return cmocka_run_group_tests_name("vector_stores", tests, NULL, NULL);
}

/* The choice of the provider, embeddings and vectors for an app, without an HTTP request. */
#include "rig.h"

#include "embed/lexical.h"
#include "models/embed_texts.h"
#include "models/provider_choice.h"
#include "store/tables/provider_choices.h"

/* ---- the choice of the provider ---- */

static void an_app_gets_its_own_provider(void **state)
{
    AUTO(models_close) struct models_rig x = { 0 };
    struct provider_choice choice = { 0 };
    struct models_call call;
    struct err e = { 0 };

    models_open(&x);
    add_account(&x, "two", rig_url(&x.provider, "/v1"));
    must(store_provider_choices_set(
             x.f.store, &(struct provider_choice_row){ .app_id = APP, .capability = "chat", .provider = "two" }, &e),
         &e);
    call = call_of(&x);
    must(provider_choose(&call, PROVIDER_CHAT, NULL, NULL, &choice, &e), &e);
    assert_string_equal(choice.provider, "two");
    assert_true(provider_can(&call, PROVIDER_EMBED, LEXICAL_PROVIDER));
    assert_false(provider_can(&call, PROVIDER_CHAT, "three"));
}

/* ---- embeddings ---- */

static int embed(struct models_call *call, const char *provider, struct embed_made *ret, struct err *e)
{
    const struct slice text = SLICE_LIT("a text of eight");

    return embed_texts(call, &(struct embed_job){ .texts = &text, .n = 1, .provider = provider }, ret, e);
}

static void texts_of_an_app_become_vectors(void **state)
{
    AUTO(models_close) struct models_rig x = { 0 };
    struct embed_made made = { 0 };
    struct models_call call;
    struct err e = { 0 };

    models_open(&x);
    allow(&x, PERM_LLM_EMBED);
    call = call_of(&x);
    assert_true(embed_waits(&call, "one", NULL));
    must(embed(&call, "one", &made, &e), &e);
    assert_int_equal(made.n, 1);
    assert_int_equal(made.n_dimensions, 2);
    assert_true(made.items[0] > 0.59f && made.items[0] < 0.61f);
    assert_true(made.upstream_us > 0);
    assert_int_equal(counted(&x).requests, 1);
    assert_int_equal(counted(&x).prompt_tokens, 7);
}

static void the_built_in_model_waits_for_nobody(void **state)
{
    AUTO(models_close) struct models_rig x = { 0 };
    struct embed_made made = { 0 };
    struct models_call call;
    struct err e = { 0 };

    models_open(&x);
    allow(&x, PERM_LLM_EMBED);
    call = call_of(&x);
    assert_false(embed_waits(&call, LEXICAL_PROVIDER, NULL));
    must(embed(&call, LEXICAL_PROVIDER, &made, &e), &e);
    assert_int_equal(made.n_dimensions, LEXICAL_DIMENSIONS);
    assert_true(made.is_estimated);
    assert_int_equal(counted(&x).requests, 1);
    assert_int_equal(atomic_load(&x.n_requested), 0);
}

static void texts_without_a_grant_are_refused(void **state)
{
    AUTO(models_close) struct models_rig x = { 0 };
    struct embed_made made = { 0 };
    struct models_call call;
    struct err e = { 0 };

    models_open(&x);
    allow(&x, PERM_LLM_CHAT);
    call = call_of(&x);
    assert_int_equal(embed(&call, "one", &made, &e), -EPERM);
    assert_string_equal(e.code, "PERMISSION_REQUIRED");
    assert_int_equal(atomic_load(&x.n_requested), 0);
    assert_int_equal(counted(&x).requests, 0);
}

struct cancelling {
    struct raw_peer silent;
    atomic_bool is_gone;
};

static void *cancel_when_asked(void *arg)
{
    struct cancelling *c = arg;

    assert_true(wait_until(has_heard, &c->silent));
    atomic_store(&c->is_gone, true);
    return NULL;
}

static void the_flag_ends_an_embedding(void **state)
{
    AUTO(models_close) struct models_rig x = { 0 };
    struct cancelling c = { .is_gone = false };
    struct embed_made made = { 0 };
    pthread_t thread;
    struct models_call call;
    struct err e = { 0 };

    models_open(&x);
    allow(&x, PERM_LLM_EMBED);
    add_silent(&x, &c.silent, "");
    call = call_of(&x);
    call.is_gone = &c.is_gone;
    assert_int_equal(pthread_create(&thread, NULL, cancel_when_asked, &c), 0);
    assert_int_equal(embed(&call, "silent", &made, &e), -ECANCELED);
    assert_string_equal(e.code, "SHUTTING_DOWN");
    assert_int_equal(counted(&x).failed, 1);
    pthread_join(thread, NULL);
    raw_close(&c.silent);
}

/* ---- vectors ---- */

static const float east[] = { 1, 0 }, north[] = { 0, 1 };
static const struct vector_record records[] = { { "east", east, "{}" }, { "north", north, "{}" } };
static const struct vector_batch batch = { records, ARRAY_SIZE(records), 2 };

static int upsert(const struct models_call *call, const char *model, struct err *e)
{
    AUTO(vector_space_clear) struct vector_space space = { 0 };
    int r = vector_space_open(call, "notes", &space, e);

    return r < 0 ? r : vector_space_upsert(&space, &batch, model, e);
}

/* The id of the nearest vector; "" when there is none. */
static const char *nearest(struct models_rig *x, const struct models_call *call, const char *model, int *ret_r,
                           struct err *e)
{
    const struct vector_query query = { .vector = north, .n_dimensions = 2, .top_k = 1, .min_score = -2 };
    AUTO(vector_space_clear) struct vector_space space = { 0 };
    struct vector_hits hits = { 0 };

    *ret_r = vector_space_open(call, "notes", &space, e);
    if (*ret_r == 0)
        *ret_r = vector_space_query(&space, &query, model, &hits, e);
    return hits.n ? arena_strdup(x->f.a, hits.items[0].id) : "";
}

static void vectors_of_an_app_are_found(void **state)
{
    AUTO(models_close) struct models_rig x = { 0 };
    AUTO(vector_space_clear) struct vector_space space = { 0 };
    struct vector_space_counts counts = { 0 };
    struct field_strings names = { 0 };
    struct models_call call;
    struct err e = { 0 };
    int64_t n = 0;
    int r;

    models_open(&x);
    allow(&x, PERM_VECTORS_WRITE);
    allow(&x, PERM_VECTORS_READ);
    call = call_of(&x);
    assert_false(vector_space_is_far(&call));
    must(upsert(&call, "e-1", &e), &e);
    assert_string_equal(nearest(&x, &call, "e-1", &r, &e), "north");
    assert_string_equal(nearest(&x, &call, "e-2", &r, &e), "");
    assert_int_equal(r, -EINVAL);
    assert_string_equal(e.code, "EMBEDDING_MODEL_MISMATCH");
    must(vector_space_open(&call, "notes", &space, &e), &e);
    must(vector_space_count(&space, &counts, &e), &e);
    assert_int_equal(counts.n, 2);
    assert_string_equal(counts.model, "e-1");
    must(vector_space_workspaces(&space, &names, &e), &e);
    assert_int_equal(names.n, 1);
    assert_string_equal(names.items[0], "notes");
    must(vector_space_remove(&space, &(struct vector_removal){ .all = true }, &n, &e), &e);
    assert_int_equal(n, 2);
    must(upsert(&call, "e-2", &e), &e); /* the emptied namespace has forgotten its model */
}

static void vectors_without_a_grant_stay_hidden(void **state)
{
    AUTO(models_close) struct models_rig x = { 0 };
    struct models_call call;
    struct err e = { 0 };
    int r;

    models_open(&x);
    allow(&x, PERM_VECTORS_READ);
    call = call_of(&x);
    assert_int_equal(upsert(&call, NULL, &e), -EPERM);
    assert_string_equal(e.code, "PERMISSION_REQUIRED");
    allow(&x, PERM_VECTORS_WRITE);
    must(upsert(&call, NULL, &e), &e);
    decide(&x.f, APP, PERM_VECTORS_READ, false, CONSENT_ALWAYS);
    assert_string_equal(nearest(&x, &call, NULL, &r, &e), "");
    assert_int_equal(r, -EPERM);
    decide(&x.f, OTHER_APP, PERM_VECTORS_READ, true, CONSENT_ALWAYS);
    x.caller = caller_of(&x.f, (struct credentials){ .x_app_id = OTHER_APP });
    assert_string_equal(nearest(&x, &call, NULL, &r, &e), ""); /* each app has namespaces of its own */
    assert_int_equal(r, 0);
}

/* What a route's row has checked is not used up a second time. */
static void a_grant_for_once_is_used_once(void **state)
{
    AUTO(models_close) struct models_rig x = { 0 };
    struct models_call call;
    struct err e = { 0 };

    models_open(&x);
    decide(&x.f, APP, PERM_VECTORS_WRITE, true, CONSENT_ONCE);
    call = call_of(&x);
    call.is_permitted = true;
    must(upsert(&call, NULL, &e), &e);
    call.is_permitted = false;
    must(upsert(&call, NULL, &e), &e);
    assert_int_equal(upsert(&call, NULL, &e), -EPERM);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_app_gets_its_own_provider),        cmocka_unit_test(texts_of_an_app_become_vectors),
        cmocka_unit_test(the_built_in_model_waits_for_nobody), cmocka_unit_test(texts_without_a_grant_are_refused),
        cmocka_unit_test(the_flag_ends_an_embedding),          cmocka_unit_test(vectors_of_an_app_are_found),
        cmocka_unit_test(vectors_without_a_grant_stay_hidden), cmocka_unit_test(a_grant_for_once_is_used_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

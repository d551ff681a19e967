#include "protocol.h"

#include "base/clock.h"
#include "llm/attempts.h"

struct setup {
    struct arena *a;
    struct settings *settings;
    struct llm_accounts *accounts;
};

static void setup_close(struct setup *s)
{
    arena_free(s->a);
    llm_accounts_free(s->accounts);
    settings_free(s->settings);
}

static struct setup setup_open(const char *const *env, const char *const *flags, size_t n_flags)
{
    const struct settings_sources from = { .flags = flags, .n_flags = n_flags };
    struct setup s = { .a = arena_new() };
    struct err e = { 0 };

    if (settings_load(&from, &s.settings, &e) < 0)
        fail_msg("%s", e.text);
    assert_int_equal(llm_accounts_new(s.settings, env, &s.accounts, NULL), 0);
    return s;
}

static const char *names(struct setup *s)
{
    size_t n;
    struct llm_account_state **states = llm_accounts_list(s->accounts, s->a, &n);
    const char *all = "";

    for (size_t i = 0; i < n; i++)
        all = arena_printf(s->a, "%s%s ", all, states[i]->account.name);
    return all;
}

static void variables_of_the_field_make_accounts(void **state)
{
    static const char *const env[] = { "OPENAI_API_KEY=sk-1",
                                       "OPEN_AI_KEY=sk-2",
                                       "ANTHROPIC_API_KEY=",
                                       "AZURE_OPENAI_API_KEY=k",
                                       "GROQ_API_KEY=g",
                                       "OLLAMA_API_KEY=x",
                                       "LMSTUDIO_BASE_URL=http://127.0.0.1:9/",
                                       "MISTRAL_API_KEYS=x",
                                       "OPENAI_MODEL=gpt-x",
                                       NULL };
    AUTO(setup_close) struct setup s = setup_open(env, NULL, 0);
    struct llm_picks picks = { 0 };

    assert_string_equal(names(&s), "openai groq lmstudio ");
    assert_int_equal(llm_accounts_pick(s.accounts, s.a, "openai", &picks, NULL), 0);
    assert_string_equal(picks.states[0]->account.api_key, "sk-1");
    assert_string_equal(picks.states[0]->account.model, "gpt-x");
    assert_string_equal(picks.states[0]->account.base_url, "https://api.openai.com/v1");
    assert_int_equal(llm_accounts_pick(s.accounts, s.a, "lmstudio", &picks, NULL), 0);
    assert_string_equal(picks.states[0]->account.base_url, "http://127.0.0.1:9/v1");
}

static void addresses_are_completed_as_people_write_them(void **state)
{
    static const struct {
        const char *variable, *preset, *wanted;
    } cases[] = {
        { "OLLAMA_HOST=127.0.0.1:1234", "ollama", "http://127.0.0.1:1234" },
        { "OLLAMA_HOST=0.0.0.0", "ollama", "http://127.0.0.1:11434" },
        { "OLLAMA_HOST=0.0.0.0:5", "ollama", "http://127.0.0.1:5" },
        { "OLLAMA_HOST=box", "ollama", "http://box:11434" },
        { "OLLAMA_HOST=https://box/x", "ollama", "https://box/x" },
        { "LITELLM_BASE_URL=http://box:4000", "litellm", "http://box:4000" },
        { "DOCKER_MODEL_RUNNER_BASE_PATH=http://box:12434", "docker-model-runner", "http://box:12434/engines/v1" },
        { "LEMONADE_LLM_BASE_PATH=http://box/other", "lemonade", "http://box/other" },
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        const char *const env[] = { cases[i].variable, NULL };
        AUTO(setup_close) struct setup s = setup_open(env, NULL, 0);
        struct llm_picks picks = { 0 };

        assert_int_equal(llm_accounts_pick(s.accounts, s.a, cases[i].preset, &picks, NULL), 0);
        assert_string_equal(picks.states[0]->account.base_url, cases[i].wanted);
    }
}

static void a_request_without_a_provider_goes_to_the_default_and_its_fallbacks(void **state)
{
    static const char *const env[] = { "OPENAI_API_KEY=a", "GROQ_API_KEY=b", "XAI_API_KEY=c", NULL };
    static const char *const flags[] = { "llm.default_provider=groq", "llm.fallbacks=xai, nobody, groq, openai" };
    AUTO(setup_close) struct setup s = setup_open(env, flags, 2);
    struct llm_picks picks = { 0 };
    struct err e = { 0 };

    assert_string_equal(names(&s), "groq openai xai ");
    assert_int_equal(llm_accounts_pick(s.accounts, s.a, NULL, &picks, &e), 0);
    assert_int_equal(picks.n, 3);
    assert_string_equal(picks.states[0]->account.name, "groq");
    assert_string_equal(picks.states[1]->account.name, "xai");
    assert_string_equal(picks.states[2]->account.name, "openai");
    assert_int_equal(llm_accounts_pick(s.accounts, s.a, "xai", &picks, &e), 0);
    assert_int_equal(picks.n, 1);
    assert_int_equal(llm_accounts_pick(s.accounts, s.a, "nobody", &picks, &e), -EINVAL);
    assert_string_equal(e.code, "PROVIDER_UNAVAILABLE");
    assert_has(e.text, "openai, xai, groq");
}

static void with_nothing_configured_the_error_says_what_to_do(void **state)
{
    AUTO(setup_close) struct setup s = setup_open(NULL, NULL, 0);
    struct llm_picks picks = { 0 };
    struct err e = { 0 };

    assert_int_equal(llm_accounts_pick(s.accounts, s.a, NULL, &picks, &e), -ENODEV);
    assert_string_equal(e.code, "PROVIDER_UNAVAILABLE");
    assert_has(e.text, "OPENAI_API_KEY");
    assert_true(strstr(e.text, "hearth provider add") < strstr(e.text, "OPENAI_API_KEY"));
    assert_int_equal(llm_accounts_pick(s.accounts, s.a, "openai", &picks, &e), -ENODEV);
}

static void accounts_can_be_put_and_removed_while_they_are_in_use(void **state)
{
    AUTO(setup_close) struct setup s = setup_open(NULL, NULL, 0);
    struct llm_account account = { .name = "mine",
                                   .preset = llm_preset_find("generic-openai"),
                                   .base_url = "http://127.0.0.1:1/v1" };
    struct llm_picks picks = { 0 };
    struct err e = { 0 };

    assert_int_equal(llm_accounts_put(s.accounts, &account, &e), 0);
    assert_int_equal(llm_accounts_pick(s.accounts, s.a, "mine", &picks, &e), 0);
    account.base_url = "http://127.0.0.1:2/v1";
    assert_int_equal(llm_accounts_put(s.accounts, &account, &e), 0);
    assert_string_equal(picks.states[0]->account.base_url, "http://127.0.0.1:1/v1");
    assert_string_equal(names(&s), "mine ");
    assert_true(llm_accounts_remove(s.accounts, LLM_STORED, "mine"));
    assert_false(llm_accounts_remove(s.accounts, LLM_STORED, "mine"));
    account.base_url = NULL;
    assert_int_equal(llm_accounts_put(s.accounts, &account, &e), -EINVAL);
    assert_string_equal(e.code, "BAD_ACCOUNT");
    account.base_url = "nonsense";
    assert_int_equal(llm_accounts_put(s.accounts, &account, &e), -EINVAL);
    assert_string_equal(e.code, "BAD_URL");
}

static void put_named(struct setup *s, enum llm_source source, const char *name, const char *base_url)
{
    const struct llm_account account = {
        .source = source, .name = name, .preset = llm_preset_find("generic-openai"), .base_url = base_url
    };
    struct err e = { 0 };

    if (llm_accounts_put(s->accounts, &account, &e) < 0)
        fail_msg("%s", e.text);
}

static void of_equal_names_the_stored_account_counts_and_the_environments_shows_again(void **state)
{
    static const char *const env[] = { "OPENAI_API_KEY=a", "GENERIC_OPENAI_BASE_URL=http://127.0.0.1:1/v1", NULL };
    AUTO(setup_close) struct setup s = setup_open(env, NULL, 0);

    put_named(&s, LLM_RUN, "generic-openai", "http://127.0.0.1:3/v1");
    put_named(&s, LLM_RUN, "run", "http://127.0.0.1:3/v1");
    put_named(&s, LLM_STORED, "mine", "http://127.0.0.1:2/v1");
    put_named(&s, LLM_STORED, "generic-openai", "http://127.0.0.1:2/v1");
    assert_string_equal(names(&s), "mine generic-openai openai run ");
    assert_string_equal(llm_accounts_find(s.accounts, s.a, "generic-openai")->account.base_url,
                        "http://127.0.0.1:2/v1");
    assert_true(llm_accounts_remove(s.accounts, LLM_STORED, "generic-openai"));
    assert_string_equal(names(&s), "mine openai generic-openai run ");
    assert_string_equal(llm_accounts_find(s.accounts, s.a, "generic-openai")->account.base_url,
                        "http://127.0.0.1:1/v1");
    assert_false(llm_accounts_remove(s.accounts, LLM_STORED, "generic-openai"));
    assert_null(llm_accounts_find(s.accounts, s.a, "nobody"));
}

static void what_was_only_found_is_listed_while_nothing_else_chats(void **state)
{
    static const char *const env[] = { "VOYAGE_API_KEY=a", NULL };
    AUTO(setup_close) struct setup s = setup_open(env, NULL, 0);
    struct llm_picks picks = { 0 };

    put_named(&s, LLM_FOUND, "found", "http://127.0.0.1:3/v1");
    assert_string_equal(names(&s), "found voyageai ");
    put_named(&s, LLM_STORED, "mine", "http://127.0.0.1:2/v1");
    assert_string_equal(names(&s), "mine voyageai ");
    assert_int_equal(llm_accounts_pick(s.accounts, s.a, "found", &picks, NULL), 0); /* found by its name */
    assert_string_equal(picks.states[0]->account.base_url, "http://127.0.0.1:3/v1");
    assert_true(llm_accounts_remove(s.accounts, LLM_STORED, "mine"));
    assert_string_equal(names(&s), "found voyageai ");
}

static void who_only_embeds_is_asked_no_chats(void **state)
{
    static const char *const env[] = { "VOYAGE_API_KEY=a", NULL };
    static const char *const flags[] = { "llm.default_provider=voyageai", "llm.fallbacks=voyageai" };
    AUTO(setup_close) struct setup s = setup_open(env, flags, 2);
    struct llm_picks picks = { 0 };
    struct err e = { 0 };

    assert_int_equal(llm_accounts_pick(s.accounts, s.a, NULL, &picks, &e), -ENODEV);
    put_named(&s, LLM_FOUND, "found", "http://127.0.0.1:3/v1");
    assert_string_equal(names(&s), "found voyageai ");
    assert_int_equal(llm_accounts_pick(s.accounts, s.a, NULL, &picks, &e), 0);
    assert_int_equal(picks.n, 1);
    assert_int_equal(llm_accounts_pick(s.accounts, s.a, "voyageai", &picks, &e), -EINVAL);
    assert_string_equal(e.text, "The provider voyageai has no chats; those that have: found.");
}

static void variables_of_embeddings_are_of_the_provider_they_name(void **state)
{
    static const char *const env[] = { "EMBEDDING_ENGINE=localai", "EMBEDDING_BASE_PATH=http://127.0.0.1:9/v1",
                                       "EMBEDDING_MODEL_PREF=bge", "OPENAI_API_KEY=k", NULL };
    static const char *const both[] = { "EMBEDDING_ENGINE=ollama", "EMBEDDING_BASE_PATH=http://127.0.0.1:9",
                                        "OLLAMA_HOST=127.0.0.1:8", NULL };
    AUTO(setup_close) struct setup s = setup_open(env, NULL, 0), t = setup_open(both, NULL, 0);

    assert_string_equal(names(&s), "openai localai ");
    assert_null(llm_accounts_find(s.accounts, s.a, "openai")->account.embed_model);
    assert_string_equal(llm_accounts_find(s.accounts, s.a, "localai")->account.embed_model, "bge");
    assert_string_equal(llm_accounts_find(s.accounts, s.a, "localai")->account.base_url, "http://127.0.0.1:9/v1");
    assert_string_equal(llm_accounts_find(t.accounts, t.a, "ollama")->account.base_url, "http://127.0.0.1:8");
}

static void the_address_of_bedrock_follows_from_the_region(void **state)
{
    static const struct {
        const char *region, *wanted;
    } cases[] = {
        { "AWS_BEDROCK_LLM_REGION=eu-west-1", "https://bedrock-mantle.eu-west-1.api.aws/v1" },
        { "AWS_BEDROCK_LLM_REGION=evil.example/", NULL },
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        const char *const env[] = { "AWS_BEDROCK_LLM_API_KEY=k", cases[i].region, NULL }, *const no_key[] = {
            cases[i].region, NULL
        };
        AUTO(setup_close) struct setup s = setup_open(env, NULL, 0), without = setup_open(no_key, NULL, 0);
        struct llm_account_state *found = llm_accounts_find(s.accounts, s.a, "bedrock");

        assert_true(!found == !cases[i].wanted);
        if (found)
            assert_string_equal(found->account.base_url, cases[i].wanted);
        assert_string_equal(names(&without), "");
    }
}

static void the_own_model_stands_before_those_written_by_hand(void **state)
{
    static const char *const models[] = { "b", "a", "b" };
    AUTO(setup_close) struct setup s = setup_open(NULL, NULL, 0);
    const struct llm_account account = {
        .name = "cohere", .preset = llm_preset_find("cohere"), .api_key = "k", .models = models, .n_models = 3
    };
    struct llm_models found = { 0 };

    assert_int_equal(llm_accounts_put(s.accounts, &account, NULL), 0);
    assert_int_equal(
        llm_account_state_models(llm_accounts_find(s.accounts, s.a, "cohere"), s.settings, s.a, NULL, &found, NULL), 0);
    assert_int_equal(found.n, 3);
    assert_string_equal(found.items[0].id, "command-a-03-2025");
    assert_string_equal(found.items[1].id, "b");
    assert_string_equal(found.items[2].id, "a");
}

struct churn {
    struct setup *s;
    enum llm_source source;
};

static void *put_and_remove(void *arg)
{
    const struct churn *c = arg;

    for (int i = 0; i < 200; i++) {
        put_named(c->s, c->source, "shared", i % 2 ? "http://127.0.0.1:1/v1" : "http://127.0.0.1:2/v1");
        put_named(c->s, c->source, c->source == LLM_STORED ? "a" : "b", "http://127.0.0.1:1/v1");
        assert_true(llm_accounts_remove(c->s->accounts, c->source, "shared"));
    }
    return NULL;
}

static void the_list_holds_while_others_change_it(void **state)
{
    AUTO(setup_close) struct setup s = setup_open(NULL, NULL, 0);
    struct churn churns[] = { { &s, LLM_STORED }, { &s, LLM_FOUND } };
    pthread_t threads[2];

    put_named(&s, LLM_ENVIRONMENT, "shared", "http://127.0.0.1:3/v1");
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, put_and_remove, &churns[i]), 0);
    for (int i = 0; i < 200; i++) {
        AUTO(arena_freep) struct arena *a = arena_new();
        struct llm_account_state *found = llm_accounts_find(s.accounts, a, "shared");
        size_t n, n_shared = 0;
        struct llm_account_state **states = llm_accounts_list(s.accounts, a, &n);

        assert_non_null(found);
        assert_non_null(found->account.base_url);
        for (size_t k = 0; k < n; k++)
            n_shared += strcmp(states[k]->account.name, "shared") == 0;
        assert_int_equal(n_shared, 1);
    }
    for (size_t i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    assert_string_equal(names(&s), "a shared "); /* b was only discovered */
}

static void as_many_accounts_as_the_limit_says(void **state)
{
    AUTO(setup_close) struct setup s = setup_open(NULL, NULL, 0);
    struct err e = { 0 };

    for (int i = 0; i <= LIMIT_LLM_ACCOUNTS; i++) {
        const struct llm_account account = { .name = arena_printf(s.a, "a%d", i), .preset = llm_preset_find("ollama") };

        assert_int_equal(llm_accounts_put(s.accounts, &account, &e), i < LIMIT_LLM_ACCOUNTS ? 0 : -EDQUOT);
    }
    assert_string_equal(e.code, "TOO_MANY_ACCOUNTS");
}

static void only_the_exact_word_disables_streaming_of_the_generic_provider(void **state)
{
    static const struct {
        const char *variable;
        bool may_not;
    } cases[] = {
        { "GENERIC_LLM_STREAMING_DISABLED=true", true },
        { "GENERIC_OPENAI_STREAMING_DISABLED=true", true },
        { "GENERIC_LLM_STREAMING_DISABLED=1", false },
        { "GENERIC_LLM_STREAMING_DISABLED=TRUE", false },
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        const char *const env[] = { cases[i].variable, "GENERIC_OPENAI_BASE_URL=http://127.0.0.1:1/v1", "OLLAMA_HOST=x",
                                    NULL };
        AUTO(setup_close) struct setup s = setup_open(env, NULL, 0);
        struct llm_picks picks = { 0 };

        assert_int_equal(llm_accounts_pick(s.accounts, s.a, "generic-openai", &picks, NULL), 0);
        assert_int_equal(picks.states[0]->may_not_stream, cases[i].may_not);
        assert_int_equal(llm_accounts_pick(s.accounts, s.a, "ollama", &picks, NULL), 0);
        assert_false(picks.states[0]->may_not_stream);
    }
}

/* ---- attempts ---- */

static const char *const two[] = { "OPENAI_API_KEY=a", "GROQ_API_KEY=b", NULL };
static const char *const with_fallback[] = { "llm.fallbacks=groq", "llm.retries=1", "llm.retry_after_max_s=2" };

static void begin(struct setup *s, struct llm_attempts *t, int64_t total_ms)
{
    struct llm_plan *plan = ARENA_NEW(s->a, struct llm_plan);

    assert_int_equal(llm_accounts_pick(s->accounts, s->a, NULL, &plan->picks, NULL), 0);
    for (size_t i = 0; i < plan->picks.n; i++)
        plan->of[i].model = "m";
    llm_attempts_init(t, plan, s->settings, clock_mono_ms() + total_ms);
}

static void failures_are_tried_again_or_fall_back_as_far_as_that_may_help(void **state)
{
    static const struct {
        int r;
        int64_t retry_after_ms, wait_ms;
        int next;
    } cases[] = {
        { -ECONNREFUSED, 0, 200, 0 }, { -ECONNRESET, 0, 200, 0 }, { -EAGAIN, 0, 200, 0 },     { -EBUSY, 1500, 1500, 0 },
        { -EBUSY, 3000, 0, 1 },       { -ETIMEDOUT, 0, 0, 1 },    { -EHOSTUNREACH, 0, 0, 1 }, { -EIO, 0, 0, 1 },
        { -EINVAL, 0, -1, 0 },        { -ECANCELED, 0, -1, 0 },   { -EMSGSIZE, 0, -1, 0 },
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        AUTO(setup_close) struct setup s = setup_open(two, with_fallback, 3);
        struct llm_attempts t;

        begin(&s, &t, 60000);
        assert_int_equal(llm_attempts_next(&t, NULL), 0);
        assert_int_equal(llm_attempts_failed(&t, cases[i].r, "refused", cases[i].retry_after_ms), cases[i].wait_ms);
        if (cases[i].wait_ms >= 0)
            assert_int_equal(llm_attempts_next(&t, NULL), cases[i].next);
    }
}

static void attempts_end(void **state)
{
    AUTO(setup_close) struct setup s = setup_open(two, with_fallback, 3);
    struct llm_attempts t;
    int n = 0;

    begin(&s, &t, 60000);
    do {
        assert_true(llm_attempts_next(&t, NULL) >= 0);
        n++;
    } while (llm_attempts_failed(&t, -EAGAIN, "refused", 0) >= 0);
    assert_int_equal(n, 4); /* twice each */
    begin(&s, &t, 100);
    assert_int_equal(llm_attempts_next(&t, NULL), 0);
    assert_int_equal(llm_attempts_failed(&t, -EAGAIN, "refused", 0),
                     0); /* no time to wait, but the other account remains */
    assert_int_equal(llm_attempts_next(&t, NULL), 1);
    assert_int_equal(llm_attempts_failed(&t, -EAGAIN, "refused", 0), -1);
}

static void an_account_that_fails_again_and_again_rests(void **state)
{
    static const char *const one[] = { "OPENAI_API_KEY=a", NULL };
    AUTO(setup_close) struct setup s = setup_open(one, NULL, 0);
    struct llm_attempts t;
    struct llm_account_state *asked;
    struct err e = { 0 };

    begin(&s, &t, 60000);
    asked = t.plan->picks.states[0];
    for (int i = 0; i < 5; i++) {
        assert_true(llm_account_state_may_try(asked, "m"));
        llm_account_state_failed(asked, "m", LLM_FAULT_OF_ACCOUNT, 5);
    }
    assert_int_equal(llm_attempts_next(&t, &e), -EAGAIN);
    assert_string_equal(e.code, "PROVIDER_UNAVAILABLE");
    assert_string_equal(e.text, "openai has failed several times in a row and rests; try again in 15 seconds.");
    assert_in_range(e.retry_after_ms, 14001, 15000);
    assert_int_equal(llm_accounts_count_resting(s.accounts, LLM_FAULT_OF_ACCOUNT), 1);
    llm_account_state_succeeded(asked, "m");
    begin(&s, &t, 60000);
    assert_int_equal(llm_attempts_next(&t, &e), 0);
    for (int i = 0; i < 10; i++)
        llm_account_state_failed(asked, "m", LLM_FAULT_OF_ACCOUNT, 0);
    assert_true(llm_account_state_may_try(asked, "m"));
}

/* A failure after the connection was made concerns the model; a failure to connect concerns every model of the account.
 */
static void a_model_that_fails_again_and_again_rests_alone(void **state)
{
    static const struct {
        int r;
        enum llm_fault fault;
    } cases[] = {
        { -ECONNREFUSED, LLM_FAULT_OF_ACCOUNT },
        { -EHOSTUNREACH, LLM_FAULT_OF_ACCOUNT },
        { -EPROTO, LLM_FAULT_OF_ACCOUNT },
        { -ECONNRESET, LLM_FAULT_OF_MODEL },
        { -ETIMEDOUT, LLM_FAULT_OF_MODEL },
        { -EAGAIN, LLM_FAULT_OF_MODEL },
        { -EIO, LLM_NO_FAULT },
        { -EBUSY, LLM_NO_FAULT },
        { -EINVAL, LLM_NO_FAULT },
    };
    static const char *const one[] = { "OPENAI_API_KEY=a", NULL };
    static const char *const flags[] = { "llm.rest_after=1", "llm.retries=0" };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        AUTO(setup_close) struct setup s = setup_open(one, flags, 2);
        struct llm_attempts t;
        struct llm_account_state *asked;
        struct err e = { 0 };

        begin(&s, &t, 60000);
        asked = t.plan->picks.states[0];
        assert_int_equal(llm_attempts_next(&t, &e), 0);
        assert_int_equal(llm_attempts_failed(&t, cases[i].r, "refused", 0), -1);
        assert_int_equal(llm_fault_of(cases[i].r), cases[i].fault);
        assert_int_equal(llm_account_state_may_try(asked, "m"), cases[i].fault == LLM_NO_FAULT);
        assert_int_equal(llm_account_state_may_try(asked, "other"), cases[i].fault != LLM_FAULT_OF_ACCOUNT);
        assert_int_equal(llm_accounts_count_resting(s.accounts, LLM_FAULT_OF_MODEL),
                         cases[i].fault == LLM_FAULT_OF_MODEL);
        if (cases[i].fault != LLM_FAULT_OF_MODEL)
            continue;
        begin(&s, &t, 60000);
        assert_int_equal(llm_attempts_next(&t, &e), -EAGAIN);
        assert_string_equal(
            e.text, "The model m of openai has failed several times in a row and rests; try again in 15 seconds.");
        assert_string_equal(llm_account_state_resting_models(asked, s.a).items[0], "m");
        llm_account_state_succeeded(asked, "other");
        assert_false(llm_account_state_may_try(asked, "m"));
        llm_account_state_succeeded(asked, "m");
        assert_true(llm_account_state_may_try(asked, "m"));
    }
}

/* Names of models are foreign: a full table drops the oldest failure. */
static void as_many_models_rest_as_the_limit_says(void **state)
{
    struct breaker b = { 0 };
    char name[16];

    for (int i = 0; i <= LIMIT_LLM_BROKEN_MODELS; i++) {
        snprintf(name, sizeof(name), "m%d", i);
        breaker_failed(&b, name, LLM_FAULT_OF_MODEL, 1);
        b.models[b.n_models - 1].failed_ms += i;
        assert_false(breaker_may_try(&b, name));
        if (i < LIMIT_LLM_BROKEN_MODELS)
            assert_false(breaker_may_try(&b, "m0"));
    }
    assert_int_equal(b.n_models, LIMIT_LLM_BROKEN_MODELS);
    assert_true(breaker_may_try(&b, "m0"));
    assert_false(breaker_may_try(&b, "m1"));
    breaker_clear(&b);
}

static void retry_after_is_read_in_both_forms(void **state)
{
    static const struct {
        const char *value;
        int64_t least_ms, most_ms;
    } cases[] = {
        { "2", 2000, 2000 },
        { "0.5", 500, 500 },
        { "0", 0, 0 },
        { "-1", 0, 0 },
        { "soon", 0, 0 },
        { "99999999", 86400000, 86400000 },
        { "Fri, 31 Dec 1999 23:59:59 GMT", 0, 0 },
        { "Fri, 31 Dec 2100 23:59:59 GMT", 86400000, 86400000 },
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct http_call_header header = { "retry-after", cases[i].value };
        const struct http_answer answer = { .headers = &header, .n_headers = 1 };

        assert_in_range(llm_retry_after_ms(&answer), cases[i].least_ms, cases[i].most_ms);
    }
    assert_int_equal(llm_retry_after_ms(&(struct http_answer){ 0 }), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(variables_of_the_field_make_accounts),
        cmocka_unit_test(addresses_are_completed_as_people_write_them),
        cmocka_unit_test(a_request_without_a_provider_goes_to_the_default_and_its_fallbacks),
        cmocka_unit_test(with_nothing_configured_the_error_says_what_to_do),
        cmocka_unit_test(accounts_can_be_put_and_removed_while_they_are_in_use),
        cmocka_unit_test(of_equal_names_the_stored_account_counts_and_the_environments_shows_again),
        cmocka_unit_test(what_was_only_found_is_listed_while_nothing_else_chats),
        cmocka_unit_test(who_only_embeds_is_asked_no_chats),
        cmocka_unit_test(variables_of_embeddings_are_of_the_provider_they_name),
        cmocka_unit_test(the_address_of_bedrock_follows_from_the_region),
        cmocka_unit_test(the_own_model_stands_before_those_written_by_hand),
        cmocka_unit_test(the_list_holds_while_others_change_it),
        cmocka_unit_test(as_many_accounts_as_the_limit_says),
        cmocka_unit_test(only_the_exact_word_disables_streaming_of_the_generic_provider),
        cmocka_unit_test(failures_are_tried_again_or_fall_back_as_far_as_that_may_help),
        cmocka_unit_test(attempts_end),
        cmocka_unit_test(a_model_that_fails_again_and_again_rests_alone),
        cmocka_unit_test(as_many_models_rest_as_the_limit_says),
        cmocka_unit_test(an_account_that_fails_again_and_again_rests),
        cmocka_unit_test(retry_after_is_read_in_both_forms),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

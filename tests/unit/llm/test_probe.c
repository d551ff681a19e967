/* The answers that identify a model server, and the search for model servers. */
#include "../net/upstream.h"

#include "llm/local/finder.h"
#include "llm/llm.h"

/* ---- recognising ---- */

static bool knows(const char *preset, int status, const char *server, const char *body)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct http_call_header headers[] = { { "content-type", "application/json" }, { "server", server } };
    const struct http_answer answer = {
        .status = status, .body = slice_of(body), .headers = headers, .n_headers = server ? 2 : 1
    };

    for (size_t i = 0; i < LLM_N_PROBES; i++)
        if (strcmp(llm_probes[i].preset, preset) == 0)
            return llm_probe_knows(&llm_probes[i], &answer, a);
    fail_msg("no probe of %s", preset);
    return false;
}

static void servers_are_known_by_what_only_they_say(void **state)
{
    static const struct {
        const char *preset;
        int status;
        const char *server, *body;
        bool is_its;
    } cases[] = {
        { "ollama", 200, NULL, "{\"version\":\"0.12.3\"}", true },
        { "ollama", 200, NULL, "{\"version\":\"v1\"}", false },
        { "ollama", 200, NULL, "{\"version\":\"1.0\",\"name\":\"a shop\"}", false },
        { "ollama", 200, NULL, "{\"version\":3}", false },
        { "ollama", 404, NULL, "{\"version\":\"0.12.3\"}", false },
        { "ollama", 200, NULL, "<html>It works!</html>", false },
        { "ollama", 200, NULL, "", false },
        { "ollama", 200, NULL, "[]", false },
        { "lmstudio", 200, NULL,
          "{\"object\":\"list\",\"data\":[{\"id\":\"a\",\"object\":\"model\",\"type\":\"llm\",\"state\":\"not-loaded\"}]}",
          true },
        { "lmstudio", 200, NULL, "{\"object\":\"list\",\"data\":[{\"id\":\"a\",\"object\":\"model\"}]}", false },
        { "lmstudio", 200, NULL, "{\"object\":\"list\",\"data\":[]}", false },
        { "lmstudio", 200, NULL, "{\"error\":\"Unexpected endpoint or method. (GET /api/v0/models)\"}", false },
        { "llamacpp", 200, "llama.cpp", "{\"default_generation_settings\":{\"n_ctx\":4096},\"total_slots\":1}", true },
        { "llamacpp", 200, NULL, "{\"default_generation_settings\":{\"n_ctx\":4096},\"total_slots\":1}", false },
        { "llamacpp", 200, "nginx", "{\"default_generation_settings\":{}}", false },
        { "llamacpp", 401, "llama.cpp", "{\"error\":{\"code\":401,\"message\":\"Invalid API Key\"}}", false },
        { "llamacpp", 503, "llama.cpp", "{\"error\":{\"code\":503,\"message\":\"Loading model\"}}", false },
        { "localai", 200, NULL, "{\"backends\":[\"llama-cpp\"],\"loaded_models\":[]}", true },
        { "localai", 200, NULL, "{\"backends\":[\"llama-cpp\"],\"loaded_models\":null}", true },
        { "localai", 200, NULL, "{\"backends\":\"all\"}", false },
        { "kokoro", 200, NULL, "{\"voices\":[\"af_heart\"]}", true },
        { "kokoro", 200, NULL, "{\"voices\":[]}", false },
        { "kokoro", 200, NULL, "{\"voices\":{\"a\":1}}", false },
        { "piper", 200, NULL, "{\"de_DE-thorsten-low\":{\"audio\":{\"sample_rate\":16000}}}", true },
        { "piper", 200, NULL, "{\"de_DE-thorsten-low\":{}}", false },
        { "piper", 200, NULL, "{}", false },
        { "whispercpp", 200, "whisper.cpp", "{\"status\":\"ok\"}", true },
        { "whispercpp", 200, "llama.cpp", "{\"status\":\"ok\"}", false },
        { "whispercpp", 503, "whisper.cpp", "{\"status\":\"loading model\"}", false },
        { "localai", 404, "llama.cpp", "{\"error\":{\"code\":404,\"message\":\"File Not Found\"}}", false },
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        if (knows(cases[i].preset, cases[i].status, cases[i].server, cases[i].body) != cases[i].is_its)
            fail_msg("%s: %s", cases[i].preset, cases[i].body);
}

static void every_server_is_a_preset_that_needs_no_key(void **state)
{
    static const char *const others[] = { "lmstudio=4321", "ollama=11500", NULL };
    static const char *const none[] = { NULL };

    for (size_t i = 0; i < LLM_N_PROBES; i++) {
        const struct llm_preset *preset = llm_preset_find(llm_probes[i].preset);

        assert_non_null(preset);
        assert_false(preset->needs_key);
        assert_true((preset->can_chat && preset->can_embed) || llm_preset_is_for_speech(preset));
        assert_int_equal(llm_probe_port(&llm_probes[i], none), llm_probes[i].port);
    }
    assert_int_equal(llm_probe_port(&llm_probes[0], others), 11500);
    assert_int_equal(llm_probe_port(&llm_probes[1], others), 4321);
    assert_int_equal(llm_probe_port(&llm_probes[2], others), 8080);
}

/* ---- looking ---- */

struct scene {
    struct rig rig;
    atomic_int n_requested;
    struct settings *settings;
    struct llm_finder *finder;
};

static void answer(void *arg, struct http_exchange *x)
{
    struct scene *s = arg;

    atomic_fetch_add(&s->n_requested, 1);
    buf_add_str(&x->response.body, strcmp(x->request.path, "/api/version") == 0 ? "{\"version\":\"0.1\"}" : "{}");
    http_exchange_send(x);
}

/* more: settings with precedence over these, NULL-ended; or NULL. */
static void open_finder(struct scene *s, unsigned ollama, unsigned others, const char *const *more)
{
    const char *flags[4] = { "llm.find_local_wait_s=30" };
    struct settings_sources from = { .flags = flags, .n_flags = 2 };

    flags[1] =
        arena_printf(s->rig.a,
                     "llm.local_ports=ollama=%u,lmstudio=%u,llamacpp=%u,localai=%u,kokoro=%u,piper=%u,whispercpp=%u",
                     ollama, others, others, others, others, others, others);
    for (; more && *more; more++)
        flags[from.n_flags++] = *more;
    assert_int_equal(settings_load(&from, &s->settings, NULL), 0);
    assert_int_equal(llm_finder_new(s->settings, &s->finder, NULL), 0);
}

static void close_finder(struct scene *s)
{
    s->finder = llm_finder_free(s->finder);
    s->settings = settings_free(s->settings);
}

static void what_answers_is_found_and_remembered(void **state)
{
    struct scene s = { .n_requested = 0 };
    struct llm_found found;

    rig_open(&s.rig, answer, &s);
    open_finder(&s, s.rig.port, dead_port(), NULL);
    for (int i = 0; i < 3; i++) {
        llm_finder_look(s.finder, &found);
        assert_int_equal(found.ports[0], s.rig.port);
        for (size_t k = 1; k < LLM_N_PROBES; k++)
            assert_int_equal(found.ports[k], 0);
    }
    assert_int_equal(atomic_load(&s.n_requested), 1);
    close_finder(&s);
    rig_close(&s.rig);
}

static void any_other_web_server_is_not_taken_for_one(void **state)
{
    struct scene s = { .n_requested = 0 };
    struct llm_found found;

    rig_open(&s.rig, answer, &s);
    open_finder(&s, dead_port(), s.rig.port, (const char *const[]){ "llm.find_local_s=0", NULL });
    llm_finder_look(s.finder, &found);
    llm_finder_look(s.finder, &found);
    for (size_t k = 0; k < LLM_N_PROBES; k++)
        assert_int_equal(found.ports[k], 0);
    assert_int_equal(atomic_load(&s.n_requested), 2 * (LLM_N_PROBES - 1));
    close_finder(&s);
    rig_close(&s.rig);
}

static void *look(void *arg)
{
    struct scene *s = arg;
    struct llm_found found;

    llm_finder_look(s->finder, &found);
    return (void *)(uintptr_t)found.ports[0];
}

static void many_that_ask_at_once_share_one_look(void **state)
{
    enum { N_REQUESTING = 16 };
    struct scene s = { .n_requested = 0 };
    pthread_t threads[N_REQUESTING];

    rig_open(&s.rig, answer, &s);
    open_finder(&s, s.rig.port, dead_port(), NULL);
    for (int i = 0; i < N_REQUESTING; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, look, &s), 0);
    for (int i = 0; i < N_REQUESTING; i++) {
        void *port = NULL;

        pthread_join(threads[i], &port);
        assert_int_equal((uintptr_t)port, s.rig.port);
    }
    assert_int_equal(atomic_load(&s.n_requested), 1);
    close_finder(&s);
    rig_close(&s.rig);
}

/* A search that does not end is held up by the silent server. */
static bool finds_the_first(void *arg)
{
    struct scene *s = arg;
    struct llm_found found;

    llm_finder_look(s->finder, &found);
    assert_int_equal(found.ports[1], 0);
    return found.ports[0] == s->rig.port;
}

static void a_server_that_hangs_holds_nobody_up_beyond_the_limit(void **state)
{
    struct scene s = { .n_requested = 0 };
    struct raw_peer mute;

    rig_open(&s.rig, answer, &s);
    raw_open(&mute, "", RAW_HANG);
    open_finder(&s, s.rig.port, mute.port,
                (const char *const[]){ "llm.find_local_wait_s=0.1", "llm.find_local_s=0", NULL });
    assert_true(wait_until(finds_the_first, &s)); /* the other servers are found in spite of it */
    close_finder(&s);
    raw_close(&mute);
    rig_close(&s.rig);
}

static void nothing_is_asked_while_it_is_off(void **state)
{
    struct scene s = { .n_requested = 0 };
    struct llm_found found;

    rig_open(&s.rig, answer, &s);
    open_finder(&s, s.rig.port, s.rig.port, (const char *const[]){ "llm.find_local=false", NULL });
    llm_finder_look(s.finder, &found);
    assert_int_equal(found.ports[0], 0);
    assert_int_equal(atomic_load(&s.n_requested), 0);
    close_finder(&s);
    rig_close(&s.rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(servers_are_known_by_what_only_they_say),
        cmocka_unit_test(every_server_is_a_preset_that_needs_no_key),
        cmocka_unit_test(what_answers_is_found_and_remembered),
        cmocka_unit_test(any_other_web_server_is_not_taken_for_one),
        cmocka_unit_test(many_that_ask_at_once_share_one_look),
        cmocka_unit_test(a_server_that_hangs_holds_nobody_up_beyond_the_limit),
        cmocka_unit_test(nothing_is_asked_while_it_is_off),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

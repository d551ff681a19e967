/* What providers may take of this machine: requests at a time, bytes of an answer, languages of a list. Account checks
 * are called before anything is sent, and hold the requests of these tests. */
#include "speech/ears_services.h"
#include "speech/speech.h"

#include "../net/upstream.h"
#include "base/thread.h"

struct scene {
    struct speech *speech;
    struct ears *ears;
    struct settings *settings;
    atomic_size_t n_held;
    atomic_bool is_over;
    size_t n_languages;
    struct rig rig;
    size_t n_bytes; /* of an answer */
};

/* ---- the account ---- */

/* Every request waits here until the test is over, and then fails. */
static int hold(const void *arg, struct err *e)
{
    struct scene *s = (struct scene *)arg;
    const struct timespec pause = { .tv_nsec = 1000000 };

    atomic_fetch_add(&s->n_held, 1);
    while (!atomic_load(&s->is_over))
        nanosleep(&pause, NULL);
    return err_set(e, -EAGAIN, "PROVIDER_UNAVAILABLE", "It rests.");
}

static int allow(const void *arg, struct err *e)
{
    return 0;
}

static void note_nothing(const void *arg, int r)
{
}

static void blame_nobody(const void *arg, int r, struct err *e)
{
}

static int list_voices(const struct speech_account *acc, struct arena *a, struct speech_voice_list *ret, struct err *e)
{
    const struct scene *s = acc->arg;

    for (size_t i = 0; i < s->n_languages; i++)
        speech_voice_add(ret, a, slice_of(arena_printf(a, "voice%zu", i)), NULL, arena_printf(a, "x%zu", i));
    return 0;
}

static void say_nothing(const struct speech_account *acc, const struct speech_say *say, struct arena *a,
                        struct http_call_request *ret)
{
    *ret = (struct http_call_request){ .method = "POST", .url = acc->base_url };
}

static size_t list_accounts(void *arg, struct arena *a, const struct speech_account **ret)
{
    static const char *const none[] = { NULL };
    static const struct speech_protocol protocol = { .list = list_voices, .say = say_nothing };
    static const struct speech_service service = { .preset = "x", .protocol = &protocol, .models = none };
    const struct scene *s = arg;
    struct speech_account *account = arena_array(a, 1, sizeof(*account));

    *account = (struct speech_account){ .name = "box",
                                        .label = "Box",
                                        .service = &service,
                                        .ears = ears_service_of("openai"),
                                        .base_url = s->rig.port ? rig_url((struct rig *)&s->rig, "") : "http://x",
                                        .connect_ms = WAIT_MS,
                                        .total_ms = WAIT_MS,
                                        .check = s->rig.port ? allow : hold,
                                        .note = note_nothing,
                                        .blame = blame_nobody,
                                        .arg = s };
    *ret = account;
    return 1;
}

static int open_scene(void **state)
{
    struct scene *s = xcalloc(1, sizeof(*s));
    const struct settings_sources from = { .flags = NULL };
    const struct speech_accounts accounts = { list_accounts, s };

    assert_int_equal(settings_load(&from, &s->settings, NULL), 0);
    s->speech = speech_open(&(struct speech_config){ .settings = s->settings, .accounts = accounts });
    s->ears = ears_open(&(struct ears_config){ .settings = s->settings, .accounts = accounts });
    *state = s;
    return 0;
}

static int close_scene(void **state)
{
    struct scene *s = *state;

    speech_close(s->speech);
    ears_close(s->ears);
    settings_free(s->settings);
    rig_close(&s->rig);
    freep(&s);
    return 0;
}

/* ---- requests ---- */

static int say(struct scene *s, const atomic_bool *is_gone)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    const struct speech_request request = { .text = SLICE_LIT("Hello."),
                                            .provider = "box",
                                            .voice = "voice0",
                                            .speed = 1,
                                            .caller = "app:1",
                                            .is_gone = is_gone };
    struct speech_frame_done done;
    struct speech_plan plan;
    struct buf audio;
    int r = speech_plan(s->speech, &request, a, &plan, NULL);

    assert_int_equal(r, 0);
    buf_init(&audio, 4096);
    r = speech_say(s->speech, &plan, 0, &audio, &done, NULL);
    buf_clear(&audio);
    return r;
}

static int hear(struct scene *s, const atomic_bool *is_gone, struct err *e)
{
    const struct ears_request request = {
        .recording = SLICE_LIT("sound"), .provider = "box", .caller = "app:1", .is_gone = is_gone
    };
    struct hearing *h = NULL;
    int r = hearing_start(s->ears, &request, &h, e);

    hearing_end(h);
    return r;
}

static int hear_quietly(struct scene *s, const atomic_bool *is_gone)
{
    return hear(s, is_gone, NULL);
}

struct client {
    pthread_t thread;
    struct scene *scene;
    int (*ask)(struct scene *s, const atomic_bool *is_gone);
    int r;
};

static void *run(void *arg)
{
    struct client *c = arg;

    c->r = c->ask(c->scene, NULL);
    return NULL;
}

static bool are_all_held(void *scene)
{
    return atomic_load(&((struct scene *)scene)->n_held) == LIMIT_SPEECH_REMOTE;
}

/* Each of the first has a place; for one more there is none, so that a client that has left learns it at once. */
static void fill_the_places(struct scene *s, int (*ask)(struct scene *s, const atomic_bool *is_gone))
{
    const atomic_bool is_gone = true;
    struct client clients[LIMIT_SPEECH_REMOTE];

    for (size_t i = 0; i < ARRAY_SIZE(clients); i++) {
        clients[i] = (struct client){ .scene = s, .ask = ask };
        assert_int_equal(thread_start(&clients[i].thread, "client", run, &clients[i]), 0);
    }
    assert_true(wait_until(are_all_held, s));
    assert_int_equal(ask(s, &is_gone), -ECANCELED);
    assert_int_equal(atomic_load(&s->n_held), LIMIT_SPEECH_REMOTE);
    atomic_store(&s->is_over, true);
    for (size_t i = 0; i < ARRAY_SIZE(clients); i++) {
        pthread_join(clients[i].thread, NULL);
        assert_int_equal(clients[i].r, -EAGAIN);
    }
    assert_int_equal(ask(s, &is_gone), -EAGAIN); /* the places are free again */
}

static void eight_sentences_are_asked_for_at_a_time(void **state)
{
    struct scene *s = *state;

    s->n_languages = 1;
    fill_the_places(s, say);
}

static void eight_recordings_are_sent_at_a_time(void **state)
{
    fill_the_places(*state, hear_quietly);
}

/* ---- answers ---- */

static void languages_are_listed_up_to_their_limit(void **state)
{
    struct scene *s = *state;
    AUTO(arena_freep) struct arena *a = arena_new();
    const struct speech_provider *providers = NULL;
    size_t n;

    s->n_languages = LIMIT_SPEECH_LANGUAGES + 1;
    n = speech_providers(s->speech, NULL, a, &providers);
    assert_string_equal(providers[n - 1].id, "box");
    assert_int_equal(providers[n - 1].n_voices, LIMIT_SPEECH_LANGUAGES + 1);
    assert_int_equal(providers[n - 1].n_languages, LIMIT_SPEECH_LANGUAGES);
    assert_string_equal(providers[n - 1].languages[LIMIT_SPEECH_LANGUAGES - 1], "x255");
}

/* A short transcript, and blanks. */
static void answer_at_length(void *arg, struct http_exchange *x)
{
    const struct scene *s = arg;
    struct buf *body = &x->response.body;

    buf_add_str(body, "{\"text\":\"hello\"}");
    memset(buf_reserve(body, s->n_bytes - body->n), ' ', s->n_bytes - body->n);
    body->n = s->n_bytes;
    http_exchange_send(x);
}

static void a_transcript_comes_in_an_answer_of_limited_size(void **state)
{
    struct scene *s = *state;
    struct err e = { 0 };

    rig_open(&s->rig, answer_at_length, s);
    s->n_bytes = LIMIT_SPEECH_TRANSCRIPT_REPLY;
    assert_int_equal(hear(s, NULL, NULL), 0);
    s->n_bytes++;
    assert_int_equal(hear(s, NULL, &e), -EIO);
    assert_string_equal(e.code, "SPEECH_FAILED");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(eight_sentences_are_asked_for_at_a_time, open_scene, close_scene),
        cmocka_unit_test_setup_teardown(eight_recordings_are_sent_at_a_time, open_scene, close_scene),
        cmocka_unit_test_setup_teardown(languages_are_listed_up_to_their_limit, open_scene, close_scene),
        cmocka_unit_test_setup_teardown(a_transcript_comes_in_an_answer_of_limited_size, open_scene, close_scene),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The pool of workers with a worker of its own: this program, under another name, repeats what it is to speak. */
#include "speech/pool.h"

#include "../os/place.h"
#include "base/thread.h"

enum { N_CALLERS = 6, N_SENTENCES = 20, N_KEPT = 2 };

static const char worker_name[] = "fake-worker";

/* ---- the worker ---- */

static bool read_all(void *to, size_t n)
{
    for (size_t n_read = 0; n_read < n;) {
        ssize_t r = read(STDIN_FILENO, (char *)to + n_read, n - n_read);

        if (r <= 0)
            return false;
        n_read += (size_t)r;
    }
    return true;
}

static void send_frame(uint32_t kind, const void *bytes, size_t n)
{
    const struct speech_frame frame = { kind, (uint32_t)n };

    if (write(STDOUT_FILENO, &frame, sizeof(frame)) != sizeof(frame) || write(STDOUT_FILENO, bytes, n) != (ssize_t)n)
        _exit(1);
}

static void repeat(const char *bytes)
{
    struct speech_frame_say say;
    const char *text = bytes + sizeof(say);

    memcpy(&say, bytes, sizeof(say));
    text += say.n_voice;
    if (say.n_text == 3 && memcmp(text, "die", 3) == 0)
        _exit(3);
    send_frame(SPEECH_FRAME_AUDIO, text, say.n_text);
}

static int be_worker(void)
{
    const struct speech_frame_hello hello = { SPEECH_FRAMES_VERSION, "7.1" };
    const struct speech_frame_done done = { 16000, 1 };
    static char bytes[LIMIT_SPEECH_FRAME];
    struct speech_frame frame;

    send_frame(SPEECH_FRAME_HELLO, &hello, sizeof(hello));
    while (read_all(&frame, sizeof(frame)) && read_all(bytes, frame.n_bytes)) {
        if (frame.kind == SPEECH_FRAME_LIST)
            send_frame(SPEECH_FRAME_VOICES, "one\ntwo\n", 8);
        else
            repeat(bytes);
        send_frame(SPEECH_FRAME_DONE, &done, sizeof(done));
    }
    return 0;
}

/* ---- the tests ---- */

struct scene {
    struct place *place;
    struct speech_pool *pool;
    struct speech_engine engine;
    atomic_bool is_leaving;
};

static void open_scene(struct scene *s, struct place *p, size_t n_kept)
{
    char program[4096] = { 0 };

    *s = (struct scene){ .place = p, .engine = { .id = "fake", .program = worker_name, .packages = "none" } };
    assert_true(readlink("/proc/self/exe", program, sizeof(program) - 1) > 0);
    assert_int_equal(symlink(program, arena_printf(p->arena, "%s/%s", p->dir, worker_name)), 0);
    s->pool = speech_pool_new(&(struct speech_pool_config){ .engine = &s->engine,
                                                            .supervisor = p->supervisor,
                                                            .folder = p->dir,
                                                            .n_kept = n_kept,
                                                            .is_leaving = &s->is_leaving });
}

static int say(struct scene *s, const char *text, const char *caller, const atomic_bool *is_gone)
{
    const struct speech_worker_job job = { SPEECH_PCM, 1, "one", slice_of(text) };
    struct speech_frame_done done;
    struct buf audio;
    int r;

    buf_init(&audio, 4096);
    r = speech_pool_say(s->pool, &job, caller, is_gone, &audio, &done, NULL);
    if (r == 0 && !slice_eq_str(buf_slice(&audio), text))
        r = -EBADMSG;
    buf_clear(&audio);
    return r;
}

struct caller {
    struct scene *scene;
    pthread_t thread;
    size_t number;
    int worst; /* of its usual sentences */
    bool is_failed_right;
};

/* Every caller has its own sentences, one that ends the worker, and one that is no longer wanted. */
static void *speak(void *arg)
{
    struct caller *c = arg;
    const atomic_bool is_gone = true;
    char name[32], text[64];

    snprintf(name, sizeof(name), "caller %zu", c->number);
    c->is_failed_right = true;
    for (size_t i = 0; i < N_SENTENCES; i++) {
        snprintf(text, sizeof(text), "sentence %zu of %zu", i, c->number);
        c->worst = MIN(c->worst, say(c->scene, text, name, NULL));
        if (i % 7 == c->number)
            c->is_failed_right = c->is_failed_right && say(c->scene, "die", name, NULL) == -EIO;
        if (i % 5 == c->number)
            c->is_failed_right = c->is_failed_right && say(c->scene, "for nobody", name, &is_gone) == -ECANCELED;
    }
    return NULL;
}

static bool has_no_children(void *place)
{
    return supervisor_n_children(((struct place *)place)->supervisor) == 0;
}

static void a_worker_that_dies_or_is_not_wanted_fails_its_own_sentence_only(void **state)
{
    static struct caller callers[N_CALLERS];
    struct scene s;

    open_scene(&s, *state, N_KEPT);
    for (size_t i = 0; i < N_CALLERS; i++) {
        callers[i] = (struct caller){ .scene = &s, .number = i };
        assert_int_equal(thread_start(&callers[i].thread, "caller", speak, &callers[i]), 0);
    }
    for (size_t i = 0; i < N_CALLERS; i++)
        pthread_join(callers[i].thread, NULL);
    for (size_t i = 0; i < N_CALLERS; i++) {
        assert_int_equal(callers[i].worst, 0);
        assert_true(callers[i].is_failed_right);
    }
    speech_pool_free(s.pool);
    assert_true(wait_until(has_no_children, s.place));
}

static bool has_one_child(void *place)
{
    return supervisor_n_children(((struct place *)place)->supervisor) == 1;
}

static void idle_workers_end_and_others_come(void **state)
{
    char version[SPEECH_VERSION_SIZE];
    struct speech_voices voices;
    struct scene s;

    open_scene(&s, *state, 1);
    speech_pool_version(s.pool, version);
    assert_string_equal(version, "");
    assert_int_equal(speech_pool_voices(s.pool, NULL, s.place->arena, &voices, NULL), 0);
    assert_int_equal(voices.n, 2);
    speech_pool_version(s.pool, version);
    assert_string_equal(version, "7.1");
    speech_pool_end_idle(s.pool, 0);
    assert_true(wait_until(has_one_child, s.place));
    speech_pool_end_idle(s.pool, INT64_MAX);
    assert_true(wait_until(has_no_children, s.place));
    assert_int_equal(say(&s, "again", "", NULL), 0);
    assert_true(wait_until(has_one_child, s.place));
    speech_pool_free(s.pool);
    assert_true(wait_until(has_no_children, s.place));
}

static void none_stays_when_none_is_to_be_kept(void **state)
{
    struct scene s;

    open_scene(&s, *state, 0);
    assert_int_equal(say(&s, "once", "", NULL), 0);
    assert_true(wait_until(has_no_children, s.place));
    atomic_store(&s.is_leaving, true);
    assert_int_equal(say(&s, "no more", "", NULL), -ECANCELED);
    speech_pool_free(s.pool);
}

int main(int n_args, char **args)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_worker_that_dies_or_is_not_wanted_fails_its_own_sentence_only, place_set_up,
                                        place_tear_down),
        cmocka_unit_test_setup_teardown(idle_workers_end_and_others_come, place_set_up, place_tear_down),
        cmocka_unit_test_setup_teardown(none_stays_when_none_is_to_be_kept, place_set_up, place_tear_down),
    };
    const char *slash = strrchr(args[0], '/');

    if (slash && strcmp(slash + 1, worker_name) == 0)
        return be_worker();
    return cmocka_run_group_tests(tests, NULL, NULL);
}

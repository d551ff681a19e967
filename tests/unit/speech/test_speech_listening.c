/* Sound that comes faster than the engine hears it. The worker is this program under another name: it reads how the
 * listening starts, and no sound. */
#include "speech/listening.h"

#include "../os/place.h"
#include "base/thread.h"
#include "speech/ears_frames.h"

#include <string.h>
#include <sys/eventfd.h>

static const char worker_name[] = "hearth-speech-ears";

/* ---- the worker ---- */

static void send_frame(uint32_t kind, const void *bytes, size_t n)
{
    const struct speech_frame frame = { kind, (uint32_t)n };

    if (write(STDOUT_FILENO, &frame, sizeof(frame)) != sizeof(frame) || write(STDOUT_FILENO, bytes, n) != (ssize_t)n)
        _exit(1);
}

static int be_worker(void)
{
    const struct speech_frame_hello hello = { SPEECH_FRAMES_VERSION, "deaf" };
    const struct ears_frame_opened opened = { EARS_RATE, 1 };
    char start[sizeof(struct speech_frame) + sizeof(struct ears_frame_start)];

    send_frame(SPEECH_FRAME_HELLO, &hello, sizeof(hello));
    if (read(STDIN_FILENO, start, sizeof(start)) != sizeof(start))
        return 1;
    send_frame(EARS_FRAME_OPENED, &opened, sizeof(opened));
    pause(); /* until the service kills it */
    return 0;
}

/* ---- the source ---- */

/* Four times as much as may wait; then its end. */
struct torrent {
    int fd;
    atomic_size_t n_taken;
};

static int begin_sound(void *arg, const struct net_wait *wait, struct err *e)
{
    return 0;
}

static void end_sound(void *arg)
{
}

static int fd_of(void *arg)
{
    return ((struct torrent *)arg)->fd;
}

static int take(void *arg, struct slice *ret, struct err *e)
{
    static const char sound[LIMIT_SPEECH_SESSION_FRAME];
    struct torrent *t = arg;

    if (atomic_load(&t->n_taken) >= 4 * LIMIT_SPEECH_UNHEARD)
        return SOUND_END;
    atomic_fetch_add(&t->n_taken, sizeof(sound));
    *ret = (struct slice){ sound, sizeof(sound) };
    return SOUND_SAMPLES;
}

static bool is_full(void *torrent)
{
    return atomic_load(&((struct torrent *)torrent)->n_taken) >= LIMIT_SPEECH_UNHEARD;
}

/* ---- the listening ---- */

struct scene {
    struct settings *settings;
    struct ears *ears;
    struct listening *l;
    pthread_t thread;
    int r;
};

static void *listen_on(void *arg)
{
    struct scene *s = arg;

    do
        s->r = listening_next(s->l, NULL);
    while (s->r == 1);
    return NULL;
}

static void open_ears(struct scene *s, struct place *p)
{
    const char *const flags[] = { arena_printf(p->arena, "speech.folder=%s", p->dir) };
    const struct settings_sources from = { .flags = flags, .n_flags = 1 };
    char program[4096] = { 0 };

    assert_int_equal(settings_load(&from, &s->settings, NULL), 0);
    assert_true(readlink("/proc/self/exe", program, sizeof(program) - 1) > 0);
    assert_int_equal(symlink(program, arena_printf(p->arena, "%s/%s", p->dir, worker_name)), 0);
    s->ears =
        ears_open(&(struct ears_config){ .supervisor = p->supervisor, .settings = s->settings, .data_dir = p->dir });
}

static void close_ears(struct scene *s)
{
    listening_end(s->l);
    ears_close(s->ears);
    settings_free(s->settings);
}

static void sound_that_nobody_hears_is_taken_up_to_its_limit(void **state)
{
    struct place *p = *state;
    struct torrent torrent = { .fd = eventfd(1, EFD_CLOEXEC) };
    atomic_bool is_gone = false;
    const struct listening_request request = { .ears = { .caller = "app:1", .is_gone = &is_gone },
                                               .source = { begin_sound, take, fd_of, end_sound, &torrent },
                                               .rate = EARS_RATE,
                                               .max_ms = LIMIT_SPEECH_SESSION_MS,
                                               .wall_ms = LIMIT_SPEECH_SESSION_WALL_MS };
    struct scene s = { .l = NULL };

    open_ears(&s, p);
    assert_int_equal(listening_start(s.ears, &request, &s.l, NULL), 0);
    assert_int_equal(thread_start(&s.thread, "listening", listen_on, &s), 0);
    assert_true(wait_until(is_full, &torrent));
    atomic_store(&is_gone, true);
    pthread_join(s.thread, NULL);
    assert_int_equal(s.r, -ECANCELED);
    assert_true(torrent.n_taken <= LIMIT_SPEECH_UNHEARD + 2 * LIMIT_SPEECH_SESSION_FRAME); /* a pipe has one of them */
    close_ears(&s);
    close(torrent.fd);
}

int main(int n_args, char **args)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(sound_that_nobody_hears_is_taken_up_to_its_limit, place_set_up,
                                        place_tear_down),
    };
    const char *slash = strrchr(args[0], '/');

    if (slash && strcmp(slash + 1, worker_name) == 0)
        return be_worker();
    return cmocka_run_group_tests(tests, NULL, NULL);
}

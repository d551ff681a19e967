#include "base/limits.h"
#include "speech/sound_queue.h"

#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static size_t n_rooms;

static void note_room(void *arg)
{
    n_rooms++;
}

static bool is_readable(int fd)
{
    struct pollfd waited = { .fd = fd, .events = POLLIN };

    return poll(&waited, 1, 0) == 1;
}

static void sound_comes_in_order_and_then_its_end(void **state)
{
    struct sound_queue q;
    struct sound_source source;
    struct slice got;

    assert_int_equal(sound_queue_init(&q, note_room, NULL, NULL), 0);
    source = sound_queue_source(&q);
    assert_int_equal(source.open(source.arg, NULL, NULL), 0);
    assert_int_equal(source.take(source.arg, &got, NULL), SOUND_NONE);
    assert_false(is_readable(source.fd(source.arg)));
    assert_true(sound_queue_add(&q, SLICE_LIT("ab")));
    assert_true(sound_queue_add(&q, SLICE_LIT("cd")));
    sound_queue_end(&q);
    assert_true(is_readable(source.fd(source.arg)));
    assert_int_equal(source.take(source.arg, &got, NULL), SOUND_SAMPLES);
    assert_true(got.n == 4 && memcmp(got.p, "abcd", 4) == 0);
    assert_int_equal(source.take(source.arg, &got, NULL), SOUND_END);
    source.close(source.arg);
    sound_queue_clear(&q);
}

static void a_full_queue_says_so_and_has_room_when_it_is_taken(void **state)
{
    static char frame[LIMIT_SPEECH_SESSION_FRAME];
    struct sound_queue q;
    struct sound_source source;
    struct slice got;
    size_t n = 1;

    n_rooms = 0;
    assert_int_equal(sound_queue_init(&q, note_room, NULL, NULL), 0);
    source = sound_queue_source(&q);
    while (sound_queue_add(&q, (struct slice){ frame, sizeof(frame) }))
        n++;
    assert_int_equal(n, LIMIT_SPEECH_SESSION_WAITING / LIMIT_SPEECH_SESSION_FRAME);
    assert_int_equal(n_rooms, 0);
    assert_int_equal(source.take(source.arg, &got, NULL), SOUND_SAMPLES);
    assert_int_equal(got.n, n * sizeof(frame));
    assert_int_equal(n_rooms, 1);
    assert_true(sound_queue_add(&q, (struct slice){ frame, 2 }));
    sound_queue_clear(&q);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sound_comes_in_order_and_then_its_end),
        cmocka_unit_test(a_full_queue_says_so_and_has_room_when_it_is_taken),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

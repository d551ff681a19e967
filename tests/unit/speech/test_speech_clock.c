/* What the clock ends: sessions that nobody opens, and sound that comes too slowly. The clock of this program stands
 * still, and the tests move it (tests/unit/meson.build). */
#include "base/clock.h"
#include "base/hash.h"
#include "base/limits.h"
#include "speech/ears_services.h"
#include "speech/sessions.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>
#include <sys/eventfd.h>
#include <unistd.h>

int64_t __wrap_clock_mono_ms(void);

static int64_t now_ms = 1000000;

int64_t __wrap_clock_mono_ms(void)
{
    return now_ms;
}

/* ---- sessions ---- */

static int add(struct speech_sessions *s, const char *caller, struct speech_ticket *ret)
{
    return speech_sessions_add(s, &(struct speech_session){ .caller = caller, .rate = 16000 }, ret, NULL);
}

static void a_session_is_opened_within_a_minute(void **state)
{
    struct speech_sessions *s = speech_sessions_new();
    AUTO(arena_freep) struct arena *a = arena_new();
    struct speech_session wanted;
    struct speech_ticket in_time, late;

    assert_int_equal(add(s, "app:1", &in_time), 0);
    assert_int_equal(add(s, "app:1", &late), 0);
    now_ms += LIMIT_SPEECH_SESSION_OPEN_MS - 1;
    assert_int_equal(speech_sessions_open(s, in_time.id, in_time.token, a, &wanted, NULL), 0);
    assert_true(speech_sessions_has(s, late.id, late.token));
    now_ms++;
    assert_false(speech_sessions_has(s, late.id, late.token));
    assert_int_equal(speech_sessions_open(s, late.id, late.token, a, &wanted, NULL), -ENOENT);
    speech_sessions_free(s);
}

static void a_session_that_nobody_opens_gives_its_place_back(void **state)
{
    struct speech_sessions *s = speech_sessions_new();
    AUTO(arena_freep) struct arena *a = arena_new();
    struct speech_ticket open, ticket;
    struct speech_session wanted;

    assert_int_equal(add(s, "app:1", &open), 0);
    assert_int_equal(speech_sessions_open(s, open.id, open.token, a, &wanted, NULL), 0);
    for (size_t i = 1; i < LIMIT_SPEECH_SESSIONS; i++)
        assert_int_equal(add(s, (const char *const[]){ "app:2", "app:3" }[i % 2], &ticket), 0);
    now_ms += LIMIT_SPEECH_SESSION_OPEN_MS - 1;
    assert_int_equal(add(s, "app:4", &ticket), -EBUSY);
    now_ms++;
    for (size_t i = 1; i < LIMIT_SPEECH_SESSIONS; i++)
        assert_int_equal(add(s, (const char *const[]){ "app:4", "app:5" }[i % 2], &ticket), 0);
    assert_int_equal(add(s, "app:6", &ticket), -EBUSY); /* the session that is open keeps its place */
    speech_sessions_free(s);
}

/* ---- sound ---- */

/* A client that sends one sample whenever step_ms have passed. Its engine is a provider that is never asked. */
struct dripper {
    int fd;
    int64_t step_ms;
    size_t n_sent;
    bool is_due;
};

static int begin_drips(void *arg, const struct net_wait *wait, struct err *e)
{
    return 0;
}

static void end_drips(void *arg)
{
}

/* Called before each wait. */
static int await_drip(void *arg)
{
    struct dripper *d = arg;

    now_ms += d->step_ms;
    d->is_due = true;
    return d->fd;
}

static int take_drip(void *arg, struct slice *ret, struct err *e)
{
    struct dripper *d = arg;
    const bool is_due = d->is_due;

    d->is_due = false;
    d->n_sent += is_due;
    *ret = SLICE_LIT("\1\1");
    return is_due ? SOUND_SAMPLES : SOUND_NONE;
}

static int refuse_to_be_asked(const void *arg, struct err *e)
{
    return err_set(e, -EAGAIN, "PROVIDER_UNAVAILABLE", "It rests.");
}

static size_t list_accounts(void *arg, struct arena *a, const struct speech_account **ret)
{
    struct speech_account *account = arena_array(a, 1, sizeof(*account));

    *account = (struct speech_account){ .name = "box", .base_url = "http://x", .check = refuse_to_be_asked };
    account->ears = ears_service_of("openai");
    *ret = account;
    return 1;
}

/* Returns how many samples came before the sound ended. */
static size_t hear_drips(int64_t step_ms)
{
    struct dripper d = { .fd = eventfd(1, EFD_CLOEXEC), .step_ms = step_ms };
    const struct sound_source source = { begin_drips, take_drip, await_drip, end_drips, &d };
    const struct speech_session session = { .caller = "app:1", .provider = "box", .rate = 16000 };
    const struct listening_request request = speech_session_request(&session, source, NULL);
    struct ears *ears = ears_open(&(struct ears_config){ .accounts = { list_accounts, NULL } });
    struct listening *l = NULL;
    int r;

    assert_int_equal(listening_start(ears, &request, &l, NULL), 0);
    r = listening_next(l, NULL);
    assert_true(r == 0 || r == -EAGAIN);
    assert_true(listening_duration(l) == (double)d.n_sent / 16000);
    listening_end(l);
    ears_close(ears);
    close(d.fd);
    return d.n_sent;
}

static void a_session_of_few_samples_lasts_twenty_minutes(void **state)
{
    const int64_t step_ms = LIMIT_SPEECH_SESSION_WALL_MS / 150; /* is less than the quiet time */

    assert_int_equal(hear_drips(step_ms), 149);
    assert_int_equal(hear_drips(step_ms - 1), 150);
}

static void a_session_without_a_message_for_ten_seconds_ends(void **state)
{
    assert_true(hear_drips(LIMIT_SPEECH_SESSION_QUIET_MS - 1) > 1);
    assert_int_equal(hear_drips(LIMIT_SPEECH_SESSION_QUIET_MS), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_session_is_opened_within_a_minute),
        cmocka_unit_test(a_session_that_nobody_opens_gives_its_place_back),
        cmocka_unit_test(a_session_of_few_samples_lasts_twenty_minutes),
        cmocka_unit_test(a_session_without_a_message_for_ten_seconds_ends),
    };

    return hash_init(NULL) < 0 ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}

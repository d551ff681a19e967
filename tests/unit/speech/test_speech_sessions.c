#include "base/hash.h"
#include "base/limits.h"
#include "speech/sessions.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static struct speech_sessions *sessions;

static int setup(void **state)
{
    sessions = speech_sessions_new();
    return 0;
}

static int teardown(void **state)
{
    sessions = speech_sessions_free(sessions);
    return 0;
}

static int add(const char *caller, struct speech_ticket *ret)
{
    const struct speech_session wanted = { .caller = caller, .phrases = "yes, no", .rate = 48000, .guesses = true };

    return speech_sessions_add(sessions, &wanted, ret, NULL);
}

static int open_with(const struct speech_ticket *ticket, const char *token)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct speech_session wanted;

    return speech_sessions_open(sessions, ticket->id, token, a, &wanted, NULL);
}

static void a_session_is_opened_once_by_its_token(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct speech_ticket ticket;
    struct speech_session wanted;

    assert_int_equal(add("app:1", &ticket), 0);
    assert_int_equal(strlen(ticket.token), 43);
    assert_int_equal(open_with(&ticket, ""), -ENOENT);
    assert_int_equal(open_with(&ticket, ticket.token + 1), -ENOENT);
    assert_false(speech_sessions_has(sessions, ticket.id, "x"));
    assert_true(speech_sessions_has(sessions, ticket.id, ticket.token));
    assert_int_equal(speech_sessions_open(sessions, ticket.id, ticket.token, a, &wanted, NULL), 0);
    assert_string_equal(wanted.caller, "app:1");
    assert_string_equal(wanted.phrases, "yes, no");
    assert_null(wanted.model);
    assert_true(wanted.rate == 48000 && wanted.guesses);
    assert_int_equal(open_with(&ticket, ticket.token), -ENOENT);
    speech_sessions_remove(sessions, ticket.id);
    assert_false(speech_sessions_has(sessions, ticket.id, ticket.token));
    speech_sessions_remove(sessions, "nobody's");
}

static void places_are_bounded_for_one_caller_and_for_all(void **state)
{
    const char *const callers[] = { "app:1", "app:2", "app:3" };
    struct speech_ticket tickets[LIMIT_SPEECH_SESSIONS], more;

    for (size_t i = 0; i < LIMIT_SPEECH_SESSIONS; i++) {
        assert_int_equal(add(callers[i / LIMIT_SPEECH_SESSIONS_OF_CALLER], &tickets[i]), 0);
        assert_int_equal(open_with(&tickets[i], tickets[i].token), 0);
    }
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(add(callers[i], &more), -EBUSY);
    speech_sessions_remove(sessions, tickets[0].id);
    assert_int_equal(add(callers[1], &more), -EBUSY); /* has as many as it may */
    assert_int_equal(add(callers[2], &more), 0);
}

static void a_caller_at_its_limit_loses_its_oldest_that_is_not_open(void **state)
{
    struct speech_ticket tickets[LIMIT_SPEECH_SESSIONS_OF_CALLER + 1], other;

    assert_int_equal(add("app:2", &other), 0);
    for (size_t i = 0; i < ARRAY_SIZE(tickets); i++)
        assert_int_equal(add("app:1", &tickets[i]), 0);
    assert_false(speech_sessions_has(sessions, tickets[0].id, tickets[0].token));
    for (size_t i = 1; i < ARRAY_SIZE(tickets); i++)
        assert_true(speech_sessions_has(sessions, tickets[i].id, tickets[i].token));
    assert_true(speech_sessions_has(sessions, other.id, other.token));
}

static void only_the_end_is_the_end(void **state)
{
    static const char *const others[] = {
        "", "end", "{}", "[]", "{\"type\":1}", "{\"type\":\"End\"}", "{\"type\":\"end\""
    };
    char large[LIMIT_SPEECH_SESSION_MESSAGE + 1];

    assert_true(speech_session_is_end(SLICE_LIT("{\"type\": \"end\"}")));
    for (size_t i = 0; i < ARRAY_SIZE(others); i++)
        assert_false(speech_session_is_end(slice_of(others[i])));
    memset(large, ' ', sizeof(large));
    memcpy(large, "{\"type\":\"end\"}", 14);
    assert_true(speech_session_is_end((struct slice){ large, sizeof(large) - 1 }));
    assert_false(speech_session_is_end((struct slice){ large, sizeof(large) }));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_session_is_opened_once_by_its_token, setup, teardown),
        cmocka_unit_test_setup_teardown(places_are_bounded_for_one_caller_and_for_all, setup, teardown),
        cmocka_unit_test_setup_teardown(a_caller_at_its_limit_loses_its_oldest_that_is_not_open, setup, teardown),
        cmocka_unit_test(only_the_end_is_the_end),
    };

    return hash_init(NULL) < 0 ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}

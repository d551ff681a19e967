/* The peer of a connection that was half closed, reset or closed before the peer was looked up. */
#include "identity/peers.h"

#include "fixture.h"

#include <arpa/inet.h>
#include <sys/resource.h>
#include <sys/socket.h>

struct end {
    int client, accepted;
    union http_address remote;
    struct http_peer *peer;
};

static int listen_anywhere(union http_address *ret_at)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    socklen_t n = sizeof(*ret_at);

    *ret_at = (union http_address){ .in = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } } };
    assert_int_equal(bind(fd, &ret_at->any, sizeof(ret_at->in)), 0);
    assert_int_equal(listen(fd, 4), 0);
    assert_int_equal(getsockname(fd, &ret_at->any, &n), 0);
    return fd;
}

/* Connects from the port of `from`; 0 for any port. */
static struct end end_open(int listener, const union http_address *at, union http_address from)
{
    struct end end = { .client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0) };
    socklen_t n = sizeof(end.remote);
    int one = 1;

    assert_int_equal(setsockopt(end.client, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)), 0);
    assert_int_equal(bind(end.client, &from.any, sizeof(from.in)), 0);
    assert_int_equal(connect(end.client, &at->any, sizeof(at->in)), 0);
    end.accepted = accept4(listener, &end.remote.any, &n, SOCK_CLOEXEC);
    assert_true(end.accepted >= 0);
    end.peer = http_peer_new(at, &end.remote, 0, end.accepted);
    return end;
}

static void end_close(struct end *end)
{
    http_peer_leave(end->peer);
    close(end->accepted);
    if (end->client >= 0)
        close(end->client);
    http_peer_unref(end->peer);
}

static void reset(struct end *end)
{
    const struct linger at_once = { .l_onoff = 1 };

    assert_int_equal(setsockopt(end->client, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once)), 0);
    close(end->client);
    end->client = -1;
}

static int check(const struct fixture *f, const struct end *end)
{
    struct err e = { 0 };
    int r = peers_check(f->id, end->peer, &(struct launch_what){ .app_id = APP }, false, &e);

    if (r < 0)
        assert_string_equal(e.code, "PEER_NOT_ALLOWED");
    return r;
}

static union http_address any_port(void)
{
    return (union http_address){ .in = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } } };
}

static void a_program_of_this_user_is_known_also_with_its_side_closed(void **state)
{
    AUTO(fixture_close) struct fixture f = fixture_open();
    union http_address at;
    int listener = listen_anywhere(&at);
    struct end whole = end_open(listener, &at, any_port()), half = end_open(listener, &at, any_port());

    assert_int_equal(shutdown(half.client, SHUT_WR), 0);
    assert_int_equal(check(&f, &whole), 0);
    assert_int_equal(check(&f, &half), 0);
    end_close(&whole);
    end_close(&half);
    close(listener);
}

static void who_takes_the_port_of_a_connection_that_was_reset_is_not_its_peer(void **state)
{
    AUTO(fixture_close) struct fixture f = fixture_open();
    union http_address at;
    int listener = listen_anywhere(&at);
    struct end stranger = end_open(listener, &at, any_port()), person;

    reset(&stranger);
    person = end_open(listener, &at, stranger.remote);
    assert_int_equal(person.remote.in.sin_port, stranger.remote.in.sin_port);
    assert_int_equal(check(&f, &stranger), -EPERM);
    assert_false(peers_may_be_admin(f.id, stranger.peer));
    assert_int_equal(check(&f, &person), 0);
    end_close(&stranger);
    end_close(&person);
    close(listener);
}

/* The kernel is asked through a socket, which cannot be made at first. */
static void without_descriptors_a_caller_is_neither_known_nor_refused_for_good(void **state)
{
    AUTO(fixture_close) struct fixture f = fixture_open();
    union http_address at;
    int listener = listen_anywhere(&at);
    struct end end = end_open(listener, &at, any_port());
    struct rlimit usual, none;
    struct err e = { 0 };
    int r;

    assert_int_equal(getrlimit(RLIMIT_NOFILE, &usual), 0);
    none = (struct rlimit){ 0, usual.rlim_max };
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    r = peers_check(f.id, end.peer, &(struct launch_what){ .app_id = APP }, false, &e);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &usual), 0);
    assert_int_equal(r, -EMFILE);
    assert_string_equal(e.code, "TOO_FEW_FILES");
    assert_int_equal(check(&f, &end), 0);
    end_close(&end);
    close(listener);
}

static void a_connection_that_is_closed_here_has_no_peer(void **state)
{
    AUTO(fixture_close) struct fixture f = fixture_open();
    union http_address at;
    int listener = listen_anywhere(&at);
    struct end end = end_open(listener, &at, any_port());

    http_peer_leave(end.peer);
    assert_int_equal(check(&f, &end), -EPERM);
    end_close(&end);
    close(listener);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_program_of_this_user_is_known_also_with_its_side_closed),
        cmocka_unit_test(who_takes_the_port_of_a_connection_that_was_reset_is_not_its_peer),
        cmocka_unit_test(without_descriptors_a_caller_is_neither_known_nor_refused_for_good),
        cmocka_unit_test(a_connection_that_is_closed_here_has_no_peer),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

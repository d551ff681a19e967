/* Where the server listens, and who may connect. */
#include "../skip.h"
#include "server_world.h"

#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

struct listening {
    struct world *w;
    const char *path, *address; /* one of them */
    uint16_t port;
    int r;
    struct err e;
};

static void listen_now(void *arg)
{
    struct listening *l = arg;

    if (l->path)
        l->r = http_server_listen_unix(l->w->server, l->path, &l->e);
    else
        l->r = http_server_listen(l->w->server, l->address, l->port, &l->port, &l->e);
}

static struct listening try_to_listen(struct world *w, const char *path, const char *address, uint16_t port)
{
    struct listening l = { .w = w, .path = path, .address = address, .port = port };

    loop_call(w->loop, listen_now, &l);
    return l;
}

static int dial_unix(const char *path)
{
    struct sockaddr_un to = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    snprintf(to.sun_path, sizeof(to.sun_path), "%s", path);
    set_patience(fd);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
    return fd;
}

static void the_unix_socket_is_private_answers_and_goes_with_the_server(void **state)
{
    struct world *w = *state;
    char folder[] = "/tmp/hearth-test-XXXXXX", path[64];
    struct stat file;
    int fd;

    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/socket", folder);
    assert_int_equal(try_to_listen(w, path, NULL, 0).r, 0);
    assert_int_equal(stat(path, &file), 0);
    assert_int_equal(file.st_mode & 0777, 0600);
    fd = dial_unix(path);
    say(fd, GET("/who") "\r\n");
    hear(fd, "unix from unix");
    close(fd);
    loop_call(w->loop, stop_server, w);
    assert_int_equal(stat(path, &file), -1);
    assert_int_equal(rmdir(folder), 0);
}

static void a_socket_left_behind_is_replaced_but_nothing_else_is(void **state)
{
    struct world *w = *state;
    char folder[] = "/tmp/hearth-test-XXXXXX";
    struct sockaddr_un left = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);

    assert_non_null(mkdtemp(folder));
    snprintf(left.sun_path, sizeof(left.sun_path), "%s/socket", folder);
    assert_int_equal(bind(fd, (struct sockaddr *)&left, sizeof(left)), 0);
    close(fd);
    assert_int_equal(try_to_listen(w, left.sun_path, NULL, 0).r, 0);
    assert_int_equal(try_to_listen(w, left.sun_path, NULL, 0).r, -EADDRINUSE);
    assert_int_equal(try_to_listen(w, folder, NULL, 0).r, -EEXIST);
    assert_int_equal(try_to_listen(w,
                                   "/0123456789012345678901234567890123456789012345678901234567890123456789"
                                   "01234567890123456789012345678901234567890123456789",
                                   NULL, 0)
                         .r,
                     -ENAMETOOLONG);
    loop_call(w->loop, stop_server, w);
    assert_int_equal(rmdir(folder), 0);
}

/* Another user must read nothing from the socket but its end. Returns the exit status of the child that tries. */
static int try_as_nobody(const char *path)
{
    int status = -1;
    pid_t child = fork();

    if (child == 0) {
        char byte;
        int fd = socket(AF_UNIX, SOCK_STREAM, 0);
        struct sockaddr_un to = { .sun_family = AF_UNIX };

        memcpy(to.sun_path, path, strlen(path) + 1);
        if (setuid(65534) < 0 || connect(fd, (struct sockaddr *)&to, sizeof(to)) < 0)
            _exit(1);
        _exit(recv(fd, &byte, 1, 0) == 0 ? 0 : 2);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return WEXITSTATUS(status);
}

static void another_user_is_turned_away_even_when_the_file_lets_him(void **state)
{
    struct world *w = *state;
    char folder[] = "/tmp/hearth-test-XXXXXX", path[64];

    if (geteuid() != 0)
        SKIP_TEST("only root can become another user");
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/socket", folder);
    assert_int_equal(try_to_listen(w, path, NULL, 0).r, 0);
    assert_int_equal(chmod(folder, 0755), 0);
    assert_int_equal(chmod(path, 0666), 0);
    assert_int_equal(try_as_nobody(path), 0);
    loop_call(w->loop, stop_server, w);
    assert_int_equal(rmdir(folder), 0);
}

static void running_out_of_descriptors_only_delays_connections(void **state)
{
    struct world *w = *state;
    struct sockaddr_in to = { .sin_family = AF_INET,
                              .sin_port = htons(w->port),
                              .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    struct rlimit before, none_left;
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    none_left = before;
    none_left.rlim_cur = 0;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none_left), 0);
    set_patience(fd);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
    say(fd, GET("/ping") "\r\n");
    for (int i = 0; i < 10; i++) /* rounds of the loop, in which the server tries to accept */
        world_turn(w);
    assert_true(has_no_connection(w));
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    hear(fd, "success");
    close(fd);
}

static void it_listens_on_several_addresses(void **state)
{
    struct world *w = *state;
    struct listening six = try_to_listen(w, NULL, "::1", 0);
    struct sockaddr_in6 to = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT };
    int fd;

    if (six.r == -EADDRNOTAVAIL || six.r == -EAFNOSUPPORT)
        SKIP_TEST("this machine has no IPv6");
    assert_int_equal(six.r, 0);
    assert_true(six.port > 0);
    to.sin6_port = htons(six.port);
    fd = socket(AF_INET6, SOCK_STREAM, 0);
    set_patience(fd);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
    say(fd, GET("/who") "\r\n");
    hear(fd, "tcp from ::1");
    close(fd);
}

static void a_port_in_use_and_a_bad_address_are_named(void **state)
{
    struct world *w = *state;
    struct listening l = try_to_listen(w, NULL, "127.0.0.1", w->port);

    assert_int_equal(l.r, -EADDRINUSE);
    assert_string_equal(l.e.code, "ADDRESS_IN_USE");
    l = try_to_listen(w, NULL, "localhost", 0);
    assert_int_equal(l.r, -EINVAL);
    assert_contains(l.e.text, "\"localhost\"");
}

/* ---- the connection as the layers above see it ---- */

static struct http_peer *hold_request(struct world *w, int fd)
{
    struct http_peer *peer;

    say(fd, GET("/hold") "\r\n");
    world_wait(is_held, w);
    peer = http_peer_ref(atomic_load(&w->held)->request.connection);
    answer_text(atomic_exchange(&w->held, NULL), "done");
    hear(fd, "done");
    return peer;
}

static void a_request_names_both_ends_of_its_connection(void **state)
{
    struct world *w = *state;
    int one = dial(w), two = dial(w);
    struct http_peer *first = hold_request(w, one), *again = hold_request(w, one), *other = hold_request(w, two);
    struct sockaddr_in client = { 0 };
    socklen_t size = sizeof(client);

    assert_int_equal(getsockname(one, (struct sockaddr *)&client, &size), 0);
    assert_int_equal(first->remote.in.sin_port, client.sin_port);
    assert_int_equal(first->remote.in.sin_addr.s_addr, htonl(INADDR_LOOPBACK));
    assert_int_equal(ntohs(first->local.in.sin_port), w->port);
    assert_true(http_peer_is_loopback(first));
    assert_int_equal(first->tag, 0);
    assert_ptr_equal(first, again);
    assert_true(first->serial != other->serial);
    close(one);
    close(two);
    world_wait(has_no_connection, w);
    http_peer_unref(first); /* outlives its connection */
    http_peer_unref(again);
    http_peer_unref(other);
}

static void the_first_note_about_a_connection_stays(void **state)
{
    union http_address none = { 0 };
    struct http_peer *peer = http_peer_new(&none, &none, 0, -1);
    char *first = xstrdup("first");

    assert_null(http_peer_note(peer));
    assert_ptr_equal(http_peer_keep_note(peer, first), first);
    assert_ptr_equal(http_peer_keep_note(peer, xstrdup("second")), first);
    assert_ptr_equal(http_peer_note(peer), first);
    http_peer_unref(peer);
}

enum { TAG = 7 };

struct handed_over {
    struct world *w;
    int fd, r;
};

static void listen_on_fd(void *arg)
{
    struct handed_over *h = arg;

    h->r = http_server_listen_fd(h->w->server, h->fd, TAG, NULL);
}

static void unlisten(void *arg)
{
    struct world *w = arg;

    http_server_unlisten(w->server, TAG);
}

static int dial_address(struct sockaddr_in to)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    set_patience(fd);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
    return fd;
}

static void a_socket_of_another_owner_is_served_until_its_owner_ends(void **state)
{
    struct world *w = *state;
    struct sockaddr_in to = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t size = sizeof(to);
    struct handed_over h = { .w = w, .fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0) };
    struct http_peer *peer;
    int own = dial(w), fd;
    char byte;

    assert_int_equal(bind(h.fd, (struct sockaddr *)&to, size), 0);
    assert_int_equal(getsockname(h.fd, (struct sockaddr *)&to, &size), 0);
    loop_call(w->loop, listen_on_fd, &h);
    assert_int_equal(h.r, 0);
    fd = dial_address(to);
    peer = hold_request(w, fd);
    assert_int_equal(peer->tag, TAG);
    http_peer_unref(peer);
    loop_call(w->loop, unlisten, w);
    assert_true(recv(fd, &byte, 1, 0) <= 0);
    say(own, GET("/who") "\r\n");
    hear(own, "tcp from 127.0.0.1");
    close(fd);
    close(own);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SERVED(the_unix_socket_is_private_answers_and_goes_with_the_server),
        SERVED(a_socket_left_behind_is_replaced_but_nothing_else_is),
        SERVED(another_user_is_turned_away_even_when_the_file_lets_him),
        SERVED(running_out_of_descriptors_only_delays_connections),
        SERVED(it_listens_on_several_addresses),
        SERVED(a_port_in_use_and_a_bad_address_are_named),
        SERVED(a_request_names_both_ends_of_its_connection),
        SERVED(a_socket_of_another_owner_is_served_until_its_owner_ends),
        cmocka_unit_test(the_first_note_about_a_connection_stays),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

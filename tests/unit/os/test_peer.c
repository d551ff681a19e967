/* The owner that the kernel reports for the other end of a connection. */
#include "os/peer.h"
#include "os/peer_process.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <seccomp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static struct peer_kernel kernel;

union address {
    struct sockaddr any;
    struct sockaddr_in in;
    struct sockaddr_in6 in6;
};

struct pair {
    int listener, client, accepted;
    union address local, remote; /* of the accepted end */
    uint16_t port;
};

static union address loopback(int family, bool is_mapped)
{
    union address at = { 0 };

    at.any.sa_family = (sa_family_t)family;
    if (family == AF_INET)
        at.in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    else
        assert_int_equal(inet_pton(AF_INET6, is_mapped ? "::ffff:127.0.0.1" : "::1", &at.in6.sin6_addr), 1);
    return at;
}

static socklen_t size_of(const union address *at)
{
    return at->any.sa_family == AF_INET ? sizeof(at->in) : sizeof(at->in6);
}

static int stream(int family)
{
    int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0);
    return fd;
}

static struct pair pair_open(int listener_family, union address target)
{
    struct pair p = { 0 };
    union address at = loopback(listener_family, false);
    socklen_t n = sizeof(at);

    p.listener = stream(listener_family);
    assert_int_equal(bind(p.listener, &at.any, size_of(&at)), 0);
    assert_int_equal(listen(p.listener, 4), 0);
    assert_int_equal(getsockname(p.listener, &at.any, &n), 0);
    p.port = ntohs(listener_family == AF_INET ? at.in.sin_port : at.in6.sin6_port);
    target.in.sin_port = htons(p.port); /* the same offset in both */
    p.client = stream(target.any.sa_family);
    assert_int_equal(connect(p.client, &target.any, size_of(&target)), 0);
    n = sizeof(p.remote);
    p.accepted = accept4(p.listener, &p.remote.any, &n, SOCK_CLOEXEC);
    assert_true(p.accepted >= 0);
    n = sizeof(p.local);
    assert_int_equal(getsockname(p.accepted, &p.local.any, &n), 0);
    return p;
}

static void pair_close(struct pair *p)
{
    close(p->listener);
    close(p->accepted);
    if (p->client >= 0)
        close(p->client);
}

static uint64_t inode_of(int fd)
{
    struct stat st;

    assert_int_equal(fstat(fd, &st), 0);
    return st.st_ino;
}

static void check_owner(struct pair p)
{
    struct peer_owner owner = { 0 };

    assert_int_equal(peer_owner(&kernel, &p.remote.any, &p.local.any, &owner), 0);
    assert_int_equal(owner.uid, geteuid());
    assert_int_equal(owner.inode, inode_of(p.client));
    pair_close(&p);
}

static void the_client_is_found_over_both_families(void **state)
{
    check_owner(pair_open(AF_INET, loopback(AF_INET, false)));
    check_owner(pair_open(AF_INET, loopback(AF_INET6, true)));
    check_owner(pair_open(AF_INET6, loopback(AF_INET6, false)));
}

static void the_listener_is_no_owner_of_a_connection_that_is_not_there(void **state)
{
    struct pair p = pair_open(AF_INET, loopback(AF_INET, false));
    union address swapped = p.remote;
    struct peer_owner owner;

    swapped.in.sin_port = htons(p.port); /* the "client" address is one on which a server listens */
    assert_int_equal(peer_owner(&kernel, &swapped.any, &p.remote.any, &owner), 0); /* the accepted end */
    swapped.in.sin_port = htons(1);
    p.remote.in.sin_port = htons(p.port);
    assert_int_equal(peer_owner(&kernel, &p.remote.any, &swapped.any, &owner), -ENOENT);
    pair_close(&p);
}

static void a_socket_whose_process_closed_it_has_no_owner(void **state)
{
    struct pair p = pair_open(AF_INET, loopback(AF_INET, false));
    struct peer_owner owner;

    close(p.client);
    p.client = -1;
    assert_int_equal(peer_owner(&kernel, &p.remote.any, &p.local.any, &owner), -ENOENT);
    pair_close(&p);
}

static void mixed_and_foreign_families_are_refused(void **state)
{
    union address v4 = loopback(AF_INET, false), v6 = loopback(AF_INET6, false);
    struct sockaddr local = { .sa_family = AF_UNIX };
    struct peer_owner owner;

    assert_int_equal(peer_owner(&kernel, &v4.any, &v6.any, &owner), -EAFNOSUPPORT);
    assert_int_equal(peer_owner(&kernel, &local, &v4.any, &owner), -EAFNOSUPPORT);
}

static void a_listener_is_found_by_its_port(void **state)
{
    struct pair p = pair_open(AF_INET, loopback(AF_INET, false));
    struct peer_owner owner = { 0 };
    uint16_t port = p.port;

    assert_int_equal(peer_listener(&kernel, port, &owner), 0);
    assert_int_equal(owner.uid, geteuid());
    assert_int_equal(owner.inode, inode_of(p.listener));
    pair_close(&p);
    assert_int_equal(peer_listener(&kernel, port, &owner), -ENOENT);
}

/* ---- processes ---- */

/* A grandchild holds fd; its middle generation may exit, so that the grandchild has lost its parent. Returns the child;
 * *ret_pipe keeps them alive. */
static pid_t hold_below(int fd, bool is_middle_gone, int *ret_pipe)
{
    int ends[2], ready[2];
    char c;
    pid_t child;

    assert_int_equal(pipe(ends), 0);
    assert_int_equal(pipe(ready), 0);
    child = fork();
    if (child == 0) {
        close(ends[1]);
        (void)!setsid();
        if (fork() == 0) {
            if (is_middle_gone && fork() != 0)
                _exit(0);
            (void)!write(ready[1], "r", 1);
            _exit(read(ends[0], &c, 1) != 0);
        }
        close(fd);
        _exit(read(ends[0], &c, 1) != 0);
    }
    assert_int_equal(read(ready[0], &c, 1), 1);
    close(ends[0]);
    close(ready[0]);
    close(ready[1]);
    *ret_pipe = ends[1];
    return child;
}

static void check_tree(bool is_middle_gone)
{
    struct pair p = pair_open(AF_INET, loopback(AF_INET, false));
    uint64_t inode = inode_of(p.client);
    struct peer_process found;
    int pipe_end;
    pid_t child = hold_below(p.client, is_middle_gone, &pipe_end);

    close(p.client);
    p.client = -1;
    assert_int_equal(peer_process_find(inode, &child, 1, &found), 1);
    assert_int_equal(found.root, child);
    assert_true(strlen(found.path) > 0);
    assert_int_equal(peer_process_find(inode, (pid_t[]){ child + 100000 }, 1, &found), 1);
    assert_int_equal(found.root, 0);
    assert_int_equal(peer_process_find(inode, NULL, 0, &found), 1);
    assert_int_equal(found.root, 0);
    close(pipe_end);
    assert_int_equal(waitpid(child, NULL, 0), child);
    pair_close(&p);
}

static void a_descendant_is_of_the_tree(void **state)
{
    check_tree(false);
}

static void an_orphan_of_the_session_is_of_the_tree(void **state)
{
    check_tree(true);
}

static void a_socket_that_nobody_holds_is_not_found(void **state)
{
    struct peer_process found;

    assert_int_equal(peer_process_find(UINT64_MAX, NULL, 0, &found), 0);
}

static void without_descriptors_nothing_is_said_about_a_socket(void **state)
{
    struct peer_process found;
    struct rlimit usual, none;
    int r;

    assert_int_equal(getrlimit(RLIMIT_NOFILE, &usual), 0);
    none = (struct rlimit){ 0, usual.rlim_max };
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    r = peer_process_find(UINT64_MAX, NULL, 0, &found);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &usual), 0);
    assert_int_equal(r, -EMFILE);
}

static void a_kernel_that_reports_owners_passes_the_check(void **state)
{
    struct err e = { 0 };

    if (peer_kernel_check(&kernel, &e) < 0)
        fail_msg("%s", e.text);
}

/* A netlink socket cannot be opened, as in a sandbox or a kernel without sock_diag. */
static void forbid_netlink(void)
{
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);

    if (!filter ||
        seccomp_rule_add(filter, SCMP_ACT_ERRNO(EAFNOSUPPORT), SCMP_SYS(socket), 1, SCMP_A0(SCMP_CMP_EQ, AF_NETLINK)) <
            0 ||
        seccomp_load(filter) < 0)
        _exit(2);
    seccomp_release(filter);
}

static void a_kernel_that_reports_nothing_fails_the_check_and_says_what_is_missing(void **state)
{
    pid_t child = fork();
    int status;

    assert_true(child >= 0);
    if (child == 0) {
        struct peer_kernel own;
        struct err e = { 0 };

        peer_kernel_init(&own);
        forbid_netlink();
        if (peer_kernel_check(&own, &e) != -EAFNOSUPPORT || !strstr(e.text, "does not report who holds a connection"))
            _exit(1);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_client_is_found_over_both_families),
        cmocka_unit_test(the_listener_is_no_owner_of_a_connection_that_is_not_there),
        cmocka_unit_test(a_socket_whose_process_closed_it_has_no_owner),
        cmocka_unit_test(mixed_and_foreign_families_are_refused),
        cmocka_unit_test(a_listener_is_found_by_its_port),
        cmocka_unit_test(a_descendant_is_of_the_tree),
        cmocka_unit_test(an_orphan_of_the_session_is_of_the_tree),
        cmocka_unit_test(a_socket_that_nobody_holds_is_not_found),
        cmocka_unit_test(without_descriptors_nothing_is_said_about_a_socket),
        cmocka_unit_test(a_kernel_that_reports_owners_passes_the_check),
        cmocka_unit_test(a_kernel_that_reports_nothing_fails_the_check_and_says_what_is_missing),
    };

    int n_failed;

    peer_kernel_init(&kernel);
    n_failed = cmocka_run_group_tests(tests, NULL, NULL);
    peer_kernel_clear(&kernel);
    return n_failed;
}

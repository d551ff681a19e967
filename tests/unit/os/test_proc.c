/* The contents of /proc about processes. */
#include "os/proc.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static int listen_at(const char *address, uint16_t *ret_port)
{
    struct sockaddr_in at = { .sin_family = AF_INET };
    socklen_t n = sizeof(at);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_int_equal(inet_pton(AF_INET, address, &at.sin_addr), 1);
    assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
    assert_int_equal(listen(fd, 1), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &n), 0);
    *ret_port = ntohs(at.sin_port);
    return fd;
}

/* In its own process group: the parent holds the write end, and closing that end ends the child. */
static pid_t hold_in_child(int fd, int *ret_pipe)
{
    int ends[2];
    char c;
    pid_t pid;

    assert_int_equal(pipe(ends), 0);
    pid = fork();
    if (pid == 0) {
        close(ends[1]);
        _exit(setpgid(0, 0) < 0 || fd < 0 || read(ends[0], &c, 1) != 0);
    }
    (void)!setpgid(pid, pid);
    close(ends[0]);
    *ret_pipe = ends[1];
    return pid;
}

static void the_port_of_a_group_is_found_and_nobody_elses(void **state)
{
    uint16_t port = 0, others = 0;
    int fd = listen_at("127.0.0.1", &port), pipe_end = -1, mine;
    pid_t pid = hold_in_child(fd, &pipe_end);

    close(fd);
    mine = listen_at("127.0.0.1", &others);
    assert_int_equal(proc_listening_port(pid), port);
    assert_int_equal(proc_listening_port(pid + 100000), 0);
    close(pipe_end);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_int_equal(proc_listening_port(pid), 0);
    close(mine);
}

static void who_listens_elsewhere_or_only_connects_has_no_port(void **state)
{
    uint16_t port = 0;
    int everywhere = listen_at("0.0.0.0", &port), pipe_end = -1;
    pid_t pid = hold_in_child(everywhere, &pipe_end);

    assert_int_equal(proc_listening_port(pid), 0);
    close(pipe_end);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    close(everywhere);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_port_of_a_group_is_found_and_nobody_elses),
        cmocka_unit_test(who_listens_elsewhere_or_only_connects_has_no_port),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

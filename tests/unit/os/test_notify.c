#include "os/notify.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static char folder[64];

static int set_up(void **state)
{
    snprintf(folder, sizeof(folder), "/tmp/hearth-notify-XXXXXX");
    assert_non_null(mkdtemp(folder));
    return 0;
}

static int tear_down(void **state)
{
    char path[sizeof(((struct sockaddr_un *)0)->sun_path)];

    snprintf(path, sizeof(path), "%s/s", folder);
    unlink(path);
    unsetenv("NOTIFY_SOCKET");
    return rmdir(folder);
}

/* name: as in NOTIFY_SOCKET. */
static int listen_at(const char *name)
{
    struct sockaddr_un at = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0);
    memcpy(at.sun_path, name, strlen(name));
    if (name[0] == '@')
        at.sun_path[0] = '\0';
    assert_int_equal(
        bind(fd, (struct sockaddr *)&at, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(name))), 0);
    assert_int_equal(setenv("NOTIFY_SOCKET", name, 1), 0);
    return fd;
}

static void expect(int fd, const char *text)
{
    char got[64] = "";

    assert_int_equal(recv(fd, got, sizeof(got) - 1, 0), strlen(text));
    assert_string_equal(got, text);
}

static void nobody_asked_is_no_error(void **state)
{
    unsetenv("NOTIFY_SOCKET");
    assert_int_equal(notify_send("READY=1", 0), 0);
    setenv("NOTIFY_SOCKET", "", 1);
    assert_int_equal(notify_send("READY=1", 0), 0);
}

static void one_datagram_reaches_a_path_and_an_abstract_name(void **state)
{
    char name[sizeof(((struct sockaddr_un *)0)->sun_path)];
    int fd;

    snprintf(name, sizeof(name), "%s/s", folder);
    fd = listen_at(name);
    assert_int_equal(notify_send("READY=1\nSTATUS=x", 1000), 0);
    expect(fd, "READY=1\nSTATUS=x");
    close(fd);
    snprintf(name, sizeof(name), "@hearth-notify-%d", (int)getpid());
    fd = listen_at(name);
    assert_int_equal(notify_send("STOPPING=1", 0), 0);
    expect(fd, "STOPPING=1");
    close(fd);
}

static void the_longest_name_is_used_and_a_longer_one_refused(void **state)
{
    char name[sizeof(((struct sockaddr_un *)0)->sun_path) + 1];
    int fd;

    memset(name, 'n', sizeof(name));
    snprintf(name, sizeof(name), "@%d", (int)getpid());
    name[strlen(name)] = 'n';
    name[sizeof(name) - 2] = '\0';
    fd = listen_at(name);
    assert_int_equal(notify_send("A=1", 0), 0);
    expect(fd, "A=1");
    close(fd);
    name[sizeof(name) - 2] = 'n';
    name[sizeof(name) - 1] = '\0';
    setenv("NOTIFY_SOCKET", name, 1);
    assert_int_equal(notify_send("A=1", 0), -ENAMETOOLONG);
}

static void a_bad_name_is_told(void **state)
{
    static const struct {
        const char *name;
        int r;
    } bad[] = {
        { "relative", -EAFNOSUPPORT },     { "@", -EAFNOSUPPORT },          { "/", -EAFNOSUPPORT },
        { "vsock:2:1234", -EAFNOSUPPORT }, { "/nowhere/socket", -ENOENT },  { "/dev/null", -ECONNREFUSED },
        { "@nobody here", -ECONNREFUSED }, { "/dev/null/below", -ENOTDIR },
    };

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        setenv("NOTIFY_SOCKET", bad[i].name, 1);
        assert_int_equal(notify_send("READY=1", 0), bad[i].r);
    }
}

static void a_full_queue_delays_no_longer_than_asked(void **state)
{
    char name[sizeof(((struct sockaddr_un *)0)->sun_path)];
    int fd, r = 0;

    snprintf(name, sizeof(name), "%s/s", folder);
    fd = listen_at(name);
    for (int i = 0; i < 100000 && r == 0; i++)
        r = notify_send("A=1", 0);
    assert_int_equal(r, -EAGAIN);
    assert_int_equal(notify_send("A=1", 50), -EAGAIN);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(nobody_asked_is_no_error, set_up, tear_down),
        cmocka_unit_test_setup_teardown(one_datagram_reaches_a_path_and_an_abstract_name, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_longest_name_is_used_and_a_longer_one_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_bad_name_is_told, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_full_queue_delays_no_longer_than_asked, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

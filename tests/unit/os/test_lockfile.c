#include "os/lockfile.h"

#include "os/files.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static int set_up(void **state)
{
    char *dir = xstrdup("/tmp/hearth-lock-XXXXXX");

    assert_non_null(mkdtemp(dir));
    *state = dir;
    return 0;
}

static int tear_down(void **state)
{
    assert_int_equal(dir_remove(*state, NULL), 0);
    freep(state);
    return 0;
}

static void the_second_is_refused_and_reported_who_holds_it(void **state)
{
    struct lockfile *first = NULL, *second = NULL;
    struct err e = { 0 };
    char want[200];

    assert_int_equal(lockfile_open(*state, &first, NULL), 0);
    assert_int_equal(lockfile_open(*state, &second, &e), -EBUSY);
    assert_null(second);
    assert_string_equal(e.code, "ALREADY_RUNNING");
    snprintf(want, sizeof(want), "Another Hearth (pid %d) uses this data folder: %s.", (int)getpid(), (char *)*state);
    assert_non_null(strstr(e.text, want));
    first = lockfile_close(first);
    assert_int_equal(lockfile_open(*state, &second, NULL), 0);
    lockfile_close(second);
}

static void the_owner_is_known_as_long_as_it_runs(void **state)
{
    struct lockfile *lock = NULL;

    assert_int_equal(lockfile_owner(*state), 0);
    assert_int_equal(lockfile_open(*state, &lock, NULL), 0);
    assert_int_equal(lockfile_owner(*state), getpid());
    lockfile_close(lock);
    assert_int_equal(lockfile_owner(*state), 0);
    assert_int_equal(lockfile_owner("/no/such/folder"), 0);
}

static void a_killed_owner_leaves_no_lock(void **state)
{
    struct lockfile *lock = NULL;
    int ready[2];
    char byte;
    pid_t pid;

    assert_int_equal(pipe(ready), 0);
    pid = fork();
    if (pid == 0) {
        if (lockfile_open(*state, &lock, NULL) == 0 && write(ready[1], "x", 1) == 1)
            pause();
        _exit(1);
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    assert_int_equal(lockfile_owner(*state), pid);
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_int_equal(lockfile_owner(*state), 0);
    assert_int_equal(lockfile_open(*state, &lock, NULL), 0);
    assert_int_equal(lockfile_owner(*state), getpid());
    lockfile_close(lock);
    close(ready[0]);
    close(ready[1]);
}

static void the_file_is_private_and_needs_its_folder(void **state)
{
    struct lockfile *lock = NULL;
    struct stat st;
    char path[200];

    assert_int_equal(lockfile_open(*state, &lock, NULL), 0);
    snprintf(path, sizeof(path), "%s/hearth.lock", (char *)*state);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    lock = lockfile_close(lock);
    assert_int_equal(lockfile_open("/no/such/folder", &lock, NULL), -ENOENT);
}

int main(void)
{
#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        IN_FOLDER(the_second_is_refused_and_reported_who_holds_it),
        IN_FOLDER(the_owner_is_known_as_long_as_it_runs),
        IN_FOLDER(a_killed_owner_leaves_no_lock),
        IN_FOLDER(the_file_is_private_and_needs_its_folder),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

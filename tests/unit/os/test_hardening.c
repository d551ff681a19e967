#include "os/hardening.h"

#include "base/util.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PAGE = 4096, HOLDS = 0, FAILS = 1 };

static const char *own_program;

static bool can_make_code(void)
{
    void *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    assert_true(page != MAP_FAILED);
    return mprotect(page, PAGE, PROT_READ | PROT_EXEC) == 0;
}

/* Each test runs in its own process: hardening cannot be undone. */
static void holds_in_child(bool (*claim)(void))
{
    int status;
    pid_t pid = fork();

    if (pid == 0) {
        hardening_apply();
        _exit(claim() ? HOLDS : FAILS);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == HOLDS);
}

static bool is_closed(void)
{
    struct rlimit core;

    return prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) == 0 && getrlimit(RLIMIT_CORE, &core) == 0 && core.rlim_cur == 0 &&
           core.rlim_max == 0 && hardening_now().is_closed && hardening_now().has_no_core;
}

static void memory_is_closed_and_no_core_is_written(void **state)
{
    holds_in_child(is_closed);
}

static bool refuses_as_it_says(void)
{
    return can_make_code() == !hardening_now().refuses_new_code;
}

static void new_code_is_refused_where_the_kernel_can(void **state)
{
    holds_in_child(refuses_as_it_says);
}

static bool child_is_free(void)
{
    char *argv[] = { (char *)own_program, (char *)"can-make-code", NULL };
    int status;
    pid_t pid = fork();

    if (pid == 0) {
        execv(own_program, argv);
        _exit(FAILS);
    }
    return waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == HOLDS;
}

static void programs_it_starts_may_compile_code_and_be_debugged(void **state)
{
    holds_in_child(child_is_free);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_is_closed_and_no_core_is_written),
        cmocka_unit_test(new_code_is_refused_where_the_kernel_can),
        cmocka_unit_test(programs_it_starts_may_compile_code_and_be_debugged),
    };

    own_program = "/proc/self/exe";
    if (argc == 2 && strcmp(argv[1], "can-make-code") == 0)
        return can_make_code() && prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) == 1 ? HOLDS : FAILS;
    return cmocka_run_group_tests(tests, NULL, NULL);
}

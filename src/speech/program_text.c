/* hearth-speech-text.so: see program_text.h. It takes the place of __libc_start_main(), which calls the main() of every
 * program that is dynamically linked with glibc. A program without that call (statically linked, another C library)
 * never writes PROGRAM_TEXT_READY, and the service then sends no text.
 *
 * The text must not get into the arguments of another process either: a script is refused, because its interpreter
 * would be the program here, and execve() is denied before the text is read. */
#include "speech/program_text.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <seccomp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

typedef int main_function(int argc, char **argv, char **envp);
typedef int start_function(main_function *run, int argc, char **argv, void (*init)(void), void (*fini)(void),
                           void (*end_of_loader)(void), void *end_of_stack);

__attribute__((visibility("default"))) start_function __libc_start_main;

static main_function *main_of_program;
static char text[PROGRAM_TEXT_MOST + 1];

/* Whether the file that execve() was called with is the program that runs, and not a script for it. */
static bool is_program_itself(void)
{
    char file[PATH_MAX], program[PATH_MAX];
    const char *given = (const char *)getauxval(AT_EXECFN);

    return given && realpath(given, file) && realpath("/proc/self/exe", program) && strcmp(file, program) == 0;
}

static bool move_streams(void)
{
    return dup2(STDOUT_FILENO, PROGRAM_TEXT_SOUND_FD) >= 0 && dup2(STDERR_FILENO, STDOUT_FILENO) >= 0;
}

/* In every thread, also those that libraries started before main(). */
static bool refuse_other_programs(void)
{
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
    bool is_made = filter && seccomp_attr_set(filter, SCMP_FLTATR_CTL_TSYNC, 1) == 0 &&
                   seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(execve), 0) == 0 &&
                   seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(execveat), 0) == 0 &&
                   seccomp_load(filter) == 0;

    seccomp_release(filter);
    return is_made;
}

static bool report_ready(void)
{
    const size_t n = strlen(PROGRAM_TEXT_READY);

    return write(PROGRAM_TEXT_SOUND_FD, PROGRAM_TEXT_READY, n) == (ssize_t)n;
}

/* A text that fills the buffer is longer than PROGRAM_TEXT_MOST. */
static bool read_text(void)
{
    size_t n = 0;
    ssize_t got = 1;

    while (got != 0 && n < sizeof(text)) {
        got = read(STDIN_FILENO, text + n, sizeof(text) - n);
        if (got < 0 && errno != EINTR)
            return false;
        n += got > 0 ? (size_t)got : 0;
    }
    return n > 0 && n < sizeof(text) && !memchr(text, '\0', n);
}

/* NULL: the text is there; else the reason why it is not. */
static const char *take_text(void)
{
    if (!is_program_itself())
        return "it is a script, whose interpreter cannot be given a text in secret";
    if (!move_streams() || !refuse_other_programs())
        return "the program cannot be prepared";
    if (!report_ready())
        return "the service has gone";
    return read_text() ? NULL : "there is no text, or one that is too long or has a NUL";
}

static int main_with_text(int argc, char **argv, char **envp)
{
    char **longer = calloc((size_t)argc + 2, sizeof(*longer));
    const char *why;

    unsetenv("LD_PRELOAD");
    unsetenv("LD_LIBRARY_PATH");
    why = longer ? take_text() : "memory is short";
    if (why) {
        dprintf(STDERR_FILENO, "hearth-speech-text: %s.\n", why);
        free(longer);
        return PROGRAM_TEXT_FAILED_CODE;
    }
    memcpy(longer, argv, (size_t)argc * sizeof(*longer));
    longer[argc] = text;
    return main_of_program(argc + 1, longer, envp);
}

int __libc_start_main(main_function *run, int argc, char **argv, void (*init)(void), void (*fini)(void),
                      void (*end_of_loader)(void), void *end_of_stack)
{
    start_function *start = NULL;

    *(void **)&start = dlsym(RTLD_NEXT, "__libc_start_main");
    if (!start)
        __builtin_trap(); /* a C library without the function that it has just called */
    main_of_program = run;
    return start(main_with_text, argc, argv, init, fini, end_of_loader, end_of_stack);
}

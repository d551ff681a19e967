#include "cli/systemd.h"

#include "os/program.h"
#include "os/run.h"

#include <limits.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PASSWD_BYTES = 16384 };

extern char **environ;

const char *systemd_user_name(struct arena *a)
{
    char *text = arena_alloc(a, PASSWD_BYTES);
    struct passwd entry, *found = NULL;

    return getpwuid_r(geteuid(), &entry, text, PASSWD_BYTES, &found) == 0 && found ? found->pw_name : "";
}

bool systemd_has_linger(struct arena *a)
{
    const char *name = systemd_user_name(a);

    return *name && !strchr(name, '/') && access(arena_printf(a, "/var/lib/systemd/linger/%s", name), F_OK) == 0;
}

/* --- environment --- */

/* After su or in a job of cron only the variable may be missing, while the manager runs. */
static const char *missing_runtime_dir(struct arena *a)
{
    const char *path = arena_printf(a, "/run/user/%u", (unsigned)geteuid());
    struct stat st;

    if (getenv("XDG_RUNTIME_DIR") || stat(path, &st) < 0 || !S_ISDIR(st.st_mode) || st.st_uid != geteuid())
        return NULL;
    return arena_printf(a, "XDG_RUNTIME_DIR=%s", path);
}

static const char *const *environment_of(struct arena *a)
{
    const char *added = missing_runtime_dir(a);
    const char **env;
    size_t n = 0;

    while (environ[n])
        n++;
    env = arena_array(a, n + 3, sizeof(*env));
    memcpy(env, environ, n * sizeof(*env));
    env[n++] = "SYSTEMD_COLORS=0";
    env[n] = added;
    return env;
}

/* --- calls --- */

enum { SYSTEMD_MAX_WORDS = 12 };

/* words: NULL-ended, after `systemctl --user --no-pager`. */
static int call(const struct systemd *s, const char *const *words, int64_t deadline_ms, struct run_result *ret,
                struct err *e)
{
    const char *argv[SYSTEMD_MAX_WORDS + 4] = { "systemctl", "--user", "--no-pager" };

    for (size_t i = 0; i < SYSTEMD_MAX_WORDS && words[i]; i++)
        argv[i + 3] = words[i];
    return run_program(&(struct run_plan){ s->program, argv, s->env, deadline_ms }, ret, e);
}

/* The first line that it wrote about the failure. */
static const char *words_of(struct run_result *result)
{
    char *text = result->errors[0] ? result->errors : result->output;

    text[strcspn(text, "\n")] = '\0';
    return *text ? text : "it gave no reason";
}

static int no_manager(struct arena *a, const char *why, struct err *e)
{
    const char *user = systemd_user_name(a);

    return err_set(
        e, -ENOTCONN, "NO_USER_MANAGER",
        "No systemd user manager answers (%.200s). Log in as %s itself, not by sudo or su; or let its manager run "
        "without a session: `loginctl enable-linger %s`.",
        why, *user ? user : "the user", user);
}

int systemd_open(struct arena *a, struct systemd *ret, struct err *e)
{
    static const char *const words[] = { "show", "--property=Version", NULL };
    struct systemd s = { .arena = a, .env = environment_of(a) };
    struct run_result result;
    struct err why = { 0 };
    char *program = NULL;
    int r = program_find(a, "systemctl", NULL, getenv("PATH"), &program, &why);

    if (r < 0)
        return err_set(e, -ENOTCONN, "NO_USER_MANAGER",
                       "systemctl was not found on PATH: this machine has no systemd, or PATH lacks its folder.");
    s.program = program;
    r = call(&s, words, SYSTEMD_CALL_MS, &result, &why);
    if (r < 0)
        return no_manager(a, why.text, e);
    if (result.code != 0)
        return no_manager(a, words_of(&result), e);
    *ret = s;
    return 0;
}

int systemd_do(const struct systemd *s, const char *verb, int64_t deadline_ms, struct err *e)
{
    bool is_reload = strcmp(verb, "daemon-reload") == 0;
    const char *const words[] = { verb, is_reload ? NULL : SYSTEMD_UNIT, NULL };
    struct run_result result;
    int r = call(s, words, deadline_ms, &result, e);

    if (r < 0 || result.code == 0)
        return r;
    return err_set(e, -EREMOTEIO, "SYSTEMCTL_FAILED",
                   "`systemctl --user %s%s` failed: %.300s `journalctl --user -u " SYSTEMD_UNIT "` may tell more.",
                   verb, is_reload ? "" : " " SYSTEMD_UNIT, words_of(&result));
}

/* The value of a line NAME=value. */
static const char *property(struct arena *a, const char *output, const char *name)
{
    const char *line = output;
    size_t n = strlen(name);

    while (*line) {
        size_t n_line = strcspn(line, "\n");

        if (strncmp(line, name, n) == 0 && line[n] == '=')
            return arena_strndup(a, line + n + 1, n_line - n - 1);
        line += n_line + (line[n_line] == '\n');
    }
    return "";
}

int systemd_show(const struct systemd *s, struct systemd_unit *ret, struct err *e)
{
    static const char *const words[] = { "show", SYSTEMD_UNIT,
                                         "--property=FragmentPath,UnitFileState,ActiveState,MainPID", NULL };
    struct run_result result;
    long pid;
    int r = call(s, words, SYSTEMD_CALL_MS, &result, e);

    if (r < 0)
        return r;
    if (result.code != 0)
        return err_set(e, -EREMOTEIO, "SYSTEMCTL_FAILED", "`systemctl --user show " SYSTEMD_UNIT "` failed: %.300s",
                       words_of(&result));
    pid = strtol(property(s->arena, result.output, "MainPID"), NULL, 10);
    ret->fragment = property(s->arena, result.output, "FragmentPath");
    ret->is_enabled = strncmp(property(s->arena, result.output, "UnitFileState"), "enabled", strlen("enabled")) == 0;
    ret->state = property(s->arena, result.output, "ActiveState");
    ret->is_active = strcmp(ret->state, "inactive") != 0 && strcmp(ret->state, "failed") != 0;
    ret->main_pid = pid > 0 && pid <= INT_MAX ? (pid_t)pid : 0;
    return 0;
}

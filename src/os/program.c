#include "os/program.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define PROGRAM_USUAL_PATH "/usr/local/bin:/usr/bin:/bin"

struct program_origin {
    const char *command;
    const char *comes_with; /* "It comes with ..." */
};

static const struct program_origin origins[] = {
    { "python", "Python (https://www.python.org; on Debian the package python-is-python3, or write `python3`)" },
    { "python3", "Python 3 (https://www.python.org; on Debian the package python3)" },
    { "node", "Node.js (https://nodejs.org; on Debian the package nodejs)" },
    { "npx", "npm, which is part of Node.js (https://nodejs.org; on Debian the package npm)" },
    { "uvx", "the package uv (https://docs.astral.sh/uv)" },
    { "uv", "the package uv (https://docs.astral.sh/uv)" },
};

static int program_missing(const char *command, struct err *e)
{
    for (size_t i = 0; i < ARRAY_SIZE(origins); i++)
        if (strcmp(origins[i].command, command) == 0)
            return err_set(e, -ENOENT, "COMMAND_NOT_FOUND",
                           "The program `%s` was not found on PATH. It comes with %s; install it, then start again.",
                           command, origins[i].comes_with);
    if (strchr(command, '/'))
        return err_set(e, -ENOENT, "COMMAND_NOT_FOUND",
                       "The program `%.300s` does not exist. Check the path of the command.", command);
    return err_set(
        e, -ENOENT, "COMMAND_NOT_FOUND",
        "The program `%.200s` was not found on PATH. Install it, or give the whole path as the command, then start again.",
        command);
}

static int program_refused(const char *path, struct err *e)
{
    return err_set(e, -EACCES, "COMMAND_NOT_EXECUTABLE",
                   "`%.300s` exists but may not be run: it must be a file with the permission to execute (chmod +x).",
                   path);
}

/* 0, -ENOENT or -EACCES. */
static int program_check(const char *path)
{
    struct stat st;

    if (stat(path, &st) < 0)
        return errno == EACCES ? -EACCES : -ENOENT;
    if (!S_ISREG(st.st_mode) || faccessat(AT_FDCWD, path, X_OK, AT_EACCESS) < 0)
        return -EACCES;
    return 0;
}

static int program_look_up(struct arena *a, const char *command, const char *search_path, char **ret, struct err *e)
{
    const char *refused = NULL;

    for (const char *at = search_path; *at;) {
        size_t n = strcspn(at, ":");
        char *path = arena_printf(a, "%.*s/%s", (int)n, at, command);
        int r = path[0] == '/' && n > 0 ? program_check(path) : -ENOENT;

        if (r == 0) {
            *ret = path;
            return 0;
        }
        if (r == -EACCES && !refused)
            refused = path;
        at += n + (at[n] == ':');
    }
    return refused ? program_refused(refused, e) : program_missing(command, e);
}

int program_find(struct arena *a, const char *command, const char *working_dir, const char *search_path, char **ret,
                 struct err *e)
{
    const char *seen_from_here = command;
    int r;

    if (!*command)
        return err_set(e, -ENOENT, "COMMAND_NOT_FOUND", "The command must name a program; it is empty.");
    if (!strchr(command, '/'))
        return program_look_up(a, command, search_path ? search_path : PROGRAM_USUAL_PATH, ret, e);
    if (command[0] != '/' && working_dir)
        seen_from_here = arena_printf(a, "%s/%s", working_dir, command);
    r = program_check(seen_from_here);
    if (r < 0)
        return r == -EACCES ? program_refused(command, e) : program_missing(command, e);
    *ret = arena_strdup(a, command);
    return 0;
}

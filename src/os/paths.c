#include "os/paths.h"

#include <limits.h>
#include <pwd.h>
#include <unistd.h>

enum { PATHS_PASSWD_BYTES = 16384 };

/* The value of the variable; NULL when it is unset or empty. */
static const char *paths_env(const char *name)
{
    const char *value = getenv(name);

    return value && *value ? value : NULL;
}

static const char *paths_home(struct arena *a)
{
    const char *home = paths_env("HOME");
    char *text = arena_alloc(a, PATHS_PASSWD_BYTES);
    struct passwd entry, *found = NULL;

    if (home)
        return home;
    if (getpwuid_r(geteuid(), &entry, text, PATHS_PASSWD_BYTES, &found) != 0 || !found || found->pw_dir[0] != '/')
        return NULL;
    return found->pw_dir;
}

static int paths_make_absolute(struct arena *a, const char *path, char **ret, struct err *e)
{
    AUTO(freep) char *here = NULL;

    if (path[0] == '/') {
        *ret = arena_strdup(a, path);
        return 0;
    }
    here = getcwd(NULL, 0);
    if (!here)
        return err_errno(e, errno, "The current folder, which %.200s is relative to, cannot be told", path);
    *ret = arena_printf(a, "%s/%s", here, path);
    return 0;
}

char *paths_plain_data_dir(struct arena *a)
{
    const char *home = paths_home(a);

    return home ? arena_printf(a, "%s/.local/share/hearth", home) : NULL;
}

int paths_data_dir(struct arena *a, const char *flag, char **ret, struct err *e)
{
    const char *given = flag && *flag ? flag : paths_env("HEARTH_DATA");
    const char *xdg = paths_env("XDG_DATA_HOME");
    char *plain;

    if (given)
        return paths_make_absolute(a, given, ret, e);
    if (xdg && xdg[0] == '/') { /* a relative one is to be ignored (XDG Base Directory Specification) */
        *ret = arena_printf(a, "%s/hearth", xdg);
        return 0;
    }
    plain = paths_plain_data_dir(a);
    if (!plain)
        return err_set(e, -ENOENT, "NO_DATA_DIR",
                       "There is no home folder to keep the data in: give --data DIR, or set HEARTH_DATA.");
    *ret = plain;
    return 0;
}

int paths_config_dir(struct arena *a, char **ret, struct err *e)
{
    const char *xdg = paths_env("XDG_CONFIG_HOME"), *home = paths_home(a);

    if (xdg && xdg[0] == '/')
        *ret = arena_strdup(a, xdg);
    else if (home)
        *ret = arena_printf(a, "%s/.config", home);
    else
        return err_set(e, -ENOENT, "NO_HOME", "There is no home folder: set HOME, or XDG_CONFIG_HOME.");
    return 0;
}

/* The kernel's name of it, with " (deleted)" at the end when it was removed or replaced; NULL: errno says why. */
static char *program_link(struct arena *a)
{
    char *path = arena_alloc(a, PATH_MAX);
    ssize_t n = readlink("/proc/self/exe", path, PATH_MAX - 1);

    return n < 0 ? NULL : path;
}

const char *paths_program_dir(struct arena *a)
{
    char *path = program_link(a), *slash = path ? strrchr(path, '/') : NULL;

    if (!slash)
        return ".";
    *slash = '\0';
    return path;
}

int paths_program(struct arena *a, char **ret, struct err *e)
{
    char *path = program_link(a);

    if (!path)
        return err_errno(e, errno, "The program file of this command cannot be told");
    if (access(path, X_OK) < 0)
        return err_errno(e, errno, "The program file %.300s", path);
    *ret = path;
    return 0;
}

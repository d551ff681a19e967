/* The same handlers on the same data folder while no service runs, for the command line. */
#include "service/private.h"
#include "store/examine.h"

#include <sys/stat.h>
#include <unistd.h>

int service_open_offline(const struct service_config *c, struct service **ret, struct err *e)
{
    struct service *s = xcalloc(1, sizeof(*s));
    int r = service_open_core(s, c, false, e);

    if (r < 0) {
        service_close(s);
        return r;
    }
    *ret = s;
    return 0;
}

const char *service_fault(const struct service *s, size_t i)
{
    return settings_fault(s->settings, i);
}

void service_request(struct service *s, struct http_exchange *x)
{
    dispatch_request(s->dispatch, x);
}

/* --- the settings alone --- */

int service_with_settings(const struct service_config *c, bool is_in_use,
                          int (*fn)(void *arg, struct settings *settings, struct err *e), void *arg, struct err *e)
{
    struct service *s = xcalloc(1, sizeof(*s));
    struct setting_row *rows = NULL;
    size_t n = 0;
    int r;

    s->config = *c;
    s->arena = arena_new();
    r = service_load_settings(s, e);
    if (r == 0)
        r = examine_settings(arena_printf(s->arena, "%s/hearth.db", c->data_dir), is_in_use, s->arena, &rows, &n, e);
    if (r == 0)
        r = settings_apply_rows(s->settings, rows, n, e);
    if (r == 0)
        r = fn(arg, s->settings, e);
    service_close(s);
    return r;
}

/* --- --check-config: reads only, also while a service works on the folder --- */

/* Checks the folder, or its nearest existing parent, in which the folder will be made. */
static int check_folder(struct arena *a, const char *data_dir, struct err *e)
{
    char *path = arena_strdup(a, data_dir);
    struct stat st;

    while (stat(path, &st) < 0) {
        char *slash = strrchr(path, '/');

        if (errno != ENOENT || !slash)
            return err_errno(e, errno, "The data folder %s", data_dir);
        slash[slash == path] = '\0';
    }
    if (!S_ISDIR(st.st_mode))
        return err_set(e, -ENOTDIR, "BAD_DATA_FOLDER", "The data folder %s cannot be: %s is no folder", data_dir, path);
    if (access(path, W_OK | X_OK) < 0)
        return err_errno(e, errno, "The data folder %s cannot be used: %s", data_dir, path);
    return 0;
}

int service_check_config(const struct service_config *c, struct err *e)
{
    struct service *s = xcalloc(1, sizeof(*s));
    int r;

    s->config = *c;
    s->arena = arena_new();
    r = service_load_settings(s, e);
    if (r == 0)
        r = service_check_addresses(s, e);
    if (r == 0)
        r = check_folder(s->arena, c->data_dir, e);
    service_close(s);
    return r;
}

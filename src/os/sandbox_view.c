/* What one child sees of the machine: folders, files, environment. */
#include "os/sandbox_private.h"

#include "base/limits.h"

#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { VIEW_PLACES = 512 };

struct view_place {
    const char *real, *at; /* real: where it is; at: where the child sees it */
    bool is_writable;
};

struct view_maker {
    struct sandbox *box;
    const struct sandbox_subject *subject;
    struct arena *arena;
    struct sandbox_view *view;
    struct view_place places[VIEW_PLACES];
    size_t n_places;
    struct buf args;
    const char *own_dir; /* links followed; NULL: none */
};

/* System folders, shown to every child. A path that is a link stays a link. */
static const char *const view_system[] = { "/usr", "/bin", "/sbin", "/lib", "/lib64", "/lib32", "/libx32" };

/* The files of /etc that programs need; no child sees the rest (shadow, keys of ssh, ...). Each costs bubblewrap 0.2
 * ms. */
static const char *const view_etc[] = {
    "/etc/alternatives", "/etc/ca-certificates", "/etc/crypto-policies", "/etc/fonts",
    "/etc/group",        "/etc/hosts",           "/etc/ld.so.cache",     "/etc/localtime",
    "/etc/mime.types",   "/etc/nsswitch.conf",   "/etc/os-release",      "/etc/passwd",
    "/etc/pki",          "/etc/protocols",       "/etc/resolv.conf",     "/etc/services",
    "/etc/ssl",          "/etc/timezone",
};

static const char *const view_devices[] = { "w/dev/null", "w/dev/zero", "w/dev/full", "r/dev/random", "r/dev/urandom",
                                            "w/dev/tty",  "w/dev/ptmx", "w/dev/shm",  "w/dev/pts" };

/* ---- places ---- */

static int view_refuse(const char *path, const char *why, struct err *e)
{
    return err_set(e, -EINVAL, "SANDBOX_FOLDER", "The sandbox cannot show %.300s: %s.", path, why);
}

static void view_push(struct view_maker *m, const char *real, const char *at, bool is_writable)
{
    for (size_t i = 0; i < m->n_places; i++)
        if (strcmp(m->places[i].at, at) == 0) {
            m->places[i].is_writable = m->places[i].is_writable || is_writable;
            return;
        }
    if (m->n_places < VIEW_PLACES)
        m->places[m->n_places++] = (struct view_place){ real, at, is_writable };
}

static bool view_is_of_service(const struct view_maker *m, const char *real)
{
    if (m->own_dir && sandbox_is_below(real, m->own_dir))
        return false;
    return sandbox_is_below(real, m->box->data_dir);
}

static bool view_is_of_system(const char *real)
{
    for (size_t i = 0; i < ARRAY_SIZE(view_system); i++)
        if (sandbox_is_below(real, view_system[i]))
            return true;
    return false;
}

/* Whether the folder would show too much: all homes, the home, the data folder. */
static bool view_is_too_wide(const struct view_maker *m, const char *real)
{
    return strcmp(real, "/tmp") == 0 || strcmp(real, "/etc") == 0 || strcmp(real, "/root") == 0 ||
           sandbox_is_below(m->box->home, real) || sandbox_is_below(m->box->data_dir, real);
}

/* Whether a link leads out of a folder that a program may write: the program may have created the link for its next
 * start. */
static bool view_leads_out(const struct view_maker *m, const char *at, const char *real)
{
    for (size_t i = 0; i < m->n_places; i++) {
        const struct view_place *place = &m->places[i];

        if (place->is_writable && (sandbox_is_below(at, place->at) || sandbox_is_below(at, place->real)) &&
            !sandbox_is_below(real, place->real))
            return true;
    }
    return false;
}

/* Adds a path that the program needs to run; a missing path, or one that shows too much, is left out. */
static void view_add_runtime(struct view_maker *m, const char *path)
{
    AUTO(freep) char *real = realpath(path, NULL);

    if (real && !view_is_of_system(real) && !view_is_of_service(m, real) && !view_is_too_wide(m, real) &&
        !view_leads_out(m, path, real))
        view_push(m, arena_strdup(m->arena, real), arena_strdup(m->arena, real), false);
}

/* Adds a folder of programs with the libraries and modules next to it (a private Node, a virtual environment of
 * Python). */
static void view_add_programs(struct view_maker *m, const char *dir)
{
    static const char *const beside[] = { "lib", "libexec", "pyvenv.cfg" };
    const char *base = strrchr(dir, '/');

    view_add_runtime(m, dir);
    for (size_t i = 0; base && strcmp(base, "/bin") == 0 && i < ARRAY_SIZE(beside); i++)
        view_add_runtime(m, arena_printf(m->arena, "%.*s/%s", (int)(base - dir), dir, beside[i]));
}

/* Adds a program or script with its folder; when that shows too much, only the file. Modules of Node look for other
 * modules in parent folders. */
static void view_add_beside(struct view_maker *m, const char *file)
{
    const char *modules = strstr(file, "/node_modules/"), *slash = strrchr(file, '/');

    if (modules)
        view_add_runtime(m, arena_printf(m->arena, "%.*s/node_modules", (int)(modules - file), file));
    if (slash && slash > file)
        view_add_programs(m, arena_strndup(m->arena, file, (size_t)(slash - file)));
    view_add_runtime(m, file);
}

static void view_add_file(struct view_maker *m, const char *path)
{
    AUTO(freep) char *real = realpath(path, NULL);
    struct stat st;

    if (!real || stat(real, &st) < 0 || !S_ISREG(st.st_mode))
        return;
    view_add_beside(m, path);
    view_add_beside(m, arena_strdup(m->arena, real));
}

static const char *view_variable(const struct view_maker *m, const char *name)
{
    size_t n = strlen(name);

    for (const char *const *at = m->subject->spec->env; at && *at; at++)
        if (strncmp(*at, name, n) == 0 && (*at)[n] == '=')
            return *at + n + 1;
    return NULL;
}

static void view_add_path(struct view_maker *m)
{
    const char *at = view_variable(m, "PATH");

    while (at && *at) {
        size_t n = strcspn(at, ":");

        if (*at == '/')
            view_add_programs(m, arena_strndup(m->arena, at, n));
        at += n + (at[n] == ':');
    }
}

static const char *view_from_here(const struct view_maker *m, const char *path)
{
    return path[0] == '/' || !m->subject->spec->working_dir
               ? path
               : arena_printf(m->arena, "%s/%s", m->subject->spec->working_dir, path);
}

/* Adds the program, and the script that its first argument names. */
static void view_add_command(struct view_maker *m)
{
    const char *const *args = m->subject->spec->args;

    view_add_path(m);
    view_add_file(m, view_from_here(m, m->subject->program));
    while (args && *args && (*args)[0] == '-')
        args++;
    if (args && *args && (*args)[0] == '/')
        view_add_file(m, *args);
}

/* Adds a folder that the definition names. */
static int view_add_named(struct view_maker *m, const char *path, bool is_writable, struct err *e)
{
    const char *given = sandbox_expand(m->arena, path);
    AUTO(freep) char *found = given ? realpath(given, NULL) : NULL;
    const char *real = arena_strdup(m->arena, found);

    if (!given || !real)
        return view_refuse(path, "it does not exist", e);
    if (strcmp(real, "/") == 0 || view_is_of_service(m, real))
        return view_refuse(path, "that is the whole machine, or belongs to the service", e);
    if (is_writable && sandbox_is_below(m->box->data_dir, real))
        return view_refuse(path, "the service's data folder lies in it, so it cannot be written", e);
    view_push(m, real, real, is_writable);
    if (strcmp(real, given) != 0)
        view_push(m, real, given, is_writable);
    return 0;
}

/* Runs when all places are known, because folders of the definition may be nested. */
static int view_check_links(const struct view_maker *m, struct err *e)
{
    for (size_t i = 0; i < m->n_places; i++)
        if (view_leads_out(m, m->places[i].at, m->places[i].real))
            return view_refuse(m->places[i].at, "a link leads out of a folder that a program may write", e);
    return 0;
}

static int view_add_defined(struct view_maker *m, struct err *e)
{
    const struct child_spec *spec = m->subject->spec;
    const struct sandbox_definition *definition = spec->sandbox;
    int r = 0;

    for (size_t i = 0; r == 0 && i < definition->read.n; i++)
        r = view_add_named(m, definition->read.items[i], false, e);
    for (size_t i = 0; r == 0 && i < definition->write.n; i++)
        r = view_add_named(m, definition->write.items[i], true, e);
    if (r == 0 && spec->working_dir)
        r = view_add_named(m, spec->working_dir, false, e);
    if (r == 0 && m->own_dir)
        view_push(m, m->own_dir, m->own_dir, true);
    if (r == 0 && spec->shown_file)
        view_push(m, spec->shown_file, spec->shown_file, false);
    return r < 0 ? r : view_check_links(m, e);
}

/* Sorts a folder before its content. */
static int view_compare(const void *one, const void *other)
{
    const struct view_place *a = one, *b = other;
    size_t n_a = strlen(a->at), n_b = strlen(b->at);

    return n_a < n_b ? -1 : n_a > n_b;
}

/* ---- bubblewrap ---- */

static void view_arg(struct view_maker *m, const char *arg)
{
    buf_add(&m->args, arg, strlen(arg) + 1);
}

static void view_option(struct view_maker *m, const char *option, const char *one, const char *other)
{
    view_arg(m, option);
    if (one)
        view_arg(m, one);
    if (other)
        view_arg(m, other);
}

static void view_memory(struct view_maker *m, const char *path)
{
    view_option(m, "--perms", "1777", NULL);
    view_option(m, "--size", arena_printf(m->arena, "%lld", (long long)LIMIT_CHILD_TMP_BYTES), NULL);
    view_option(m, "--tmpfs", path, NULL);
}

static void view_bind_namespaces(struct view_maker *m)
{
    static const char *const options[] = {
        "--unshare-user",    "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try",
        "--die-with-parent", "--as-pid-1",    "--cap-drop",    "ALL",           "--cap-add",
        "CAP_SYS_ADMIN",     "--cap-add",     "CAP_SETPCAP", /* hearth-child drops these capabilities */
    };

    for (size_t i = 0; i < ARRAY_SIZE(options); i++)
        view_arg(m, options[i]);
    if (m->view->has_own_network)
        view_arg(m, "--unshare-net");
}

static void view_bind_system(struct view_maker *m)
{
    for (size_t i = 0; i < ARRAY_SIZE(view_system); i++) {
        char target[PATH_MAX];
        ssize_t n = readlink(view_system[i], target, sizeof(target));

        if (n > 0)
            view_option(m, "--symlink", arena_strndup(m->arena, target, (size_t)n), view_system[i]);
        else
            view_option(m, "--ro-bind-try", view_system[i], view_system[i]);
    }
    for (size_t i = 0; i < ARRAY_SIZE(view_etc); i++)
        if (access(view_etc[i], F_OK) == 0)
            view_option(m, "--ro-bind", view_etc[i], view_etc[i]);
    view_option(m, "--proc", "/proc", NULL);
    view_option(m, "--dev", "/dev", NULL);
    view_memory(m, "/dev/shm");
    view_option(m, "--remount-ro", "/dev", NULL);
    view_memory(m, "/tmp");
    view_option(m, "--symlink", "../tmp", "/var/tmp");
}

/* Where a place would show a hidden path, a folder is covered with an empty folder and a file with an empty file. */
static void view_cover(struct view_maker *m, const char *hidden, bool is_folder, const char **covered)
{
    for (size_t i = 0; i < m->n_places; i++) {
        const struct view_place *place = &m->places[i];
        const char *at;

        if (!sandbox_is_below(hidden, place->real))
            continue;
        at = arena_printf(m->arena, "%s%s", place->at, hidden + strlen(place->real));
        view_option(m, is_folder ? "--tmpfs" : "--ro-bind-try", is_folder ? at : "/dev/null", is_folder ? NULL : at);
        if (is_folder)
            *covered = at;
    }
}

static bool view_comes_after_cover(const struct view_maker *m, const struct view_place *place)
{
    return sandbox_is_below(place->real, m->box->data_dir);
}

/* Whether an earlier place shows this one already. */
static bool view_is_within(const struct view_maker *m, size_t i)
{
    const struct view_place *place = &m->places[i];
    bool is_within = false;

    for (size_t k = 0; k < i; k++) {
        const struct view_place *wider = &m->places[k];

        if (sandbox_is_below(place->real, wider->real) && sandbox_is_below(place->at, wider->at) &&
            strcmp(wider->real, wider->at) == 0 && strcmp(place->real, place->at) == 0)
            is_within = wider->is_writable == place->is_writable && !sandbox_is_below(m->box->data_dir, wider->real);
    }
    return is_within;
}

static void view_bind_places(struct view_maker *m, bool after_cover)
{
    for (size_t i = 0; i < m->n_places; i++) {
        const struct view_place *place = &m->places[i];

        if (view_comes_after_cover(m, place) == after_cover && !view_is_within(m, i))
            view_option(m, place->is_writable ? "--bind" : "--ro-bind", place->real, place->at);
    }
}

static void view_bind_all(struct view_maker *m)
{
    const char *covered = NULL;

    qsort(m->places, m->n_places, sizeof(*m->places), view_compare);
    view_bind_namespaces(m);
    view_bind_system(m);
    view_bind_places(m, false);
    view_cover(m, m->box->data_dir, true, &covered);
    for (const char *const *at = m->box->hidden; *at; at++)
        view_cover(m, *at, false, &covered);
    view_bind_places(m, true);
    if (covered)
        view_option(m, "--remount-ro", covered, NULL);
    view_option(m, "--remount-ro", "/", NULL);
}

/* ---- Landlock ---- */

/* Landlock cannot hide a part of a folder, so a folder that contains the service's data folder cannot be shown. */
static int view_check_no_cover(const struct view_maker *m, struct err *e)
{
    for (size_t i = 0; i < m->n_places; i++)
        if (sandbox_is_below(m->box->data_dir, m->places[i].real))
            return view_refuse(
                m->places[i].at,
                "the service's data folder lies in it, and only bubblewrap can hide that (apt install bubblewrap)", e);
    return 0;
}

static int view_make_rules(struct view_maker *m, struct err *e)
{
    size_t n = ARRAY_SIZE(view_system) + ARRAY_SIZE(view_etc) + ARRAY_SIZE(view_devices) + m->n_places + 1;
    const char **rules = arena_array(m->arena, n, sizeof(*rules));
    size_t k = 0;

    for (size_t i = 0; i < ARRAY_SIZE(view_system); i++)
        rules[k++] = arena_printf(m->arena, "r%s", view_system[i]);
    for (size_t i = 0; i < ARRAY_SIZE(view_etc); i++)
        rules[k++] = arena_printf(m->arena, "r%s", view_etc[i]);
    for (size_t i = 0; i < ARRAY_SIZE(view_devices); i++)
        rules[k++] = view_devices[i];
    for (size_t i = 0; i < m->n_places; i++)
        rules[k++] = arena_printf(m->arena, "%c%s", m->places[i].is_writable ? 'w' : 'r', m->places[i].real);
    rules[k++] = "r/proc";
    m->view->rules = rules;
    m->view->n_rules = k;
    return view_check_no_cover(m, e);
}

/* ---- environment ---- */

/* Whether the value is the service's own, not one that the definition set. */
static bool view_is_inherited(const char *variable, const char *name)
{
    const char *own = getenv(name);
    size_t n = strlen(name);

    return own && strncmp(variable, name, n) == 0 && variable[n] == '=' && strcmp(variable + n + 1, own) == 0;
}

static void view_make_env(struct view_maker *m)
{
    const char *const *given = m->subject->spec->env;
    bool has_home = false;
    size_t n = 0, k = 0;
    const char **env;

    while (given && given[n])
        n++;
    env = arena_array(m->arena, n + 3, sizeof(*env));
    for (size_t i = 0; i < n; i++)
        if (!view_is_inherited(given[i], "HOME") && !view_is_inherited(given[i], "TMPDIR") &&
            !view_is_inherited(given[i], "XDG_RUNTIME_DIR")) {
            has_home = has_home || strncmp(given[i], "HOME=", 5) == 0;
            env[k++] = given[i];
        }
    if (*m->view->home && !has_home)
        env[k++] = arena_printf(m->arena, "HOME=%s", m->view->home);
    env[k++] = arena_printf(m->arena, "TMPDIR=%s",
                            m->view->level == SANDBOX_LEVEL_LANDLOCK && *m->view->home ? m->view->home : "/tmp");
    m->view->env = env;
}

/* ---- the complete view ---- */

static int view_choose_level(struct view_maker *m, struct err *e)
{
    const struct sandbox_definition *definition = m->subject->spec->sandbox;
    struct sandbox_view *view = m->view;
    struct sandbox_means means = { 0 };

    view->profile = sandbox_profile_of(m->box, definition);
    view->level = sandbox_level_of(m->box, view->profile);
    if (view->profile == SANDBOX_NONE)
        return 0;
    sandbox_means(m->box, &means);
    view->landlock_abi = means.landlock_abi;
    view->has_own_network = view->profile == SANDBOX_STRICT || (definition->is_network_given && !definition->network);
    view->bwrap_path = view->level == SANDBOX_LEVEL_NAMESPACES ? m->box->bwrap_path : NULL;
    if (m->subject->spec->is_cut_off && view->level != SANDBOX_LEVEL_NAMESPACES)
        return err_set(e, -ENOTSUP, "SANDBOX_UNAVAILABLE",
                       "Commands of agents need bubblewrap (apt install bubblewrap): %.200s", means.why);
    if (view->has_own_network && view->level != SANDBOX_LEVEL_NAMESPACES && means.landlock_abi < 4)
        return err_set(
            e, -ENOTSUP, "SANDBOX_UNAVAILABLE",
            "This machine cannot take the network from a program: %.200s. `hearth doctor` says what to install; the profile standard needs less.",
            *means.why ? means.why : "bubblewrap is missing");
    return 0;
}

/* The service made the child's own folder; links that the child created in it are not followed. */
static void view_find_own(struct view_maker *m)
{
    AUTO(freep) char *real = m->subject->spec->own_dir ? realpath(m->subject->spec->own_dir, NULL) : NULL;

    m->own_dir = arena_strdup(m->arena, real);
    m->view->home = real && !m->subject->spec->is_cut_off ? arena_printf(m->arena, "%s/home", m->own_dir) : "";
}

static int view_fill(struct view_maker *m, struct err *e)
{
    const char *working_dir = m->subject->spec->working_dir;
    int r;

    view_find_own(m);
    r = view_add_defined(m, e);
    if (r < 0)
        return r;
    view_add_command(m);
    m->view->working_dir = working_dir ? working_dir : m->own_dir ? m->own_dir : "/";
    view_make_env(m);
    if (m->view->level == SANDBOX_LEVEL_NAMESPACES)
        view_bind_all(m);
    else if (m->view->level == SANDBOX_LEVEL_LANDLOCK)
        r = view_make_rules(m, e);
    return r;
}

int sandbox_view_make(struct sandbox *box, const struct sandbox_subject *subject, struct arena *a,
                      struct sandbox_view *ret, struct err *e)
{
    struct sandbox_view view = { .working_dir = "", .home = "", .env = subject->spec->env };
    struct view_maker *m = ARENA_NEW(a, struct view_maker);
    int r;

    *m = (struct view_maker){ .box = box, .subject = subject, .arena = a, .view = &view };
    buf_init(&m->args, MIB(1));
    r = view_choose_level(m, e);
    if (r == 0 && view.level != SANDBOX_LEVEL_TREE)
        r = view_fill(m, e);
    else if (r == 0)
        view.working_dir = subject->spec->working_dir ? subject->spec->working_dir : "";
    if (r == 0)
        r = buf_check(&m->args, e);
    view.bwrap_args.n = m->args.n;
    view.bwrap_args.p = buf_to_arena(&m->args, a);
    if (r == 0)
        *ret = view;
    return r;
}

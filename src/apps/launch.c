#include "apps/launch.h"

#include "base/buf.h"
#include "base/limits.h"
#include "os/env.h"

#include <ctype.h>

/* The mapping from config.command and config.args to a command line. */
static const struct launch_kind {
    const char *app_type, *program; /* started unless config.command names another program */
    const char *flag;               /* put before the given arguments unless they have it; NULL: none */
    const char *endings[4];         /* a command with this ending is a script for the program */
    bool is_package;                /* every command but the program's own name is the name of a package */
} kinds[] = {
    { .app_type = "python", .program = "python3", .endings = { ".py" } },
    { .app_type = "node", .program = "node", .endings = { ".js", ".mjs", ".cjs" } },
    { .app_type = "npx", .program = "npx", .flag = "-y", .is_package = true },
    { .app_type = "uvx", .program = "uvx", .is_package = true },
};

static const struct launch_kind *kind_of(const char *app_type)
{
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
        if (strcmp(kinds[i].app_type, app_type) == 0)
            return &kinds[i];
    return NULL;
}

static bool ends_with(const char *text, const char *ending)
{
    size_t n = strlen(text), n_ending = strlen(ending);

    return n >= n_ending && strcmp(text + n - n_ending, ending) == 0;
}

static bool is_program_itself(const struct launch_kind *kind, const char *command)
{
    const char *slash = strrchr(command, '/');

    return strcmp(slash ? slash + 1 : command, kind->program) == 0;
}

/* Is config.command something that the program runs, and not the program itself? */
static bool is_script(const struct launch_kind *kind, const char *command)
{
    if (kind->is_package)
        return !is_program_itself(kind, command);
    for (size_t i = 0; i < ARRAY_SIZE(kind->endings) && kind->endings[i]; i++)
        if (ends_with(command, kind->endings[i]))
            return true;
    return false;
}

/* --- placeholders --- */

/* The first failure stays; later results are not used. */
struct filler {
    struct arena *arena;
    const struct launch_place *place;
    struct err *e;
    int r;
};

static const char *fill_in(struct filler *f, const char *text)
{
    const struct {
        const char *mark, *value;
    } places[] = {
        { "{port}", arena_printf(f->arena, "%u", f->place->port) },
        { "{data_dir}", f->place->data_dir },
    };
    struct buf out;

    buf_init(&out, LIMIT_ARG_BYTES);
    while (*text) {
        size_t i = 0;

        while (i < ARRAY_SIZE(places) && strncmp(text, places[i].mark, strlen(places[i].mark)) != 0)
            i++;
        if (i < ARRAY_SIZE(places)) {
            buf_add_str(&out, places[i].value);
            text += strlen(places[i].mark);
        } else {
            buf_add_char(&out, *text++);
        }
    }
    if (out.overflowed && f->r == 0)
        f->r = err_set(f->e, -E2BIG, "ARGUMENT_TOO_LONG", "An argument or variable of the app is longer than %d bytes.",
                       LIMIT_ARG_BYTES);
    return buf_to_arena(&out, f->arena);
}

/* --- command line --- */

static void plan_command(struct filler *f, const struct app_config *c, struct launch_plan *plan)
{
    const struct launch_kind *kind = kind_of(c->app_type);
    const char *given = c->command && *c->command ? fill_in(f, c->command) : NULL;
    const char **args = arena_array(f->arena, c->args.n + 3, sizeof(*args));
    size_t n = 0;

    plan->command = given;
    if (kind && (!given || is_script(kind, given)))
        plan->command = kind->program;
    if (kind && kind->flag && (c->args.n == 0 || strcmp(c->args.items[0], kind->flag) != 0))
        args[n++] = kind->flag;
    if (given && given != plan->command)
        args[n++] = given;
    for (size_t i = 0; i < c->args.n; i++)
        args[n++] = fill_in(f, c->args.items[i]);
    plan->args = args;
}

/* --- environment --- */

/* The configuration cannot override the app's identity, because the identity's variables come last. */
static int add_identity(struct arena *a, struct env_list *env, const struct app_config *c,
                        const struct launch_place *place, struct err *e)
{
    const char *const injected[][2] = {
        { env_name(a, place->abbr, "APP_ID"), c->app_id },
        { env_name(a, place->abbr, "APP_NAME"), c->name },
        { env_name(a, place->abbr, "PORT"), arena_printf(a, "%u", place->port) },
        { env_name(a, place->abbr, "APP_SECRET"), place->secret },
        { env_name(a, place->abbr, "WEBHOOK_SECRET"), place->hook_secret },
        { "SERVER_URL", place->base_url },
        { "HEARTH_BASE_URL", place->base_url },
    };
    int r = 0;

    for (size_t i = 0; r == 0 && i < ARRAY_SIZE(injected); i++)
        r = !injected[i][1] ? 0 : env_list_set(env, injected[i][0], injected[i][1], e);
    return r;
}

static int plan_env(struct filler *f, const struct app_config *c, struct launch_plan *plan, struct err *e)
{
    struct env_list *env = env_list_new(f->arena);
    struct json_value value;
    struct slice name;
    int r = 0;

    for (struct json_iter it = json_iter(c->env); r == 0 && json_next(&it, &name, &value);)
        r = env_list_set(env, name.p, fill_in(f, json_cstr(value)), e);
    if (r == 0)
        r = add_identity(f->arena, env, c, f->place, e);
    plan->env = env_list_strings(env);
    return r;
}

int launch_plan_make(struct arena *a, const struct app_config *c, const struct launch_place *place,
                     struct launch_plan *ret, struct err *e)
{
    struct filler f = { a, place, e, 0 };
    struct launch_plan plan = { 0 };
    int r;

    if (!app_config_is_launchable(c))
        return err_set(e, -EINVAL, "NOT_LAUNCHABLE",
                       "%s has neither app_type nor config.command: it is started by somebody else, not by Hearth.",
                       c->display_name);
    plan_command(&f, c, &plan);
    plan.working_dir = c->working_dir && *c->working_dir ? fill_in(&f, c->working_dir) : place->data_dir;
    r = plan_env(&f, c, &plan, e);
    if (r < 0 || f.r < 0)
        return r < 0 ? r : f.r;
    *ret = plan;
    return 0;
}

const char *launch_search_path(const struct launch_plan *plan)
{
    for (const char *const *at = plan->env; *at; at++)
        if (strncmp(*at, "PATH=", 5) == 0)
            return *at + 5;
    return NULL;
}

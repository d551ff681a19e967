/* hearth backend: the set-up of a backend whose place is no file of Hearth's own. Works without a service, because none
 * can start before the set-up. */
#include "backend/backend_password.h"
#include "backend/backend_providers.h"
#include "base/limits.h"
#include "cli/key_input.h"
#include "cli/out.h"
#include "cli/request.h"
#include "cli/special.h"
#include "os/files.h"
#include "os/lockfile.h"
#include "service/service.h"

const struct cli_option backend_options[] = {
    { "--role", .value = "ROLE",
      .help = "the database's role of the service, when it does not own the tables: it gets the rights it needs" },
    { .name = NULL },
};
const char backend_tables[] =
    "TABLE is a table of an app, like sales.orders, which gets the columns of the activities table. May be repeated.";

struct work {
    struct cli *cli;
    struct backend_setup setup;
    int (*run)(struct work *w, const struct backend_provider *p, const struct backend_place *place, struct err *e);
};

static void print_step(void *arg, const char *what, size_t n, size_t of)
{
    out_print("%zu of %zu: %s\n", n, of, what);
    fflush(stdout);
}

static int read_tables(struct work *w, struct err *e)
{
    const char **names = arena_array(w->cli->arena, w->cli->n_args + 1, sizeof(*names));
    int r = 0;

    for (size_t i = 0; r == 0 && i < w->cli->n_args; i++) {
        char *name = NULL;

        r = backend_table_name(w->cli->arena, w->cli->args[i], &name, e);
        names[i] = name;
    }
    w->setup = (struct backend_setup){
        .tables = names, .n_tables = w->cli->n_args, .role = cli_value(w->cli, "--role"), .on_step = print_step
    };
    return r;
}

static int run_on(void *arg, struct settings *settings, struct err *e)
{
    struct work *w = arg;
    const struct backend_provider *p = backend_provider_to_set_up(settings);
    const struct backend_place place = { .settings = settings, .data_dir = w->cli->data_dir };

    if (!p)
        return err_set(e, -EINVAL, "BAD_USE",
                       "The backend %s needs no set-up; a database is chosen with `hearth settings set backend.kind "
                       "postgres` and backend.url, a project of the hosted service with `hearth backend use`",
                       settings_string(settings, w->cli->arena, SETTING_BACKEND_KIND));
    return w->run(w, p, &place, e);
}

static int run_with_settings(struct cli *cli,
                             int (*run)(struct work *w, const struct backend_provider *p,
                                        const struct backend_place *place, struct err *e),
                             struct err *e)
{
    const struct service_config config = { .data_dir = cli->data_dir };
    struct work w = { .cli = cli, .run = run };
    int r = read_tables(&w, e);

    return r < 0 ? r : service_with_settings(&config, lockfile_owner(cli->data_dir) != 0, run_on, &w, e);
}

/* --- sql and setup --- */

static int print_sql(struct work *w, const struct backend_provider *p, const struct backend_place *place, struct err *e)
{
    out_lines(stdout, slice_of(p->setup_text(place, &w->setup, w->cli->arena)));
    return 0;
}

int run_backend_sql(struct cli *cli, struct err *e)
{
    return run_with_settings(cli, print_sql, e);
}

static int set_up(struct work *w, const struct backend_provider *p, const struct backend_place *place, struct err *e)
{
    int r = p->setup(place, &w->setup, w->cli->arena, e);

    if (r == 0)
        out_print("The database is set up.\n");
    return r;
}

int run_backend_setup(struct cli *cli, struct err *e)
{
    return run_with_settings(cli, set_up, e);
}

/* --- check --- */

static void show_json(struct cli *cli, const struct backend_lacks *lacks)
{
    struct json_writer w;
    struct buf out;

    buf_init(&out, MIB(4));
    json_write_init(&w, &out);
    json_begin_object(&w);
    json_begin_array_as(&w, "missing");
    for (size_t i = 0; i < lacks->n; i++) {
        json_begin_object(&w);
        json_add_string(&w, "what", lacks->items[i].what);
        json_add_string(&w, "sql", lacks->items[i].remedy);
        json_end(&w);
    }
    json_end(&w);
    json_end(&w);
    out_json(buf_slice(&out));
    buf_clear(&out);
}

static int show_lacks(struct cli *cli, const struct backend_lacks *lacks)
{
    if (cli->is_json)
        show_json(cli, lacks);
    for (size_t i = 0; !cli->is_json && i < lacks->n; i++) {
        out_print("\n-- missing: %s\n", lacks->items[i].what);
        out_lines(stdout, slice_of(lacks->items[i].remedy));
    }
    if (!cli->is_json && lacks->n == 0)
        out_print("The database has all it needs.\n");
    return lacks->n ? CLI_FAILED : CLI_DONE;
}

static int check(struct work *w, const struct backend_provider *p, const struct backend_place *place, struct err *e)
{
    struct backend_lacks lacks = { 0 };
    int r = p->lacks(place, &w->setup, w->cli->arena, &lacks, e);

    return r < 0 ? r : show_lacks(w->cli, &lacks);
}

/* Also of the tables of apps in Custom Mode, which only a service or its data tell. */
static int check_by_request(struct cli *cli, struct err *e)
{
    struct client_reply reply = { 0 };
    struct json_value missing, lack;
    struct backend_lacks lacks = { 0 };
    struct json_iter it;
    int r = cli_get(cli, "/api/backend/check", &reply, e);

    if (r < 0)
        return r;
    missing = json_get(reply.json, "missing");
    lacks.items = arena_array(cli->arena, json_length(missing) + 1, sizeof(*lacks.items));
    for (it = json_iter(missing); json_next(&it, NULL, &lack); lacks.n++)
        lacks.items[lacks.n] = (struct backend_lack){ arena_strdup(cli->arena, json_cstr(json_get(lack, "what"))),
                                                      arena_strdup(cli->arena, json_cstr(json_get(lack, "sql"))) };
    return show_lacks(cli, &lacks);
}

static int find_set_up(void *arg, struct settings *settings, struct err *e)
{
    *(bool *)arg = backend_provider_to_set_up(settings) != NULL;
    return 0;
}

int run_backend_check(struct cli *cli, struct err *e)
{
    const struct service_config config = { .data_dir = cli->data_dir };
    bool is_running = lockfile_owner(cli->data_dir) != 0, has_set_up = false;
    int r = service_with_settings(&config, is_running, find_set_up, &has_set_up, e);

    if (r < 0)
        return r;
    if (cli->n_args == 0 && (is_running || !has_set_up))
        return check_by_request(cli, e);
    return run_with_settings(cli, check, e);
}

/* --- password --- */

int run_backend_password(struct cli *cli, struct err *e)
{
    const char *password = NULL;
    int r =
        cli_read_secret(cli, "Password", "The password is read from standard input, and nothing came", &password, e);

    if (r == 0)
        r = dir_make(cli->data_dir, e);
    if (r == 0)
        r = backend_password_write(cli->data_dir, password, e);
    if (r == 0)
        out_print("The password is kept encrypted in %s/backend.password; it counts from the next start.\n",
                  cli->data_dir);
    return r;
}

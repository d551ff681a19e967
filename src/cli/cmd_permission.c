/* hearth permission list, grant, deny, revoke, reset */
#include "base/limits.h"
#include "cli/out.h"
#include "cli/permission.h"
#include "cli/request.h"
#include "cli/special.h"

/* --- list --- */

struct permission_lists { struct json_value grants, pending, apps; const char *app_id; };

static int read_lists(struct cli *cli, struct permission_lists *ret, struct err *e)
{
    struct client_reply grants = { 0 }, pending = { 0 }, apps = { 0 };
    int r = 0;

    if (cli->n_args)
        r = cli_app_id(cli, cli->args[0], &ret->app_id, e);
    if (r == 0)
        r = cli_get(cli, "/api/permissions", &grants, e);
    if (r == 0)
        r = cli_get(cli, "/api/permissions/pending", &pending, e);
    if (r == 0)
        r = cli_get(cli, "/api/apps", &apps, e);
    if (r < 0)
        return r;
    ret->grants = json_get(grants.json, "grants");
    ret->pending = json_get(pending.json, "pending");
    ret->apps = json_get(apps.json, "apps");
    return 0;
}

static bool is_of_app(const struct permission_lists *lists, struct json_value item)
{
    return !lists->app_id || slice_eq_str(json_string(json_get(item, "app_id")), lists->app_id);
}

static void add_mine(struct json_writer *w, const struct permission_lists *lists, const char *name, struct json_value list)
{
    struct json_value item;

    json_begin_array_as(w, name);
    for (struct json_iter it = json_iter(list); json_next(&it, NULL, &item);)
        if (is_of_app(lists, item))
            json_add_value(w, NULL, item);
    json_end(w);
}

static struct slice app_name(const struct permission_lists *lists, struct slice app_id)
{
    struct json_value app;

    for (struct json_iter it = json_iter(lists->apps); json_next(&it, NULL, &app);)
        if (slice_eq(json_string(json_get(app, "app_id")), app_id))
            return json_string(json_get(app, "name"));
    return app_id;
}

static struct slice shown_decision(struct json_value item, bool is_pending)
{
    if (is_pending)
        return SLICE_LIT("waiting");
    if (!json_bool(json_get(item, "in_force")))
        return SLICE_LIT("over");
    return json_string(json_get(item, "decision"));
}

/* A name that no version knows yet, or a slip of the pen. */
static const char *shown_permission(struct arena *a, struct json_value item)
{
    const char *name = json_cstr(json_get(item, "permission"));

    return json_bool(json_get(item, "known")) ? name : arena_printf(a, "%s (unknown)", name);
}

/* Grants, denials and questions as rows of one table. */
static void add_rows(struct arena *a, struct json_writer *w, const struct permission_lists *lists, struct json_value list, bool is_pending)
{
    struct json_value item;

    for (struct json_iter it = json_iter(list); json_next(&it, NULL, &item);) {
        if (!is_of_app(lists, item))
            continue;
        json_begin_object(w);
        json_add_slice(w, "app", app_name(lists, json_string(json_get(item, "app_id"))));
        json_add_string(w, "permission", shown_permission(a, item));
        json_add_slice(w, "decision", shown_decision(item, is_pending));
        json_add_value(w, "scope", json_get(item, "scope"));
        json_add_value(w, "until", json_get(item, "until"));
        json_add_value(w, "at", json_get(item, is_pending ? "asked_at" : "decided_at"));
        json_add_value(w, "last_used_at", json_get(item, "last_used_at"));
        json_end(w);
    }
}

static struct json_value rows_of(struct cli *cli, const struct permission_lists *lists)
{
    struct json_value rows = { 0 };
    struct json_writer w;
    struct buf out;

    buf_init(&out, MIB(16));
    json_write_init(&w, &out);
    if (cli->is_json) {
        json_begin_object(&w);
        add_mine(&w, lists, "grants", lists->grants);
        add_mine(&w, lists, "pending", lists->pending);
    } else {
        json_begin_array(&w);
        add_rows(cli->arena, &w, lists, lists->pending, true);
        add_rows(cli->arena, &w, lists, lists->grants, false);
    }
    json_end(&w);
    if (json_parse(cli->arena, buf_slice(&out), &rows, NULL) < 0)
        rows = (struct json_value){ 0 };
    buf_clear(&out);
    return rows;
}

/* Below the table, because a command is long. */
static void print_changes(const struct permission_lists *lists)
{
    struct slice app, permission, change;
    struct json_value item;

    for (struct json_iter it = json_iter(lists->pending); json_next(&it, NULL, &item);) {
        if (!is_of_app(lists, item) || json_is_absent(json_get(item, "change")))
            continue;
        app = json_string(json_get(item, "app_name"));
        permission = json_string(json_get(item, "permission"));
        change = json_string(json_get(item, "change"));
        out_print("\n%.*s asks for %.*s again because another program is started for it. %.*s\n", (int)app.n, app.p, (int)permission.n, permission.p,
                  (int)change.n, change.p);
    }
}

int run_permission_list(struct cli *cli, struct err *e)
{
    static const struct cli_column columns[] = {
        { "APP", "app" },     { "PERMISSION", "permission" }, { "DECISION", "decision" }, { "FOR", "scope" },
        { "UNTIL", "until", CLI_TIME }, { "SINCE", "at", CLI_TIME }, { "LAST USED", "last_used_at", CLI_TIME }, { .title = NULL },
    };
    struct permission_lists lists = { 0 };
    int r = read_lists(cli, &lists, e);

    if (r < 0)
        return r;
    if (cli->is_json)
        cli_print_json(rows_of(cli, &lists));
    else
        cli_print_table(rows_of(cli, &lists), columns, "Nothing was decided and nothing waits for an answer.");
    if (!cli->is_json)
        print_changes(&lists);
    return 0;
}

/* --- decisions --- */

int permission_send(struct cli *cli, const char *path, const struct permission_choice *choice, struct err *e)
{
    struct client_request ask = { .method = HTTP_POST, .path = path };
    struct client_reply reply;
    struct json_writer w;
    struct buf out;
    int r;

    buf_init(&out, KIB(64));
    json_write_init(&w, &out);
    json_begin_object(&w);
    json_add_string(&w, "app_id", choice->app_id);
    if (choice->scope) {
        json_add_strings(&w, "permissions", &choice->permission, 1);
        json_add_bool(&w, "allow", choice->is_allowed);
        json_add_string(&w, "scope", choice->scope);
        json_add_string(&w, "until", choice->until);
    } else {
        json_add_string(&w, "permission", choice->permission);
    }
    json_end(&w);
    ask.body = buf_slice(&out);
    r = cli_ask(cli, &ask, &reply, e);
    buf_clear(&out);
    return r;
}

/* About the app of argument 0: id or name. */
static int decide(struct cli *cli, const char *path, struct permission_choice *d, struct err *e)
{
    struct json_value nothing = { 0 };
    int r = cli_app_id(cli, cli->args[0], &d->app_id, e);

    if (r == 0)
        r = permission_send(cli, path, d, e);
    if (r == 0)
        cli_show(cli, nothing);
    return r;
}

static int read_scope(struct cli *cli, struct permission_choice *d, struct err *e)
{
    int n = cli_has(cli, "--once") + cli_has(cli, "--until-stop") + cli_has(cli, "--until");

    if (n > 1)
        return err_set(e, -EINVAL, "BAD_USE", "Only one of --once, --until-stop and --until may be given");
    d->until = cli_value(cli, "--until");
    d->scope = cli_has(cli, "--once") ? "once" : cli_has(cli, "--until-stop") ? "until_stop" : d->until ? "until_date" : "always";
    return 0;
}

int run_permission_decide(struct cli *cli, struct err *e)
{
    struct permission_choice d = { .permission = cli->args[1] };
    int r = read_scope(cli, &d, e);

    d.is_allowed = strcmp(cli->command->words, "permission grant") == 0;
    return r < 0 ? r : decide(cli, "/api/permissions/decide", &d, e);
}

int run_permission_revoke(struct cli *cli, struct err *e)
{
    struct permission_choice d = { .permission = cli->args[1] };

    return decide(cli, "/api/permissions/revoke", &d, e);
}

int run_permission_reset(struct cli *cli, struct err *e)
{
    struct permission_choice d = { .permission = NULL };

    return decide(cli, "/api/permissions/reset", &d, e);
}

/* hearth permission list, grant, deny, revoke, reset */
#include "base/limits.h"
#include "base/suggest.h"
#include "cli/out.h"
#include "cli/permission.h"
#include "cli/request.h"
#include "cli/special.h"

/* --- list --- */

struct permission_lists {
    struct json_value grants, pending, apps;
    const char *app_id;
};

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

/* Every decision, and every question with the decision "waiting", as elements of one array. */
static void add_mine(struct json_writer *w, const struct permission_lists *lists, struct json_value list,
                     bool is_pending)
{
    struct json_value item, value;
    struct slice key;

    for (struct json_iter it = json_iter(list); json_next(&it, NULL, &item);) {
        if (!is_of_app(lists, item))
            continue;
        json_begin_object(w);
        for (struct json_iter members = json_iter(item); json_next(&members, &key, &value);)
            json_add_value(w, key.p, value);
        if (is_pending)
            json_add_string(w, "decision", "waiting");
        json_end(w);
    }
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

/* The name may be of a later version, or mistyped. */
static const char *shown_permission(struct arena *a, struct json_value item)
{
    const char *name = json_cstr(json_get(item, "permission"));

    return json_bool(json_get(item, "known")) ? name : arena_printf(a, "%s (unknown)", name);
}

/* Grants, denials and questions as rows of one table. */
static void add_rows(struct arena *a, struct json_writer *w, const struct permission_lists *lists,
                     struct json_value list, bool is_pending)
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
    json_begin_array(&w);
    if (cli->is_json) {
        add_mine(&w, lists, lists->grants, false);
        add_mine(&w, lists, lists->pending, true);
    } else {
        add_rows(cli->arena, &w, lists, lists->pending, true);
        add_rows(cli->arena, &w, lists, lists->grants, false);
    }
    json_end(&w);
    if (json_parse(cli->arena, buf_slice(&out), &rows, NULL) < 0)
        rows = (struct json_value){ 0 };
    buf_clear(&out);
    return rows;
}

/* Printed below the table, because a command is long. */
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
        out_print("\n%.*s asks for %.*s again because another program is started for it. %.*s\n", (int)app.n, app.p,
                  (int)permission.n, permission.p, (int)change.n, change.p);
    }
}

int run_permission_list(struct cli *cli, struct err *e)
{
    static const struct cli_column columns[] = {
        { "APP", "app" },
        { "PERMISSION", "permission" },
        { "DECISION", "decision" },
        { "FOR", "scope" },
        { "UNTIL", "until", CLI_TIME },
        { "SINCE", "at", CLI_TIME, 2 },
        { "LAST USED", "last_used_at", CLI_TIME, 3 },
        { .title = NULL },
    };
    struct permission_lists lists = { 0 };
    int r = read_lists(cli, &lists, e);

    if (r < 0)
        return r;
    if (cli->is_json)
        cli_print_json(rows_of(cli, &lists));
    else
        cli_print_table(cli, rows_of(cli, &lists), columns, "Nothing was decided and nothing waits for an answer.");
    if (!cli->is_json)
        print_changes(&lists);
    return 0;
}

/* --- decisions --- */

int permission_send(struct cli *cli, const char *path, const struct permission_choice *choice, struct err *e)
{
    struct client_request request = { .method = HTTP_POST, .path = path };
    struct client_reply reply;
    struct json_writer w;
    struct buf out;
    int r;

    buf_init(&out, KIB(64));
    json_write_init(&w, &out);
    json_begin_object(&w);
    json_add_string(&w, "app_id", choice->app_id);
    if (choice->scope) {
        json_add_strings(&w, "permissions", choice->permissions ? choice->permissions : &choice->permission,
                         choice->permissions ? choice->n_permissions : 1);
        json_add_bool(&w, "allow", choice->is_allowed);
        json_add_string(&w, "scope", choice->scope);
        json_add_string(&w, "until", choice->until);
    } else {
        json_add_string(&w, "permission", choice->permission);
    }
    json_end(&w);
    request.body = buf_slice(&out);
    r = cli_send(cli, &request, &reply, e);
    buf_clear(&out);
    return r;
}

/* --- names --- */

struct known_names {
    const char *items[64];
    size_t n;
};

static int read_known(struct cli *cli, struct known_names *ret, struct err *e)
{
    struct client_reply reply = { 0 };
    struct json_value item;
    int r = cli_get(cli, "/api/permissions/known", &reply, e);
    struct json_iter it = json_iter(json_get(reply.json, "permissions"));

    ret->n = 0;
    while (r == 0 && json_next(&it, NULL, &item))
        if (ret->n < ARRAY_SIZE(ret->items))
            ret->items[ret->n++] = json_cstr(json_get(item, "name"));
    return r;
}

static bool is_known(const struct known_names *known, const char *name)
{
    static const char parts[] = "mcp.tools/"; /* a server, or one of its tools */

    for (size_t i = 0; i < known->n; i++)
        if (strcmp(known->items[i], name) == 0)
            return true;
    return strncmp(name, parts, strlen(parts)) == 0 && name[strlen(parts)];
}

/* "; did you mean llm.chat?" or "". */
static const char *meant(struct cli *cli, const struct known_names *known, const char *name)
{
    const char *near = suggest_name(name, known->items, known->n);

    return near ? arena_printf(cli->arena, "; did you mean %s?", near) : "";
}

void permission_note_unknown(struct cli *cli, struct slice definition)
{
    struct json_value root = { 0 }, item;
    struct known_names known;

    if (json_parse(cli->arena, definition, &root, NULL) < 0 || json_length(json_get(root, "permissions")) == 0 ||
        read_known(cli, &known, NULL) < 0)
        return;
    for (struct json_iter it = json_iter(json_get(root, "permissions")); json_next(&it, NULL, &item);) {
        const char *name = json_cstr(item);

        if (name && !is_known(&known, name))
            out_complain("hearth: %s is no permission that this version knows%s\n", name, meant(cli, &known, name));
    }
}

static bool is_decided(struct json_value grants, struct slice permission)
{
    struct json_value item;

    for (struct json_iter it = json_iter(grants); json_next(&it, NULL, &item);)
        if (slice_eq(json_string(json_get(item, "permission")), permission))
            return json_bool(json_get(item, "in_force")) ||
                   slice_eq_str(json_string(json_get(item, "decision")), "deny");
    return false;
}

void permission_note_undecided(struct cli *cli, const char *app_id, struct slice definition)
{
    struct client_request request = { .method = HTTP_GET, .path = "/api/permissions" };
    struct client_reply reply = { 0 };
    struct json_value root = { 0 }, item;
    size_t n = 0;

    request.query = arena_printf(cli->arena, "app_id=%s", app_id);
    if (json_parse(cli->arena, definition, &root, NULL) < 0 || cli_send(cli, &request, &reply, NULL) < 0)
        return;
    for (struct json_iter it = json_iter(json_get(root, "permissions")); json_next(&it, NULL, &item);)
        if (!is_decided(json_get(reply.json, "grants"), json_string(item)))
            out_print("%s%s", n++ ? ", " : "It asks for ", json_cstr(item));
    if (n > 0)
        out_print(": `hearth permission grant %s --requested` allows that.\n", json_cstr(json_get(root, "name")));
}

static bool is_declared(struct json_value permissions, const char *name)
{
    struct json_value item;

    for (struct json_iter it = json_iter(permissions); json_next(&it, NULL, &item);)
        if (slice_eq_str(json_string(item), name))
            return true;
    return false;
}

/* A name that this version does not know may be decided about only when the app asks for the permission. */
static int check_name(struct cli *cli, const char *name, struct err *e)
{
    struct known_names known;
    struct client_reply reply;
    int r = read_known(cli, &known, e);

    if (r < 0 || is_known(&known, name))
        return r;
    r = cli_get(cli, cli_fill_path(cli, "/api/apps/{0}"), &reply, e);
    if (r < 0 || is_declared(json_get(json_get(reply.json, "config"), "permissions"), name))
        return r;
    return err_set(e, -EINVAL, "UNKNOWN_PERMISSION", "There is no permission %.100s%s", name, meant(cli, &known, name));
}

/* Every permission that the app of argument 0 declares or waits for. */
static int read_requested(struct cli *cli, struct permission_choice *d, struct err *e)
{
    struct client_reply app = { 0 }, pending = { 0 };
    struct json_value declared, item;
    const char **names;
    int r = cli_get(cli, cli_fill_path(cli, "/api/apps/{0}"), &app, e);

    if (r == 0)
        r = cli_get(cli, "/api/permissions/pending", &pending, e);
    if (r < 0)
        return r;
    declared = json_get(json_get(app.json, "config"), "permissions");
    names =
        arena_array(cli->arena, json_length(declared) + json_length(json_get(pending.json, "pending")), sizeof(*names));
    for (struct json_iter it = json_iter(declared); json_next(&it, NULL, &item);)
        names[d->n_permissions++] = json_cstr(item);
    for (struct json_iter it = json_iter(json_get(pending.json, "pending")); json_next(&it, NULL, &item);)
        if (slice_eq_str(json_string(json_get(item, "app_id")), d->app_id) &&
            !is_declared(declared, json_cstr(json_get(item, "permission"))))
            names[d->n_permissions++] = json_cstr(json_get(item, "permission"));
    d->permissions = names;
    return d->n_permissions
               ? 0
               : err_set(e, -ENOENT, "NOTHING_REQUESTED", "%s declares no permission and waits for none", cli->args[0]);
}

/* The names of the arguments, or of --requested. */
static int read_names(struct cli *cli, struct permission_choice *d, struct err *e)
{
    bool is_requested = cli_has(cli, "--requested");
    int r = 0;

    if (is_requested == (cli->n_args > 1))
        return err_set(e, -EINVAL, "BAD_USE",
                       is_requested ? "--requested needs no PERMISSION" : "hearth %s needs APP PERMISSION...",
                       cli->command->words);
    if (is_requested)
        return read_requested(cli, d, e);
    d->permissions = cli->args + 1;
    d->n_permissions = cli->n_args - 1;
    for (size_t i = 0; r == 0 && i < d->n_permissions; i++)
        r = check_name(cli, d->permissions[i], e);
    return r;
}

static void print_decided(const struct cli *cli, const struct permission_choice *d)
{
    out_print("%s %s use ", cli->args[0], d->is_allowed ? "may" : "may not");
    for (size_t i = 0; i < d->n_permissions; i++)
        out_print("%s%s", i ? ", " : "", d->permissions[i]);
    out_print(".\n");
}

/* Decides about the app of argument 0, an id or a name. */
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
    d->scope = cli_has(cli, "--once")         ? "once"
               : cli_has(cli, "--until-stop") ? "until_stop"
               : d->until                     ? "until_date"
                                              : "always";
    return 0;
}

int run_permission_decide(struct cli *cli, struct err *e)
{
    struct permission_choice d = { .is_allowed = strcmp(cli->command->words, "permission grant") == 0 };
    int r = read_scope(cli, &d, e);

    if (r == 0)
        r = cli_app_id(cli, cli->args[0], &d.app_id, e);
    if (r == 0)
        r = read_names(cli, &d, e);
    if (r == 0)
        r = permission_send(cli, "/api/permissions/decide", &d, e);
    if (r == 0)
        print_decided(cli, &d);
    return r;
}

int run_permission_revoke(struct cli *cli, struct err *e)
{
    struct permission_choice d = { .permission = cli->args[1] };
    struct err why = { 0 };
    int r = decide(cli, "/api/permissions/revoke", &d, e);

    if (r < 0 && strcmp(e->code, "GRANT_NOT_FOUND") == 0 && check_name(cli, d.permission, &why) < 0)
        *e = why;
    return r;
}

int run_permission_reset(struct cli *cli, struct err *e)
{
    struct permission_choice d = { .permission = NULL };

    return decide(cli, "/api/permissions/reset", &d, e);
}

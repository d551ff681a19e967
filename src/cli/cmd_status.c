/* hearth status */
#include "base/limits.h"
#include "cli/out.h"
#include "cli/request.h"
#include "cli/special.h"
#include "cli/table.h"

enum { SHOWN_FAILURES = 3 };

struct overview {
    bool is_running;
    const char *not_ready; /* why the service cannot work; NULL: it can, or does not run */
    struct json_value health, providers, apps, pending, failures;
};

static int get(struct cli *cli, const char *path, const char *query, struct json_value *ret, struct err *e)
{
    struct client_reply reply = { 0 };
    int r = cli_send(cli, &(struct client_request){ .method = HTTP_GET, .path = path, .query = query }, &reply, e);

    *ret = reply.json;
    return r;
}

/* A refusal is the answer. */
static const char *read_readiness(struct cli *cli)
{
    struct json_value ready;
    struct err why = { 0 };

    return get(cli, "/readyz", NULL, &ready, &why) < 0 ? arena_strdup(cli->arena, why.text) : NULL;
}

static int read_overview(struct cli *cli, struct overview *ret, struct err *e)
{
    const char *most = arena_printf(cli->arena, "status=failed&limit=%d", SHOWN_FAILURES);
    struct client *client = NULL;
    int r = cli_client(cli, &client, e);

    ret->is_running = r == 0 && client_is_online(client);
    if (r == 0)
        r = get(cli, "/healthz", NULL, &ret->health, e);
    if (ret->is_running)
        ret->not_ready = read_readiness(cli);
    if (r == 0)
        r = get(cli, "/api/providers", NULL, &ret->providers, e);
    if (r == 0)
        r = get(cli, "/api/apps", NULL, &ret->apps, e);
    if (r == 0)
        r = get(cli, "/api/permissions/pending", NULL, &ret->pending, e);
    return r < 0 ? r : get(cli, "/api/tasks", most, &ret->failures, e);
}

/* --- for programs --- */

static void print_overview_json(struct cli *cli, const struct overview *o)
{
    struct json_value all;
    struct json_writer w;
    struct buf out;

    buf_init(&out, MIB(64));
    json_write_init(&w, &out);
    json_begin_object(&w);
    json_add_bool(&w, "running", o->is_running);
    json_add_value(&w, "version", json_get(o->health, "version"));
    json_add_value(&w, "url", json_get(o->health, "url"));
    json_add_string(&w, "data_dir", cli->data_dir);
    json_add_string(&w, "not_ready", o->not_ready);
    json_add_value(&w, "defaults", json_get(o->providers, "defaults"));
    json_add_value(&w, "providers", json_get(o->providers, "providers"));
    json_add_value(&w, "apps", json_get(o->apps, "apps"));
    json_add_value(&w, "waiting", json_get(o->pending, "pending"));
    json_add_value(&w, "failures", json_get(o->failures, "tasks"));
    json_end(&w);
    if (json_parse(cli->arena, buf_slice(&out), &all, NULL) == 0)
        cli_print_json(all);
    buf_clear(&out);
}

/* --- for a person --- */

/* The element of the list whose member has that text. */
static struct json_value find(struct json_value list, const char *member, struct json_value text)
{
    struct json_value item;

    for (struct json_iter it = json_iter(list); json_next(&it, NULL, &item);)
        if (slice_eq(json_string(json_get(item, member)), json_string(text)))
            return item;
    return (struct json_value){ 0 };
}

/* The model is that of the choice, else the provider's own. */
static void print_default(const struct overview *o, const char *capability, const char *own_model, const char *title)
{
    struct json_value def = json_get(json_get(o->providers, "defaults"), capability);
    struct json_value account = find(json_get(o->providers, "providers"), "name", json_get(def, "provider"));
    const char *provider = json_cstr(json_get(def, "provider")), *model = json_cstr(json_get(def, "model"));

    if (!model)
        model = json_cstr(json_get(account, own_model));
    if (json_bool(json_get(account, "stand_in")))
        out_print("%-12s %s: no language model, it repeats what you say; `hearth provider add ID` adds a real one\n",
                  title, provider);
    else if (provider)
        out_print("%-12s %s%s%s\n", title, provider, model ? " with " : "", model ? model : "");
    else
        out_print("%-12s none; `hearth provider presets` lists providers, `hearth provider add ID` adds one\n", title);
}

static void print_providers(const struct overview *o)
{
    struct json_value provider;

    for (struct json_iter it = json_iter(json_get(o->providers, "providers")); json_next(&it, NULL, &provider);)
        if (!slice_eq_str(json_string(json_get(provider, "state")), "ok"))
            out_print("%-12s %s is %s: `hearth provider list`\n", "", json_cstr(json_get(provider, "name")),
                      json_cstr(json_get(provider, "state")));
}

static void print_apps(const struct overview *o)
{
    struct json_value apps = json_get(o->apps, "apps"), app;
    const char *title = "apps";

    if (json_length(apps) == 0)
        out_print("%-12s none; `hearth app add FILE.json` registers one\n", title);
    for (struct json_iter it = json_iter(apps); json_next(&it, NULL, &app); title = "") {
        const char *message = json_cstr(json_get(app, "message"));

        out_print("%-12s %s: %s%s%s\n", title, json_cstr(json_get(app, "name")), json_cstr(json_get(app, "status")),
                  message && *message ? ", " : "", message ? message : "");
    }
}

static const char *app_name(const struct overview *o, struct json_value app_id)
{
    const char *name = json_cstr(json_get(find(json_get(o->apps, "apps"), "app_id", app_id), "name"));

    return name ? name : json_cstr(app_id);
}

static void print_waiting(const struct overview *o)
{
    struct json_value question;
    const char *title = "waits";

    for (struct json_iter it = json_iter(json_get(o->pending, "pending")); json_next(&it, NULL, &question);
         title = "") {
        const char *app = app_name(o, json_get(question, "app_id"));
        const char *what = json_cstr(json_get(question, "permission"));

        out_print("%-12s %s asks for %s: `hearth permission grant %s %s`\n", title, app, what, app, what);
    }
}

static void print_failures(struct cli *cli, const struct overview *o)
{
    static const struct cli_column at = { "AT", "updated_at", CLI_TIME };
    struct json_value task;
    const char *title = "failed";

    for (struct json_iter it = json_iter(json_get(o->failures, "tasks")); json_next(&it, NULL, &task); title = "") {
        const char *error = json_cstr(json_get(task, "error"));

        out_print("%-12s %s %s: %s (`hearth task show %.8s`)\n", title, table_cell(cli->arena, task, &at),
                  json_cstr(json_get(task, "title")), error ? error : "it says no reason",
                  json_cstr(json_get(task, "uuid")));
    }
}

static void print_overview(struct cli *cli, const struct overview *o)
{
    const char *url = json_cstr(json_get(o->health, "url"));

    if (o->is_running)
        out_print("%-12s Hearth %s runs at %s\n", "service", json_cstr(json_get(o->health, "version")),
                  url ? url : "-");
    else
        out_print("%-12s not running; `hearth serve` starts it\n", "service");
    if (o->not_ready)
        out_print("%-12s %s\n", "not ready", o->not_ready);
    out_print("%-12s %s\n", "data", cli->data_dir);
    print_default(o, "chat", "model", "chats");
    print_default(o, "embed", "embed_model", "embeddings");
    print_providers(o);
    print_apps(o);
    print_waiting(o);
    print_failures(cli, o);
}

int run_status(struct cli *cli, struct err *e)
{
    struct overview o = { 0 };
    int r = read_overview(cli, &o, e);
    bool was_never_there = r < 0 && strcmp(e->code, "NO_DATA_DIR") == 0;

    if (r < 0 && !was_never_there)
        return r;
    if (cli->is_json)
        print_overview_json(cli, &o);
    else if (was_never_there)
        out_print("%-12s not running, and none has ever run on %s; `hearth serve` starts it\n", "service",
                  cli->data_dir);
    else
        print_overview(cli, &o);
    return o.is_running ? CLI_DONE : CLI_FAILED;
}

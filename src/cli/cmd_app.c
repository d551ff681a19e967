/* hearth app add, app show, app logs, app open */
#include "base/limits.h"
#include "base/percent.h"
#include "cli/definition.h"
#include "cli/out.h"
#include "cli/permission.h"
#include "cli/request.h"
#include "cli/special.h"
#include "cli/table.h"

#include <sys/stat.h>
#include <unistd.h>

static void print_line(struct cli *cli, struct json_value line)
{
    static const struct cli_column time = { "TIME", "time", CLI_TIME };
    struct slice text = json_string(json_get(line, "text")), stream = json_string(json_get(line, "stream"));
    AUTO(arena_freep) struct arena *a = arena_new();

    if (cli->is_json) {
        cli_print_json(line);
        return;
    }
    out_print("%s %s", table_cell(a, line, &time), slice_eq_str(stream, "note") ? "-- " : "");
    out_lines(stdout, text);
    out_print("\n");
}

/* Prints the lines after *last and moves *last on. */
static int print_lines(struct cli *cli, const char *query, int64_t *last, struct err *e)
{
    struct client_request request = { .method = HTTP_GET,
                                      .path = cli_fill_path(cli, "/api/apps/{0}/logs"),
                                      .query = query };
    struct client_reply reply;
    struct json_value line;
    int r = cli_send(cli, &request, &reply, e);

    if (r < 0)
        return r;
    if (cli->is_json && !cli_has(cli, "--follow")) {
        cli_print_json(json_get(reply.json, "lines"));
        return 0;
    }
    for (struct json_iter it = json_iter(json_get(reply.json, "lines")); json_next(&it, NULL, &line);) {
        print_line(cli, line);
        *last = MAX(*last, json_int(json_get(line, "number")));
    }
    fflush(stdout);
    return 0;
}

/* Each request waits in the service for the next line; Ctrl-C ends the loop. */
static int follow(struct cli *cli, int64_t last, struct err *e)
{
    struct arena *whole = cli->arena;
    int r = 0;

    while (r == 0 && !ferror(stdout)) {
        AUTO(arena_freep) struct arena *turn = arena_new();

        cli->arena = turn;
        r = print_lines(cli, arena_printf(turn, "after=%lld&limit=%d&wait_s=20", (long long)last, LIMIT_LOG_LINES),
                        &last, e);
        cli->arena = whole;
    }
    return r;
}

int run_app_logs(struct cli *cli, struct err *e)
{
    const char *query =
        cli_has(cli, "--lines") ? arena_printf(cli->arena, "limit=%s", cli_fill_path(cli, "{--lines}")) : NULL;
    int64_t last = 0;
    int r = print_lines(cli, query, &last, e);

    return r == 0 && cli_has(cli, "--follow") ? follow(cli, last, e) : r;
}

/* The address is foreign text: it goes to the browser as one argument, and only when it is an http or https address. */
int run_app_open(struct cli *cli, struct err *e)
{
    struct client_reply reply;
    const char *url;
    int r = cli_get(cli, cli_fill_path(cli, "/api/apps/{0}"), &reply, e);

    if (r < 0)
        return r;
    url = json_cstr(json_get(json_get(reply.json, "app"), "home_url"));
    if (!url)
        return err_set(e, -ENOENT, "NO_HOME",
                       "%s has no config.home_url, or its port is not known because it does not run.", cli->args[0]);
    if (cli->is_json)
        cli_show(cli, reply.json);
    else
        out_print("%s\n", url);
    fflush(stdout);
    if (strncmp(url, "http://", 7) == 0 || strncmp(url, "https://", 8) == 0)
        open_in_browser(url);
    return 0;
}

int run_app_show(struct cli *cli, struct err *e)
{
    struct client_reply reply;
    int r = cli_get(cli, cli_fill_path(cli, "/api/apps/{0}"), &reply, e);

    if (r < 0)
        return r;
    if (cli->is_json) {
        cli_show(cli, reply.json);
        return 0;
    }
    cli_print_object(json_get(reply.json, "app"));
    out_print("\nConfiguration:\n");
    cli_print_json(json_get(reply.json, "config"));
    return 0;
}

/* --- app add --- */

struct app_files {
    const char *app, *agent; /* agent: NULL: none */
    bool is_folder;
};

/* A folder stands for its app.json and its agent.json. */
static struct app_files files_of(struct cli *cli, const char *path)
{
    struct app_files files = { .app = path };
    struct stat st;

    if (stat(path, &st) < 0 || !S_ISDIR(st.st_mode))
        return files;
    files.is_folder = true;
    files.app = arena_printf(cli->arena, "%s/app.json", path);
    files.agent = arena_printf(cli->arena, "%s/agent.json", path);
    if (access(files.agent, F_OK) < 0 && errno == ENOENT)
        files.agent = NULL;
    return files;
}

/* An agent that is registered before its app, and the request that makes it what it was. */
struct app_agent {
    struct client_reply reply;
    struct client_request undo; /* path NULL: nothing is registered yet */
};

/* The agent's former definition is sent again; an agent that was unknown is removed. */
static int prepare_undo(struct cli *cli, const char *name, struct client_request *ret, struct err *e)
{
    struct err why = { 0 };
    struct client_reply reply = { 0 };
    struct buf path, former;
    int r;

    buf_init(&path, LIMIT_TARGET_BYTES);
    buf_add_str(&path, "/api/agents/");
    percent_encode(&path, slice_of(name));
    *ret = (struct client_request){ HTTP_DELETE, buf_to_arena(&path, cli->arena), .query = "force=true" };
    r = cli_get(cli, ret->path, &reply, &why);
    if (r < 0)
        return reply.status == 404 ? 0 : err_set(e, r, why.code, "%s", why.text);
    buf_init(&former, LIMIT_REPLY);
    json_print(&former, json_get(reply.json, "definition"));
    *ret = (struct client_request){ HTTP_POST, "/api/agents", .body = slice_of(buf_to_arena(&former, cli->arena)) };
    return 0;
}

static int add_agent(struct cli *cli, struct slice definition, struct app_agent *ret, struct err *e)
{
    struct client_request request = { .method = HTTP_POST, .path = "/api/agents", .body = definition }, undo = { 0 };
    struct json_value object = { 0 };
    const char *name;
    int r = 0;

    (void)!json_parse(cli->arena, definition, &object, NULL); /* the service reports what is wrong with it */
    name = json_cstr(json_get(object, "name"));
    if (name)
        r = prepare_undo(cli, name, &undo, e);
    if (r == 0)
        r = cli_send(cli, &request, &ret->reply, e);
    if (r < 0)
        return err_prefix(e, r, "agent.json");
    ret->undo = undo;
    return 0;
}

/* The app was not registered, for the reason in e. */
static int undo_agent(struct cli *cli, const struct app_agent *agent, int reason, struct err *e)
{
    struct client_reply reply;
    struct err why = { 0 };

    if (agent->undo.path && cli_send(cli, &agent->undo, &reply, &why) < 0)
        return err_prefix(e, reason, "The agent %s stays registered, because undoing that failed (%s)",
                          json_cstr(json_get(agent->reply.json, "name")), why.text);
    return reason;
}

/* Of the two files of a folder, the one that is wrong is always named. */
static int refused(const struct app_files *files, int r, struct err *e)
{
    return files->is_folder ? err_prefix(e, r, "app.json") : definition_refused(files->app, r, e);
}

/* Unknown permissions in the definition are accepted (a later version may know them), and reported. */
int run_app_add(struct cli *cli, struct err *e)
{
    struct client_request request = { .method = cli->command->method, .path = cli->command->path };
    struct app_files files = files_of(cli, cli->args[0]);
    struct client_reply reply = { 0 };
    struct app_agent agent = { 0 };
    struct slice definition = { 0 };
    int r = definition_read(cli, files.app, &request.body, e);

    if (r == 0 && files.agent)
        r = definition_read(cli, files.agent, &definition, e);
    if (r == 0 && files.agent)
        r = add_agent(cli, definition, &agent, e);
    if (r == 0)
        r = cli_send(cli, &request, &reply, e);
    if (r < 0)
        return undo_agent(cli, &agent, reply.status ? refused(&files, r, e) : r, e);
    if (files.agent && !cli->is_json)
        out_print("The agent %s is registered: it %s.\n", json_cstr(json_get(agent.reply.json, "name")),
                  json_cstr(json_get(agent.reply.json, "sandbox")));
    cli_show(cli, reply.json);
    permission_note_unknown(cli, request.body);
    if (!cli->is_json)
        permission_note_undecided(cli, json_cstr(json_get(reply.json, "app_id")), request.body);
    return 0;
}

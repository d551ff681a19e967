/* hearth task show and replay */
#include "base/limits.h"
#include "cli/out.h"
#include "cli/request.h"
#include "cli/special.h"

/* --- task show --- */

int run_task_show(struct cli *cli, struct err *e)
{
    static const struct cli_column columns[] = {
        { "RUN", "id" }, { "AGENT", "agent_name" }, { "STATUS", "status" }, { "STARTED", "started_at", CLI_TIME },
        { "ENDED", "completed_at", CLI_TIME }, { "ERROR", "error" }, { .title = NULL },
    };
    struct client_reply reply;
    struct slice log;
    int r = cli_get(cli, cli_fill_path(cli, "/api/tasks/{0}"), &reply, e);

    if (r < 0)
        return r;
    if (cli->is_json) {
        cli_show(cli, reply.json);
        return 0;
    }
    log = json_string(json_get(reply.json, "log"));
    cli_print_object(json_get(reply.json, "task"));
    out_print("\n");
    cli_print_table(json_get(reply.json, "runs"), columns, "No run has been started.");
    if (log.n == 0)
        return 0;
    out_print("\nLog of the newest run:\n");
    out_lines(stdout, log);
    out_print(log.p[log.n - 1] == '\n' ? "" : "\n");
    return 0;
}

/* --- task replay --- */

static int replay_all(struct cli *cli, struct err *e)
{
    struct client_reply reply;
    struct json_writer w;
    struct buf body;
    int r;

    buf_init(&body, MIB(1));
    json_write_init(&w, &body);
    json_begin_object(&w);
    json_add_string(&w, "app", cli_value(cli, "--app"));
    json_add_string(&w, "status", cli_value(cli, "--status"));
    json_end(&w);
    r = cli_ask(cli, &(struct client_request){ .method = HTTP_POST, .path = "/api/tasks/replay",
                                               .body = slice_of(buf_to_arena(&body, cli->arena)) }, &reply, e);
    if (r < 0)
        return r;
    out_print("%lld tasks will be done again.\n", (long long)json_int(json_get(reply.json, "replayed")));
    if (json_int(json_get(reply.json, "left")))
        out_print("%lld stay as they are; the service's log says why.\n", (long long)json_int(json_get(reply.json, "left")));
    return 0;
}

int run_task_replay(struct cli *cli, struct err *e)
{
    bool is_all = cli_has(cli, "--all");

    if (is_all == (cli->n_args == 1) || (!is_all && (cli_has(cli, "--app") || cli_has(cli, "--status"))) || (is_all && cli_has(cli, "--agent")))
        return err_set(e, -EINVAL, "BAD_USE", "Say `task replay UUID [--agent NAME]`, or `task replay --all [--app APP] [--status STATUS]`");
    return is_all ? replay_all(cli, e) : cli_run_request(cli, e);
}

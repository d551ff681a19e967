/* hearth task show, replay and wait */
#include "base/limits.h"
#include "cli/out.h"
#include "cli/request.h"
#include "cli/special.h"
#include "cli/wait.h"

/* --- task show --- */

int run_task_show(struct cli *cli, struct err *e)
{
    static const struct cli_column columns[] = {
        { "RUN", "id" },
        { "AGENT", "agent_name" },
        { "STATUS", "status" },
        { "STARTED", "started_at", CLI_TIME },
        { "ENDED", "completed_at", CLI_TIME },
        { "ERROR", "error" },
        { .title = NULL },
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
    cli_print_table(cli, json_get(reply.json, "runs"), columns, "No run has been started.");
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
    int64_t n_done, n_left;
    int r;

    buf_init(&body, MIB(1));
    json_write_init(&w, &body);
    json_begin_object(&w);
    json_add_string(&w, "app", cli_value(cli, "--app"));
    json_add_string(&w, "status", cli_value(cli, "--status"));
    json_end(&w);
    r = cli_send(cli,
                 &(struct client_request){ .method = HTTP_POST,
                                           .path = "/api/tasks/replay",
                                           .body = slice_of(buf_to_arena(&body, cli->arena)) },
                 &reply, e);
    if (r < 0)
        return r;
    n_done = json_int(json_get(reply.json, "replayed"));
    n_left = json_int(json_get(reply.json, "left"));
    out_print("%lld %s will be done again.\n", (long long)n_done, n_done == 1 ? "task" : "tasks");
    if (n_left > 0)
        out_print("%lld %s; the service's log says why.\n", (long long)n_left,
                  n_left == 1 ? "stays as it is" : "stay as they are");
    return 0;
}

int run_task_replay(struct cli *cli, struct err *e)
{
    bool is_all = cli_has(cli, "--all");

    if (is_all == (cli->n_args == 1) || (!is_all && (cli_has(cli, "--app") || cli_has(cli, "--status"))) ||
        (is_all && cli_has(cli, "--agent")))
        return err_set(e, -EINVAL, "BAD_USE",
                       "Say `task replay UUID [--agent NAME]`, or `task replay --all [--app APP] [--status STATUS]`");
    return is_all ? replay_all(cli, e) : cli_run_request(cli, e);
}

/* --- task wait --- */

struct task_wait {
    struct cli *cli;
    struct err *e;
    bool was_review_reported;
};

static bool is_one_of(struct slice word, const char *const *words)
{
    for (; *words; words++)
        if (slice_eq_str(word, *words))
            return true;
    return false;
}

static void report_review(struct task_wait *w, struct json_value task)
{
    if (w->was_review_reported || !slice_eq_str(json_string(json_get(task, "waits_for")), "person"))
        return;
    out_complain("hearth: The task waits for a person: `hearth task run %s` starts it\n", w->cli->args[0]);
    w->was_review_reported = true;
}

/* 1: the task has ended. The full answer is fetched because an event has the status alone. */
static int look_at_task(void *arg)
{
    static const char *const ends[] = { "completed", "failed", "canceled", NULL };
    struct client_reply reply = { 0 };
    struct task_wait *w = arg;
    struct json_value task;
    int r = cli_get(w->cli, cli_fill_path(w->cli, "/api/tasks/{0}"), &reply, w->e);

    if (r < 0)
        return r;
    task = json_get(reply.json, "task");
    report_review(w, task);
    if (!is_one_of(json_string(json_get(task, "status")), ends))
        return 0;
    if (w->cli->is_json)
        cli_show(w->cli, reply.json);
    if (slice_eq_str(json_string(json_get(task, "status")), "completed")) {
        if (!w->cli->is_json)
            out_print("The task %s is completed.\n", w->cli->args[0]);
        return 1;
    }
    return cli_wait_failed(arena_printf(w->cli->arena, "The task %s", w->cli->args[0]),
                           json_cstr(json_get(task, "status")), json_get(task, "error"), w->e);
}

int run_task_wait(struct cli *cli, struct err *e)
{
    struct task_wait w = { .cli = cli, .e = e };

    return cli_wait(cli, arena_printf(cli->arena, "The task %s", cli->args[0]), cli->args[0], look_at_task, &w, e);
}

/* hearth app show, app logs */
#include "base/limits.h"
#include "cli/out.h"
#include "cli/request.h"
#include "cli/special.h"
#include "cli/table.h"

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

/* Lines behind *last; *last moves on. */
static int print_lines(struct cli *cli, const char *query, int64_t *last, struct err *e)
{
    struct client_request ask = { .method = HTTP_GET, .path = cli_fill_path(cli, "/api/apps/{0}/logs"), .query = query };
    struct client_reply reply;
    struct json_value line;
    int r = cli_ask(cli, &ask, &reply, e);

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

/* Each question waits in the service for the next line; Ctrl-C ends it. */
static int follow(struct cli *cli, int64_t last, struct err *e)
{
    struct arena *whole = cli->arena;
    int r = 0;

    while (r == 0 && !ferror(stdout)) {
        AUTO(arena_freep) struct arena *turn = arena_new();

        cli->arena = turn;
        r = print_lines(cli, arena_printf(turn, "after=%lld&limit=%d&wait_s=20", (long long)last, LIMIT_LOG_LINES), &last, e);
        cli->arena = whole;
    }
    return r;
}

int run_app_logs(struct cli *cli, struct err *e)
{
    const char *query = cli_has(cli, "--lines") ? arena_printf(cli->arena, "limit=%s", cli_fill_path(cli, "{--lines}")) : NULL;
    int64_t last = 0;
    int r = print_lines(cli, query, &last, e);

    return r == 0 && cli_has(cli, "--follow") ? follow(cli, last, e) : r;
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

/* hearth app logs */
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
    printf("%s %s%.*s\n", table_cell(a, line, &time), slice_eq_str(stream, "note") ? "-- " : "", (int)text.n, text.p);
}

struct follow { struct cli *cli; int64_t last; };

/* The stream begins with lines that were printed already. */
static int on_event(void *arg, const struct client_event *event)
{
    struct follow *f = arg;
    int64_t number = json_int(json_get(event->data, "number"));

    if (number > f->last) {
        print_line(f->cli, event->data);
        f->last = number;
        fflush(stdout);
    }
    return 0;
}

int run_app_logs(struct cli *cli, struct err *e)
{
    const char *lines = cli_value(cli, "--lines");
    struct client_request ask = { .method = HTTP_GET, .path = cli_fill_path(cli, "/api/apps/{0}/logs") };
    struct follow f = { .cli = cli };
    struct client_reply reply;
    struct client *client;
    struct json_value line;
    int r;

    if (lines)
        ask.query = arena_printf(cli->arena, "limit=%s", cli_fill_path(cli, "{--lines}"));
    r = cli_ask(cli, &ask, &reply, e);
    if (r < 0)
        return r;
    if (cli->is_json && !cli_has(cli, "--follow")) {
        cli_print_json(json_get(reply.json, "lines"));
        return 0;
    }
    for (struct json_iter it = json_iter(json_get(reply.json, "lines")); json_next(&it, NULL, &line);) {
        print_line(cli, line);
        f.last = MAX(f.last, json_int(json_get(line, "number")));
    }
    if (!cli_has(cli, "--follow"))
        return 0;
    fflush(stdout);
    r = cli_client(cli, &client, e);
    return r < 0 ? r : client_listen(client, arena_printf(cli->arena, "%s/stream", ask.path), on_event, &f, e);
}

/* hearth backend monitor */
#include "cli/out.h"
#include "cli/request.h"
#include "cli/special.h"

static const struct cli_column subscriptions[] = {
    { "APP", "app_name" },
    { "TABLE", "table" },
    { "STATE", "state" },
    { "LAST EVENT", "last_event_at", CLI_TIME },
    { "LAG MS", "lag_ms", .drop = 2 },
    { "EVENTS", "events", .drop = 1 },
    { "GAPS", "gaps", .drop = 4 },
    { "RETRIES", "retries", .drop = 3 },
    { "LAST ERROR", "last_error", .drop = 5 },
    { .title = NULL },
};

static const struct cli_column machines[] = {
    { "MACHINE", "machine_id" },
    { "HOST", "hostname" },
    { "APPS", "app_name" },
    { "USER", "user_email", .drop = 1 },
    { "ONLINE SINCE", "online_at", CLI_TIME },
    { .title = NULL },
};

static void print_link(struct json_value answer)
{
    const char *error = json_cstr(json_get(answer, "last_error"));

    out_print("Backend %s, changes by %s: %s\n", json_cstr(json_get(answer, "provider")),
              json_cstr(json_get(answer, "way")), json_cstr(json_get(answer, "state")));
    if (error)
        out_print("Last error (%s): %s\n", json_cstr(json_get(answer, "last_error_at")), error);
}

int run_backend_monitor(struct cli *cli, struct err *e)
{
    const struct client_request request = { .method = HTTP_GET, .path = "/api/backend/monitor" };
    struct client_reply reply;
    const char *why;
    int r = cli_send(cli, &request, &reply, e);

    if (r < 0)
        return r;
    if (cli->is_json) {
        cli_show(cli, reply.json);
        return 0;
    }
    why = json_cstr(json_get(reply.json, "machines_error"));
    print_link(reply.json);
    out_print("\n");
    cli_print_table(cli, json_get(reply.json, "machines"), machines, why ? why : "No machine listens.");
    out_print("\n");
    cli_print_table(cli, json_get(reply.json, "subscriptions"), subscriptions, "No app lists a table.");
    return 0;
}

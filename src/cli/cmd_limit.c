/* hearth limit set, show and clear: the word `app` or `key` precedes the id. */
#include "cli/out.h"
#include "cli/request.h"
#include "cli/special.h"

#include <string.h>

/* "/api/limits/apps/<id>" from the arguments `app ID`. */
static int path_of_args(struct cli *cli, const char **ret, struct err *e)
{
    if (strcmp(cli->args[0], "app") == 0)
        *ret = cli_fill_path(cli, "/api/limits/apps/{1}");
    else if (strcmp(cli->args[0], "key") == 0)
        *ret = cli_fill_path(cli, "/api/limits/keys/{1}");
    else
        return err_set(e, -EINVAL, "BAD_USE", "Say `app` or `key` before the id, not %s", cli->args[0]);
    return 0;
}

static int request_limits(struct cli *cli, enum http_method method, struct slice body, struct client_reply *ret,
                          struct err *e)
{
    struct client_request request = { .method = method, .body = body };
    int r = path_of_args(cli, &request.path, e);

    return r < 0 ? r : cli_send(cli, &request, ret, e);
}

static void print_number(struct json_value number, const char *if_zero)
{
    if (json_is_absent(number))
        out_print("  %12s", "-");
    else if (json_int(number) == 0)
        out_print("  %12s", if_zero);
    else
        out_print("  %12lld", (long long)json_int(number));
}

static void print_limits(struct json_value limits)
{
    static const char *const names[] = { "requests_a_minute", "tokens_a_minute",     "requests_a_day",
                                         "tokens_a_day",      "characters_a_minute", "characters_a_day" };

    out_print("%-19s  %12s  %12s  %12s\n", "LIMIT", "OWN", "IN FORCE", "USED NOW");
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        out_print("%-19s", names[i]);
        print_number(json_get(json_get(limits, "own"), names[i]), "any");
        print_number(json_get(json_get(limits, "in_force"), names[i]), "any");
        print_number(json_get(json_get(limits, "used"), names[i]), "0");
        out_print("\n");
    }
}

int run_limit_show(struct cli *cli, struct err *e)
{
    struct client_reply reply;
    int r = request_limits(cli, HTTP_GET, (struct slice){ 0 }, &reply, e);

    if (r < 0)
        return r;
    if (cli->is_json)
        cli_show(cli, reply.json);
    else
        print_limits(json_get(reply.json, "limits"));
    return 0;
}

static int change_limits(struct cli *cli, enum http_method method, struct slice body, struct err *e)
{
    struct client_reply reply;
    int r = request_limits(cli, method, body, &reply, e);

    if (r == 0)
        cli_show(cli, reply.json);
    return r;
}

int run_limit_set(struct cli *cli, struct err *e)
{
    return change_limits(cli, HTTP_PUT, cli_write_body(cli), e);
}

int run_limit_clear(struct cli *cli, struct err *e)
{
    return change_limits(cli, HTTP_DELETE, (struct slice){ 0 }, e);
}

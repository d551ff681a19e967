/* hearth activity show, activity add */
#include "base/limits.h"
#include "cli/out.h"
#include "cli/request.h"
#include "cli/special.h"

/* Reads {raw_data, app} from the file's object. */
static int read_body(struct cli *cli, struct slice *ret, struct err *e)
{
    struct json_value raw_data = { 0 };
    struct slice text;
    struct json_writer w;
    struct buf out;
    int r = cli_read_file(cli, cli->args[0], LIMIT_BODY_ACTIVITY, &text, e);

    if (r == 0)
        r = json_parse(cli->arena, text, &raw_data, e);
    if (r < 0)
        return r;
    buf_init(&out, LIMIT_BODY_ACTIVITY);
    json_write_init(&w, &out);
    json_begin_object(&w);
    json_add_value(&w, "raw_data", raw_data);
    json_add_string(&w, "app", cli_value(cli, "--app"));
    json_end(&w);
    r = buf_check(&out, e);
    *ret = slice_of(buf_to_arena(&out, cli->arena));
    return r;
}

int run_activity_add(struct cli *cli, struct err *e)
{
    struct client_request request = { .method = HTTP_POST, .path = "/activities" };
    struct client_reply reply = { 0 };
    int r = read_body(cli, &request.body, e);

    if (r == 0)
        r = cli_send(cli, &request, &reply, e);
    if (r < 0)
        return r;
    if (cli->is_json)
        cli_show(cli, reply.json);
    else
        out_print("%s\n", json_cstr(json_get(json_get(reply.json, "data"), "id")));
    return 0;
}

int run_activity_show(struct cli *cli, struct err *e)
{
    struct client_reply reply = { 0 };
    int r = cli_get(cli, cli_fill_path(cli, "/activities/{0}"), &reply, e);

    if (r < 0)
        return r;
    if (cli->is_json)
        cli_show(cli, reply.json);
    else
        cli_print_object(json_get(reply.json, "data"));
    return 0;
}

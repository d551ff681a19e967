/* hearth key import */
#include "cli/key_input.h"
#include "cli/out.h"
#include "cli/request.h"
#include "cli/special.h"

static struct slice write_import(struct cli *cli, const char *key)
{
    struct json_writer w;
    struct buf out;
    char *text;

    buf_init(&out, 64 << 10);
    json_write_init(&w, &out);
    json_begin_object(&w);
    json_add_string(&w, "app", cli->args[0]);
    json_add_string(&w, "key", key);
    json_add_string(&w, "name", cli_value(cli, "--name"));
    json_end(&w);
    text = buf_to_arena(&out, cli->arena);
    return slice_of(text);
}

int run_key_import(struct cli *cli, struct err *e)
{
    struct client_request request = { .method = HTTP_POST, .path = "/api/keys/import" };
    struct client_reply reply = { 0 };
    const char *key, *app;
    int r = cli_read_key(cli, "The key is read from standard input, and nothing came", &key, e);

    if (r == 0) {
        request.body = write_import(cli, key);
        r = cli_send(cli, &request, &reply, e);
    }
    if (r < 0)
        return r;
    app = json_cstr(json_get(reply.json, "app"));
    if (cli->is_json)
        cli_show(cli, reply.json);
    else
        out_print(
            "The key that ends in %s stands for the app %s: it may what %s was granted, and nothing else. Whoever knows it is that app here.\n",
            json_cstr(json_get(reply.json, "last4")), app, app);
    return 0;
}

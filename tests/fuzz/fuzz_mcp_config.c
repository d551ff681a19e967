/* A file of server definitions of another program: its inputs, and each server with every input answered. */
#include "mcp/config.h"

#include "base/limits.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static struct json_value answers_of(struct arena *a, const struct mcp_config *c)
{
    struct json_value answers = { NULL, 0 };
    struct json_writer w;
    struct buf out;

    buf_init(&out, MIB(4));
    json_write_init(&w, &out);
    json_begin_object(&w);
    for (size_t i = 0; i < c->n_inputs; i++)
        json_add_string(&w, c->inputs[i].id, "answer");
    json_end(&w);
    if (json_parse(a, slice_of(buf_to_arena(&out, a)), &answers, NULL) < 0)
        return (struct json_value){ NULL, 0 };
    return answers;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct mcp_config config;
    struct json_value root;
    struct mcp_server server;

    if (json_parse(a, (struct slice){ (const char *)bytes, n }, &root, NULL) < 0 ||
        mcp_config_read(a, root, &config, NULL) < 0)
        return 0;
    for (size_t i = 0; i < config.n; i++)
        if (mcp_config_server(&config, i, answers_of(a, &config), a, &server, NULL) == 0 &&
            mcp_server_check(&server, "/data", NULL) == 0)
            mcp_server_shown(a, NULL, &server);
    return 0;
}

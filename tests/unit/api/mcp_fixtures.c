/* What the official conformance suite (@modelcontextprotocol/conformance) expects of a server under test: tools,
 * resources and prompts of fixed names. The program mcp_fixtures is the whole service, linked with this profile in
 * place of src/api/compat/mcp_api_profile.c; the product holds none of it. */
#include "api/compat/mcp_api_turn.h"
#include "http/sse.h"

#define PNG "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
#define WAV "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA="
#define IMAGE "{\"type\":\"image\",\"data\":\"" PNG "\",\"mimeType\":\"image/png\"}"

/* ---- tools ---- */

struct fixture_tool {
    const char *name, *schema;
    const char *content; /* JSON; NULL: `call` writes it */
    int (*call)(struct mcp_api_turn *t, struct json_value arguments, struct json_writer *w, struct err *e);
    enum mcp_api_manner manner;
};

static void write_text(struct json_writer *w, const char *text)
{
    json_begin_array_as(w, "content");
    json_begin_object(w);
    json_add_string(w, "type", "text");
    json_add_string(w, "text", text);
    json_end(w);
    json_end(w);
}

static void send_log(struct mcp_api_turn *t, const char *text)
{
    struct json_writer w;
    struct buf out;

    buf_init(&out, KIB(4));
    json_rpc_begin_notification(&w, &out, "notifications/message");
    json_begin_object_as(&w, "params");
    json_add_string(&w, "level", "info");
    json_add_string(&w, "data", text);
    json_end(&w);
    json_end(&w);
    (void)!sse_push(t->stream, "message", NULL, buf_slice(&out));
    buf_clear(&out);
}

static int call_logging(struct mcp_api_turn *t, struct json_value arguments, struct json_writer *w, struct err *e)
{
    send_log(t, "Tool execution started");
    send_log(t, "Tool processing data");
    send_log(t, "Tool execution completed");
    write_text(w, "Three messages were sent.");
    return 0;
}

static int call_progress(struct mcp_api_turn *t, struct json_value arguments, struct json_writer *w, struct err *e)
{
    for (int done = 0; done <= 100; done += 50)
        mcp_api_progress(t, done, 100, NULL);
    write_text(w, "Done.");
    return 0;
}

static int call_failing(struct mcp_api_turn *t, struct json_value arguments, struct json_writer *w, struct err *e)
{
    write_text(w, "This tool intentionally returns an error for testing");
    json_add_bool(w, "isError", true);
    return 0;
}

/* The client's answer becomes the text. */
static int request_client(struct mcp_api_turn *t, enum mcp_api_ability ability, const char *params,
                          struct json_writer *w, struct err *e)
{
    struct json_value question = { 0 }, answer = { 0 };
    struct json_writer inner;
    struct buf out;
    int r = json_parse(t->arena, slice_of(params), &question, e);

    if (r == 0)
        r = mcp_api_request_client(t, ability, question, &answer, e);
    if (r < 0) {
        mcp_api_write_failure(t, w, r, e);
        return 0;
    }
    buf_init(&out, LIMIT_REPLY);
    json_write_init(&inner, &out);
    json_add_value(&inner, NULL, answer);
    write_text(w, buf_to_arena(&out, t->arena));
    return 0;
}

/* The argument as a JSON text. */
static const char *quoted(struct mcp_api_turn *t, struct json_value arguments, const char *name)
{
    struct buf out;

    buf_init(&out, LIMIT_REPLY);
    json_quote(&out, json_string(json_get(arguments, name)));
    return buf_to_arena(&out, t->arena);
}

static int call_sampling(struct mcp_api_turn *t, struct json_value arguments, struct json_writer *w, struct err *e)
{
    const char *params = arena_printf(t->arena,
                                      "{\"messages\":[{\"role\":\"user\",\"content\":{\"type\":\"text\",\"text\":%s}}],"
                                      "\"maxTokens\":100}",
                                      quoted(t, arguments, "prompt"));

    return request_client(t, MCP_API_SAMPLING, params, w, e);
}

static int elicit(struct mcp_api_turn *t, const char *message, const char *properties, struct json_writer *w,
                  struct err *e)
{
    const char *params = arena_printf(t->arena,
                                      "{\"message\":%s,\"requestedSchema\":{\"type\":\"object\",\"properties\":%s,"
                                      "\"required\":[]}}",
                                      message, properties);

    return request_client(t, MCP_API_ELICITATION, params, w, e);
}

static int call_elicitation(struct mcp_api_turn *t, struct json_value arguments, struct json_writer *w, struct err *e)
{
    return elicit(t, quoted(t, arguments, "message"),
                  "{\"username\":{\"type\":\"string\",\"description\":\"User's response\"},"
                  "\"email\":{\"type\":\"string\",\"description\":\"User's email address\"}}",
                  w, e);
}

static int call_defaults(struct mcp_api_turn *t, struct json_value arguments, struct json_writer *w, struct err *e)
{
    return elicit(t, "\"Check the values\"",
                  "{\"name\":{\"type\":\"string\",\"default\":\"John Doe\"},"
                  "\"age\":{\"type\":\"integer\",\"default\":30},"
                  "\"score\":{\"type\":\"number\",\"default\":95.5},"
                  "\"status\":{\"type\":\"string\",\"enum\":[\"active\",\"inactive\",\"pending\"],"
                  "\"default\":\"active\"},"
                  "\"verified\":{\"type\":\"boolean\",\"default\":true}}",
                  w, e);
}

#define OPTIONS "\"enum\":[\"option1\",\"option2\",\"option3\"]"
#define TITLED "[{\"const\":\"value1\",\"title\":\"First Option\"},{\"const\":\"value2\",\"title\":\"Second Option\"}]"

static int call_enums(struct mcp_api_turn *t, struct json_value arguments, struct json_writer *w, struct err *e)
{
    return elicit(t, "\"Choose\"",
                  "{\"untitledSingle\":{\"type\":\"string\"," OPTIONS "},"
                  "\"titledSingle\":{\"type\":\"string\",\"oneOf\":" TITLED "},"
                  "\"legacyEnum\":{\"type\":\"string\",\"enum\":[\"opt1\",\"opt2\",\"opt3\"],"
                  "\"enumNames\":[\"Option One\",\"Option Two\",\"Option Three\"]},"
                  "\"untitledMulti\":{\"type\":\"array\",\"items\":{\"type\":\"string\"," OPTIONS "}},"
                  "\"titledMulti\":{\"type\":\"array\",\"items\":{\"anyOf\":" TITLED "}}}",
                  w, e);
}

#define NO_ARGUMENTS "{\"type\":\"object\",\"properties\":{}}"
#define ONE_ARGUMENT(name)                                                                                             \
    "{\"type\":\"object\",\"properties\":{\"" name "\":{\"type\":\"string\"}},\"required\":[\"" name "\"]}"

/* clang-format off */
static const struct fixture_tool tools[] = {
    { "test_simple_text", NO_ARGUMENTS, "[{\"type\":\"text\",\"text\":\"This is a simple text response for testing.\"}]" },
    { "test_image_content", NO_ARGUMENTS, "[" IMAGE "]" },
    { "test_audio_content", NO_ARGUMENTS, "[{\"type\":\"audio\",\"data\":\"" WAV "\",\"mimeType\":\"audio/wav\"}]" },
    { "test_embedded_resource", NO_ARGUMENTS,
      "[{\"type\":\"resource\",\"resource\":{\"uri\":\"test://embedded-resource\",\"mimeType\":\"text/plain\",\"text\":\"This is an embedded resource content.\"}}]" },
    { "test_multiple_content_types", NO_ARGUMENTS,
      "[{\"type\":\"text\",\"text\":\"Multiple content types test:\"}," IMAGE ","
      "{\"type\":\"resource\",\"resource\":{\"uri\":\"test://mixed-content-resource\",\"mimeType\":\"application/json\",\"text\":\"{\\\"test\\\":\\\"data\\\"}\"}}]" },
    { "json_schema_2020_12_tool",
      "{\"$schema\":\"https://json-schema.org/draft/2020-12/schema\",\"type\":\"object\","
      "\"$defs\":{\"address\":{\"type\":\"object\",\"properties\":{\"street\":{\"type\":\"string\"},\"city\":{\"type\":\"string\"}}}},"
      "\"properties\":{\"name\":{\"type\":\"string\"},\"address\":{\"$ref\":\"#/$defs/address\"}},\"additionalProperties\":false}",
      "[{\"type\":\"text\",\"text\":\"Done.\"}]" },
    { "test_error_handling", NO_ARGUMENTS, .call = call_failing },
    { "test_tool_with_logging", NO_ARGUMENTS, .call = call_logging, .manner = MCP_API_MAY_REQUEST },
    { "test_tool_with_progress", NO_ARGUMENTS, .call = call_progress, .manner = MCP_API_MAY_WAIT },
    { "test_sampling", ONE_ARGUMENT("prompt"), .call = call_sampling, .manner = MCP_API_MAY_REQUEST },
    { "test_elicitation", ONE_ARGUMENT("message"), .call = call_elicitation, .manner = MCP_API_MAY_REQUEST },
    { "test_elicitation_sep1034_defaults", NO_ARGUMENTS, .call = call_defaults, .manner = MCP_API_MAY_REQUEST },
    { "test_elicitation_sep1330_enums", NO_ARGUMENTS, .call = call_enums, .manner = MCP_API_MAY_REQUEST },
};
/* clang-format on */

static const struct fixture_tool *find_tool(const char *name)
{
    for (size_t i = 0; i < ARRAY_SIZE(tools); i++)
        if (strcmp(tools[i].name, name) == 0)
            return &tools[i];
    return NULL;
}

static int list_tools(struct mcp_api_turn *t, struct json_writer *w, struct err *e)
{
    for (size_t i = 0; i < ARRAY_SIZE(tools); i++) {
        json_begin_object(w);
        json_add_string(w, "name", tools[i].name);
        json_add_string(w, "description", "A fixture of the conformance suite");
        json_add_raw(w, "inputSchema", tools[i].schema);
        json_end(w);
    }
    return 0;
}

static int call_tool(struct mcp_api_turn *t, const char *name, struct json_value arguments, struct json_writer *w,
                     struct err *e)
{
    const struct fixture_tool *tool = find_tool(name);
    int r = 0;

    if (!tool)
        return 0;
    if (tool->content)
        json_add_raw(w, "content", tool->content);
    else
        r = tool->call(t, arguments, w, e);
    return r < 0 ? r : 1;
}

static enum mcp_api_manner manner_of(const char *name)
{
    const struct fixture_tool *tool = find_tool(name);

    return tool ? tool->manner : MCP_API_AT_ONCE;
}

/* ---- resources ---- */

static const struct fixture_resource {
    const char *uri, *mime_type, *text;
    bool is_blob;
} resources[] = {
    { "test://static-text", "text/plain", "This is the content of the static text resource.", false },
    { "test://static-binary", "image/png", PNG, true },
    { "test://watched-resource", "text/plain", "A resource that is followed.", false },
    { "test://example-resource", "text/plain", "A resource that a prompt embeds.", false },
};

static int list_resources(struct mcp_api_turn *t, int64_t offset, struct json_writer *w, size_t *ret_n, struct err *e)
{
    for (size_t i = 0; offset == 0 && i < ARRAY_SIZE(resources); i++) {
        json_begin_object(w);
        json_add_string(w, "uri", resources[i].uri);
        json_add_string(w, "name", resources[i].uri);
        json_add_string(w, "description", "A fixture of the conformance suite");
        json_add_string(w, "mimeType", resources[i].mime_type);
        json_end(w);
    }
    return 0;
}

static int read_resource(struct mcp_api_turn *t, const char *uri, struct mcp_api_content *ret, struct err *e)
{
    for (size_t i = 0; i < ARRAY_SIZE(resources); i++)
        if (strcmp(resources[i].uri, uri) == 0) {
            *ret =
                (struct mcp_api_content){ slice_of(resources[i].text), resources[i].mime_type, resources[i].is_blob };
            return 1;
        }
    return 0;
}

static int list_none(struct mcp_api_turn *t, int64_t offset, struct json_writer *w, size_t *ret_n, struct err *e)
{
    return 0;
}

static int read_template(struct mcp_api_turn *t, const char *uri, struct mcp_api_content *ret, struct err *e)
{
    static const char head[] = "test://template/", tail[] = "/data";
    size_t n = strlen(uri);

    if (strncmp(uri, head, strlen(head)) != 0 || n < strlen(head) + strlen(tail) ||
        strcmp(uri + n - strlen(tail), tail) != 0)
        return 0;
    ret->text = slice_of(arena_printf(t->arena, "{\"id\":\"%.*s\",\"templateTest\":true}",
                                      (int)(n - strlen(head) - strlen(tail)), uri + strlen(head)));
    return 1;
}

/* ---- prompts ---- */

static void write_message(struct json_writer *w, const char *content)
{
    json_begin_object(w);
    json_add_string(w, "role", "user");
    json_add_raw(w, "content", content);
    json_end(w);
}

static const char *text_block(struct mcp_api_turn *t, const char *text)
{
    struct buf out;

    buf_init(&out, LIMIT_REPLY);
    json_quote(&out, slice_of(text));
    return arena_printf(t->arena, "{\"type\":\"text\",\"text\":%s}", buf_to_arena(&out, t->arena));
}

static void write_simple(struct mcp_api_turn *t, struct json_value arguments, struct json_writer *w)
{
    write_message(w, text_block(t, "This is a simple prompt for testing."));
}

static const char *argument_of(struct json_value arguments, const char *name)
{
    const char *text = json_cstr(json_get(arguments, name));

    return text ? text : "";
}

static void write_arguments(struct mcp_api_turn *t, struct json_value arguments, struct json_writer *w)
{
    write_message(w, text_block(t, arena_printf(t->arena, "Prompt with arguments: arg1='%s', arg2='%s'",
                                                argument_of(arguments, "arg1"), argument_of(arguments, "arg2"))));
}

static void write_embedded(struct mcp_api_turn *t, struct json_value arguments, struct json_writer *w)
{
    write_message(w, arena_printf(t->arena,
                                  "{\"type\":\"resource\",\"resource\":{\"uri\":%s,\"mimeType\":\"text/plain\","
                                  "\"text\":\"Embedded resource content for testing.\"}}",
                                  quoted(t, arguments, "resourceUri")));
    write_message(w, text_block(t, "Please process the embedded resource above."));
}

static void write_image(struct mcp_api_turn *t, struct json_value arguments, struct json_writer *w)
{
    write_message(w, IMAGE);
    write_message(w, text_block(t, "Please analyze the image above."));
}

static const struct fixture_prompt {
    const char *name;
    const char *arguments[2];
    void (*write)(struct mcp_api_turn *t, struct json_value arguments, struct json_writer *w);
} prompts[] = {
    { "test_simple_prompt", { NULL }, write_simple },
    { "test_prompt_with_arguments", { "arg1", "arg2" }, write_arguments },
    { "test_prompt_with_embedded_resource", { "resourceUri" }, write_embedded },
    { "test_prompt_with_image", { NULL }, write_image },
};

static int list_prompts(struct mcp_api_turn *t, struct json_writer *w, struct err *e)
{
    for (size_t i = 0; i < ARRAY_SIZE(prompts); i++) {
        json_begin_object(w);
        json_add_string(w, "name", prompts[i].name);
        json_add_string(w, "description", "A fixture of the conformance suite");
        json_begin_array_as(w, "arguments");
        for (size_t k = 0; k < ARRAY_SIZE(prompts[i].arguments) && prompts[i].arguments[k]; k++) {
            json_begin_object(w);
            json_add_string(w, "name", prompts[i].arguments[k]);
            json_add_bool(w, "required", true);
            json_end(w);
        }
        json_end(w);
        json_end(w);
    }
    return 0;
}

static int get_prompt(struct mcp_api_turn *t, const char *name, struct json_value arguments, struct json_writer *w,
                      struct err *e)
{
    for (size_t i = 0; i < ARRAY_SIZE(prompts); i++)
        if (strcmp(prompts[i].name, name) == 0) {
            json_begin_array_as(w, "messages");
            prompts[i].write(t, arguments, w);
            json_end(w);
            return 1;
        }
    return 0;
}

static int complete_prompt(struct mcp_api_turn *t, struct slice name, struct mcp_api_completion *c, struct err *e)
{
    if (!slice_eq_str(name, "test_prompt_with_arguments"))
        return 0;
    mcp_api_add_value(c, "test");
    mcp_api_add_value(c, "testing");
    return 1;
}

/* ---- the profile: the product's, and the fixtures ---- */

static const struct mcp_api_source fixture_tools = { list_tools, call_tool, manner_of };
static const struct mcp_api_kind fixture_resources = { .list = list_resources, .read = read_resource };
static const struct mcp_api_kind fixture_template = { .uri_template = "test://template/{id}/data",
                                                      .name = "template",
                                                      .title = "Template",
                                                      .description = "A fixture of the conformance suite",
                                                      .list = list_none,
                                                      .read = read_template };
static const struct mcp_api_prompts fixture_prompts = { list_prompts, get_prompt, complete_prompt };

static const struct mcp_api_source *const all_tools[] = { &mcp_api_own_tools, &mcp_api_server_tools, &fixture_tools,
                                                          NULL };
static const struct mcp_api_kind *const all_resources[] = { &mcp_api_task_kind, &mcp_api_thread_kind,
                                                            &fixture_resources, &fixture_template, NULL };
static const struct mcp_api_prompts *const all_prompts[] = { &mcp_api_own_prompts, &fixture_prompts, NULL };

const struct mcp_api_profile mcp_api_profile = { all_tools, all_resources, all_prompts };

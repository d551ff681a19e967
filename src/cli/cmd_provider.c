/* hearth provider add, list, test, default */
#include "base/limits.h"
#include "cli/key_input.h"
#include "cli/out.h"
#include "cli/request.h"
#include "cli/special.h"
#include "cli/table.h"

const struct cli_option provider_add_options[] = {
    { "--api-key", .value = "KEY",
      .help = "its key; - (recommended) asks for it or reads standard input, so that no list of processes shows it" },
    { "--base-url", .value = "URL", .help = "its address; default: the provider's own" },
    { "--model", .value = "MODEL", .help = "of chats that name none" },
    { "--embed-model", .value = "MODEL", .help = "of embeddings that name none" },
    { "--models", .value = "A,B,C", .help = "shown beside the models that its own list has" },
    { "--header", .value = "HEADER", .is_many = true, .help = "to send with every request, written as 'Name: value'",
      .field = "headers" },
    { "--name", .value = "NAME", .help = "what callers say as `provider`; default: ID" },
    { "--for", .value = "WHAT",
      .help = "models (chats, embeddings), speech or all; default: models, or speech where there is nothing else",
      .field = "for" },
    { .name = NULL },
};
const struct cli_option provider_test_options[] = {
    { "--for", .value = "WHAT", .help = "chat, embed or speech; default: chat, where it has chats",
      .field = "capability" },
    { "--model", .value = "MODEL", .help = "another model than the one that is set" },
    { .name = NULL },
};
const struct cli_option provider_default_options[] = {
    { "--model", .value = "MODEL", .help = "of it; default: the provider's own" },
    { "--for", .value = "WHAT", .help = "chat (default) or embed", .field = "capability" },
    { "--app", .value = "APP", .help = "only for this app (id or name), which falls back on no other" },
    { "--clear", .help = "take the default back" },
    { .name = NULL },
};

const struct cli_column provider_fact_columns[] = {
    { "PROVIDER", "provider" },
    { "MODEL", "model" },
    { "FACT", "fact" },
    { "VALUE", "value" },
    { "SINCE", "learnt_at", CLI_TIME, 1 },
    { .title = NULL },
};

static void print_note(struct json_value answer)
{
    const char *note = json_cstr(json_get(answer, "note"));

    out_print(note ? " %s\n" : "%s\n", note ? note : "");
}

/* Reads the key when the option's value is "-". */
static int complete_key(struct cli *cli, struct err *e)
{
    int r = 0;

    for (size_t i = 0; i < cli->n_given && r == 0; i++)
        if (strcmp(cli->given[i].option->name, "--api-key") == 0 && strcmp(cli->given[i].value, "-") == 0) {
            cli->given[i].value = NULL;
            r = cli_read_key(cli, "--api-key - reads the key from standard input, and nothing came",
                             &cli->given[i].value, e);
        }
    return r;
}

/* --- add --- */

static int check_headers(struct cli *cli, struct err *e)
{
    size_t n;
    const char *const *headers = cli_values(cli, "--header", &n);

    for (size_t i = 0; i < n; i++)
        if (!strchr(headers[i], ':'))
            return err_set(e, -EINVAL, "BAD_USE", "--header must be written as 'Name: value'");
    return 0;
}

static void write_headers(struct cli *cli, struct json_writer *w)
{
    size_t n;
    const char *const *headers = cli_values(cli, "--header", &n);

    json_begin_object_as(w, "headers");
    for (size_t i = 0; i < n; i++) {
        size_t n_name = strcspn(headers[i], ":");

        json_add_string(w, cli_trimmed(cli->arena, (struct slice){ headers[i], n_name }),
                        cli_trimmed(cli->arena, slice_of(headers[i] + n_name + 1)));
    }
    json_end(w);
}

static void write_models(struct cli *cli, struct json_writer *w)
{
    const char *list = cli_value(cli, "--models");

    json_begin_array_as(w, "models");
    for (; list && *list; list += strspn(list, ",")) {
        char *model = cli_trimmed(cli->arena, (struct slice){ list, strcspn(list, ",") });

        if (*model)
            json_add_string(w, NULL, model);
        list += strcspn(list, ",");
    }
    json_end(w);
}

void body_provider_add(struct cli *cli, struct json_writer *w)
{
    json_add_string(w, "preset", cli->args[0]);
    json_add_string(w, "name", cli_value(cli, "--name"));
    json_add_string(w, "for", cli_value(cli, "--for"));
    json_add_string(w, "base_url", cli_value(cli, "--base-url"));
    json_add_string(w, "api_key", cli_value(cli, "--api-key"));
    json_add_string(w, "model", cli_value(cli, "--model"));
    json_add_string(w, "embed_model", cli_value(cli, "--embed-model"));
    write_headers(cli, w);
    write_models(cli, w);
}

int run_provider_add(struct cli *cli, struct err *e)
{
    struct client_request request = { .method = HTTP_POST, .path = "/api/providers" };
    struct client_reply reply = { 0 };
    const char *name;
    int r = check_headers(cli, e);

    if (r == 0)
        r = complete_key(cli, e);
    if (r == 0) {
        request.body = cli_write_body(cli);
        r = cli_send(cli, &request, &reply, e);
    }
    if (r < 0)
        return r;
    name = json_cstr(json_get(reply.json, "name"));
    if (cli->is_json) {
        cli_show(cli, reply.json);
        return 0;
    }
    out_print("The provider %s is added; `hearth provider test %s` makes a call to see that it works.", name, name);
    print_note(reply.json);
    return 0;
}

/* --- list --- */

static void print_default(struct json_value answer, const char *capability, const char *title)
{
    struct json_value def = json_get(json_get(answer, "defaults"), capability);
    const char *provider = json_cstr(json_get(def, "provider")), *model = json_cstr(json_get(def, "model")),
               *origin = json_cstr(json_get(def, "origin"));

    out_print("%-12s %s%s%s%s\n", title, provider ? provider : "none", model ? " with " : "", model ? model : "",
              provider && origin && strcmp(origin, "order") == 0 ? " (the first that is configured)" : "");
}

static void print_fallbacks(struct json_value list)
{
    struct json_value item;
    const char *comma = "";

    out_print("%-12s ", "fallbacks");
    for (struct json_iter it = json_iter(list); json_next(&it, NULL, &item); comma = ", ")
        out_print("%s%s%s", comma, json_cstr(json_get(item, "provider")),
                  json_bool(json_get(item, "configured")) ? "" : " (not configured, passed over)");
    out_print("%s\n", json_length(list) ? "" : "none; `hearth settings set llm.fallbacks A,B` names some");
}

static void print_resting(struct json_value providers)
{
    struct json_value provider, model;

    for (struct json_iter it = json_iter(providers); json_next(&it, NULL, &provider);)
        for (struct json_iter models = json_iter(json_get(provider, "resting_models"));
             json_next(&models, NULL, &model);)
            out_print("%-12s %s of %s failed several times in a row; the other models are asked\n", "rests",
                      json_cstr(model), json_cstr(json_get(provider, "name")));
}

static void print_failures(struct cli *cli, struct json_value providers)
{
    static const struct cli_column at = { "AT", "last_error_at", CLI_TIME };
    struct json_value provider;

    for (struct json_iter it = json_iter(providers); json_next(&it, NULL, &provider);)
        if (json_cstr(json_get(provider, "last_error")))
            out_print("%-12s %s at %s: %s\n", "failed", json_cstr(json_get(provider, "name")),
                      table_cell(cli->arena, provider, &at), json_cstr(json_get(provider, "last_error")));
}

static void print_waiting(struct json_value list)
{
    struct json_value item;

    for (struct json_iter it = json_iter(list); json_next(&it, NULL, &item);) {
        const char *name = json_cstr(json_get(item, "name")), *label = json_cstr(json_get(item, "label")),
                   *address = json_cstr(json_get(item, "address"));

        if (json_bool(json_get(item, "foreign")))
            out_print("\nAt %s, where %s usually listens, another user's program does; it is not used.\n", address,
                      label);
        else
            out_print("\n%s was found at %s and waits for your yes: `hearth provider accept %s`\n", label, address,
                      name);
    }
}

int run_provider_list(struct cli *cli, struct err *e)
{
    static const struct cli_column columns[] = {
        { "NAME", "name" },
        { "PROVIDER", "label", .drop = 3 },
        { "FROM", "source", .drop = 4 },
        { "KEY", "key" },
        { "MODEL", "model" },
        { "EMBEDS WITH", "embed_model" },
        { "FOR", "for", .drop = 2 },
        { "DEFAULT FOR", "default_for", CLI_JOINED },
        { "STATE", "state" },
        { "ADDRESS", "base_url", .drop = 5 },
        { .title = NULL },
    };
    static const struct cli_column app_columns[] = {
        { "APP", "app" },
        { "FOR", "capability" },
        { "ASKS", "provider" },
        { "MODEL", "model" },
        { "CONFIGURED", "configured", CLI_YES_NO },
        { .title = NULL },
    };
    struct client_reply reply;
    int r = cli_get(cli, "/api/providers", &reply, e);

    if (r < 0)
        return r;
    if (cli->is_json) {
        cli_print_json(json_get(reply.json, "providers"));
        return 0;
    }
    cli_print_table(
        cli, json_get(reply.json, "providers"), columns,
        "No provider is configured; `hearth provider add ID` adds one, `hearth provider presets` lists them.");
    out_print("\n");
    print_default(reply.json, "chat", "chats");
    print_default(reply.json, "embed", "embeddings");
    print_fallbacks(json_get(reply.json, "fallbacks"));
    print_resting(json_get(reply.json, "providers"));
    print_failures(cli, json_get(reply.json, "providers"));
    print_waiting(json_get(reply.json, "waiting"));
    if (json_length(json_get(reply.json, "apps"))) {
        out_print("\n");
        cli_print_table(cli, json_get(reply.json, "apps"), app_columns, "");
    }
    return 0;
}

/* --- test --- */

void body_provider_test(struct cli *cli, struct json_writer *w)
{
    json_add_string(w, "capability", cli_value(cli, "--for"));
    json_add_string(w, "model", cli_value(cli, "--model"));
}

int run_provider_test(struct cli *cli, struct err *e)
{
    struct client_request request = { .method = HTTP_POST,
                                      .path = cli_fill_path(cli, "/api/providers/{0}/test"),
                                      .body = cli_write_body(cli) };
    struct client_reply reply;
    const char *text;
    int r = cli_send(cli, &request, &reply, e);

    if (r < 0)
        return r;
    text = json_cstr(json_get(reply.json, "text"));
    if (cli->is_json)
        cli_show(cli, reply.json);
    if (!json_bool(json_get(reply.json, "works")))
        return cli->is_json ? CLI_FAILED : err_set(e, -EIO, "LLM_ERROR", "%s", text);
    if (!cli->is_json)
        out_print("%s\n", text);
    return CLI_DONE;
}

/* --- remove --- */

int run_provider_remove(struct cli *cli, struct err *e)
{
    struct client_request request = { .method = HTTP_DELETE, .path = cli_fill_path(cli, "/api/providers/{0}") };
    struct client_reply reply;
    int r = cli_send(cli, &request, &reply, e);

    if (r < 0)
        return r;
    out_print("The provider %s is removed.", cli->args[0]);
    print_note(reply.json);
    return 0;
}

/* --- default --- */

void body_provider_default(struct cli *cli, struct json_writer *w)
{
    json_add_string(w, "capability", cli_value(cli, "--for"));
    json_add_string(w, "model", cli_value(cli, "--model"));
    json_add_string(w, "app", cli_value(cli, "--app"));
}

static const char *clear_query(struct cli *cli)
{
    const char *query =
        arena_printf(cli->arena, "capability=%s", cli_value(cli, "--for") ? cli_fill_path(cli, "{--for}") : "chat");

    return cli_has(cli, "--app") ? arena_printf(cli->arena, "%s&app=%s", query, cli_fill_path(cli, "{--app}")) : query;
}

static void print_chosen_default(struct cli *cli, struct json_value answer)
{
    const char *provider = json_cstr(json_get(answer, "provider")), *model = json_cstr(json_get(answer, "model"));
    bool is_chat = slice_eq_str(json_string(json_get(answer, "capability")), "chat");

    out_print("%s%s that name no provider ", is_chat ? "Chats" : "Embeddings",
              cli_has(cli, "--app") ? arena_printf(cli->arena, " of %s", cli_value(cli, "--app")) : "");
    if (provider)
        out_print("go to %s%s%s.", provider, model ? " with " : "", model ? model : "");
    else
        out_print("find none configured.");
    print_note(answer);
}

int run_provider_default(struct cli *cli, struct err *e)
{
    bool is_clear = cli_has(cli, "--clear");
    struct client_request request = { .method = HTTP_DELETE, .path = "/api/providers/default" };
    struct client_reply reply;
    int r;

    if (is_clear == (cli->n_args > 0))
        return err_set(e, -EINVAL, "BAD_USE",
                       is_clear ? "--clear takes back a default and needs no NAME"
                                : "Which provider? NAME, or --clear");
    if (is_clear)
        request.query = clear_query(cli);
    else
        request = (struct client_request){ .method = HTTP_POST,
                                           .path = cli_fill_path(cli, "/api/providers/{0}/default"),
                                           .body = cli_write_body(cli) };
    r = cli_send(cli, &request, &reply, e);
    if (r < 0)
        return r;
    if (cli->is_json)
        cli_show(cli, reply.json);
    else
        print_chosen_default(cli, reply.json);
    return 0;
}

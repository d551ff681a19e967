/* hearth usage: --by chooses the columns; the sum is below them. */
#include "cli/out.h"
#include "cli/request.h"
#include "cli/special.h"

static const struct {
    const char *by;
    struct cli_column columns[2];
} groups[] = {
    { "day", { { "DAY", "day" } } },
    { "app", { { "APP", "app_name" }, { "APP ID", "app" } } },
    { "key", { { "KEY", "key_name" }, { "KEY ID", "key" } } },
    { "provider", { { "PROVIDER", "provider" } } },
    { "model", { { "MODEL", "model" } } },
    { "kind", { { "KIND", "kind" } } },
};

static const struct cli_column counts[] = {
    { "REQUESTS", "requests" },           { "FAILED", "failed" },
    { "PROMPT TOKENS", "prompt_tokens" }, { "ANSWER TOKENS", "completion_tokens" },
    { "TOKENS", "total_tokens" },         { "CHARACTERS", "characters", .drop = 1 },
};

enum { MAX_COLUMNS = 2 * ARRAY_SIZE(groups) + ARRAY_SIZE(counts) };

static bool is_requested(const char *by, const char *word)
{
    size_t n = strlen(word);

    for (const char *at = by; at; at = strchr(at, ',')) {
        at += *at == ',';
        if (strncmp(at, word, n) == 0 && (at[n] == ',' || at[n] == '\0'))
            return true;
    }
    return false;
}

static void choose_columns(const char *by, struct cli_column ret[MAX_COLUMNS + 1])
{
    size_t n = 0;

    for (size_t i = 0; i < ARRAY_SIZE(groups); i++)
        for (size_t k = 0; is_requested(by, groups[i].by) && k < 2 && groups[i].columns[k].title; k++)
            ret[n++] = groups[i].columns[k];
    for (size_t i = 0; i < ARRAY_SIZE(counts); i++)
        ret[n++] = counts[i];
    ret[n].title = NULL;
}

static void print_sum(struct json_value answer)
{
    struct json_value totals = json_get(answer, "totals");
    long long rows = json_int(json_get(answer, "rows")), shown = (long long)json_length(json_get(answer, "usage"));

    if (shown < rows)
        out_print("%lld of %lld rows; --limit N shows more.\n", shown, rows);
    out_print("From %s to %s: %lld requests, %lld of them failed, %lld tokens.\n", json_cstr(json_get(answer, "from")),
              json_cstr(json_get(answer, "to")), (long long)json_int(json_get(totals, "requests")),
              (long long)json_int(json_get(totals, "failed")), (long long)json_int(json_get(totals, "total_tokens")));
}

int run_usage(struct cli *cli, struct err *e)
{
    const char *by = cli_has(cli, "--by") ? cli_value(cli, "--by") : "day";
    struct client_request request = { .method = HTTP_GET,
                                      .path = "/api/usage",
                                      .query = cli_fill_query(cli, cli->command->query) };
    struct cli_column columns[MAX_COLUMNS + 1];
    struct client_reply reply;
    int r = cli_send(cli, &request, &reply, e);

    if (r < 0)
        return r;
    if (cli->is_json) {
        cli_show(cli, reply.json);
        return 0;
    }
    choose_columns(by, columns);
    cli_print_table(cli, json_get(reply.json, "usage"), columns, "Nothing was asked of models.");
    print_sum(reply.json);
    return 0;
}

/* Questions of agents and of MCP servers that wait for a person, and what the person decided for later calls. */
#include "agents/approvals.h"

#include "agents/builtin.h"
#include "api/api.h"
#include "api/routes.h"
#include "base/limits.h"
#include "mcp/host.h"
#include "store/tables/approval_rules.h"

#include <string.h>

static const char *const kinds[] = { "tool", "question", "sampling", "elicitation", "trust", NULL };
static const char *const scope_names[] = { "once", "session", "always", NULL };

/* ---- the list ---- */

static const struct field approval_shape[] = {
    SHAPE_STRING("id"),
    SHAPE_STRING("kind", .one_of = kinds,
                 .help = "tool: may it be called; question: of ask_person; sampling: may a server use a model; "
                         "elicitation: a server's form; trust: may a command run"),
    SHAPE_STRING("agent", .flags = FIELD_NULLABLE),
    SHAPE_STRING("server", .flags = FIELD_NULLABLE, .help = "null: a built-in tool"),
    SHAPE_STRING("tool", .flags = FIELD_NULLABLE),
    SHAPE_BOOL("destructive", .help = "the tool says that it may destroy something"),
    SHAPE_STRING("text", .flags = FIELD_NULLABLE, .help = "the question in words"),
    SHAPE_ANY("arguments", .help = "of the call, in full"),
    SHAPE_ANY("choices", .help = "of a question: the texts to choose from; null: any text"),
    SHAPE_ANY("schema", .help = "of a form: the JSON Schema of the reply"),
    SHAPE_STRING("session_id", .flags = FIELD_NULLABLE),
    SHAPE_STRING("task_uuid", .flags = FIELD_NULLABLE),
    SHAPE_STRING("app_id", .flags = FIELD_NULLABLE, .help = "the app that the agent works for"),
    SHAPE_TIME("asked_at"),
    FIELD_END,
};
static const struct field approvals_answer[] = { SHAPE_LIST("approvals", approval_shape), FIELD_END };

static void write_approval(struct json_writer *w, const struct approval_view *v)
{
    json_begin_object(w);
    json_add_string(w, "id", v->id);
    json_add_string(w, "kind", v->kind);
    json_add_string(w, "agent", v->agent);
    json_add_string(w, "server", v->server);
    json_add_string(w, "tool", v->tool);
    json_add_bool(w, "destructive", v->is_destructive);
    json_add_string(w, "text", v->text);
    json_add_raw(w, "arguments", v->arguments);
    json_add_raw(w, "choices", v->choices);
    json_add_raw(w, "schema", v->schema);
    json_add_string(w, "session_id", v->session_id);
    json_add_string(w, "task_uuid", v->task_uuid);
    json_add_string(w, "app_id", v->app_id);
    json_add_string(w, "asked_at", v->requested_at);
    json_end(w);
}

static int list_approvals(struct request *req, struct response *res, struct err *e)
{
    struct approval_views views = { .n = 0 };

    approvals_list(req->api->approvals, req->arena, &views);
    json_begin_array_as(&res->json, "approvals");
    for (size_t i = 0; i < views.n; i++)
        write_approval(&res->json, &views.items[i]);
    json_end(&res->json);
    return 0;
}

/* ---- a decision ---- */

struct decide_body {
    bool is_allowed;
    const char *scope;
    struct json_value reply;
};
static const struct field decide_fields[] = {
    FIELD_BOOL(struct decide_body, is_allowed, "allow", FIELD_REQUIRED),
    FIELD_STRING(struct decide_body, scope, "scope", .one_of = scope_names, .def_str = "once",
                 .help = "session and always: for calls of tools; always is kept for this agent and tool, with allow "
                         "false it means never"),
    FIELD_ANY(struct decide_body, reply, "reply",
              .help = "of a question: a text, of a form: an object; with allow true only"),
    FIELD_END,
};

static enum approval_scope scope_of(const char *name)
{
    enum approval_scope scope = APPROVAL_ONCE;

    while (strcmp(approval_scope_name(scope), name) != 0)
        scope++;
    return scope;
}

static int decide(struct request *req, struct response *res, struct err *e)
{
    const struct decide_body *body = req->body;

    return approvals_decide(req->api->approvals,
                            &(struct approval_decision){ .id = req->params[0],
                                                         .is_allowed = body->is_allowed,
                                                         .scope = scope_of(body->scope),
                                                         .reply = body->reply,
                                                         .actor = req->caller->actor },
                            e);
}

/* An MCP server's command: what is allowed here runs on this machine. */
static bool is_about_a_command(const struct request *req)
{
    return approvals_has_kind(req->api->approvals, req->params[0], "trust");
}

/* ---- what is kept ---- */

static const struct field rule_shape[] = {
    SHAPE_STRING("agent"),    SHAPE_STRING("server", .flags = FIELD_NULLABLE, .help = "null: a built-in tool"),
    SHAPE_STRING("tool"),     SHAPE_STRING("decision", .help = "always or never"),
    SHAPE_TIME("decided_at"), FIELD_END,
};
static const struct field rules_answer[] = { SHAPE_LIST("rules", rule_shape), FIELD_END };

struct rule_body {
    const char *agent, *server, *tool, *decision;
};
static const char *const decision_names[] = { "always", "never", NULL };

#define RULE_FIELDS                                                                                                    \
    FIELD_STRING(struct rule_body, agent, "agent", FIELD_REQUIRED, .min = 1, .max = LIMIT_NAME_CHARS),                 \
        FIELD_STRING(struct rule_body, server, "server", .max = LIMIT_NAME_CHARS, .def_str = "",                       \
                     .help = "absent: a built-in tool"),                                                               \
        FIELD_STRING(struct rule_body, tool, "tool", FIELD_REQUIRED, .min = 1, .max = LIMIT_TOOL_ID_BYTES)

static const struct field rule_fields[] = { RULE_FIELDS, FIELD_END };
static const struct field new_rule_fields[] = {
    RULE_FIELDS,
    FIELD_STRING(struct rule_body, decision, "decision", FIELD_REQUIRED, .one_of = decision_names),
    FIELD_END,
};

static void write_rule(struct json_writer *w, const struct approval_rule_row *row)
{
    json_begin_object(w);
    json_add_string(w, "agent", row->agent);
    json_add_string(w, "server", *row->server ? row->server : NULL);
    json_add_string(w, "tool", row->tool);
    json_add_string(w, "decision", row->is_allowed ? "always" : "never");
    json_add_string(w, "decided_at", row->decided_at);
    json_end(w);
}

static int list_rules(struct request *req, struct response *res, struct err *e)
{
    struct approval_rule_row *rows;
    size_t n;
    int r = store_approval_rules_list(req->api->store, req->arena, &rows, &n, e);

    if (r < 0)
        return r;
    json_begin_array_as(&res->json, "rules");
    for (size_t i = 0; i < n; i++)
        write_rule(&res->json, &rows[i]);
    json_end(&res->json);
    return 0;
}

static struct approval_rule rule_of(const struct rule_body *body)
{
    return (struct approval_rule){ .agent = body->agent,
                                   .server = body->server,
                                   .tool = body->tool,
                                   .is_allowed = body->decision && strcmp(body->decision, "always") == 0 };
}

/* A mistyped name would decide about nothing, and the person would believe otherwise. */
static int check_names(const struct request *req, const struct approval_rule *rule, struct err *e)
{
    struct mcp_server_info info;
    struct agent_row row;
    int r = agent_get(req->api->agents, rule->agent, req->arena, &row, e);

    if (r < 0)
        return r;
    return *rule->server ? mcp_host_server(req->api->mcp_host, rule->server, req->arena, &info, e)
                         : builtin_check(rule->tool, e);
}

static int set_rule(struct request *req, struct response *res, struct err *e)
{
    const struct approval_rule rule = rule_of(req->body);
    int r = check_names(req, &rule, e);

    return r < 0 ? r : approvals_set_rule(req->api->approvals, &rule, req->caller->actor, e);
}

static int forget_rule(struct request *req, struct response *res, struct err *e)
{
    const struct approval_rule rule = rule_of(req->body);

    return approvals_forget_rule(req->api->approvals, &rule, req->caller->actor, e);
}

const struct route approval_routes[] = {
    { .method = HTTP_GET,
      .path = "/api/approvals",
      .permission = PERM_ADMIN,
      .answer = approvals_answer,
      .handler = list_approvals,
      .summary = "Questions of agents that wait for the person",
      .tag = "Approvals" },
    { .method = HTTP_POST,
      .path = "/api/approvals/:id",
      .permission = PERM_ADMIN,
      ROUTE_BODY(decide_fields, struct decide_body),
      .max_body = 2 * LIMIT_APPROVAL_BYTES,
      .answer = api_nothing,
      .defines = true,
      .defines_when = is_about_a_command,
      .handler = decide,
      .summary = "Allow or deny, or answer a question",
      .tag = "Approvals" },
    { .method = HTTP_GET,
      .path = "/api/approvals/rules",
      .permission = PERM_ADMIN,
      .answer = rules_answer,
      .handler = list_rules,
      .summary = "What was decided for all later calls of a tool",
      .tag = "Approvals" },
    { .method = HTTP_POST,
      .path = "/api/approvals/rules",
      .permission = PERM_ADMIN,
      ROUTE_BODY(new_rule_fields, struct rule_body),
      .answer = api_nothing,
      .handler = set_rule,
      .summary = "Decide about all calls of a tool by an agent: always or never",
      .tag = "Approvals" },
    { .method = HTTP_POST,
      .path = "/api/approvals/rules/forget",
      .permission = PERM_ADMIN,
      ROUTE_BODY(rule_fields, struct rule_body),
      .answer = api_nothing,
      .handler = forget_rule,
      .summary = "Take such a decision back: the person is asked again",
      .tag = "Approvals" },
    ROUTE_END,
};

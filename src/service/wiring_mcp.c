/* What configured MCP servers ask during a call: of the client of /mcp that made it, or of the person. */
#include "service/private.h"

#include "agents/sampling.h"

static int pass_on(struct service *s, enum mcp_api_ability ability, const struct mcp_server_request *request,
                   struct buf *ret_result, struct err *e)
{
    struct json_value answer = { 0 };
    struct json_writer w;
    const char *name = request->caller ? request->caller->name : NULL;
    int r = mcp_api_request_caller(s->mcp_api, name, ability, request->params, request->arena, &answer, e);

    if (r < 0)
        return r;
    json_write_init(&w, ret_result);
    json_add_value(&w, NULL, answer);
    return 0;
}

int wire_mcp_trust(void *service, const struct mcp_trust_question *q, const struct net_wait *wait, struct err *e)
{
    struct service *s = service;
    AUTO(arena_freep) struct arena *a = arena_new();
    const struct approval_question question = { .kind = "trust", .server = q->server, .text = q->shown };
    struct approval_answer answer;
    int r = approvals_request(s->approvals, &question, wait, a, &answer, e);

    if (r < 0)
        return r;
    return answer.outcome == APPROVAL_ALLOWED ? 1 : answer.outcome == APPROVAL_DENIED ? 0 : -EAGAIN;
}

/* What the person is shown of params (elicitation/create): mode form has a schema, mode url an address. */
static struct approval_question form_of(const char *server, const struct mcp_server_request *request)
{
    bool is_url = slice_eq_str(json_string(json_get(request->params, "mode")), "url");
    const struct mcp_caller *caller = request->caller;

    return (struct approval_question){ .kind = "elicitation",
                                       .server = server,
                                       .session_id = caller->session_id,
                                       .task_uuid = caller->task_uuid,
                                       .app_id = caller->who ? caller->who->app_id : NULL,
                                       .text = json_cstr(json_get(request->params, "message")),
                                       .arguments = is_url ? request->params : (struct json_value){ 0 },
                                       .schema = json_get(request->params, "requestedSchema") };
}

static void write_form(struct buf *out, const struct approval_answer *answer)
{
    static const char *const actions[] = {
        [APPROVAL_ALLOWED] = "accept", [APPROVAL_DENIED] = "decline", [APPROVAL_UNANSWERED] = "cancel"
    };
    struct json_writer w;

    json_write_init(&w, out);
    json_begin_object(&w);
    json_add_string(&w, "action", actions[answer->outcome]);
    if (!json_is_absent(answer->reply))
        json_add_value(&w, "content", answer->reply);
    json_end(&w);
}

/* No client of /mcp takes the question: the person in front of Hearth answers. */
static int request_person(struct service *s, const char *server, const struct mcp_server_request *request,
                          struct buf *ret_result, struct err *e)
{
    const struct approval_question question = form_of(server, request);
    struct approval_answer answer = { .outcome = APPROVAL_UNANSWERED };
    int r = approvals_request(s->approvals, &question, request->wait, request->arena, &answer, e);

    if (r == 0)
        write_form(ret_result, &answer);
    return r;
}

int wire_mcp_elicit(void *service, const char *server, const struct mcp_server_request *request, struct buf *ret_result,
                    struct err *e)
{
    int r = pass_on(service, MCP_API_ELICITATION, request, ret_result, e);

    if (r != -ENOTSUP)
        return r;
    err_init(e);
    if (request->caller)
        return request_person(service, server, request, ret_result, e);
    buf_add_str(ret_result, "{\"action\":\"decline\"}"); /* nobody is there */
    return 0;
}

int wire_mcp_sample(void *service, const char *server, const struct mcp_server_request *request, struct buf *ret_result,
                    struct err *e)
{
    struct service *s = service;
    int r = pass_on(s, MCP_API_SAMPLING, request, ret_result, e);

    if (r != -ENOTSUP)
        return r;
    err_init(e);
    return agent_sample(&(struct sampling){ &s->models, s->approvals }, server, request, ret_result, e);
}

#include "agents/sampling_private.h"

#include "agents/approvals.h"
#include "identity/identity.h"
#include "identity/permissions.h"
#include "models/chat_run.h"

/* ---- the person ---- */

static int request_person(const struct sampling *s, const char *server, const struct mcp_server_request *request,
                          const struct sample *sample, struct err *e)
{
    const struct mcp_caller *caller = request->caller;
    const struct approval_question question = {
        .kind = "sampling",
        .server = server,
        .session_id = caller->session_id,
        .task_uuid = caller->task_uuid,
        .app_id = caller->who->app_id,
        .text = arena_printf(request->arena, "The server %s wants an answer of a model, of at most %lld tokens.",
                             server, (long long)sample->request.max_tokens),
        .arguments = request->params,
    };
    struct approval_answer answer = { .outcome = APPROVAL_UNANSWERED };
    int r = approvals_request(s->approvals, &question, request->wait, request->arena, &answer, e);

    if (r < 0 || answer.outcome == APPROVAL_ALLOWED)
        return r;
    return err_set(e, -EPERM, "PERMISSION_DENIED",
                   answer.outcome == APPROVAL_DENIED ? "A person denied the request for a model's answer."
                                                     : "Nobody answered the request for a model's answer.");
}

/* ---- the model ---- */

static void write_answer(struct buf *out, const struct llm_whole *whole)
{
    static const char *const reasons[] = { [LLM_FINISH_STOP] = "endTurn",
                                           [LLM_FINISH_LENGTH] = "maxTokens",
                                           [LLM_FINISH_TOOLS] = "endTurn",
                                           [LLM_FINISH_FILTER] = "contentFilter" };
    struct json_writer w;

    json_write_init(&w, out);
    json_begin_object(&w);
    json_add_string(&w, "role", "assistant");
    json_begin_object_as(&w, "content");
    json_add_string(&w, "type", "text");
    json_add_slice(&w, "text", buf_slice(&whole->answer.text));
    json_end(&w);
    json_add_string(&w, "model", whole->progress.model);
    json_add_string(&w, "stopReason", reasons[whole->answer.why]);
    json_end(&w);
}

/* The time of the person does not count for the model. */
static int answer_by_model(const struct sampling *s, const struct mcp_server_request *request, struct sample *sample,
                           struct buf *ret_result, struct err *e)
{
    struct net_wait wait = net_wait_of(LIMIT_MCP_REQUEST_MS, request->wait->is_gone, s->models->is_leaving);
    struct models_call call = { .models = s->models,
                                .caller = request->caller->who,
                                .arena = request->arena,
                                .is_gone = request->wait->is_gone,
                                .holder = request->wait->holder };
    struct chat_job job = { .request = &sample->request, .arena = request->arena };
    const struct chat_run run = { .wait = &wait };
    struct llm_whole *whole = NULL;
    int r = sample_choose(&call, sample, &job.provider, &sample->request.model, e);

    if (r == 0)
        r = chat_run(&call, &job, &run, &whole, e);
    if (r == 0)
        write_answer(ret_result, whole);
    llm_whole_free(whole);
    return r;
}

int agent_sample(const struct sampling *s, const char *server, const struct mcp_server_request *request,
                 struct buf *ret_result, struct err *e)
{
    const struct caller *who = request->caller ? request->caller->who : NULL;
    struct sample sample;
    int r;

    if (!who)
        return err_set(e, -ENOTSUP, "CLIENT_CANNOT", "It is not known for which caller a model may answer.");
    r = sample_read(request->arena, request->params, &sample, e);
    if (r == 0) /* before a person is asked in vain */
        r = identity_check(s->models->identity, who, PERM_LLM_CHAT, e);
    if (r == 0)
        r = request_person(s, server, request, &sample, e);
    return r < 0 ? r : answer_by_model(s, request, &sample, ret_result, e);
}

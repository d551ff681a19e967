/* One request of a client, with the questions that a server of the stateless era puts before its result ("Multi
 * Round-Trip Requests"): the same request again, with the answers and the server's own state. */
#include "mcp/client_private.h"

#include <string.h>

/* What the next request has in addition. */
struct round {
    const struct client_request *request;
    const char *responses;   /* JSON object; NULL: none */
    struct json_value state; /* a string, or absent */
};

static void add_round(const void *arg, struct json_writer *w)
{
    const struct round *round = arg;

    if (round->request->add_params)
        round->request->add_params(round->request->arg, w);
    if (round->responses)
        json_add_raw(w, "inputResponses", round->responses);
    if (json_type(round->state) == JSON_STRING)
        json_add_value(w, "requestState", round->state);
}

static int send_round(struct mcp_client *c, const struct mcp_call *call, const struct round *round,
                      struct mcp_reply *ret, struct err *e)
{
    const struct mcp_request q = {
        .method = round->request->method,
        .name = round->request->name,
        .version = c->about.version,
        .headers = round->request->headers,
        .n_headers = round->request->n_headers,
        .add_params =
            round->request->add_params || round->responses || !json_is_absent(round->state) ? add_round : NULL,
        .arg = round,
        .add_meta = c->era->add_meta,
        .meta = c,
        .task = round->request->task,
    };

    return mcp_peer_call(c->peer, &q, call, ret, e);
}

/* A person who is not there declines; nothing else can be made up. */
static int answer_input(struct mcp_client *c, const struct mcp_call *call, struct json_value input, struct buf *out,
                        struct err *e)
{
    const struct net_wait wait = net_wait_part(call->wait, LIMIT_MCP_REQUEST_MS);
    const struct mcp_server_request request = { json_get(input, "params"), call->arena, &wait, call->caller };
    const char *method = json_cstr(json_get(input, "method"));

    if (!method)
        return client_bad_answer("input_required", "method", e);
    if (strcmp(method, "elicitation/create") == 0 && !c->handlers.elicit) {
        buf_add_str(out, "{\"action\":\"decline\"}");
        return 0;
    }
    return client_answer(c, method, &request, out, e);
}

static int add_answer(struct mcp_client *c, const struct mcp_call *call, struct json_value input, struct json_writer *w,
                      struct err *e)
{
    struct slice key = json_name_of(input);
    struct buf out;
    int r;

    buf_init(&out, LIMIT_MCP_FRAME);
    r = answer_input(c, call, input, &out, e);
    if (r == 0)
        r = buf_check(&out, e);
    if (r == 0)
        json_add_raw(w, arena_slicedup(call->arena, key), buf_str(&out));
    buf_clear(&out);
    if (r < 0)
        return err_prefix(e, r, "The MCP server's question `%.*s` could not be answered", (int)MIN(key.n, (size_t)60),
                          key.p);
    return 0;
}

static int answer_inputs(struct mcp_client *c, const struct mcp_call *call, struct json_value inputs, const char **ret,
                         struct err *e)
{
    struct json_iter it = json_iter(inputs);
    struct json_value input;
    struct json_writer w;
    struct buf out;
    int r = 0;

    if (json_length(inputs) > LIMIT_MCP_ROUND_INPUTS)
        return err_set(e, -E2BIG, "MCP_TOO_LARGE", "The MCP server asks more than %d questions at once.",
                       LIMIT_MCP_ROUND_INPUTS);
    buf_init(&out, LIMIT_MCP_FRAME);
    json_write_init(&w, &out);
    json_begin_object(&w);
    while (r == 0 && json_next(&it, NULL, &input))
        r = add_answer(c, call, input, &w, e);
    json_end(&w);
    if (r == 0)
        r = buf_check(&out, e);
    *ret = buf_to_arena(&out, call->arena);
    return r;
}

static int next_round(struct mcp_client *c, const struct mcp_call *call, struct json_value result, struct round *round,
                      struct err *e)
{
    struct json_value inputs = json_get(result, "inputRequests");
    bool has_inputs = json_type(inputs) == JSON_OBJECT && json_length(inputs) > 0;

    round->state = json_get(result, "requestState");
    round->responses = NULL;
    if (!has_inputs && json_type(round->state) != JSON_STRING)
        return client_bad_answer(round->request->method, "inputRequests", e);
    return has_inputs ? answer_inputs(c, call, inputs, &round->responses, e) : 0;
}

/* 1: the server needs input first. */
static int judge_result(const struct mcp_client *c, const char *method, struct json_value result, struct err *e)
{
    struct json_value type = json_get(result, "resultType");

    if (json_type(result) != JSON_OBJECT)
        return client_bad_answer(method, "result", e);
    if (!c->era->has_inputs || json_is_absent(type) || slice_eq_str(json_string(type), "complete"))
        return 0;
    return slice_eq_str(json_string(type), "input_required") ? 1 : client_bad_answer(method, "resultType", e);
}

int mcp_client_send(struct mcp_client *c, const struct mcp_call *call, const struct client_request *q,
                    struct json_value *ret, struct json_rpc_error *ret_error, size_t *ret_n_bytes, struct err *e)
{
    struct round round = { .request = q };
    int r = 1;

    for (int n = 0; r == 1 && n < LIMIT_MCP_ROUNDS; n++) {
        struct mcp_reply reply;

        r = send_round(c, call, &round, &reply, e);
        if (r == 0 && reply.is_error && ret_error) {
            *ret_error = reply.error;
            return 1;
        }
        if (r == 0)
            r = reply.is_error ? client_refuse(q->method, &reply.error, e)
                               : judge_result(c, q->method, reply.result, e);
        if (r == 0) {
            *ret = reply.result;
            if (ret_n_bytes)
                *ret_n_bytes = reply.n_bytes;
        } else if (r == 1) {
            int answered = next_round(c, call, reply.result, &round, e);

            r = answered < 0 ? answered : 1;
        }
    }
    if (r == 1)
        return err_set(e, -EPROTO, "MCP_BAD_ANSWER", "The MCP server asked for input more than %d times in one call.",
                       LIMIT_MCP_ROUNDS);
    return r;
}

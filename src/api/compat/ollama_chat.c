/* Ollama's POST /api/chat and /api/generate (github.com/ollama/ollama, docs/api.md). */
#include "api/api.h"
#include "api/resources/llm_chat.h"
#include "api/compat/ollama_body.h"
#include "api/compat/ollama_form.h"
#include "api/routes.h"
#include "api/compat/v1.h"

static bool needs_long(const struct request *req)
{
    const struct ollama_body *body = req->body;

    return !ollama_is_empty(body) && v1_tagged_waits(req, PROVIDER_CHAT, body->model);
}

static bool is_zero(struct json_value keep_alive)
{
    bool is_number = json_type(keep_alive) == JSON_INT || json_type(keep_alive) == JSON_DOUBLE;

    return is_number ? json_double(keep_alive) == 0
                     : slice_eq_str(json_string(keep_alive), "0") || slice_eq_str(json_string(keep_alive), "0s");
}

/* Nothing is loaded or unloaded: providers load their models when requests come. The one line is also a valid stream.
 */
static int answer_empty(const struct ollama_body *body, bool is_prompt, struct response *res)
{
    const char *reason = is_zero(body->keep_alive) ? "unload" : "load";
    struct json_writer w;
    struct buf *out;

    if (!body->is_streamed) {
        ollama_write_empty(&res->json, body->model, reason, is_prompt);
        return 0;
    }
    out = response_start_raw(res, OLLAMA_LINES);
    json_write_init(&w, out);
    json_begin_object(&w);
    ollama_write_empty(&w, body->model, reason, is_prompt);
    json_end(&w);
    buf_add_char(out, '\n');
    return 0;
}

static int make_request(struct request *req, struct llm_chat *chat, struct err *e)
{
    const struct ollama_body *body = req->body;
    struct provider_choice whom = { 0 };
    int r = ollama_request(body, req->body_json, http_exchange_body_arena(req->exchange), chat->request, e);

    if (r == 0)
        r = v1_find_tagged_model(req, PROVIDER_CHAT, body->model, &whom, e);
    chat->provider = whom.provider;
    chat->request->model = whom.model;
    return r;
}

static int answer(struct request *req, struct response *res, bool is_prompt, struct err *e)
{
    const struct ollama_body *body = req->body;
    const struct ollama_state state = { .is_prompt = is_prompt, .hides_thoughts = ollama_hides_thoughts(body) };
    struct llm_chat chat = { .request = ARENA_NEW(http_exchange_body_arena(req->exchange), struct llm_request),
                             .form = &ollama_form,
                             .state = &state,
                             .n_state = sizeof(state) };
    int r;

    if (ollama_is_empty(body))
        return answer_empty(body, is_prompt, res);
    r = make_request(req, &chat, e);
    if (r < 0)
        return r;
    return body->is_streamed ? llm_chat_stream(req, res, &chat, e) : llm_chat_answer(req, res, &chat, e);
}

static int chat(struct request *req, struct response *res, struct err *e)
{
    return answer(req, res, false, e);
}

static int generate(struct request *req, struct response *res, struct err *e)
{
    return answer(req, res, true, e);
}

const struct route ollama_chat_routes[] = {
    { .method = HTTP_POST,
      .path = "/api/chat",
      .permission = PERM_LLM_CHAT,
      .needs_long = needs_long,
      .is_bare = true,
      ROUTE_BODY(ollama_chat_fields, struct ollama_body),
      .max_body = LIMIT_BODY_CHAT,
      .answer = ollama_chat_shape,
      .may_stream = true,
      .stream_type = OLLAMA_LINES,
      .takes_anonymous = true,
      .error_form = &ollama_error,
      .handler = chat,
      .summary = "A chat in Ollama's form",
      .tag = "Compatible" },
    { .method = HTTP_POST,
      .path = "/api/generate",
      .permission = PERM_LLM_CHAT,
      .needs_long = needs_long,
      .is_bare = true,
      ROUTE_BODY(ollama_generate_fields, struct ollama_body),
      .max_body = LIMIT_BODY_CHAT,
      .answer = ollama_generate_shape,
      .may_stream = true,
      .stream_type = OLLAMA_LINES,
      .takes_anonymous = true,
      .error_form = &ollama_error,
      .handler = generate,
      .summary = "An answer to a prompt in Ollama's form",
      .tag = "Compatible" },
    ROUTE_END,
};

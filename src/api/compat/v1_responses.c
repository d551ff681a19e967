/* /v1/responses (platform.openai.com/docs/api-reference/responses). */
#include "api/api.h"
#include "api/resources/llm_chat.h"
#include "api/routes.h"
#include "api/compat/v1.h"
#include "api/compat/v1_openai_form.h"
#include "api/compat/v1_response.h"
#include "api/compat/v1_responses_body.h"
#include "api/compat/v1_responses_form.h"

#include <stdlib.h>

enum { BYTES_A_VALUE = 32, COPIES = 2 }; /* upper bounds for parsed JSON (api/admission.c) */

/* ---- kept answers that the request needs ---- */

/* A kept answer, read into the body's arena. */
struct loaded {
    char id[V1_KEPT_ID_SIZE];
    struct json_value input, output;
};

struct thread {
    struct request *req;
    struct arena *a; /* borrowed: the body's */
    struct loaded *loaded;
    size_t n_loaded;
    struct json_value *lists;
    size_t n_lists, n_bytes;
    const struct v1_kept_turn *previous; /* a reference */
};

/* Whose kept answers are found. A key that names an app has its own, apart from the app's. */
static const char *caller_of(const struct request *req)
{
    return arena_printf(req->arena, "%s %s", req->caller->actor, req->caller->app_id ? req->caller->app_id : "-");
}

static int not_found(const char *what, const char *id, const char *path, struct err *e)
{
    (void)!err_add_field(e, path, "must be the id of %s that is kept", what);
    return err_set(e, -ENOENT, "RESPONSE_NOT_FOUND", "There is no %s %.100s, or it is no longer kept.", what, id);
}

static const struct v1_kept_turn *find_turn(const struct request *req, struct slice id)
{
    return req->api->v1_kept && id.n > 0 ? v1_kept_find(req->api->v1_kept, caller_of(req), id) : NULL;
}

/* A request that continues a long thread needs as much memory as one that sends the thread. */
static int take_memory(const struct thread *t, const struct v1_kept_turn *turn, struct err *e)
{
    size_t n = (turn->n_input + turn->n_response) * COPIES + turn->n_values * BYTES_A_VALUE;

    if (!arena_has_room(t->a, n))
        return err_set(e, -E2BIG, "TOO_LARGE",
                       "The thread that is continued takes more memory than one request may; begin a new one.");
    return n > LIMIT_LARGE_BODY ? purse_take(&t->req->exchange->purse, BUDGET_MEMORY, (int64_t)n, e) : 0;
}

static int load(struct thread *t, const struct v1_kept_turn *turn, const struct loaded **ret, struct err *e)
{
    struct json_value response = { 0 };
    struct loaded *place;
    int r = 0;

    for (size_t i = 0; i < t->n_loaded; i++)
        if (strcmp(t->loaded[i].id, turn->id) == 0) {
            *ret = &t->loaded[i];
            return 0;
        }
    if (t->n_loaded == LIMIT_MESSAGES)
        return err_add_field(e, "input", "must have at most %d items, those of the thread it continues among them",
                             LIMIT_MESSAGES);
    if (!t->loaded)
        t->loaded = arena_array(t->a, LIMIT_MESSAGES, sizeof(*t->loaded));
    place = &t->loaded[t->n_loaded];
    r = take_memory(t, turn, e);
    if (r == 0)
        r = json_parse(t->a, (struct slice){ turn->input, turn->n_input }, &place->input, e);
    if (r == 0)
        r = json_parse(t->a, (struct slice){ turn->response, turn->n_response }, &response, e);
    if (r < 0)
        return r;
    place->output = json_get(response, "output");
    memcpy(place->id, turn->id, sizeof(place->id));
    t->n_loaded++;
    *ret = place;
    return 0;
}

/* Loads input and output of each turn, oldest turn first. */
static int load_thread(struct thread *t, const char *id, struct err *e)
{
    const struct loaded *loaded;
    size_t n = 0;
    int r = 0;

    if (!id || !*id)
        return 0;
    t->previous = find_turn(t->req, v1_response_id(id));
    if (!t->previous)
        return not_found("response", id, "previous_response_id", e);
    for (const struct v1_kept_turn *turn = t->previous; turn && n <= LIMIT_MESSAGES; turn = turn->previous)
        n++;
    t->n_lists = 2 * n;
    t->lists = arena_array(t->a, t->n_lists, sizeof(*t->lists));
    for (const struct v1_kept_turn *turn = t->previous; r == 0 && n-- > 0; turn = turn->previous) {
        r = load(t, turn, &loaded, e);
        if (r == 0) {
            t->n_bytes += turn->n_input + turn->n_response;
            t->lists[2 * n] = loaded->input;
            t->lists[2 * n + 1] = loaded->output;
        }
    }
    return r;
}

static struct json_value element(struct json_value list, size_t at)
{
    struct json_value value = { 0 };
    struct json_iter it = json_iter(list);

    for (size_t i = 0; i <= at; i++)
        if (!json_next(&it, NULL, &value))
            return (struct json_value){ 0 };
    return value;
}

/* For struct v1_items.find: an item's id names the answer it belongs to. */
static int find_item(void *arg, const char *id, const char *path, struct json_value *ret, struct err *e)
{
    struct thread *t = arg;
    const struct v1_kept_turn *turn = NULL;
    const struct loaded *loaded;
    struct slice response;
    size_t at = 0;
    int r;

    if (v1_response_item_place(id, &response, &at))
        turn = find_turn(t->req, response);
    if (!turn)
        return not_found("item", id, path, e);
    r = load(t, turn, &loaded, e);
    v1_kept_unref(t->req->api->v1_kept, turn);
    if (r < 0)
        return r;
    *ret = element(loaded->output, at);
    return json_type(*ret) == JSON_OBJECT ? 0 : not_found("item", id, path, e);
}

/* ---- POST ---- */

/* A kept thread may be long and may name files by their addresses. */
static bool needs_long(const struct request *req)
{
    const struct v1_responses_body *body = req->body;

    return body->previous_response_id || v1_items_name_address(body->input) ||
           v1_waits(req, PROVIDER_CHAT, body->model);
}

static int make_request(struct thread *t, const struct v1_responses_body *body, struct llm_chat *chat,
                        struct v1_items *items, struct err *e)
{
    struct provider_choice whom = { 0 };
    int r = load_thread(t, body->previous_response_id, e);

    *items = (struct v1_items){ t->lists, t->n_lists, t->n_bytes, find_item, t };
    if (r == 0)
        r = v1_responses_request(body, items, t->a, chat->request, e);
    if (r == 0)
        r = v1_find_model(t->req, PROVIDER_CHAT, body->model, &whom, e);
    chat->provider = whom.provider;
    chat->request->model = whom.model;
    return r;
}

static struct v1_response *new_response(struct thread *t, const struct v1_responses_body *body,
                                        const struct v1_items *items)
{
    struct v1_response_start start = { .body = t->req->body_json, .caller = caller_of(t->req) };
    struct buf input;

    buf_init(&input, LIMIT_CALLER_RESPONSE_BYTES);
    if (body->store && t->req->api->v1_kept)
        v1_items_print(body->input, items, &input);
    if (input.n > 0 && !input.overflowed) {
        start.kept = t->req->api->v1_kept;
        start.previous = TAKE(t->previous);
        start.input = buf_take(&input);
    }
    buf_clear(&input);
    return v1_response_new(&start);
}

static int answer(struct request *req, struct response *res, struct llm_chat *chat, struct v1_response *response,
                  bool is_streamed, struct err *e)
{
    int r;

    chat->form = &v1_responses_form;
    chat->state = &response;
    chat->n_state = sizeof(response);
    chat->end_state = v1_responses_end_state;
    r = is_streamed ? llm_chat_stream(req, res, chat, e) : llm_chat_answer(req, res, chat, e);
    if (r < 0)
        v1_response_free(response);
    return r;
}

static int create(struct request *req, struct response *res, struct err *e)
{
    const struct v1_responses_body *body = req->body;
    struct thread thread = { .req = req, .a = http_exchange_body_arena(req->exchange) };
    struct llm_chat chat = { .request = ARENA_NEW(thread.a, struct llm_request) };
    struct v1_response *response = NULL;
    struct v1_items items;
    int r = make_request(&thread, body, &chat, &items, e);

    if (r == 0)
        response = new_response(&thread, body, &items);
    if (thread.previous)
        v1_kept_unref(req->api->v1_kept, thread.previous);
    return r < 0 ? r : answer(req, res, &chat, response, body->is_streamed, e);
}

/* ---- GET and DELETE ---- */

static int show(struct request *req, struct response *res, struct err *e)
{
    const struct v1_kept_turn *turn = find_turn(req, v1_response_id(req->params[0]));

    if (!turn)
        return not_found("response", req->params[0], "response_id", e);
    buf_add_slice(response_start_raw(res, "application/json"), (struct slice){ turn->response, turn->n_response });
    v1_kept_unref(req->api->v1_kept, turn);
    return 0;
}

static int forget(struct request *req, struct response *res, struct err *e)
{
    struct slice id = v1_response_id(req->params[0]);

    if (!req->api->v1_kept || id.n == 0 || !v1_kept_remove(req->api->v1_kept, caller_of(req), id))
        return not_found("response", req->params[0], "response_id", e);
    json_add_string(&res->json, "id", req->params[0]);
    json_add_string(&res->json, "object", "response");
    json_add_bool(&res->json, "deleted", true);
    return 0;
}

static const struct field deleted_shape[] = { SHAPE_STRING("id"), SHAPE_STRING("object"), SHAPE_BOOL("deleted"),
                                              FIELD_END };

const struct route v1_responses_routes[] = {
    { .method = HTTP_POST,
      .path = "/v1/responses",
      .permission = PERM_LLM_CHAT,
      .needs_long = needs_long,
      .is_sdk = true,
      .is_bare = true,
      ROUTE_BODY(v1_responses_fields, struct v1_responses_body),
      .max_body = LIMIT_BODY_CHAT,
      .answer = v1_response_shape,
      .may_stream = true,
      .error_form = &v1_openai_error,
      .handler = create,
      .summary = "An answer in the form of OpenAI's Responses",
      .tag = "Compatible" },
    { .method = HTTP_GET,
      .path = "/v1/responses/:response_id",
      .permission = PERM_LLM_CHAT,
      .is_sdk = true,
      .is_bare = true,
      .answer = v1_response_shape,
      .error_form = &v1_openai_error,
      .handler = show,
      .summary = "An answer that is kept",
      .tag = "Compatible" },
    { .method = HTTP_DELETE,
      .path = "/v1/responses/:response_id",
      .permission = PERM_LLM_CHAT,
      .is_sdk = true,
      .is_bare = true,
      .answer = deleted_shape,
      .error_form = &v1_openai_error,
      .handler = forget,
      .summary = "Forget an answer that is kept",
      .tag = "Compatible" },
    ROUTE_END,
};

/* /mcp: streamable HTTP in both eras (docs/mcp-server.md). Specification revisions 2025-11-25 and 2026-07-28,
 * "Transports". */
#include "api/compat/mcp_api_era.h"
#include "api/compat/mcp_api_turn.h"
#include "api/compat/v1.h"
#include "api/routes.h"
#include "http/list.h"
#include "http/sse.h"

#define SESSION_HEADER "mcp-session-id"

struct post {
    struct request *req;
    struct response *res;
    struct mcp_api *mcp;
    struct buf *out; /* the body of an answer that is no stream */
    const char *owner, *session_id;
    enum mcp_api_version version;
};

/* ---- errors that no frame is answered with ---- */

static int code_of(const struct err *e)
{
    static const struct {
        const char *code;
        int rpc;
    } codes[] = {
        { "INVALID_JSON", JSON_RPC_PARSE_ERROR },
        { "INVALID_REQUEST", JSON_RPC_INVALID_REQUEST },
        { "SESSION_NOT_FOUND", MCP_API_NO_SESSION },
    };

    for (size_t i = 0; i < ARRAY_SIZE(codes); i++)
        if (strcmp(codes[i].code, e->code) == 0)
            return codes[i].rpc;
    return MCP_API_REFUSED;
}

static int write_refusal(struct json_writer *w, struct http_exchange *x, int status, const struct err *e)
{
    json_add_string(w, "jsonrpc", "2.0");
    json_add_null(w, "id");
    json_begin_object_as(w, "error");
    json_add_int(w, "code", code_of(e));
    json_add_string(w, "message", v1_error_text(NULL, e));
    json_begin_object_as(w, "data");
    v1_write_error_details(w, e);
    json_end(w);
    json_end(w);
    return status;
}

static const struct field details_shape[] = { V1_ERROR_DETAILS, FIELD_END };
static const struct field rpc_error_shape[] = {
    SHAPE_INT("code"),
    SHAPE_STRING("message"),
    SHAPE_OBJECT("data", details_shape, .flags = FIELD_OPTIONAL),
    FIELD_END,
};
static const struct field refusal_shape[] = {
    SHAPE_STRING("jsonrpc"),
    SHAPE_ANY("id"),
    SHAPE_OBJECT("error", rpc_error_shape),
    FIELD_END,
};
static const struct error_form mcp_error = { .name = "McpError", .answer = refusal_shape, .write = write_refusal };

/* ---- headers ---- */

static bool accepts(const struct http_request *in, const char *type)
{
    struct slice rest = slice_of(http_header(in, "accept"));

    while (rest.n > 0) {
        struct slice item = http_list_next(&rest, ',');
        struct slice range = http_list_next(&item, ';');

        if (http_list_item_is(range, type) || http_list_item_is(range, "*/*"))
            return true;
    }
    return false;
}

static int check_accept(const struct http_request *in, struct err *e)
{
    if (in->method == HTTP_POST && !accepts(in, "application/json"))
        return err_set(e, -EINVAL, "NOT_ACCEPTABLE",
                       "The client must accept both application/json and text/event-stream.");
    return accepts(in, "text/event-stream")
               ? 0
               : err_set(e, -EINVAL, "NOT_ACCEPTABLE", "The client must accept text/event-stream.");
}

static int check_content_type(const struct http_request *in, struct err *e)
{
    struct slice value = slice_of(http_header(in, "content-type"));

    return http_list_item_is(http_list_next(&value, ';'), "application/json")
               ? 0
               : err_set(e, -EINVAL, "UNSUPPORTED_MEDIA_TYPE", "The content-type must be application/json.");
}

/* Over the Unix socket a key that is not valid would otherwise make its client the administrator: a program that was
 * given a key (`hearth mcp serve --key-file`) may never do more than the key. */
static int check_caller(const struct request *req, struct err *e)
{
    if (!req->api->mcp_api)
        return err_set(e, -ENOTSUP, "NOT_SERVING",
                       "/mcp answers only while the service runs; start it with `hearth serve`");
    if (req->caller->kind == CALLER_ADMIN && http_header(&req->exchange->request, "x-api-key"))
        return err_set(e, -EACCES, "INVALID_API_KEY", "The key is no developer key of this service, or was revoked.");
    return 0;
}

/* The version that a client of the handshake era names after the handshake (2025-06-18 and later). */
static int check_version_header(const struct http_request *in, struct err *e)
{
    const char *named = http_header(in, "mcp-protocol-version");

    if (!named || mcp_api_version_of(named) < MCP_API_2026_07_28)
        return 0;
    return err_set(
        e, -EINVAL, "UNSUPPORTED_PROTOCOL_VERSION",
        "The protocol version %.40s is not one of a session: 2024-11-05, 2025-03-26, 2025-06-18, 2025-11-25.", named);
}

static int use_session(struct request *req, const char *owner, const char **ret_id, enum mcp_api_version *ret_version,
                       struct err *e)
{
    const char *id = http_header(&req->exchange->request, SESSION_HEADER);
    int r = check_version_header(&req->exchange->request, e);

    if (r < 0)
        return r;
    if (!id || !*id)
        return err_set(
            e, -EINVAL, "SESSION_REQUIRED",
            "The header Mcp-Session-Id is missing: send `initialize` first, and the id that its answer names.");
    if (!mcp_api_session_use(req->api->mcp_api, owner, id, ret_version))
        return err_set(e, -ENOENT, "SESSION_NOT_FOUND", "There is no such session any more; send `initialize` again.");
    *ret_id = id;
    return 0;
}

/* ---- one frame ---- */

static struct mcp_api_turn turn_of(const struct post *p, const struct json_rpc_frame *frame)
{
    return (struct mcp_api_turn){
        .req = p->req,
        .arena = http_exchange_body_arena(p->req->exchange),
        .version = p->version,
        .session_id = p->session_id,
        .owner = p->owner,
        .frame = frame,
        .progress = -1,
        .running = { .owner = p->owner, .session_id = p->session_id, .id = &frame->id },
    };
}

static struct json_value progress_token(const struct json_rpc_frame *frame)
{
    struct json_value token = json_get(json_get(frame->params, "_meta"), "progressToken");
    bool is_valid =
        json_type(token) == JSON_INT || (json_type(token) == JSON_STRING && json_string(token).n <= LIMIT_RPC_ID_BYTES);

    return is_valid ? token : (struct json_value){ 0 };
}

static void on_gone(struct http_exchange *x, void *arg)
{
    struct mcp_api_turn *t = arg;

    mcp_api_cancel_running(t->req->api->mcp_api, &t->running);
}

/* Only a call that waits can be cancelled. */
static void answer(struct mcp_api_turn *t, struct buf *out)
{
    struct http_exchange *x = t->req->exchange;
    bool waits = mcp_api_frame_waits(t->req->api, t->frame);

    if (waits) {
        mcp_api_running_begin(t->req->api->mcp_api, &t->running);
        http_exchange_on_gone(x, on_gone, t);
    }
    mcp_api_answer(t, out);
    if (waits) {
        http_exchange_on_gone(x, NULL, NULL);
        mcp_api_running_end(t->req->api->mcp_api, &t->running);
    }
}

static void push_answer(struct mcp_api_turn *t, const struct buf *frame)
{
    static const char too_large[] = "The answer is larger than a stream carries; ask for less.";
    struct buf out;

    if (atomic_load(&t->running.is_cancelled) || sse_push(t->stream, "message", NULL, buf_slice(frame)) != -E2BIG)
        return;
    buf_init(&out, KIB(8));
    json_rpc_write_error(&out, &t->frame->id, JSON_RPC_INTERNAL_ERROR, too_large, (struct json_value){ 0 });
    (void)!sse_push(t->stream, "message", NULL, buf_slice(&out));
    buf_clear(&out);
}

/* Progress, then the answer. A cancelled request gets no answer (specification, "Cancellation"). */
static void answer_in_stream(const struct post *p, const struct json_rpc_frame *frame)
{
    struct mcp_api_turn turn = turn_of(p, frame);
    struct buf out;

    buf_init(&out, LIMIT_REPLY);
    turn.progress_token = progress_token(frame);
    turn.stream = request_take_events(p->req, p->res);
    turn.running.stream = turn.stream;
    answer(&turn, &out);
    push_answer(&turn, &out);
    buf_clear(&out);
    http_stream_end(turn.stream);
}

static void answer_whole(const struct post *p, const struct json_rpc_frame *frame)
{
    struct mcp_api_turn turn = turn_of(p, frame);

    answer(&turn, p->out);
    if (turn.status)
        p->res->exchange->response.status = turn.status;
}

/* What needs no answer: a notification, or the client's answer to a request of ours. */
static void notice(const struct post *p, const struct json_rpc_frame *frame)
{
    struct json_rpc_id id;

    if (frame->kind != JSON_RPC_NOTIFICATION)
        mcp_api_answered(p->mcp, p->owner, p->session_id, frame);
    if (frame->kind != JSON_RPC_NOTIFICATION || strcmp(frame->method, "notifications/cancelled") != 0)
        return;
    id = json_rpc_id_from(json_get(frame->params, "requestId"));
    if (id.kind != JSON_RPC_ID_ABSENT)
        mcp_api_cancel(p->mcp, p->owner, p->session_id, &id);
}

static int accept_frame(const struct post *p)
{
    p->res->exchange->response.status = 202;
    return 0;
}

/* A frame that is answered with a JSON-RPC error and this HTTP status. */
static int refuse_frame(const struct post *p, const struct json_rpc_id *id, const struct mcp_api_misfit *why)
{
    struct json_value data = { 0 };

    if (why->data)
        (void)!json_parse(p->req->arena, slice_of(why->data), &data, NULL);
    json_rpc_write_error(p->out, id, why->code, why->text, data);
    p->res->exchange->response.status = 400;
    return 0;
}

/* ---- the handshake ---- */

static unsigned abilities_of(struct json_value capabilities)
{
    static const char *const names[] = { [MCP_API_SAMPLING] = "sampling", [MCP_API_ELICITATION] = "elicitation" };
    unsigned abilities = 0;

    for (unsigned i = 0; i < N_MCP_API_ABILITIES; i++)
        if (json_type(json_get(capabilities, names[i])) == JSON_OBJECT)
            abilities |= 1u << i;
    return abilities;
}

static int begin_session(struct post *p, const struct json_rpc_frame *frame, struct err *e)
{
    const char *wanted = json_cstr(json_get(frame->params, "protocolVersion"));
    struct mcp_api_misfit why = { .code = JSON_RPC_INVALID_PARAMS };
    char id[UUID_SIZE];
    int r;

    if (!wanted) {
        snprintf(why.text, sizeof(why.text), "`protocolVersion` must be a string");
        return refuse_frame(p, &frame->id, &why);
    }
    p->version = mcp_api_version_of(wanted);
    if (p->version > MCP_API_LATEST_HANDSHAKE)
        p->version = MCP_API_LATEST_HANDSHAKE;
    r = mcp_api_session_new(p->mcp, p->owner, p->version, id, e);
    if (r < 0)
        return r;
    p->session_id = arena_strdup(p->req->arena, id);
    mcp_api_session_set_abilities(p->mcp, id, abilities_of(json_get(frame->params, "capabilities")));
    http_response_header(p->req->exchange, SESSION_HEADER, id);
    answer_whole(p, frame);
    return 0;
}

/* Only the client of a session can be asked. */
static bool is_streamed(const struct post *p, const struct json_rpc_frame *frame)
{
    return (mcp_api_manner_of(frame) == MCP_API_MAY_REQUEST && *p->session_id) ||
           (mcp_api_frame_waits(p->req->api, frame) && !json_is_absent(progress_token(frame)));
}

static int take_frame(const struct post *p, const struct json_rpc_frame *frame)
{
    if (frame->kind != JSON_RPC_REQUEST) {
        notice(p, frame);
        return accept_frame(p);
    }
    if (is_streamed(p, frame))
        answer_in_stream(p, frame);
    else
        answer_whole(p, frame);
    return 0;
}

/* ---- subscriptions/listen (2026-07-28) ---- */

/* A resource that is not there or not the caller's is left out; the acknowledgement says what is followed. */
static bool may_follow(struct post *p, const struct json_rpc_frame *frame, const char *uri)
{
    struct mcp_api_turn turn = turn_of(p, frame);
    struct mcp_api_content content = { 0 };
    struct err e;

    err_init(&e);
    return uri && mcp_api_read_content(&turn, uri, &content, &e) == 0;
}

static struct mcp_api_filter read_filter(struct post *p, const struct json_rpc_frame *frame)
{
    struct json_value wanted = json_get(frame->params, "notifications"), uris, item;
    const char **kept = arena_array(p->req->arena, LIMIT_MCP_SUBSCRIPTIONS, sizeof(*kept));
    struct mcp_api_filter filter = { .uris = kept, .has_tools = json_bool(json_get(wanted, "toolsListChanged")) };

    uris = json_get(wanted, "resourceSubscriptions");
    for (struct json_iter it = json_iter(uris); json_next(&it, NULL, &item);)
        if (may_follow(p, frame, json_cstr(item)))
            kept[filter.n_uris++] = json_cstr(item);
    return filter;
}

/* Each resource is read once, so there are never more than a stream may follow. */
static bool is_filter(struct json_value wanted, struct mcp_api_misfit *why)
{
    if (json_type(wanted) != JSON_OBJECT)
        snprintf(why->text, sizeof(why->text), "`notifications` must be an object");
    else if (json_length(json_get(wanted, "resourceSubscriptions")) > LIMIT_MCP_SUBSCRIPTIONS)
        snprintf(why->text, sizeof(why->text), "`notifications.resourceSubscriptions` must have at most %d resources",
                 LIMIT_MCP_SUBSCRIPTIONS);
    return !*why->text;
}

static int subscribe(struct post *p, const struct json_rpc_frame *frame)
{
    struct mcp_api_misfit why = { .code = JSON_RPC_INVALID_PARAMS };
    struct mcp_api_filter filter;

    if (!is_filter(json_get(frame->params, "notifications"), &why))
        return refuse_frame(p, &frame->id, &why);
    filter = read_filter(p, frame);
    mcp_api_add_stream(p->mcp, request_take_events(p->req, p->res), NULL, &frame->id, &filter);
    return 0;
}

/* ---- POST ---- */

static int take_single(struct post *p, struct json_value body, struct err *e)
{
    struct mcp_api_misfit why = { .code = JSON_RPC_INVALID_REQUEST };
    struct json_rpc_frame frame = { 0 };
    struct json_rpc_id id;
    enum mcp_api_era era;
    int r;

    if (json_rpc_read_value(body, &frame, e) < 0) {
        id = json_rpc_id_of(body);
        snprintf(why.text, sizeof(why.text), "%s", e->text);
        err_init(e);
        return refuse_frame(p, &id, &why);
    }
    era = mcp_api_era_of(&p->req->exchange->request, &frame, p->req->arena, &why);
    if (era == MCP_API_MISFIT)
        return refuse_frame(p, &frame.id, &why);
    if (era == MCP_API_STATELESS) {
        p->version = MCP_API_2026_07_28;
        return frame.kind == JSON_RPC_REQUEST && strcmp(frame.method, "subscriptions/listen") == 0
                   ? subscribe(p, &frame)
                   : take_frame(p, &frame);
    }
    if (frame.kind == JSON_RPC_REQUEST && strcmp(frame.method, "initialize") == 0)
        return begin_session(p, &frame, e);
    r = use_session(p->req, p->owner, &p->session_id, &p->version, e);
    return r < 0 ? r : take_frame(p, &frame);
}

/* Answers one element and appends its answer, if it has one. */
static void take_element(const struct post *p, struct json_value element)
{
    size_t before = p->out->n;
    struct json_rpc_frame frame = { 0 };
    struct json_rpc_id id;
    struct err e;

    err_init(&e);
    if (before > 1)
        buf_add_char(p->out, ',');
    if (json_rpc_read_value(element, &frame, &e) < 0) {
        id = json_rpc_id_of(element);
        json_rpc_write_error(p->out, &id, JSON_RPC_INVALID_REQUEST, e.text, (struct json_value){ 0 });
    } else if (frame.kind == JSON_RPC_REQUEST) {
        answer_whole(p, &frame);
    } else {
        notice(p, &frame);
        p->out->n = before;
    }
}

/* JSON-RPC 2.0 section 6; revision 2025-06-18 removed batches. */
static int take_batch(struct post *p, struct json_value body, struct err *e)
{
    struct json_value element;
    int r = use_session(p->req, p->owner, &p->session_id, &p->version, e);

    if (r == 0 && p->version > MCP_API_2025_03_26)
        r = err_set(e, -EINVAL, "INVALID_REQUEST", "This protocol version has no batches: send one frame in a body.");
    if (r == 0 && (json_length(body) < 1 || json_length(body) > LIMIT_MCP_BATCH))
        r = err_set(e, -EINVAL, "INVALID_REQUEST", "A batch must have 1 to %d frames.", LIMIT_MCP_BATCH);
    if (r < 0)
        return r;
    buf_add_char(p->out, '[');
    for (struct json_iter it = json_iter(body); json_next(&it, NULL, &element);)
        take_element(p, element);
    if (p->out->n == 1) {
        p->out->n = 0;
        return accept_frame(p);
    }
    buf_add_char(p->out, ']');
    return 0;
}

static int receive(struct request *req, struct response *res, struct err *e)
{
    struct http_exchange *x = req->exchange;
    struct post p = { .req = req, .res = res, .mcp = req->api->mcp_api, .session_id = "" };
    struct json_value body = { 0 };
    int r = check_caller(req, e);

    if (r == 0)
        r = check_content_type(&x->request, e);
    if (r == 0)
        r = check_accept(&x->request, e);
    if (r == 0)
        r = json_parse(http_exchange_body_arena(x), x->request.body, &body, e);
    if (r < 0)
        return r;
    p.owner = mcp_api_owner(req->arena, req->caller);
    p.out = response_start_raw(res, "application/json");
    return json_type(body) == JSON_ARRAY ? take_batch(&p, body, e) : take_single(&p, body, e);
}

/* Looks into the body before it is read for good; a large one goes to the long pool unread. */
static bool needs_long(const struct request *req)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct slice text = req->exchange->request.body;
    struct json_rpc_frame frame = { 0 };
    struct json_value body = { 0 };

    if (text.n > LIMIT_SMALL_BODY)
        return true;
    if (json_parse(a, text, &body, NULL) < 0)
        return false;
    return json_type(body) == JSON_ARRAY ||
           (json_rpc_read_value(body, &frame, NULL) == 0 && mcp_api_frame_waits(req->api, &frame));
}

/* ---- GET and DELETE of the handshake era ---- */

static int check_stateful(const struct request *req, struct err *e)
{
    const char *version = http_header(&req->exchange->request, "mcp-protocol-version");
    int r = check_caller(req, e);

    if (r == 0 && (req->exchange->request.is_head || mcp_api_version_of(version) == MCP_API_2026_07_28))
        r = err_set(e, -EINVAL, "METHOD_NOT_ALLOWED", "Revision 2026-07-28 has no sessions: use POST.");
    return r;
}

static int open_stream(struct request *req, struct response *res, struct err *e)
{
    enum mcp_api_version version;
    const char *id = NULL;
    int r = check_stateful(req, e);

    if (r == 0)
        r = check_accept(&req->exchange->request, e);
    if (r == 0)
        r = use_session(req, mcp_api_owner(req->arena, req->caller), &id, &version, e);
    if (r < 0)
        return r;
    if (!mcp_api_session_take_stream(req->api->mcp_api, id))
        return err_set(e, -EBUSY, "STREAM_TAKEN", "The session has a stream already; only one is allowed.");
    mcp_api_add_stream(req->api->mcp_api, request_take_events(req, res), id, NULL, NULL);
    return 0;
}

static int end_session(struct request *req, struct response *res, struct err *e)
{
    const char *owner = mcp_api_owner(req->arena, req->caller), *id = NULL;
    enum mcp_api_version version;
    int r = check_stateful(req, e);

    if (r == 0)
        r = use_session(req, owner, &id, &version, e);
    if (r == 0)
        (void)mcp_api_session_end(req->api->mcp_api, owner, id);
    return r;
}

/* ---- the routes ---- */

static const struct field answer_shape[] = {
    SHAPE_STRING("jsonrpc"),
    SHAPE_ANY("id"),
    SHAPE_ANY("result", .flags = FIELD_OPTIONAL),
    SHAPE_OBJECT("error", rpc_error_shape, .flags = FIELD_OPTIONAL),
    FIELD_END,
};

static const struct field frame_shape[] = {
    SHAPE_STRING("jsonrpc", FIELD_REQUIRED, .help = "2.0"),
    SHAPE_ANY("id", .help = "a string or an integer; absent: a notification, which is answered with 202"),
    SHAPE_STRING("method", .max = LIMIT_RPC_METHOD_BYTES,
                 .help = "initialize, server/discover, tools/list, tools/call, ... (docs/mcp-server.md)"),
    SHAPE_OBJECT("params", NULL,
                 .help = "with `_meta`; the stateless era requires its protocolVersion and clientCapabilities"),
    FIELD_END,
};

const struct route mcp_api_routes[] = {
    { .method = HTTP_POST,
      .path = "/mcp",
      .permission = PERM_NONE,
      .needs_long = needs_long,
      .may_stream = true,
      .max_body = LIMIT_BODY_CHAT,
      .is_bare = true,
      .own_body = frame_shape,
      .error_form = &mcp_error,
      .answer = answer_shape,
      .handler = receive,
      .summary = "Model Context Protocol: one JSON-RPC frame of a client; a call with progress is answered by a stream",
      .tag = "MCP" },
    { .method = HTTP_GET,
      .path = "/mcp",
      .permission = PERM_NONE,
      .error_form = &mcp_error,
      .answer_type = "text/event-stream",
      .handler = open_stream,
      .summary = "Model Context Protocol: the notifications of a session",
      .tag = "MCP" },
    { .method = HTTP_DELETE,
      .path = "/mcp",
      .permission = PERM_NONE,
      .error_form = &mcp_error,
      .answer = api_nothing,
      .handler = end_session,
      .summary = "Model Context Protocol: end a session",
      .tag = "MCP" },
    ROUTE_END,
};

#include "base/json_rpc.h"

#include "base/limits.h"
#include <string.h>

static int refuse(struct err *e, const char *rule)
{
    return err_set(e, -EINVAL, "INVALID_REQUEST", "This is not a JSON-RPC 2.0 frame: %s", rule);
}

struct json_rpc_id json_rpc_id_from(struct json_value id)
{
    if (json_type(id) == JSON_INT)
        return (struct json_rpc_id){ .kind = JSON_RPC_ID_INT, .number = json_int(id) };
    if (json_type(id) == JSON_STRING && json_string(id).n <= LIMIT_RPC_ID_BYTES)
        return (struct json_rpc_id){ .kind = JSON_RPC_ID_STRING, .text = json_string(id) };
    return (struct json_rpc_id){ 0 };
}

struct json_rpc_id json_rpc_id_of(struct json_value v)
{
    return json_rpc_id_from(json_get(v, "id"));
}

bool json_rpc_id_eq(const struct json_rpc_id *one, const struct json_rpc_id *other)
{
    return one->kind == other->kind && one->number == other->number && slice_eq(one->text, other->text);
}

struct json_rpc_id json_rpc_id_copy(struct arena *a, const struct json_rpc_id *id)
{
    struct json_rpc_id copy = *id;

    if (id->kind == JSON_RPC_ID_STRING)
        copy.text.p = arena_slicedup(a, id->text);
    return copy;
}

void json_rpc_add_id(struct json_writer *w, const char *name, const struct json_rpc_id *id)
{
    if (id->kind == JSON_RPC_ID_INT)
        json_add_int(w, name, id->number);
    else if (id->kind == JSON_RPC_ID_STRING)
        json_add_slice(w, name, id->text);
    else
        json_add_null(w, name);
}

/* may_be_null: in the answer to a request whose id could not be read (JSON-RPC 2.0 section 5). */
static int read_id(struct json_value v, bool may_be_null, struct json_rpc_id *ret, struct err *e)
{
    enum json_type type = json_type(json_get(v, "id"));

    *ret = json_rpc_id_of(v);
    if (ret->kind != JSON_RPC_ID_ABSENT || type == JSON_ABSENT || (type == JSON_NULL && may_be_null))
        return 0;
    return err_set(e, -EINVAL, "INVALID_REQUEST", "`id` must be an integer or a string of at most %d bytes",
                   LIMIT_RPC_ID_BYTES);
}

static int read_call(struct json_value v, struct json_rpc_frame *frame, struct err *e)
{
    struct json_value params = json_get(v, "params");

    frame->kind = frame->id.kind == JSON_RPC_ID_ABSENT ? JSON_RPC_NOTIFICATION : JSON_RPC_REQUEST;
    frame->method = json_cstr(json_get(v, "method"));
    if (!frame->method || !*frame->method || json_string(json_get(v, "method")).n > LIMIT_RPC_METHOD_BYTES)
        return err_set(e, -EINVAL, "INVALID_REQUEST", "`method` must be a string of 1 to %d bytes",
                       LIMIT_RPC_METHOD_BYTES);
    if (json_is_absent(params))
        return 0;
    if (json_type(params) != JSON_OBJECT)
        return refuse(e, "`params` must be an object");
    frame->params = params;
    return 0;
}

static int read_result(struct json_value v, struct json_rpc_frame *frame, struct err *e)
{
    frame->kind = JSON_RPC_RESULT;
    frame->result = json_get(v, "result");
    return frame->id.kind == JSON_RPC_ID_ABSENT ? refuse(e, "a result needs an `id`") : 0;
}

static int read_error(struct json_value v, struct json_rpc_frame *frame, struct err *e)
{
    struct json_value error = json_get(v, "error"), code = json_get(error, "code"),
                      message = json_get(error, "message");

    if (json_type(code) != JSON_INT || json_type(message) != JSON_STRING)
        return refuse(e, "`error` must be an object with an integer `code` and a string `message`");
    frame->kind = JSON_RPC_ERROR;
    frame->error = (struct json_rpc_error){ json_int(code), json_string(message), json_get(error, "data") };
    return 0;
}

static bool has(struct json_value v, const char *name)
{
    return json_type(json_get(v, name)) != JSON_ABSENT;
}

int json_rpc_read_value(struct json_value v, struct json_rpc_frame *ret, struct err *e)
{
    struct json_rpc_frame frame = { 0 };
    bool is_call = has(v, "method"), is_result = has(v, "result"), is_error = has(v, "error");
    int r;

    if (json_type(v) != JSON_OBJECT)
        return refuse(e, "it must be an object");
    if (!slice_eq_str(json_string(json_get(v, "jsonrpc")), "2.0"))
        return refuse(e, "`jsonrpc` must be \"2.0\"");
    if (is_call + is_result + is_error != 1)
        return refuse(e, "it must have exactly one of `method`, `result` and `error`");
    r = read_id(v, is_error, &frame.id, e);
    if (r == 0)
        r = is_call ? read_call(v, &frame, e) : is_result ? read_result(v, &frame, e) : read_error(v, &frame, e);
    if (r == 0)
        *ret = frame;
    return r;
}

int json_rpc_read(struct arena *a, struct slice text, size_t max_bytes, struct json_rpc_frame *ret, struct err *e)
{
    struct json_value v;
    int r;

    if (text.n > max_bytes)
        return err_set(e, -E2BIG, "BODY_TOO_LARGE", "A frame must have at most %zu bytes", max_bytes);
    r = json_parse(a, text, &v, e);
    return r < 0 ? r : json_rpc_read_value(v, ret, e);
}

int json_rpc_code(const struct err *e)
{
    return strcmp(e->code, "INVALID_REQUEST") == 0 ? JSON_RPC_INVALID_REQUEST : JSON_RPC_PARSE_ERROR;
}

static void begin(struct json_writer *w, struct buf *out)
{
    json_write_init(w, out);
    json_begin_object(w);
    json_add_string(w, "jsonrpc", "2.0");
}

void json_rpc_begin(struct json_writer *w, struct buf *out, const struct json_rpc_id *id)
{
    begin(w, out);
    json_rpc_add_id(w, "id", id);
}

void json_rpc_begin_request(struct json_writer *w, struct buf *out, const struct json_rpc_id *id, const char *method)
{
    json_rpc_begin(w, out, id);
    json_add_string(w, "method", method);
}

void json_rpc_begin_notification(struct json_writer *w, struct buf *out, const char *method)
{
    begin(w, out);
    json_add_string(w, "method", method);
}

void json_rpc_write_error(struct buf *out, const struct json_rpc_id *id, int code, const char *message,
                          struct json_value data)
{
    struct json_writer w;

    json_rpc_begin(&w, out, id);
    json_begin_object_as(&w, "error");
    json_add_int(&w, "code", code);
    json_add_string(&w, "message", message);
    if (json_type(data) != JSON_ABSENT)
        json_add_value(&w, "data", data);
    json_end(&w);
    json_end(&w);
}

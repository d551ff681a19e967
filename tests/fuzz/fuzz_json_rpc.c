/* JSON-RPC frames: what was read and is written again reads back the same. */
#include "base/json_rpc.h"

#include "base/limits.h"
#include <assert.h>
#include <string.h>

enum { FRAME_BYTES = 64 << 10 };

static void write_frame(struct buf *out, const struct json_rpc_frame *frame)
{
    struct json_writer w;

    if (frame->kind == JSON_RPC_REQUEST)
        json_rpc_begin_request(&w, out, &frame->id, frame->method);
    else if (frame->kind == JSON_RPC_NOTIFICATION)
        json_rpc_begin_notification(&w, out, frame->method);
    else
        json_rpc_begin(&w, out, &frame->id);
    if (frame->kind == JSON_RPC_RESULT)
        json_add_value(&w, "result", frame->result);
    else if (json_type(frame->params) == JSON_OBJECT)
        json_add_value(&w, "params", frame->params);
    json_end(&w);
}

static void check_frame(struct arena *a, const struct json_rpc_frame *frame)
{
    struct json_rpc_frame again;
    struct buf out;

    assert(frame->id.text.n <= LIMIT_RPC_ID_BYTES);
    assert(!frame->method || (strlen(frame->method) > 0 && strlen(frame->method) <= LIMIT_RPC_METHOD_BYTES));
    buf_init(&out, LIMIT_REPLY);
    if (frame->kind == JSON_RPC_ERROR)
        json_rpc_write_error(&out, &frame->id, -1, "x", frame->error.data);
    else
        write_frame(&out, frame);
    if (json_rpc_read(a, buf_slice(&out), LIMIT_REPLY, &again, NULL) < 0)
        assert(!"a written frame is none");
    assert(again.kind == frame->kind && json_rpc_id_eq(&again.id, &frame->id));
    assert(!frame->method || strcmp(again.method, frame->method) == 0);
    buf_clear(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct json_rpc_frame frame;
    struct err e = { 0 };

    if (json_rpc_read(a, (struct slice){ (const char *)data, size }, FRAME_BYTES, &frame, &e) == 0)
        check_frame(a, &frame);
    else
        assert(*e.code && *e.text && json_rpc_code(&e) < 0);
    return 0;
}

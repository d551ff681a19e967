#include "base/websocket_frames.h"
#include "base/hash.h"
#include "base/limits.h"

#include <stdlib.h>
#include <wslay/wslay.h>

struct websocket_reader {
    struct websocket_reader_config config;
    wslay_event_context_ptr wslay; /* owned */
    struct buf message;            /* what has arrived of the message */
    size_t n_frames;               /* of the message */
    bool is_control;               /* the frame that arrives is a control frame */
    bool is_stopped, is_over;
    struct slice in;     /* of the feed that runs: what is not used yet */
    struct buf *answers; /* of the feed that runs */
};

static ssize_t take_bytes(wslay_event_context_ptr wslay, uint8_t *out, size_t n, int flags, void *arg)
{
    struct websocket_reader *r = arg;

    n = r->is_stopped ? 0 : MIN(n, r->in.n);
    if (n == 0) {
        wslay_event_set_error(wslay, WSLAY_ERR_WOULDBLOCK);
        return -1;
    }
    memcpy(out, r->in.p, n);
    r->in = (struct slice){ r->in.p + n, r->in.n - n };
    return (ssize_t)n;
}

static ssize_t give_bytes(wslay_event_context_ptr wslay, const uint8_t *bytes, size_t n, int flags, void *arg)
{
    struct websocket_reader *r = arg;

    buf_add(r->answers, bytes, n);
    return (ssize_t)n;
}

static int make_mask(wslay_event_context_ptr wslay, uint8_t *out, size_t n, void *arg)
{
    random_bytes(out, n);
    return 0;
}

static void give_up(struct websocket_reader *r, enum websocket_code code, const char *reason)
{
    if (r->is_over)
        return;
    r->is_over = true;
    wslay_event_shutdown_read(r->wslay);
    websocket_write_close(r->answers, r->config.side, code, reason);
}

/* wslay bounds a frame; the bytes and frames of a whole message are counted here, where no message is kept by wslay. */
static void begin_frame(wslay_event_context_ptr wslay, const struct wslay_event_on_frame_recv_start_arg *frame,
                        void *arg)
{
    struct websocket_reader *r = arg;

    r->is_control = wslay_is_ctrl_frame(frame->opcode);
    if (r->is_control)
        return;
    if (++r->n_frames > LIMIT_SOCKET_FRAGMENTS)
        give_up(r, WEBSOCKET_POLICY, "A message has too many frames.");
    else if (frame->payload_length > LIMIT_SOCKET_MESSAGE - r->message.n)
        give_up(r, WEBSOCKET_TOO_BIG, "A message is too large.");
}

static void take_chunk(wslay_event_context_ptr wslay, const struct wslay_event_on_frame_recv_chunk_arg *chunk,
                       void *arg)
{
    struct websocket_reader *r = arg;

    if (!r->is_control && !r->is_over)
        buf_add(&r->message, chunk->data, chunk->data_length);
}

static void end_message(struct websocket_reader *r, bool is_binary)
{
    r->is_stopped = !r->config.on_message(r->config.arg, is_binary, buf_slice(&r->message));
    buf_clear(&r->message);
    r->n_frames = 0;
}

static void end_any_message(wslay_event_context_ptr wslay, const struct wslay_event_on_msg_recv_arg *message, void *arg)
{
    struct websocket_reader *r = arg;

    if (r->is_over)
        return;
    if (r->message.is_starved)
        give_up(r, WEBSOCKET_TOO_BIG, "There is no memory for the message now.");
    else if (!wslay_is_ctrl_frame(message->opcode))
        end_message(r, message->opcode == WSLAY_BINARY_FRAME);
}

struct websocket_reader *websocket_reader_new(const struct websocket_reader_config *c)
{
    static const struct wslay_event_callbacks callbacks = {
        .recv_callback = take_bytes,
        .send_callback = give_bytes,
        .genmask_callback = make_mask,
        .on_frame_recv_start_callback = begin_frame,
        .on_frame_recv_chunk_callback = take_chunk,
        .on_msg_recv_callback = end_any_message,
    };
    struct websocket_reader *r = xcalloc(1, sizeof(*r));
    bool is_server = c->side == WEBSOCKET_SERVER;

    r->config = *c;
    buf_init_soft(&r->message, LIMIT_SOCKET_MESSAGE, 0);
    if ((is_server ? wslay_event_context_server_init : wslay_event_context_client_init)(&r->wslay, &callbacks, r) !=
        0) {
        free(r);
        return NULL;
    }
    wslay_event_config_set_no_buffering(r->wslay, 1);
    wslay_event_config_set_max_recv_msg_length(r->wslay, LIMIT_SOCKET_MESSAGE);
    return r;
}

struct websocket_reader *websocket_reader_free(struct websocket_reader *r)
{
    if (!r)
        return NULL;
    wslay_event_context_free(r->wslay);
    buf_clear(&r->message);
    free(r);
    return NULL;
}

size_t websocket_reader_feed(struct websocket_reader *r, struct slice bytes, struct buf *answers)
{
    int failed = 0;

    r->in = bytes;
    r->answers = answers;
    if (!r->is_over && !r->is_stopped)
        failed = wslay_event_recv(r->wslay);
    if (failed)
        give_up(r, WEBSOCKET_PROTOCOL_ERROR, "A frame breaks RFC 6455.");
    else if (!r->is_over && wslay_event_send(r->wslay) != 0)
        give_up(r, WEBSOCKET_PROTOCOL_ERROR, "");
    r->is_over = r->is_over || wslay_event_get_close_sent(r->wslay);
    r->answers = NULL;
    return bytes.n - r->in.n;
}

void websocket_reader_go_on(struct websocket_reader *r)
{
    r->is_stopped = false;
}

bool websocket_reader_is_over(const struct websocket_reader *r)
{
    return r->is_over;
}

unsigned websocket_reader_peer_code(const struct websocket_reader *r)
{
    return wslay_event_get_close_received(r->wslay) ? wslay_event_get_status_code_received(r->wslay) : 0;
}

/* ---- writing ---- */

static ssize_t append(const uint8_t *bytes, size_t n, int flags, void *out)
{
    buf_add(out, bytes, n);
    return (ssize_t)n;
}

static int make_frame_mask(uint8_t *out, size_t n, void *arg)
{
    random_bytes(out, n);
    return 0;
}

static void write_frame(struct buf *out, enum websocket_side side, uint8_t opcode, struct slice payload)
{
    static const struct wslay_frame_callbacks callbacks = { .send_callback = append,
                                                            .genmask_callback = make_frame_mask };
    struct wslay_frame_iocb frame = {
        .fin = 1,
        .opcode = opcode,
        .mask = side == WEBSOCKET_CLIENT,
        .payload_length = payload.n,
        .data = (const uint8_t *)payload.p,
        .data_length = payload.n,
    };
    wslay_frame_context_ptr wslay = NULL;

    if (wslay_frame_context_init(&wslay, &callbacks, out) != 0) {
        out->overflowed = out->is_starved = true;
        return;
    }
    (void)!wslay_frame_send(wslay, &frame); /* append() takes everything */
    wslay_frame_context_free(wslay);
}

void websocket_write_message(struct buf *out, enum websocket_side side, bool is_binary, struct slice message)
{
    write_frame(out, side, is_binary ? WSLAY_BINARY_FRAME : WSLAY_TEXT_FRAME, message);
}

void websocket_write_close(struct buf *out, enum websocket_side side, enum websocket_code code, const char *reason)
{
    char payload[2 + LIMIT_SOCKET_CLOSE_REASON];
    size_t n = MIN(strlen(reason), (size_t)LIMIT_SOCKET_CLOSE_REASON);

    payload[0] = (char)(code >> 8);
    payload[1] = (char)(code & 0xff);
    memcpy(payload + 2, reason, n);
    write_frame(out, side, WSLAY_CONNECTION_CLOSE, (struct slice){ payload, 2 + n });
}

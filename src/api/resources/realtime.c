/* The realtime part of the hosted service's protocol (docs/offline-face.md): the WebSocket, and broadcasts over HTTP.
 * The callers are apps with a key of `hearth backend keys`, not with one of Hearth's own. */
#include "face/realtime.h"

#include "api/api.h"
#include "api/resources/face_request.h"
#include "api/routes.h"

#include <string.h>
#include <strings.h>

enum { TOPIC_CHARS = LIMIT_TOPIC_BYTES - 9 /* "realtime:" */ };

struct socket_query {
    const char *apikey, *vsn;
};

static const struct field socket_query[] = {
    FIELD_STRING(struct socket_query, apikey, "apikey", .max = LIMIT_JWT_BYTES, .help = "or the header x-api-key"),
    FIELD_STRING(struct socket_query, vsn, "vsn", .max = 20, .help = "1.0.0 (also when absent) or 2.0.0"),
    FIELD_END,
};

struct broadcast_query {
    const char *apikey;
    bool is_private;
};

static const struct field broadcast_query[] = {
    FIELD_STRING(struct broadcast_query, apikey, "apikey", .max = LIMIT_JWT_BYTES, .help = "or the header apikey"),
    FIELD_BOOL(struct broadcast_query, is_private, "private"),
    FIELD_END,
};

struct message {
    const char *topic, *event;
    struct json_value payload;
    bool is_private;
};

static const struct field message_fields[] = {
    FIELD_STRING(struct message, topic, "topic", FIELD_REQUIRED, .min = 1, .max = TOPIC_CHARS,
                 .help = "the channel's name, without realtime:"),
    FIELD_STRING(struct message, event, "event", FIELD_REQUIRED, .min = 1, .max = LIMIT_TOPIC_BYTES),
    FIELD_OBJECT(struct message, payload, "payload", FIELD_REQUIRED),
    FIELD_BOOL(struct message, is_private, "private"),
    FIELD_END,
};

struct broadcast_body {
    struct field_list messages;
};

static const struct field broadcast_fields[] = {
    FIELD_LIST(struct broadcast_body, messages, "messages", message_fields, struct message, FIELD_REQUIRED, .min = 1,
               .max = LIMIT_BROADCAST_MESSAGES),
    FIELD_END,
};

static const struct field nothing[] = { FIELD_END };
static const struct field any_payload[] = { FIELD_END };

/* ---- the socket ---- */

static int open_socket(struct request *req, struct response *res, struct err *e)
{
    const struct socket_query *query = req->query;
    int r = face_request_need(req, e);

    if (r == 0)
        r = realtime_connect(req->api->realtime, req->exchange, face_request_key(req, query->apikey), query->vsn, e);
    res->is_streamed = r == 0;
    return r;
}

/* ---- broadcasts ---- */

static int check_channel(const struct face_caller *caller, const struct realtime_broadcast *b, struct err *e)
{
    if (!b->is_private || face_may_join(caller, b->topic))
        return 0;
    return err_set(e, -EPERM, "CHANNEL_NOT_ALLOWED", "The caller may not use the private channel \"%.*s\".",
                   (int)b->topic.n, b->topic.p);
}

static int check_json(struct arena *a, struct slice text, struct err *e)
{
    struct json_value v;

    return json_parse(a, text, &v, e);
}

static int send_one(struct request *req, struct response *res, struct err *e)
{
    const struct http_request *in = &req->exchange->request;
    const struct broadcast_query *query = req->query;
    const char *type = http_header(in, "content-type");
    const struct realtime_broadcast b = {
        .topic = slice_of(req->params[0]),
        .event = slice_of(req->params[1]),
        .payload = in->body,
        .is_bytes = type && strncasecmp(type, "application/octet-stream", 24) == 0,
        .is_private = query->is_private,
    };
    struct face_caller caller;
    int r = face_request_caller(req, query->apikey, &caller, e);

    if (r == 0 && (b.topic.n > TOPIC_CHARS || b.event.n > LIMIT_TOPIC_BYTES))
        r = err_set(e, -EINVAL, "VALIDATION_ERROR", "The topic must have at most %d bytes, the event %d.", TOPIC_CHARS,
                    LIMIT_TOPIC_BYTES);
    if (r == 0)
        r = check_channel(&caller, &b, e);
    if (r == 0 && !b.is_bytes)
        r = check_json(http_exchange_body_arena(req->exchange), in->body, e);
    return r < 0 ? r : realtime_broadcast(req->api->realtime, &b, e);
}

static struct realtime_broadcast broadcast_of(struct arena *a, const struct message *m)
{
    return (struct realtime_broadcast){
        .topic = slice_of(m->topic),
        .event = slice_of(m->event),
        .payload = slice_of(json_to_str(a, m->payload)),
        .is_private = m->is_private,
    };
}

/* All or none is checked before the first is sent. */
static int send_many(struct request *req, struct response *res, struct err *e)
{
    const struct broadcast_query *query = req->query;
    const struct broadcast_body *body = req->body;
    const struct message *messages = body->messages.items;
    struct arena *a = http_exchange_body_arena(req->exchange);
    struct face_caller caller;
    int r = face_request_caller(req, query->apikey, &caller, e);

    for (size_t i = 0; r == 0 && i < body->messages.n; i++) {
        const struct realtime_broadcast b = { .topic = slice_of(messages[i].topic),
                                              .is_private = messages[i].is_private };

        r = check_channel(&caller, &b, e);
    }
    for (size_t i = 0; r == 0 && i < body->messages.n; i++) {
        const struct realtime_broadcast b = broadcast_of(a, &messages[i]);

        r = realtime_broadcast(req->api->realtime, &b, e);
    }
    return r;
}

const struct route realtime_routes[] = {
    { .method = HTTP_GET,
      .path = "/realtime/v1/websocket",
      .permission = PERM_PUBLIC,
      .status = 101,
      ROUTE_QUERY(socket_query, struct socket_query),
      .answer = nothing,
      .is_bare = true,
      .handler = open_socket,
      .summary = "WebSocket of the hosted service's realtime protocol, for its clients",
      .tag = "Face" },
    { .method = HTTP_POST,
      .path = "/realtime/v1/api/broadcast",
      .permission = PERM_PUBLIC,
      .status = 202,
      ROUTE_QUERY(broadcast_query, struct broadcast_query),
      ROUTE_BODY(broadcast_fields, struct broadcast_body),
      .max_body = LIMIT_BROADCAST_BYTES,
      .answer = nothing,
      .is_bare = true,
      .handler = send_many,
      .summary = "Broadcast messages to channels",
      .tag = "Face" },
    { .method = HTTP_POST,
      .path = "/realtime/v1/api/broadcast/:topic/events/:event",
      .permission = PERM_PUBLIC,
      .status = 202,
      ROUTE_QUERY(broadcast_query, struct broadcast_query),
      .own_body = any_payload,
      .max_body = LIMIT_BROADCAST_BYTES,
      .answer = nothing,
      .is_bare = true,
      .handler = send_one,
      .summary = "Broadcast one message: the body is its payload, JSON or application/octet-stream",
      .tag = "Face" },
    ROUTE_END,
};

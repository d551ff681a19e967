/* The messages of the realtime protocol in their three forms: JSON objects (vsn 1.0.0), JSON arrays (vsn 2.0.0) and the
 * binary broadcasts of vsn 2.0.0. Pure; any thread.
 */
#pragma once

#include "base/json_write.h"

struct rt_message {
    struct slice join_ref, ref; /* p NULL: null */
    struct slice topic, event;
    struct json_value payload; /* of a message that was read */
    struct slice text;         /* of one to be written: JSON */
    bool is_broadcast;         /* came as binary broadcast: the members below are set, payload is not */
    struct slice user_event, meta, body;
    bool is_json; /* the body */
};

/* What a client sent, into the arena. -EINVAL VALIDATION_ERROR. */
int rt_wire_read(struct arena *a, bool is_v2, bool is_binary, struct slice bytes, struct rt_message *ret,
                 struct err *e) MUST_CHECK;
/* The same of what a server sent: in binary form it is a broadcast of type 4, without references. */
int rt_wire_read_of_server(struct arena *a, bool is_v2, bool is_binary, struct slice bytes, struct rt_message *ret,
                           struct err *e) MUST_CHECK;
void rt_wire_write(struct buf *out, bool is_v2, const struct rt_message *m);
/* A broadcast for clients of vsn 2.0.0, binary (type 4). False: its names are too long for that. */
bool rt_wire_write_broadcast(struct buf *out, const struct rt_message *m);
/* The same for servers, as a client's push (type 3): with references. */
bool rt_wire_write_push(struct buf *out, const struct rt_message *m);

#include "base/realtime_wire.h"

#include "base/limits.h"
#include "base/utf8.h"

#include <string.h>

enum { TYPE_BROADCAST_PUSH = 3, TYPE_BROADCAST = 4, PUSH_HEAD = 7, CAST_HEAD = 5, ONE_BYTE = 255 };
enum { CODING_BINARY, CODING_JSON };

static int bad(struct err *e, const char *what)
{
    return err_set(e, -EINVAL, "VALIDATION_ERROR", "A message %s.", what);
}

/* ---- text ---- */

/* A reference is a string, a number or null. */
static int read_ref(struct arena *a, struct json_value v, struct slice *ret, struct err *e)
{
    if (json_is_absent(v))
        *ret = (struct slice){ 0 };
    else if (json_type(v) == JSON_STRING)
        *ret = json_string(v);
    else if (json_type(v) == JSON_INT)
        *ret = slice_of(json_to_str(a, v));
    else
        return bad(e, "must have strings or null as ref and join_ref");
    return ret->n > ONE_BYTE ? bad(e, "must have references of at most 255 bytes") : 0;
}

static int read_parts(struct arena *a, const struct json_value parts[5], struct rt_message *ret, struct err *e)
{
    int r = read_ref(a, parts[0], &ret->join_ref, e);

    if (r == 0)
        r = read_ref(a, parts[1], &ret->ref, e);
    if (r < 0)
        return r;
    if (json_type(parts[2]) != JSON_STRING || json_type(parts[3]) != JSON_STRING)
        return bad(e, "must have a topic and an event, both strings");
    ret->topic = json_string(parts[2]);
    ret->event = json_string(parts[3]);
    ret->payload = parts[4];
    if (ret->topic.n > LIMIT_TOPIC_BYTES || ret->event.n > ONE_BYTE)
        return bad(e, "must have a topic and an event of at most 255 bytes");
    return 0;
}

static int read_object(struct arena *a, struct json_value v, struct rt_message *ret, struct err *e)
{
    const struct json_value parts[5] = { json_get(v, "join_ref"), json_get(v, "ref"), json_get(v, "topic"),
                                         json_get(v, "event"), json_get(v, "payload") };

    if (json_type(v) != JSON_OBJECT)
        return bad(e, "of version 1.0.0 must be a JSON object");
    return read_parts(a, parts, ret, e);
}

static int read_array(struct arena *a, struct json_value v, struct rt_message *ret, struct err *e)
{
    struct json_value parts[5] = { { 0 } }, item;
    struct slice key;
    size_t n = 0;

    if (json_type(v) != JSON_ARRAY || json_length(v) != ARRAY_SIZE(parts))
        return bad(e, "of version 2.0.0 must be an array of join_ref, ref, topic, event and payload");
    for (struct json_iter it = json_iter(v); json_next(&it, &key, &item);)
        parts[n++] = item;
    return read_parts(a, parts, ret, e);
}

/* ---- binary ---- */

static struct slice take(struct slice *rest, size_t n)
{
    struct slice part = { rest->p, n };

    *rest = (struct slice){ rest->p + n, rest->n - n };
    return part;
}

static bool is_json(struct arena *a, struct slice text)
{
    struct json_value v;

    return json_parse(a, text, &v, NULL) == 0;
}

static int check_broadcast(struct arena *a, const struct rt_message *m, struct err *e)
{
    if (!utf8_is_valid(m->topic) || !utf8_is_valid(m->user_event) || !utf8_is_valid(m->ref) ||
        !utf8_is_valid(m->join_ref))
        return bad(e, "must have names in UTF-8");
    if (m->meta.n > 0 && !is_json(a, m->meta))
        return bad(e, "must have JSON as metadata, or none");
    if (m->is_json && !is_json(a, m->body))
        return bad(e, "says that its payload is JSON, and it is not");
    return 0;
}

/* The parts whose lengths stand in `lengths`, then the payload. */
static int read_parts_of(struct slice rest, const unsigned char *lengths, struct slice *const parts[], size_t n_parts,
                         struct rt_message *ret, struct err *e)
{
    size_t n = 0;

    for (size_t i = 0; i < n_parts; i++)
        n += lengths[i];
    if (n > rest.n)
        return bad(e, "is shorter than its header says");
    for (size_t i = 0; i < n_parts; i++)
        *parts[i] = take(&rest, lengths[i]);
    ret->event = SLICE_LIT("broadcast");
    ret->is_broadcast = true;
    ret->body = rest;
    return 0;
}

/* Header: type, the lengths of join_ref, ref, topic, event and metadata, the coding of the payload. */
static int read_push(struct arena *a, struct slice bytes, struct rt_message *ret, struct err *e)
{
    const unsigned char *head = (const unsigned char *)bytes.p;
    struct slice *const parts[] = { &ret->join_ref, &ret->ref, &ret->topic, &ret->user_event, &ret->meta };
    int r;

    if (bytes.n < PUSH_HEAD || head[0] != TYPE_BROADCAST_PUSH || head[PUSH_HEAD - 1] > CODING_JSON)
        return bad(e, "in binary form must be a broadcast (type 3), with the payload's coding 0 or 1");
    ret->is_json = head[PUSH_HEAD - 1] == CODING_JSON;
    r = read_parts_of((struct slice){ bytes.p + PUSH_HEAD, bytes.n - PUSH_HEAD }, head + 1, parts, ARRAY_SIZE(parts),
                      ret, e);
    if (r < 0)
        return r;
    if (ret->join_ref.n == 0)
        ret->join_ref.p = NULL;
    if (ret->ref.n == 0)
        ret->ref.p = NULL;
    return check_broadcast(a, ret, e);
}

/* Header: type, the lengths of topic, event and metadata, the coding of the payload. */
static int read_cast(struct arena *a, struct slice bytes, struct rt_message *ret, struct err *e)
{
    const unsigned char *head = (const unsigned char *)bytes.p;
    struct slice *const parts[] = { &ret->topic, &ret->user_event, &ret->meta };
    int r;

    if (bytes.n < CAST_HEAD || head[0] != TYPE_BROADCAST || head[CAST_HEAD - 1] > CODING_JSON)
        return bad(e, "in binary form must be a broadcast (type 4), with the payload's coding 0 or 1");
    ret->is_json = head[CAST_HEAD - 1] == CODING_JSON;
    r = read_parts_of((struct slice){ bytes.p + CAST_HEAD, bytes.n - CAST_HEAD }, head + 1, parts, ARRAY_SIZE(parts),
                      ret, e);
    return r < 0 ? r : check_broadcast(a, ret, e);
}

static int read_text(struct arena *a, bool is_v2, struct slice bytes, struct rt_message *ret, struct err *e)
{
    struct json_value v = { 0 };

    if (json_parse(a, bytes, &v, NULL) < 0)
        return bad(e, "must be JSON");
    return is_v2 ? read_array(a, v, ret, e) : read_object(a, v, ret, e);
}

typedef int read_binary_fn(struct arena *a, struct slice bytes, struct rt_message *ret, struct err *e);

static int read_message(struct arena *a, bool is_v2, read_binary_fn *read_binary, struct slice bytes,
                        struct rt_message *ret, struct err *e)
{
    *ret = (struct rt_message){ 0 };
    if (!read_binary)
        return read_text(a, is_v2, bytes, ret, e);
    return is_v2 ? read_binary(a, bytes, ret, e) : bad(e, "of version 1.0.0 must be text");
}

int rt_wire_read(struct arena *a, bool is_v2, bool is_binary, struct slice bytes, struct rt_message *ret, struct err *e)
{
    return read_message(a, is_v2, is_binary ? read_push : NULL, bytes, ret, e);
}

int rt_wire_read_of_server(struct arena *a, bool is_v2, bool is_binary, struct slice bytes, struct rt_message *ret,
                           struct err *e)
{
    return read_message(a, is_v2, is_binary ? read_cast : NULL, bytes, ret, e);
}

/* ---- writing ---- */

static void add_ref(struct json_writer *w, const char *name, struct slice ref)
{
    if (ref.p)
        json_add_slice(w, name, ref);
    else
        json_add_null(w, name);
}

/* The payload is appended as it is: it may be large, and has been checked. */
static void add_payload(struct buf *out, const char *before, struct slice text)
{
    buf_add_str(out, before);
    buf_add_slice(out, text.p ? text : SLICE_LIT("{}"));
}

static void write_object(struct buf *out, const struct rt_message *m)
{
    struct json_writer w;

    json_write_init(&w, out);
    json_begin_object(&w);
    json_add_slice(&w, "topic", m->topic);
    json_add_slice(&w, "event", m->event);
    add_ref(&w, "ref", m->ref);
    add_ref(&w, "join_ref", m->join_ref);
    add_payload(out, ",\"payload\":", m->text);
    buf_add_char(out, '}');
}

static void write_array(struct buf *out, const struct rt_message *m)
{
    struct json_writer w;

    json_write_init(&w, out);
    json_begin_array(&w);
    add_ref(&w, NULL, m->join_ref);
    add_ref(&w, NULL, m->ref);
    json_add_slice(&w, NULL, m->topic);
    json_add_slice(&w, NULL, m->event);
    add_payload(out, ",", m->text);
    buf_add_char(out, ']');
}

void rt_wire_write(struct buf *out, bool is_v2, const struct rt_message *m)
{
    if (is_v2)
        write_array(out, m);
    else
        write_object(out, m);
}

/* The header's first byte is the type; a length for each part and the coding follow. False: a part is too long. */
static bool write_binary(struct buf *out, char type, const struct slice parts[], size_t n_parts,
                         const struct rt_message *m)
{
    for (size_t i = 0; i < n_parts; i++)
        if (parts[i].n > ONE_BYTE)
            return false;
    buf_add_char(out, type);
    for (size_t i = 0; i < n_parts; i++)
        buf_add_char(out, (char)parts[i].n);
    buf_add_char(out, m->is_json ? CODING_JSON : CODING_BINARY);
    for (size_t i = 0; i < n_parts; i++)
        buf_add_slice(out, parts[i]);
    buf_add_slice(out, m->body);
    return true;
}

bool rt_wire_write_broadcast(struct buf *out, const struct rt_message *m)
{
    const struct slice parts[] = { m->topic, m->user_event, m->meta };

    return write_binary(out, TYPE_BROADCAST, parts, ARRAY_SIZE(parts), m);
}

bool rt_wire_write_push(struct buf *out, const struct rt_message *m)
{
    const struct slice parts[] = { m->join_ref, m->ref, m->topic, m->user_event, m->meta };

    return write_binary(out, TYPE_BROADCAST_PUSH, parts, ARRAY_SIZE(parts), m);
}

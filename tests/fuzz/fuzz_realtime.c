/* One message of the realtime protocol; the first byte chooses version and form. What was read can be written again in
 * every form, as JSON. */
#include "base/limits.h"
#include "base/realtime_wire.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static void check_json(struct arena *a, struct slice text)
{
    struct json_value v;

    assert(json_parse(a, text, &v, NULL) == 0);
}

static void write_both(struct arena *a, struct rt_message *m)
{
    struct buf out;

    if (m->is_broadcast)
        m->text = m->is_json ? m->body : SLICE_LIT("{}");
    else
        m->text = slice_of(json_to_str(a, m->payload));
    for (int is_v2 = 0; is_v2 < 2; is_v2++) {
        buf_init(&out, 64 << 20);
        rt_wire_write(&out, is_v2, m);
        check_json(a, buf_slice(&out));
        buf_clear(&out);
    }
}

static void write_broadcast(struct arena *a, const struct rt_message *m)
{
    struct rt_message again;
    struct buf out;

    buf_init(&out, 64 << 20);
    assert(rt_wire_write_broadcast(&out, m));
    assert(out.n == 5 + m->topic.n + m->user_event.n + m->meta.n + m->body.n);
    assert(rt_wire_read_of_server(a, true, true, buf_slice(&out), &again, NULL) == 0);
    assert(slice_eq(again.topic, m->topic) && slice_eq(again.body, m->body) && again.is_json == m->is_json);
    buf_reset(&out);
    assert(rt_wire_write_push(&out, m));
    assert(rt_wire_read(a, true, true, buf_slice(&out), &again, NULL) == 0);
    assert(slice_eq(again.ref, m->ref) && slice_eq(again.user_event, m->user_event) && slice_eq(again.body, m->body));
    buf_clear(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct rt_message m;
    struct err e = { 0 };

    if (n == 0)
        return 0;
    if (rt_wire_read(a, bytes[0] & 1, bytes[0] & 2, (struct slice){ (const char *)bytes + 1, n - 1 }, &m, &e) < 0) {
        assert(e.code[0]);
        return 0;
    }
    assert(m.topic.n <= LIMIT_TOPIC_BYTES && m.event.n <= 255);
    write_both(a, &m);
    if (m.is_broadcast)
        write_broadcast(a, &m);
    return 0;
}

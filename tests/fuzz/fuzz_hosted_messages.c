/* Messages of a server to the realtime client, one a line; a line whose first byte is 0x04 is binary. The first byte of
 * the input chooses the version. The client has a table, a topic and its presence joined, lives on, and what it reports
 * is whole. */
#include "backend/hosted/hosted_session.h"
#include "base/limits.h"
#include "base/utf8.h"

#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static int check_message(void *arg, bool is_binary, struct slice message, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct json_value v;

    assert(is_binary || json_parse(a, message, &v, NULL) == 0);
    return 0;
}

static void check_news(struct arena *a, const struct hosted_news *news)
{
    struct json_value v;

    if (news->has_change)
        assert(backend_op_name(news->change.op) && strcmp(news->change.table, "orders") == 0 && news->change.commit_at);
    if (news->topic)
        assert(strcmp(news->topic, "room") == 0 && *news->event &&
               json_parse(a, slice_of(news->payload_json), &v, NULL) == 0);
    if (news->gap_table)
        assert(strcmp(news->gap_table, "orders") == 0);
}

static void check_views(struct hosted_session *s, struct arena *a)
{
    struct backend_presences list = { 0 };
    struct backend_monitor m;

    hosted_session_monitor(s, a, &m);
    assert(m.n == 1 && (!m.items[0].last_error || utf8_is_valid(slice_of(m.items[0].last_error))));
    if (hosted_session_presences(s, a, &list, NULL) == 0)
        assert(list.n <= LIMIT_LIST);
    for (size_t i = 0; i < list.n; i++)
        assert(list.items[i].machine_id);
}

static struct hosted_session *open_session(bool is_v1)
{
    const struct hosted_session_config config = { .abbr = "svc", .is_v1 = is_v1, .send = check_message };
    const struct backend_presence me = { .machine_id = "lin-a", .hostname = "alpha" };
    struct hosted_session *s = hosted_session_new(&config);

    assert(hosted_session_watch(s, "orders", NULL, NULL) == 0);
    assert(hosted_session_listen(s, "room", false, NULL) == 0);
    assert(hosted_session_track(s, &me, NULL) == 0);
    hosted_session_begin(s, 0);
    assert(hosted_session_tick(s, 0, NULL) == 0);
    return s;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    struct slice rest = { (const char *)bytes + 1, n - 1 };
    struct hosted_session *s;
    int64_t now_ms = 0;

    if (n == 0)
        return 0;
    s = open_session(bytes[0] & 1);
    while (rest.n > 0) {
        AUTO(arena_freep) struct arena *a = arena_new();
        const char *end = memchr(rest.p, '\n', rest.n);
        struct slice line = { rest.p, end ? (size_t)(end - rest.p) : rest.n };
        struct hosted_news news;

        hosted_session_take(s, a, line.n > 0 && line.p[0] == 4, line, now_ms, &news);
        check_news(a, &news);
        check_views(s, a);
        now_ms += 3000;
        if (hosted_session_tick(s, now_ms, NULL) < 0) { /* a heartbeat without a reply */
            hosted_session_end(s, now_ms, "lost");
            hosted_session_begin(s, now_ms);
        }
        rest = (struct slice){ rest.p + line.n + (end != NULL), rest.n - line.n - (end != NULL) };
    }
    hosted_session_free(s);
    return 0;
}

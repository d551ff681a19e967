/* A session of the realtime client without network: the test is its server and its clock.
 *
 *     struct rig rig;  rig_open_as(&rig, false);  ...  tick(&rig, 1000)  take(&rig, "[...]")  ...  rig_close(&rig);
 */
#pragma once

#include "backend/hosted/hosted_session.h"
#include "base/limits.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

struct rig {
    struct arena *a;
    struct hosted_session *s;
    struct buf said; /* every message of the client, each in a line */
    int64_t now_ms;
    struct hosted_times times;
    struct hosted_news news;
    int send_fails;
};

static inline int hear(void *arg, bool is_binary, struct slice message, struct err *e)
{
    struct rig *rig = arg;

    if (rig->send_fails)
        return err_set(e, rig->send_fails, "OVERLOADED", "full");
    if (is_binary)
        buf_add_str(&rig->said, "B");
    for (size_t i = 0; i < message.n; i++)
        buf_add_char(&rig->said, message.p[i] < ' ' ? '.' : message.p[i]);
    buf_add_char(&rig->said, '\n');
    return 0;
}

static const struct hosted_times times = {
    .heartbeat_ms = 25000, .reply_ms = 10000, .confirm_ms = 20000, .step_ms = 1000, .track_ms = 7000
};

static inline void rig_open_as(struct rig *rig, bool is_v1)
{
    const struct hosted_session_config config = {
        .abbr = "svc", .times = &rig->times, .is_v1 = is_v1, .send = hear, .arg = rig
    };

    *rig = (struct rig){ .a = arena_new(), .now_ms = 1000, .times = times };
    buf_init(&rig->said, MIB(16));
    rig->s = hosted_session_new(&config);
}

static inline void rig_close(struct rig *rig)
{
    hosted_session_free(rig->s);
    buf_clear(&rig->said);
    arena_free(rig->a);
}

/* Every message that the client sends after so many milliseconds. */
static const char *tick(struct rig *rig, int64_t after_ms)
{
    buf_reset(&rig->said);
    rig->now_ms += after_ms;
    assert_int_equal(hosted_session_tick(rig->s, rig->now_ms, NULL), 0);
    return buf_str(&rig->said);
}

static inline void take(struct rig *rig, const char *text)
{
    hosted_session_take(rig->s, rig->a, false, slice_of(text), rig->now_ms, &rig->news);
}

static inline struct backend_monitor monitor(struct rig *rig)
{
    struct backend_monitor m;

    hosted_session_monitor(rig->s, rig->a, &m);
    return m;
}

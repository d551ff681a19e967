/* A logical stream: frames, each after its length in two bytes. */
#include "backend/postgres/pgoutput.h"
#include "backend/postgres/postgres_stream.h"

#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static void on_event(void *arg, const struct backend_event *event)
{
    *(size_t *)arg += strlen(event->table) + (event->new_row ? strlen(event->new_row->id) : 0);
}

static void on_gap(void *arg)
{
    ++*(size_t *)arg;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    size_t n_seen = 0;
    const struct postgres_outbox_sink sink = { on_event, on_gap, &n_seen };
    struct postgres_stream *s = postgres_stream_new("svc", &sink);
    int r = 0;

    while (r == 0 && n >= 2) {
        size_t n_frame = MIN((size_t)bytes[0] << 8 | bytes[1], n - 2);
        struct pgoutput_frame frame = { .kind = PGOUTPUT_KEEPALIVE };

        r = pgoutput_read_frame((struct slice){ (const char *)bytes + 2, n_frame }, &frame, NULL);
        if (r == 0 && frame.kind == PGOUTPUT_DATA)
            r = postgres_stream_take(s, frame.body, 0, NULL);
        bytes += 2 + n_frame;
        n -= 2 + n_frame;
    }
    postgres_stream_free(s);
    return 0;
}

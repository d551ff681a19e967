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

/* Nothing is known of every third table, so that its columns have the types of the messages. */
static int read_columns(void *arg, uint32_t relation, struct arena *a, struct postgres_columns *ret, struct err *e)
{
    struct postgres_columns columns = { .n = relation % 3 };

    columns.items = arena_array(a, 2, sizeof(*columns.items));
    columns.items[0] = (struct postgres_column){ .name = "id", .type = relation, .is_key = true };
    columns.items[1] = (struct postgres_column){
        .name = "data", .type = relation >> 8, .is_array = true, .delimiter = ',', .is_key = relation % 5 == 0
    };
    *ret = columns;
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    size_t n_seen = 0;
    const struct postgres_outbox_sink sink = { on_event, on_gap, &n_seen };
    const struct postgres_stream_catalog catalog = { read_columns, NULL };
    struct postgres_stream *s = postgres_stream_new("svc", &sink, &catalog);
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

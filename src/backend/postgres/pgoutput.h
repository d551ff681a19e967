/* Messages of a logical replication stream (PostgreSQL 15, sections 55.5, 55.9: the plugin pgoutput, protocol version
 * 1, values as text). Pure; any thread. What a message holds is borrowed from its bytes, except arrays, which are in
 * the arena.
 *
 *     r = pgoutput_read_frame(message, &frame, e);
 *     if (r == 0 && frame.kind == PGOUTPUT_DATA)
 *         r = pgoutput_read(frame.body, arena, &change, e);
 */
#pragma once

#include "base/arena.h"
#include "base/err.h"

enum pgoutput_frame_kind { PGOUTPUT_DATA = 'w', PGOUTPUT_KEEPALIVE = 'k' };
struct pgoutput_frame {
    enum pgoutput_frame_kind kind;
    uint64_t end; /* of the server's log */
    struct slice body;
    bool must_reply; /* keepalive: the server wants a status at once */
};

enum pgoutput_kind {
    PGOUTPUT_BEGIN = 'B',
    PGOUTPUT_COMMIT = 'C',
    PGOUTPUT_RELATION = 'R',
    PGOUTPUT_INSERT = 'I',
    PGOUTPUT_UPDATE = 'U',
    PGOUTPUT_DELETE = 'D',
    PGOUTPUT_TRUNCATE = 'T',
    PGOUTPUT_OTHER = 'Y' /* types, origins and messages: nothing to do */
};

enum pgoutput_value_kind { PGOUTPUT_NULL = 'n', PGOUTPUT_UNCHANGED = 'u', PGOUTPUT_TEXT = 't' };
struct pgoutput_value {
    enum pgoutput_value_kind kind; /* unchanged: a large value that the server did not send again */
    struct slice text;
};
struct pgoutput_tuple {
    struct pgoutput_value *values; /* NULL: there is none */
    size_t n;
};

struct pgoutput_relation {
    uint32_t id;
    const char *schema, *name;
    char identity;        /* 'f': old rows are whole */
    const char **columns; /* names */
    uint32_t *types;      /* of the columns, as ids of pg_type */
    size_t n_columns;
};

struct pgoutput_change {
    enum pgoutput_kind kind;
    uint64_t end;                      /* begin: of the commit record; commit: after it */
    struct pgoutput_relation relation; /* of a relation message, whole; of a change, only its id */
    struct pgoutput_tuple old, new;
    bool is_old_whole;         /* old is the whole row, not its key only */
    const uint32_t *truncated; /* ids */
    size_t n_truncated;
};

/* -EIO STORE_FAILED for bytes that are no such message: a length beyond the bytes, a missing end, an unknown kind, more
 * than LIMIT_PG_COLUMNS columns, a value that is no UTF-8 text, bytes after the end. */
int pgoutput_read_frame(struct slice bytes, struct pgoutput_frame *ret, struct err *e) MUST_CHECK;
int pgoutput_read(struct slice body, struct arena *a, struct pgoutput_change *ret, struct err *e) MUST_CHECK;

enum { PGOUTPUT_STATUS_BYTES = 34 };
/* The status that a client sends: everything up to `end` is done with. now_us: since 2000-01-01, UTC. must_reply: the
 * server answers with a keepalive. */
void pgoutput_write_status(uint64_t end, int64_t now_us, bool must_reply, unsigned char out[PGOUTPUT_STATUS_BYTES]);

#include "backend/postgres/pgoutput.h"
#include "base/limits.h"
#include "base/utf8.h"
#include "pg/pg_row.h"

#include <string.h>

enum { DATA_HEAD = 25, KEEPALIVE_BYTES = 18, NAME_BYTES = 63 };

/* Reads from the front. After the first failure every read gives zeros, so one check at the end is enough. */
struct reader {
    struct slice rest;
    const char *wrong; /* the rule that the bytes break; NULL: none so far */
};

static void refuse(struct reader *in, const char *rule)
{
    if (!in->wrong)
        in->wrong = rule;
    in->rest.n = 0;
}

static struct slice take(struct reader *in, size_t n)
{
    struct slice part = in->rest;

    if (n > in->rest.n) {
        refuse(in, "it ends too early");
        return (struct slice){ "", 0 };
    }
    part.n = n;
    in->rest = (struct slice){ in->rest.p + n, in->rest.n - n };
    return part;
}

static uint64_t take_number(struct reader *in, size_t n_bytes)
{
    struct slice part = take(in, n_bytes);
    uint64_t n = 0;

    for (size_t i = 0; i < part.n; i++)
        n = n << 8 | (unsigned char)part.p[i];
    return n;
}

static char take_char(struct reader *in)
{
    return (char)take_number(in, 1);
}

/* A name with its NUL. */
static const char *take_name(struct reader *in)
{
    const char *end = in->rest.n ? memchr(in->rest.p, '\0', in->rest.n) : NULL;
    struct slice name;

    if (!end) {
        refuse(in, "a name has no end");
        return "";
    }
    name = take(in, (size_t)(end - in->rest.p) + 1);
    if (name.n - 1 > NAME_BYTES || !utf8_is_valid((struct slice){ name.p, name.n - 1 }))
        refuse(in, "a name is too long or no UTF-8");
    return in->wrong ? "" : name.p;
}

/* ---- frames ---- */

static int finish(const struct reader *in, struct err *e)
{
    if (in->wrong)
        return pg_fault(e, "a message of the stream: %s", in->wrong);
    return in->rest.n > 0 ? pg_fault(e, "a message of the stream: there are bytes after its end") : 0;
}

int pgoutput_read_frame(struct slice bytes, struct pgoutput_frame *ret, struct err *e)
{
    struct reader in = { .rest = bytes };
    struct pgoutput_frame frame = { .kind = (enum pgoutput_frame_kind)take_char(&in) };
    int r;

    if (frame.kind == PGOUTPUT_DATA) {
        (void)take_number(&in, 8);
        frame.end = take_number(&in, 8);
        (void)take_number(&in, 8);
        frame.body = take(&in, in.rest.n);
    } else if (frame.kind == PGOUTPUT_KEEPALIVE) {
        frame.end = take_number(&in, 8);
        (void)take_number(&in, 8);
        frame.must_reply = take_number(&in, 1) == 1;
    } else {
        refuse(&in, "it is neither data nor a keepalive");
    }
    r = finish(&in, e);
    if (r == 0)
        *ret = frame;
    return r;
}

static void put_number(unsigned char *out, uint64_t n)
{
    for (int i = 7; i >= 0; i--, n >>= 8)
        out[i] = (unsigned char)n;
}

void pgoutput_write_status(uint64_t end, int64_t now_us, bool must_reply, unsigned char out[PGOUTPUT_STATUS_BYTES])
{
    out[0] = 'r';
    put_number(out + 1, end);  /* written */
    put_number(out + 9, end);  /* flushed */
    put_number(out + 17, end); /* applied */
    put_number(out + 25, (uint64_t)now_us);
    out[33] = must_reply;
}

/* ---- messages ---- */

static void read_value(struct reader *in, struct pgoutput_value *ret)
{
    ret->kind = (enum pgoutput_value_kind)take_char(in);
    if (ret->kind == PGOUTPUT_NULL || ret->kind == PGOUTPUT_UNCHANGED)
        return;
    if (ret->kind != PGOUTPUT_TEXT)
        refuse(in, "a value is of an unknown kind");
    ret->text = take(in, (size_t)take_number(in, 4));
    if (memchr(ret->text.p, '\0', ret->text.n) || !utf8_is_valid(ret->text))
        refuse(in, "a value is no text in UTF-8");
}

/* A value has one byte at least: an array of that many elements is no larger than 24 times the message. */
static size_t read_count(struct reader *in, size_t n_bytes, size_t bytes_each, size_t max)
{
    size_t n = (size_t)take_number(in, n_bytes);

    if (n > max || n > in->rest.n / bytes_each)
        refuse(in, "it has too many columns or tables");
    return in->wrong ? 0 : n;
}

static struct pgoutput_tuple read_tuple(struct reader *in, struct arena *a)
{
    size_t n = read_count(in, 2, 1, LIMIT_PG_COLUMNS);
    struct pgoutput_tuple tuple = { arena_array(a, MAX(n, (size_t)1), sizeof(struct pgoutput_value)), n };

    for (size_t i = 0; i < n; i++)
        read_value(in, &tuple.values[i]);
    return tuple;
}

static void read_relation(struct reader *in, struct arena *a, struct pgoutput_change *ret)
{
    struct pgoutput_relation *rel = &ret->relation;

    rel->id = (uint32_t)take_number(in, 4);
    rel->schema = take_name(in);
    rel->name = take_name(in);
    rel->identity = take_char(in);
    rel->n_columns = read_count(in, 2, 10, LIMIT_PG_COLUMNS);
    rel->columns = arena_array(a, MAX(rel->n_columns, (size_t)1), sizeof(*rel->columns));
    rel->types = arena_array(a, MAX(rel->n_columns, (size_t)1), sizeof(*rel->types));
    for (size_t i = 0; i < rel->n_columns; i++) {
        (void)take_char(in); /* part of the key */
        rel->columns[i] = take_name(in);
        rel->types[i] = (uint32_t)take_number(in, 4);
        (void)take_number(in, 4); /* modifier of the type */
    }
}

static void read_old(struct reader *in, struct arena *a, char kind, struct pgoutput_change *ret)
{
    ret->is_old_whole = kind == 'O';
    ret->old = read_tuple(in, a);
}

static void read_new(struct reader *in, struct arena *a, char kind, struct pgoutput_change *ret)
{
    if (kind != 'N')
        refuse(in, "a row is of an unknown kind");
    ret->new = read_tuple(in, a);
}

static void read_insert(struct reader *in, struct arena *a, struct pgoutput_change *ret)
{
    ret->relation.id = (uint32_t)take_number(in, 4);
    read_new(in, a, take_char(in), ret);
}

static void read_update(struct reader *in, struct arena *a, struct pgoutput_change *ret)
{
    char kind;

    ret->relation.id = (uint32_t)take_number(in, 4);
    kind = take_char(in);
    if (kind == 'K' || kind == 'O') {
        read_old(in, a, kind, ret);
        kind = take_char(in);
    }
    read_new(in, a, kind, ret);
}

static void read_delete(struct reader *in, struct arena *a, struct pgoutput_change *ret)
{
    char kind;

    ret->relation.id = (uint32_t)take_number(in, 4);
    kind = take_char(in);
    if (kind != 'K' && kind != 'O')
        refuse(in, "a row is of an unknown kind");
    read_old(in, a, kind, ret);
}

static void read_truncate(struct reader *in, struct arena *a, struct pgoutput_change *ret)
{
    uint64_t n = take_number(in, 4);
    uint32_t *ids;

    (void)take_number(in, 1); /* options */
    if (n != in->rest.n / 4)
        refuse(in, "it has too many columns or tables");
    n = in->wrong ? 0 : n;
    ids = arena_array(a, MAX((size_t)n, (size_t)1), sizeof(*ids));
    for (size_t i = 0; i < n; i++)
        ids[i] = (uint32_t)take_number(in, 4);
    ret->truncated = ids;
    ret->n_truncated = (size_t)n;
}

static void read_begin(struct reader *in, struct arena *a, struct pgoutput_change *ret)
{
    ret->end = take_number(in, 8);
    (void)take_number(in, 8); /* time */
    (void)take_number(in, 4); /* transaction */
}

static void read_commit(struct reader *in, struct arena *a, struct pgoutput_change *ret)
{
    (void)take_number(in, 1); /* flags */
    (void)take_number(in, 8); /* the commit record */
    ret->end = take_number(in, 8);
    (void)take_number(in, 8); /* time */
}

static void read_other(struct reader *in, struct arena *a, struct pgoutput_change *ret)
{
    ret->kind = PGOUTPUT_OTHER;
    in->rest.n = 0;
}

static const struct {
    char kind;
    void (*read)(struct reader *in, struct arena *a, struct pgoutput_change *ret);
} messages[] = {
    { PGOUTPUT_BEGIN, read_begin },
    { PGOUTPUT_COMMIT, read_commit },
    { PGOUTPUT_RELATION, read_relation },
    { PGOUTPUT_INSERT, read_insert },
    { PGOUTPUT_UPDATE, read_update },
    { PGOUTPUT_DELETE, read_delete },
    { PGOUTPUT_TRUNCATE, read_truncate },
    { 'Y', read_other },
    { 'O', read_other },
    { 'M', read_other },
};

int pgoutput_read(struct slice body, struct arena *a, struct pgoutput_change *ret, struct err *e)
{
    struct reader in = { .rest = body };
    struct pgoutput_change change = { 0 };
    char kind = take_char(&in);
    size_t i = 0;
    int r;

    while (i < ARRAY_SIZE(messages) && messages[i].kind != kind)
        i++;
    if (i == ARRAY_SIZE(messages))
        return pg_fault(e, "a message of the stream: its kind is unknown");
    change.kind = (enum pgoutput_kind)kind;
    messages[i].read(&in, a, &change);
    r = finish(&in, e);
    if (r == 0)
        *ret = change;
    return r;
}

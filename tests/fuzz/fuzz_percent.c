/* Percent-decoding, and a URL query through a field table. A decoded text must encode and decode to itself. */
#include "base/fields.h"
#include "base/percent.h"
#include "base/utf8.h"

#include <assert.h>

struct query {
    const char *status, *text;
    int64_t limit;
    double score;
    bool all;
};

static const char *const statuses[] = { "pending", "failed", NULL };

static const struct field query_fields[] = { FIELD_STRING(struct query, status, "status", .one_of = statuses),
                                             FIELD_STRING(struct query, text, "t", FIELD_REQUIRED, .max = 100),
                                             FIELD_INT(struct query, limit, "limit", .min = 1, .max = 500, .def = 50),
                                             FIELD_DOUBLE(struct query, score, "score", .max = 1),
                                             FIELD_BOOL(struct query, all, "all"),
                                             FIELD_END };

static void decode_and_back(struct arena *a, struct slice in, bool plus_is_space)
{
    struct err e = { 0 };
    struct buf encoded;
    char *text, *again;

    if (percent_decode(a, in, plus_is_space, &text, &e) < 0) {
        assert(*e.code && *e.text);
        return;
    }
    assert(utf8_is_valid(slice_of(text)));
    buf_init(&encoded, 3 * strlen(text) + 1);
    percent_encode(&encoded, slice_of(text));
    if (percent_decode(a, buf_slice(&encoded), plus_is_space, &again, NULL) < 0)
        assert(!"what was encoded does not decode");
    assert(strcmp(text, again) == 0);
    buf_clear(&encoded);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct slice in = { (const char *)data, size };
    struct query query = { 0 };
    struct err e = { 0 };

    decode_and_back(a, in, false);
    decode_and_back(a, in, true);
    if (fields_read_query(query_fields, arena_slicedup(a, in), &query, a, &e) < 0)
        assert(e.n_fields > 0);
    else
        assert(query.text && query.limit >= 1 && query.limit <= 500 && query.score >= 0 && query.score <= 1);
    return 0;
}

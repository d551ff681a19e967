/* The query of a request to /rest/v1. What is read keeps every limit, names its columns, and has the values that each
 * operator needs; what is refused says why. */
#include "base/limits.h"
#include "face/rest_query.h"

#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

struct counts {
    size_t conditions, values;
};

static void check_path(const struct query_path *p)
{
    assert(p->column);
    assert(p->n_steps <= LIMIT_FILTER_PATH && (p->n_steps > 0 || !p->is_text));
    for (size_t i = 0; i < p->n_steps; i++)
        assert(p->steps[i]);
}

static void check_condition(const struct query_condition *c, size_t depth, struct counts *counts)
{
    counts->conditions++;
    if (c->junction == QUERY_TEST) {
        check_path(&c->path);
        assert(c->op == QUERY_IN || c->n_values == 1);
        counts->values += c->op == QUERY_IN ? c->n_values : 0;
        for (size_t i = 0; i < c->n_values; i++)
            assert(strlen(c->values[i]) <= LIMIT_TARGET_BYTES);
        return;
    }
    assert(depth <= LIMIT_REST_DEPTH && c->n_items > 0);
    for (size_t i = 0; i < c->n_items; i++)
        check_condition(&c->items[i], depth + 1, counts);
}

/* Filters of several parameters are joined by one more group, which counts for nothing. */
static void check_where(const struct rest_query *q, struct counts *counts)
{
    const struct query_condition *c = q->where;

    if (!c)
        return;
    check_condition(c, c->junction == QUERY_AND && !c->is_not ? 0 : 1, counts);
    assert(counts->conditions <= LIMIT_REST_CONDITIONS + 1);
    assert(counts->values <= LIMIT_REST_VALUES);
}

static void check_names(const char *const *names, size_t n)
{
    assert(n <= LIMIT_TABLE_COLUMNS);
    for (size_t i = 0; i < n; i++)
        assert(names[i]);
}

static void check(const struct rest_query *q)
{
    struct counts counts = { 0 };

    check_where(q, &counts);
    assert(q->n_items <= LIMIT_TABLE_COLUMNS && q->n_order <= LIMIT_QUERY_ORDER);
    for (size_t i = 0; i < q->n_items; i++)
        if (q->items[i].path.column)
            check_path(&q->items[i].path);
    for (size_t i = 0; i < q->n_order; i++)
        check_path(&q->order[i].path);
    check_names(q->columns, q->n_columns);
    check_names(q->on_conflict, q->n_on_conflict);
    assert(q->limit >= -1 && q->offset >= 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct rest_query q;
    struct err e = { 0 };

    if (rest_query_parse(a, arena_strndup(a, (const char *)bytes, n), &q, &e) < 0)
        assert(strcmp(e.code, "BAD_REST_QUERY") == 0 || strcmp(e.code, "BAD_RANGE") == 0);
    else
        check(&q);
    return 0;
}

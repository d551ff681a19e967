#include "face/rest_query.h"
#include "base/limits.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

/* ---- a query as text: what was read, in one line ---- */

static const char *const op_names[] = { "=",  "<>",   ">",     ">=", "<",  "<=", "in",
                                        "is", "like", "ilike", "@>", "<@", "&&", "distinct" };

static void show_path(struct buf *out, const struct query_path *p)
{
    buf_add_str(out, p->column ? p->column : "*");
    for (size_t i = 0; i < p->n_steps; i++)
        buf_printf(out, "%s%s", p->is_text && i + 1 == p->n_steps ? "->>" : "->", p->steps[i]);
    if (p->cast)
        buf_printf(out, "::%d", (int)*p->cast);
}

static void show_condition(struct buf *out, const struct query_condition *c)
{
    buf_add_str(out, c->is_not ? "not " : "");
    if (c->junction == QUERY_TEST) {
        show_path(out, &c->path);
        buf_printf(out, " %s", op_names[c->op]);
        for (size_t i = 0; i < c->n_values; i++)
            buf_printf(out, " <%s>", c->values[i]);
        return;
    }
    buf_add_str(out, c->junction == QUERY_AND ? "and(" : "or(");
    for (size_t i = 0; i < c->n_items; i++) {
        buf_add_str(out, i ? ", " : "");
        show_condition(out, &c->items[i]);
    }
    buf_add_char(out, ')');
}

static void show_names(struct buf *out, const char *what, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++)
        buf_printf(out, "%s%s", i ? "," : what, names[i]);
}

static void show_lists(struct buf *out, const struct rest_query *q)
{
    for (size_t i = 0; i < q->n_items; i++) {
        buf_add_str(out, i ? "," : " select ");
        show_path(out, &q->items[i].path);
        if (q->items[i].alias)
            buf_printf(out, " as %s", q->items[i].alias);
    }
    for (size_t i = 0; i < q->n_order; i++) {
        static const char *const nulls[] = { "", " first", " last" };

        buf_add_str(out, i ? "," : " order ");
        show_path(out, &q->order[i].path);
        buf_printf(out, "%s%s", q->order[i].is_descending ? " desc" : "", nulls[q->order[i].nulls]);
    }
}

static const char *show(struct arena *a, const struct rest_query *q)
{
    struct buf out;

    buf_init(&out, 1 << 20);
    if (q->where)
        show_condition(&out, q->where);
    show_lists(&out, q);
    if (q->limit >= 0)
        buf_printf(&out, " limit %lld", (long long)q->limit);
    if (q->offset)
        buf_printf(&out, " offset %lld", (long long)q->offset);
    show_names(&out, " columns ", q->columns, q->n_columns);
    show_names(&out, " conflict ", q->on_conflict, q->n_on_conflict);
    return buf_to_arena(&out, a);
}

static void assert_reads(const char *query, const char *expected)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct rest_query q;
    struct err e = { 0 };

    if (rest_query_parse(a, query, &q, &e) < 0)
        fail_msg("%s: %s", query, e.text);
    assert_string_equal(show(a, &q), expected);
}

static void assert_refused(const char *query, const char *word)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct rest_query q = { .limit = 7 };
    struct err e = { 0 };

    if (rest_query_parse(a, query, &q, &e) != -EINVAL)
        fail_msg("%s is not refused", query);
    assert_string_equal(e.code, "BAD_REST_QUERY");
    if (!strstr(e.text, word))
        fail_msg("%s: \"%s\" does not say \"%s\"", query, e.text, word);
    assert_int_equal(q.limit, 7);
}

/* ---- tests ---- */

static void filters_are_read(void **state)
{
    static const struct {
        const char *query, *shown;
    } cases[] = {
        { "", "" },
        { "&&", "" },
        { "apikey=x", "" },
        { "a=eq.1", "a = <1>" },
        { "a=neq.", "a <> <>" },
        { "a=gt.1&b=gte.2&c=lt.3&d=lte.4", "and(a > <1>, b >= <2>, c < <3>, d <= <4>)" },
        { "a=not.eq.1", "not a = <1>" },
        { "a=eq.b.c,d)(\"x\"", "a = <b.c,d)(\"x\">" },
        { "a=eq.x%20y+z%2C", "a = <x y z,>" },
        { "a=is.null", "a is <null>" },
        { "a=not.is.NULL", "not a is <null>" },
        { "a=is.Unknown&b=is.not_null", "and(a is <unknown>, b is <not_null>)" },
        { "a=in.(1,2,3)", "a in <1> <2> <3>" },
        { "a=in.()", "a in" },
        { "a=in.(,)", "a in <> <>" },
        { "a=in.(\"x,y\",\"a\\\"b\\\\\",z)", "a in <x,y> <a\"b\\> <z>" },
        { "a=like.*x*&b=ilike.y%25_", "and(a like <%x%>, b ilike <y%_>)" },
        { "a=cs.{x,y}&b=cd.{z}&c=ov.{q}", "and(a @> <{x,y}>, b <@ <{z}>, c && <{q}>)" },
        { "a=cs.{\"k\":1}", "a @> <{\"k\":1}>" },
        { "a=isdistinct.3", "a distinct <3>" },
        { "raw_data->>k=eq.1", "raw_data->>k = <1>" },
        { "raw_data->a->0->>b=eq.1", "raw_data->a->0->>b = <1>" },
        { "raw_data->a=eq.1", "raw_data->a = <1>" },
        { "\"a.b\"=eq.1", "a.b = <1>" },
        { "a-b=eq.1", "a-b = <1>" },
        { "%C3%A4=eq.%F0%9F%98%80", "\xc3\xa4 = <\xf0\x9f\x98\x80>" },
        { "a=eq.1&a=eq.2", "and(a = <1>, a = <2>)" },
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        assert_reads(cases[i].query, cases[i].shown);
}

static void groups_are_read(void **state)
{
    static const struct {
        const char *query, *shown;
    } cases[] = {
        { "or=(a.eq.1,b.eq.2)", "or(a = <1>, b = <2>)" },
        { "and=(a.eq.1)", "and(a = <1>)" },
        { "not.or=(a.eq.1,b.eq.2)", "not or(a = <1>, b = <2>)" },
        { "not.and=(a.eq.1,b.not.eq.2)", "not and(a = <1>, not b = <2>)" },
        { "or=(a.eq.1,and(b.gt.2,not.or(c.is.null,d.in.(1,2))))",
          "or(a = <1>, and(b > <2>, not or(c is <null>, d in <1> <2>)))" },
        { "or=(a.eq.\"x,y)\",b.eq.z)", "or(a = <x,y)>, b = <z>)" },
        { "or=(a.cs.{1,2},b.cs.{\"x}\",y})", "or(a @> <{1,2}>, b @> <{\"x}\",y}>)" },
        { "or=(raw_data->>k.eq.1,\"b.c\".eq.2)", "or(raw_data->>k = <1>, b.c = <2>)" },
        { "or=(and.eq.1,not.eq.2,or.is.null)", "or(and = <1>, not = <2>, or is <null>)" },
        { "a=eq.1&or=(b.eq.2,c.eq.3)&or=(d.eq.4)", "and(a = <1>, or(b = <2>, c = <3>), or(d = <4>))" },
        { "or=(a.eq.,b.eq.1)", "or(a = <>, b = <1>)" },
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        assert_reads(cases[i].query, cases[i].shown);
}

static void lists_are_read(void **state)
{
    static const struct {
        const char *query, *shown;
    } cases[] = {
        { "select=*", "" },
        { "select=", "" },
        { "select=id,status", " select id,status" },
        { "select=*,n:raw_data->>n", " select *,raw_data->>n as n" },
        { "select=a:b::text,c::int,d::double%20precision", " select b::0 as a,c::3,d::6" },
        { "select=raw_data->a->>b,raw_data->list->0", " select raw_data->a->>b as b,raw_data->list->0 as list" },
        { "select=\"a,b\",\"c:d\":e", " select a,b,e as c:d" },
        { "select=id,%20status", " select id,status" },
        { "order=a", " order a" },
        { "order=a.desc,b.asc.nullsfirst,c.nullslast,d.desc.nullslast,raw_data->>k.desc",
          " order a desc,b first,c last,d desc last,raw_data->>k desc" },
        { "limit=0", " limit 0" },
        { "limit=10&offset=20", " limit 10 offset 20" },
        { "columns=\"a\",\"b\"", " columns a,b" },
        { "on_conflict=a,b", " conflict a,b" },
        { "order=&columns=&on_conflict=", "" },
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        assert_reads(cases[i].query, cases[i].shown);
}

static void mistakes_of_filters_are_named(void **state)
{
    static const struct {
        const char *query, *word;
    } cases[] = {
        { "a", "needs an operator" },
        { "a=1", "needs an operator" },
        { "a=foo.1", "\"foo\"" },
        { "a=eq", "needs a value after eq" },
        { "a=not.1", "needs an operator" },
        { "a=not.not.eq.1", "needs an operator" },
        { "=eq.1", "must have a name" },
        { "a=fts.x", "fts, which this service does not serve" },
        { "a=match.x", "match, which this service does not serve" },
        { "a=adj.x", "adj, which this service does not serve" },
        { "a=like(any).{x}", "like(any)" },
        { "a=is.nil", "not_null" },
        { "a=in.1", "in.(a,b)" },
        { "a=in.(1", "closing parenthesis" },
        { "a=in.(\"1\"2)", "after the end of a value" },
        { "a=in.(\"1)", "closing quote" },
        { "a=in.(1)x", "unexpected text" },
        { "a.b=eq.1", "another table" },
        { "a(b)=eq.1", "unexpected text" },
        { "\"a=eq.1", "closing quote" },
        { "a->>b->c=eq.1", "->> before the end" },
        { "a->=eq.1", "must have a name" },
        { "a%0Ab=eq.1", "unexpected text" },
        { "a=eq.%ff", "percent-encoded" },
        { "a=eq.%0", "percent-encoded" },
        { "a=eq.%00", "percent-encoded" },
        { "or=a.eq.1", "in parentheses" },
        { "or=()", "must have a name" },
        { "or=(a.eq.1", "closing parenthesis" },
        { "or=(a.eq.1)x", "unexpected text" },
        { "or=(a.eq.1,)", "must have a name" },
        { "or=(a)", "column.operator.value" },
        { "or=(a.eq.{x)", "closing parenthesis" },
        { "or=(a.eq.\"x\"y)", "after the end of a value" },
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        assert_refused(cases[i].query, cases[i].word);
}

static void mistakes_of_lists_are_named(void **state)
{
    static const struct {
        const char *query, *word;
    } cases[] = {
        { "select=a,", "must have a name" },
        { "select=a,,b", "must have a name" },
        { "select=orders(*)", "embeds another table" },
        { "select=o:orders!inner(id)", "embeds another table" },
        { "select=count()", "calls a function" },
        { "select=amount.sum()", "aggregate" },
        { "select=...orders(id)", "spreads" },
        { "select=a::money", "casts to \"money\"" },
        { "select=a&select=b", "stands twice" },
        { "order=a.down", "asc, desc" },
        { "order=a.desc.first", "asc, desc" },
        { "order=a.descending", "unexpected text" },
        { "order=orders(id)", "another table" },
        { "limit=x", "whole number" },
        { "limit=", "whole number" },
        { "limit=1.5", "whole number" },
        { "limit=1234567890123456789", "whole number" },
        { "offset=1e3", "whole number" },
        { "limit=1&limit=2", "stands twice" },
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        assert_refused(cases[i].query, cases[i].word);
}

static void a_negative_range_has_a_code_of_its_own(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    static const char *const queries[] = { "limit=-1", "offset=-2" };

    for (size_t i = 0; i < ARRAY_SIZE(queries); i++) {
        struct rest_query q;
        struct err e = { 0 };

        assert_int_equal(rest_query_parse(a, queries[i], &q, &e), -ERANGE);
        assert_string_equal(e.code, "BAD_RANGE");
    }
}

/* ---- limits, at their edges ---- */

/* head, n times part separated by commas, tail */
static char *repeated(struct arena *a, const char *head, const char *part, int n, const char *tail)
{
    struct buf out;

    buf_init(&out, 1 << 20);
    buf_add_str(&out, head);
    for (int i = 0; i < n; i++)
        buf_printf(&out, "%s%s", i ? "," : "", part);
    buf_add_str(&out, tail);
    return buf_to_arena(&out, a);
}

static char *nested(struct arena *a, int n)
{
    struct buf out;

    buf_init(&out, 4096);
    buf_add_str(&out, "and=(");
    for (int i = 1; i < n; i++)
        buf_add_str(&out, "or(");
    buf_add_str(&out, "a.eq.1");
    for (int i = 0; i < n; i++)
        buf_add_char(&out, ')');
    return buf_to_arena(&out, a);
}

static int parse(struct arena *a, const char *query)
{
    struct rest_query q;

    return rest_query_parse(a, query, &q, NULL);
}

static void each_limit_holds_at_its_edge(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    const struct {
        const char *head, *part;
        int limit;
        const char *tail;
    } cases[] = {
        { "select=", "a", LIMIT_TABLE_COLUMNS, "" },
        { "columns=", "a", LIMIT_TABLE_COLUMNS, "" },
        { "on_conflict=", "a", LIMIT_TABLE_COLUMNS, "" },
        { "order=", "a", LIMIT_QUERY_ORDER, "" },
        { "a=in.(", "1", LIMIT_REST_VALUES, ")" },
        { "or=(", "a.eq.1", LIMIT_REST_CONDITIONS - 1, ")" },
        { "or=(a.in.(1,2),a.in.(", "1", LIMIT_REST_VALUES - 2, "))" },
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        assert_int_equal(parse(a, repeated(a, cases[i].head, cases[i].part, cases[i].limit, cases[i].tail)), 0);
        assert_int_equal(parse(a, repeated(a, cases[i].head, cases[i].part, cases[i].limit + 1, cases[i].tail)),
                         -EINVAL);
    }
    assert_int_equal(parse(a, nested(a, LIMIT_REST_DEPTH)), 0);
    assert_int_equal(parse(a, nested(a, LIMIT_REST_DEPTH + 1)), -EINVAL);
}

static void the_length_of_a_query_and_the_steps_of_a_path_are_bounded(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    char query[LIMIT_TARGET_BYTES + 2] = "a=eq.", path[256] = "a";

    memset(query + 5, 'x', LIMIT_TARGET_BYTES - 5);
    assert_int_equal(parse(a, query), 0);
    query[LIMIT_TARGET_BYTES] = 'x';
    assert_int_equal(parse(a, query), -EINVAL);

    for (int i = 0; i < LIMIT_FILTER_PATH; i++)
        strncat(path, "->b", 4);
    assert_int_equal(parse(a, arena_printf(a, "%s=eq.1", path)), 0);
    assert_int_equal(parse(a, arena_printf(a, "%s->b=eq.1", path)), -EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(filters_are_read),
        cmocka_unit_test(groups_are_read),
        cmocka_unit_test(lists_are_read),
        cmocka_unit_test(mistakes_of_filters_are_named),
        cmocka_unit_test(mistakes_of_lists_are_named),
        cmocka_unit_test(a_negative_range_has_a_code_of_its_own),
        cmocka_unit_test(each_limit_holds_at_its_edge),
        cmocka_unit_test(the_length_of_a_query_and_the_steps_of_a_path_are_bounded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The context of a turn: what is cut keeps its promises for every conversation; messages are stored as they are. */
#include "agents/context_private.h"
#include "agents/message.h"
#include "base/utf8.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

/* ---- conversations by chance ---- */

struct conversation {
    struct arena *a;
    struct context_list list;
    unsigned seed;
};

static size_t chance(struct conversation *c, size_t below)
{
    return (size_t)rand_r(&c->seed) % below;
}

static const char *words(struct conversation *c, size_t most)
{
    static const char *const some[] = { "word ", "zwölf ", "\xF0\x9F\x98\x80 ", "日本 ", "x" };
    size_t n = chance(c, most) + 1;
    struct buf out;

    buf_init(&out, 1 << 20);
    while (out.n < n)
        buf_add_str(&out, some[chance(c, ARRAY_SIZE(some))]);
    return buf_to_arena(&out, c->a);
}

static void push(struct conversation *c, struct llm_message m)
{
    c->list.items[c->list.n++] = m;
}

static void add_calls(struct conversation *c, size_t n)
{
    struct llm_message m = agent_message_of(c->a, LLM_ASSISTANT, words(c, 200)), result;
    struct llm_tool_call *calls = arena_array(c->a, n, sizeof(*calls));

    for (size_t i = 0; i < n; i++)
        calls[i] = (struct llm_tool_call){ .id = arena_printf(c->a, "call-%zu", c->list.n + i),
                                           .name = "read",
                                           .arguments = "{}" };
    m.tool_calls = calls;
    m.n_tool_calls = n;
    push(c, m);
    for (size_t i = 0; i < n; i++) {
        result = agent_message_of(c->a, LLM_TOOL, words(c, 6000));
        result.tool_call_id = calls[i].id;
        push(c, result);
    }
}

static void add_turn(struct conversation *c)
{
    push(c, agent_message_of(c->a, LLM_USER, words(c, 400)));
    for (size_t i = chance(c, 3); i > 0; i--)
        add_calls(c, chance(c, 3) + 1);
    push(c, agent_message_of(c->a, LLM_ASSISTANT, words(c, 800)));
}

static struct conversation make(unsigned seed)
{
    struct conversation c = { .a = arena_new(), .seed = seed };

    c.list.items = arena_array(c.a, 400, sizeof(*c.list.items));
    c.list.n_turns = chance(&c, 12);
    if (chance(&c, 2))
        push(&c, agent_message_of(c.a, LLM_SYSTEM, words(&c, 500)));
    for (size_t i = 0; i < c.list.n_turns; i++)
        add_turn(&c);
    push(&c, agent_message_of(c.a, LLM_USER, words(&c, 400)));
    if (chance(&c, 2))
        add_calls(&c, 2);
    return c;
}

/* ---- properties ---- */

static void each_call_has_its_result(const struct context_list *list)
{
    for (size_t i = 0; i < list->n; i++)
        for (size_t k = 0; k < list->items[i].n_tool_calls; k++) {
            assert_true(i + 1 + k < list->n);
            assert_string_equal(list->items[i + 1 + k].tool_call_id, list->items[i].tool_calls[k].id);
        }
}

static void newest_is_whole(const struct context_list *before, const struct context_list *after)
{
    size_t from = context_turn_at(before, before->n_turns), at = context_turn_at(after, after->n_turns);

    assert_int_equal(before->n - from, after->n - at);
    for (size_t i = 0; from + i < before->n; i++)
        assert_int_equal(before->items[from + i].role, after->items[at + i].role);
    assert_string_equal(before->items[from].blocks[0].text, after->items[at].blocks[0].text);
}

static struct context_list copy(struct conversation *c)
{
    struct context_list list = c->list;

    list.items = arena_array(c->a, 400, sizeof(*list.items));
    memcpy(list.items, c->list.items, list.n * sizeof(*list.items));
    return list;
}

static void whatever_is_cut_the_promises_hold(void **state)
{
    for (unsigned seed = 1; seed <= 300; seed++) {
        struct conversation c = make(seed);
        struct context_list list = copy(&c);
        struct context_cuts cuts = { 0 };
        int64_t budget = (int64_t)chance(&c, 6000) + 50;
        size_t n_leaving;

        context_shorten(c.a, &list, 0, context_turn_at(&list, list.n_turns), CONTEXT_RESULT_BYTES, budget, &cuts);
        each_call_has_its_result(&list);
        assert_int_equal(list.n, c.list.n);
        n_leaving = context_count_leaving(&list, budget);
        assert_true(n_leaving <= list.n_turns);
        context_drop(&list, n_leaving);
        each_call_has_its_result(&list);
        newest_is_whole(&c.list, &list);
        assert_int_equal(list.n_turns, c.list.n_turns - n_leaving);
        assert_true(list.n_turns == 0 || context_tokens(list.items, list.n) <= budget);
        if (c.list.items[0].role == LLM_SYSTEM)
            assert_string_equal(list.items[0].blocks[0].text, c.list.items[0].blocks[0].text);
        if (n_leaving == 0 && cuts.n_shortened == 0)
            assert_memory_equal(list.items, c.list.items, list.n * sizeof(*list.items));
        arena_free(c.a);
    }
}

static void nothing_is_cut_while_there_is_room(void **state)
{
    struct conversation c = make(7);
    struct context_list list = copy(&c);
    struct context_cuts cuts = { 0 };
    int64_t exactly = context_tokens(list.items, list.n);

    context_shorten(c.a, &list, 0, list.n, CONTEXT_RESULT_BYTES, exactly, &cuts);
    assert_int_equal(cuts.n_shortened, 0);
    assert_int_equal(context_count_leaving(&list, exactly), 0);
    arena_free(c.a);
}

static void a_shortened_text_is_marked_valid_and_short(void **state)
{
    for (unsigned seed = 1; seed <= 200; seed++) {
        struct conversation c = { .a = arena_new(), .seed = seed };
        const char *text = words(&c, 9000), *cut = context_shortened(c.a, text, 300);

        if (cut == text) {
            assert_true(strlen(text) <= 300 + 80);
        } else {
            assert_non_null(strstr(cut, "bytes were left out here"));
            assert_true(strlen(cut) <= 300 + 80);
            assert_true(utf8_is_valid(slice_of(cut)));
            assert_int_equal(strncmp(cut, text, 100), 0);
        }
        assert_ptr_equal(context_shortened(c.a, cut, 300), cut);
        arena_free(c.a);
    }
}

/* ---- windows ---- */

static void refusals_tell_the_window(void **state)
{
    static const struct {
        const char *code, *text;
        int64_t sent, window;
    } cases[] = {
        { "LLM_ERROR",
          "openai refuses the request (400): This model's maximum context length is 8192 tokens. However, your messages resulted in 9311 tokens.",
          40000, 8192 },
        { "LLM_ERROR", "anthropic refuses the request (400): prompt is too long: 210000 tokens > 200,000 maximum",
          400000, 200000 },
        { "LLM_ERROR",
          "box refuses the request (400): the request exceeds the available context size (4096 tokens), try increasing it",
          9000, 4096 },
        { "LLM_ERROR", "box refuses the request (400): the request exceeds the available context size (4096 tokens)",
          4000, 3000 },
        { "LLM_ERROR", "box refuses the request (400): Please reduce the length of the messages.", 2000, 1500 },
        { "LLM_ERROR", "box refuses the request (400): Please reduce the length of the messages.", 100, 512 },
        { "LLM_ERROR", "box refuses the request (400): unknown field 8192", 2000, 0 },
        { "RATE_LIMIT", "too many tokens", 2000, 0 },
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct err e;

        err_init(&e);
        err_set(&e, -EIO, cases[i].code, "%s", cases[i].text);
        assert_int_equal(context_window_of_refusal(&e, cases[i].sent), cases[i].window);
    }
}

/* ---- stored messages ---- */

static void a_message_is_read_as_it_was_printed(void **state)
{
    static const struct llm_block blocks[] = {
        { .kind = LLM_BLOCK_TEXT, .text = "a \"text\"\n" },
        { .kind = LLM_BLOCK_IMAGE_DATA, .media_type = "image/png", .base64 = "AAAA" },
        { .kind = LLM_BLOCK_IMAGE_URL, .url = "https://x/y.png", .detail = "low" },
        { .kind = LLM_BLOCK_FILE_DATA, .media_type = "application/pdf", .base64 = "BBBB", .file_name = "a.pdf" },
    };
    static const struct llm_tool_call calls[] = { { "c1", "now", "{}", NULL },
                                                  { "c2", "read_file", "{\"path\":\"a\"}", "{\"s\":1}" } };
    static const struct llm_thought thoughts[] = { { "hm", "sig" }, { NULL, "hidden" } };
    static const unsigned char order[] = { LLM_PIECE_THOUGHT, LLM_PIECE_CALL, LLM_PIECE_THOUGHT, LLM_PIECE_BLOCK,
                                           LLM_PIECE_CALL };
    static const struct llm_message messages[] = {
        { .role = LLM_USER, .blocks = blocks, .n_blocks = 4 },
        { .role = LLM_ASSISTANT,
          .blocks = blocks,
          .n_blocks = 1,
          .tool_calls = calls,
          .n_tool_calls = 2,
          .thoughts = thoughts,
          .n_thoughts = 2,
          .order = order,
          .n_order = 5,
          .reasoning = "why" },
        { .role = LLM_TOOL, .blocks = blocks, .n_blocks = 1, .tool_call_id = "c1", .name = "now", .is_error = true },
        { .role = LLM_ASSISTANT, .tool_calls = calls, .n_tool_calls = 1 },
    };
    struct arena *a = arena_new();

    for (size_t i = 0; i < ARRAY_SIZE(messages); i++) {
        struct llm_message read = { 0 };
        struct buf first, second;

        buf_init(&first, 1 << 16);
        buf_init(&second, 1 << 16);
        agent_message_print(&first, &messages[i]);
        assert_int_equal(agent_message_read(a, buf_str(&first), &read, NULL), 0);
        agent_message_print(&second, &read);
        assert_string_equal(buf_str(&first), buf_str(&second));
        assert_int_equal(read.n_blocks, messages[i].n_blocks);
        assert_int_equal(read.n_tool_calls, messages[i].n_tool_calls);
        assert_int_equal(read.n_thoughts, messages[i].n_thoughts);
        assert_int_equal(read.n_order, messages[i].n_order);
        buf_clear(&first);
        buf_clear(&second);
    }
    arena_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whatever_is_cut_the_promises_hold),
        cmocka_unit_test(nothing_is_cut_while_there_is_room),
        cmocka_unit_test(a_shortened_text_is_marked_valid_and_short),
        cmocka_unit_test(refusals_tell_the_window),
        cmocka_unit_test(a_message_is_read_as_it_was_printed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "protocol.h"

#include "llm/protocols/stops.h"

/* The filter before a whole answer. The test must clear the answer. */
struct stopping {
    struct field_strings stops;
    struct llm_answer answer;
    struct llm_sink to, sink;
};

static void stopping_open(struct stopping *s, struct arena *a, const char *const *stops, bool ends_at_once)
{
    s->stops = (struct field_strings){ stops, stops[1] ? 2 : 1 };
    llm_answer_init(&s->answer);
    s->to = llm_answer_sink(&s->answer);
    s->sink = llm_stops_sink(a, &s->stops, ends_at_once, &s->to);
}

/* Feeds the text to the filter in pieces of this size. */
static void say(const struct llm_sink *sink, const char *text, size_t piece)
{
    size_t n = strlen(text);

    for (size_t at = 0; at < n; at += piece)
        assert_int_equal(sink->on_text(sink->arg, (struct slice){ text + at, MIN(piece, n - at) }), 0);
}

static void an_answer_ends_before_the_first_stop_however_it_is_split(void **state)
{
    static const struct {
        const char *text, *stops[3];
        const char *wanted;
        enum llm_finish why;
    } cases[] = {
        { "one END two", { "END" }, "one ", LLM_FINISH_STOP },
        { "one END two", { "two", "END" }, "one ", LLM_FINISH_STOP },
        { "one EN two", { "END" }, "one EN two", LLM_FINISH_LENGTH },
        { "EEND", { "END" }, "E", LLM_FINISH_STOP },
        { "END", { "END" }, "", LLM_FINISH_STOP },
        { "ends in EN", { "END" }, "ends in EN", LLM_FINISH_LENGTH },
        { "aab", { "aaab", "ab" }, "a", LLM_FINISH_STOP },
        { "line\nnext", { "\n" }, "line", LLM_FINISH_STOP },
        { "Gr\xc3\xbc\xc3\x9f"
          "e",
          { "\xc3\x9f" },
          "Gr\xc3\xbc",
          LLM_FINISH_STOP },
        { "never", { "" }, "never", LLM_FINISH_LENGTH },
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        for (size_t piece = 1; piece < 12; piece++) {
            AUTO(arena_freep) struct arena *a = arena_new();
            struct stopping s;

            stopping_open(&s, a, cases[i].stops, false);
            say(&s.sink, cases[i].text, piece);
            assert_false(s.answer.has_ended);
            assert_int_equal(s.sink.on_end(s.sink.arg, LLM_FINISH_LENGTH, &(struct llm_usage){ 1, 2, false }, "m"), 0);
            assert_string_equal(buf_str(&s.answer.text), cases[i].wanted);
            assert_true(s.answer.has_ended && s.answer.has_usage && s.answer.why == cases[i].why);
            llm_answer_clear(&s.answer);
        }
}

static const char *const end_word[] = { "END", NULL };

static void a_stream_ends_with_the_stop_and_once(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct stopping s;

    stopping_open(&s, a, end_word, true);
    assert_int_equal(s.sink.on_reasoning(s.sink.arg, SLICE_LIT("END is no stop here")), 0);
    say(&s.sink, "one END", 2);
    assert_true(s.answer.has_ended && !s.answer.has_usage);
    say(&s.sink, " two", 4);
    assert_int_equal(s.sink.on_reasoning(s.sink.arg, SLICE_LIT("late")), 0);
    assert_int_equal(s.sink.on_tool(s.sink.arg, 0, "c", "f", SLICE_LIT("{}")), 0);
    assert_int_equal(s.sink.on_end(s.sink.arg, LLM_FINISH_LENGTH, NULL, NULL), 0);
    assert_string_equal(progress(a, &s.answer), "one |END is no stop here||stop|-|-");
    llm_answer_clear(&s.answer);
}

static void what_was_held_back_comes_before_a_tool_call(void **state)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct stopping s;

    stopping_open(&s, a, end_word, true);
    say(&s.sink, "one EN", 6);
    assert_string_equal(buf_str(&s.answer.text), "one ");
    assert_int_equal(s.sink.on_tool(s.sink.arg, 0, "c", "f", SLICE_LIT("{}")), 0);
    assert_string_equal(buf_str(&s.answer.text), "one EN");
    llm_answer_clear(&s.answer);
}

static void who_takes_stops_is_known(void **state)
{
    static const struct {
        const char *preset, *model;
        bool takes;
    } cases[] = {
        { "openai", "gpt-4.1", false },    { "openrouter", "openai/o3", false },
        { "groq", "llama-3.3-70b", true }, { "anthropic", "claude-sonnet-4-5", true },
        { "ollama", "llama3.2", true },
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        const struct llm_account acc = { .preset = llm_preset_find(cases[i].preset) };

        assert_int_equal(llm_takes_stops(&acc, cases[i].model), cases[i].takes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_answer_ends_before_the_first_stop_however_it_is_split),
        cmocka_unit_test(a_stream_ends_with_the_stop_and_once),
        cmocka_unit_test(what_was_held_back_comes_before_a_tool_call),
        cmocka_unit_test(who_takes_stops_is_known),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The chats of the stand-in (stand_in/rules.h). The answer is made with the request, in OpenAI's form, and read like a
 * provider's: retries, time limits, streams and usage are those of every other provider. */
#include "base/json_example.h"
#include "base/json_schema.h"
#include "base/limits.h"
#include "base/loop.h"
#include "llm/protocols/wire.h"
#include "stand_in/rules.h"

enum { ANSWER_BYTES = 4 << 20, MOST_TEXTS = LIMIT_STAND_IN_CALLS + 2 /* with the thought and the text */ };

struct called {
    const char *id, *name;
    struct slice arguments;
};

struct saying {
    struct arena *arena;
    const struct llm_request *request;
    struct stand_in_rules rules;
    struct slice think, text; /* empty: none */
    struct called calls[LIMIT_STAND_IN_CALLS];
    size_t n_calls;
    enum llm_finish why;
    int64_t n_prompt_tokens, n_tokens;
    const char *refusal; /* why the request cannot be answered; NULL: it can */
};

/* ---- what it says ---- */

static const struct llm_message *last_message(const struct llm_request *request)
{
    size_t i = request->n_messages;

    while (i > 0 && request->messages[i - 1].role != LLM_USER && request->messages[i - 1].role != LLM_TOOL)
        i--;
    return i > 0 ? &request->messages[i - 1] : NULL;
}

static size_t count_files(const struct llm_message *m)
{
    size_t n = 0;

    for (size_t i = 0; i < m->n_blocks; i++)
        n += m->blocks[i].kind != LLM_BLOCK_TEXT;
    return n;
}

static struct slice repeat(struct saying *s, const struct llm_message *m, const char *text)
{
    size_t n_files = count_files(m);
    const char *files = n_files ? arena_printf(s->arena, "; it does not read files: %zu came", n_files) : "";

    return slice_of(arena_printf(s->arena, "[" STAND_IN_LABEL "%s] %s%s", files,
                                 m->role == LLM_TOOL ? "The tool answered: " : "", text));
}

/* The smallest JSON that fits the schema; the arguments of a call are an object in any case. */
static struct slice example(struct saying *s, struct json_value schema)
{
    struct err why = { 0 };
    struct json_value value = { 0 };
    struct json_writer w;
    struct buf out;
    struct slice text;
    int r;

    buf_init(&out, LIMIT_STAND_IN_BYTES);
    json_write_init(&w, &out);
    json_example_write(&w, NULL, schema);
    r = buf_check(&out, &why);
    text = slice_of(buf_to_arena(&out, s->arena));
    if (r == 0)
        r = json_parse(s->arena, text, &value, &why);
    if (r == 0)
        r = json_schema_check(schema, value, "", &why);
    if (r < 0)
        s->refusal = arena_printf(s->arena, "the stand-in finds no value that fits the schema: %.200s", why.text);
    return text;
}

static void add_call(struct saying *s, const struct llm_tool *tool, struct slice arguments)
{
    const char *id = arena_printf(s->arena, "call_%zu_%zu", s->request->n_messages, s->n_calls);
    bool has_schema = json_type(json_get(tool->parameters, "properties")) == JSON_OBJECT;

    if (arguments.n == 0)
        arguments = has_schema ? example(s, tool->parameters) : SLICE_LIT("{}");
    s->calls[s->n_calls++] = (struct called){ id, tool->name, arguments };
}

static const struct llm_tool *find_tool(const struct llm_request *request, struct slice name)
{
    for (size_t i = 0; i < request->n_tools; i++)
        if (slice_eq_str(name, request->tools[i].name))
            return &request->tools[i];
    return NULL;
}

/* The tool that tool_choice demands; NULL: the choice is free. */
static const struct llm_tool *demanded_tool(const struct llm_request *request)
{
    struct json_value choice = request->tool_choice;

    if (slice_eq_str(json_string(choice), "required"))
        return request->n_tools > 0 ? &request->tools[0] : NULL;
    return find_tool(request, json_string(json_get(json_get(choice, "function"), "name")));
}

static void choose_calls(struct saying *s)
{
    const struct llm_tool *demanded = demanded_tool(s->request);

    if (slice_eq_str(json_string(s->request->tool_choice), "none"))
        return;
    for (size_t i = 0; i < s->rules.n_calls; i++) {
        const struct llm_tool *tool = find_tool(s->request, s->rules.calls[i].tool);

        if (tool)
            add_call(s, tool, s->rules.calls[i].arguments);
    }
    if (s->n_calls == 0 && demanded)
        add_call(s, demanded, (struct slice){ 0 });
}

static void choose(struct saying *s)
{
    const struct llm_message *m = last_message(s->request);
    const char *text = m ? wire_text(s->arena, m) : "";
    bool is_of_user = m && m->role == LLM_USER; /* the result of a tool has no rules: a call would follow on a call */

    stand_in_read_rules(s->arena, is_of_user ? slice_of(text) : (struct slice){ 0 }, &s->rules);
    s->think = slice_of(s->rules.think);
    if (is_of_user)
        choose_calls(s);
    if (s->rules.say)
        s->text = slice_of(s->rules.say);
    else if (s->n_calls == 0 && s->request->format == LLM_FORMAT_SCHEMA)
        s->text = example(s, s->request->schema);
    else if (s->n_calls == 0 && s->request->format == LLM_FORMAT_JSON)
        s->text = SLICE_LIT("{}");
    else if (s->n_calls == 0)
        s->text = m ? repeat(s, m, text) : SLICE_LIT("[" STAND_IN_LABEL "]");
}

/* ---- how long it is ---- */

static struct slice first_tokens(struct slice text, int64_t n_most)
{
    size_t n = 0;

    while (n_most-- > 0 && n < text.n)
        n += stand_in_token((struct slice){ text.p + n, text.n - n });
    return (struct slice){ text.p, n };
}

static struct slice first_bytes(struct slice text)
{
    size_t n = MIN(text.n, (size_t)LIMIT_STAND_IN_BYTES);

    while (n > 0 && n < text.n && ((unsigned char)text.p[n] & 0xc0) == 0x80) /* within a character */
        n--;
    return (struct slice){ text.p, n };
}

static void shorten(struct saying *s)
{
    int64_t n_most = s->request->max_tokens > 0 ? s->request->max_tokens : INT64_MAX;
    size_t n_before = s->text.n;

    s->think = first_tokens(s->think, n_most);
    n_most -= (int64_t)stand_in_count_tokens(s->think);
    s->text = first_tokens(first_bytes(s->text), n_most);
    s->why = s->text.n < n_before ? LLM_FINISH_LENGTH : s->n_calls > 0 ? LLM_FINISH_TOOLS : LLM_FINISH_STOP;
}

static void count(struct saying *s)
{
    for (size_t i = 0; i < s->request->n_messages; i++)
        s->n_prompt_tokens += (int64_t)stand_in_count_tokens(slice_of(wire_text(s->arena, &s->request->messages[i])));
    s->n_tokens = (int64_t)(stand_in_count_tokens(s->think) + stand_in_count_tokens(s->text));
    for (size_t i = 0; i < s->n_calls; i++)
        s->n_tokens += (int64_t)stand_in_count_tokens(s->calls[i].arguments);
}

/* ---- how it is written ---- */

static void add_usage(struct json_writer *w, const struct saying *s)
{
    json_begin_object_as(w, "usage");
    json_add_int(w, "prompt_tokens", s->n_prompt_tokens);
    json_add_int(w, "completion_tokens", s->n_tokens);
    json_add_int(w, "total_tokens", s->n_prompt_tokens + s->n_tokens);
    json_end(w);
}

static void add_call_part(struct json_writer *w, size_t index, const struct called *call, bool is_first,
                          struct slice arguments)
{
    json_begin_object(w);
    json_add_int(w, "index", (int64_t)index);
    if (is_first)
        json_add_string(w, "id", call->id);
    json_add_string(w, "type", "function");
    json_begin_object_as(w, "function");
    if (is_first)
        json_add_string(w, "name", call->name);
    json_add_slice(w, "arguments", arguments);
    json_end(w);
    json_end(w);
}

static struct http_inside *write_whole(const struct saying *s, struct buf *out)
{
    struct json_writer w;

    json_write_init(&w, out);
    json_begin_object(&w);
    json_add_string(&w, "model", STAND_IN_MODEL);
    json_begin_array_as(&w, "choices");
    json_begin_object(&w);
    json_begin_object_as(&w, "message");
    json_add_slice(&w, "content", s->text);
    json_add_slice(&w, "reasoning_content", s->think);
    json_begin_array_as(&w, "tool_calls");
    for (size_t i = 0; i < s->n_calls; i++)
        add_call_part(&w, i, &s->calls[i], true, s->calls[i].arguments);
    json_end(&w);
    json_end(&w);
    json_add_string(&w, "finish_reason", llm_finish_name(s->why));
    json_end(&w);
    json_end(&w);
    add_usage(&w, s);
    json_end(&w);
    return stand_in_answer(s->arena, slice_of(buf_to_arena(out, s->arena)));
}

/* The events of a stream in one buffer; ends[i] is where piece i ends. */
struct events {
    const struct saying *saying;
    struct buf *out;
    struct json_writer w;
    size_t *ends, n;
};

static void begin_event(struct events *ev)
{
    buf_add_str(ev->out, "data: ");
    json_write_init(&ev->w, ev->out);
    json_begin_object(&ev->w);
    json_add_string(&ev->w, "model", STAND_IN_MODEL);
    json_begin_array_as(&ev->w, "choices");
    json_begin_object(&ev->w);
    json_begin_object_as(&ev->w, "delta");
}

static void end_event(struct events *ev)
{
    buf_add_str(ev->out, "\n\n");
    ev->ends[ev->n++] = ev->out->n;
}

static void end_delta(struct events *ev)
{
    json_end(&ev->w);
    json_end(&ev->w);
    json_end(&ev->w);
    json_end(&ev->w);
    end_event(ev);
}

/* The next part of the text, so that it makes at most LIMIT_STAND_IN_PIECES pieces. */
static struct slice take_part(struct slice *rest, size_t n_tokens)
{
    size_t n_each = (n_tokens + LIMIT_STAND_IN_PIECES - 1) / LIMIT_STAND_IN_PIECES;
    struct slice part = first_tokens(*rest, (int64_t)n_each);

    *rest = (struct slice){ rest->p + part.n, rest->n - part.n };
    return part;
}

static void put_text(struct events *ev, const char *member, struct slice text)
{
    size_t n_tokens = stand_in_count_tokens(text);

    while (text.n > 0) {
        begin_event(ev);
        json_add_slice(&ev->w, member, take_part(&text, n_tokens));
        end_delta(ev);
    }
}

static void put_call(struct events *ev, size_t index)
{
    const struct called *call = &ev->saying->calls[index];
    struct slice rest = call->arguments;
    size_t n_tokens = stand_in_count_tokens(rest);

    for (bool is_first = true; is_first || rest.n > 0; is_first = false) {
        begin_event(ev);
        json_begin_array_as(&ev->w, "tool_calls");
        add_call_part(&ev->w, index, call, is_first, take_part(&rest, n_tokens));
        json_end(&ev->w);
        end_delta(ev);
    }
}

static void put_end(struct events *ev)
{
    begin_event(ev);
    json_end(&ev->w);
    json_add_string(&ev->w, "finish_reason", llm_finish_name(ev->saying->why));
    json_end(&ev->w);
    json_end(&ev->w);
    add_usage(&ev->w, ev->saying);
    json_end(&ev->w);
    buf_add_str(ev->out, "\n\ndata: [DONE]");
    end_event(ev);
}

static struct http_inside *write_events(const struct saying *s, struct buf *out)
{
    struct events ev = { .saying = s, .out = out };
    struct http_inside *answer;
    struct slice *pieces;
    const char *text;

    ev.ends = arena_array(s->arena, (size_t)MOST_TEXTS * (LIMIT_STAND_IN_PIECES + 1), sizeof(*ev.ends));
    put_text(&ev, "reasoning_content", s->think);
    put_text(&ev, "content", s->text);
    for (size_t i = 0; i < s->n_calls; i++)
        put_call(&ev, i);
    put_end(&ev);
    text = buf_to_arena(out, s->arena);
    answer = stand_in_answer(s->arena, (struct slice){ 0 });
    pieces = arena_array(s->arena, ev.n, sizeof(*pieces));
    for (size_t i = 0; i < ev.n; i++) {
        size_t from = i ? ev.ends[i - 1] : 0;

        pieces[i] = (struct slice){ text + from, ev.ends[i] - from };
    }
    answer->pieces = pieces;
    answer->n_pieces = ev.n;
    return answer;
}

static void cut(const struct saying *s, struct http_inside *answer)
{
    size_t n_most = s->request->is_streamed ? answer->n_pieces - 1 : 0;

    if (s->rules.n_before_cut < 0)
        return;
    answer->n_pieces = (size_t)MIN(s->rules.n_before_cut, (int64_t)n_most);
    answer->is_cut = true;
}

static struct http_inside *answer_of(struct saying *s)
{
    struct http_inside *answer;
    struct buf out;

    choose(s);
    if (s->rules.fail_status)
        return stand_in_obey(s->arena, &s->rules);
    if (s->refusal)
        return stand_in_refuse(s->arena, 400, -1, s->refusal);
    shorten(s);
    count(s);
    buf_init(&out, ANSWER_BYTES);
    answer = s->request->is_streamed ? write_events(s, &out) : write_whole(s, &out);
    buf_clear(&out);
    answer->piece_ms = s->rules.slow_ms;
    cut(s, answer);
    return answer;
}

/* ---- the protocol ---- */

static int request(const struct llm_account *acc, const struct llm_request *request, struct arena *a,
                   struct http_call_request *ret, struct err *e)
{
    struct saying *s = ARENA_NEW(a, struct saying);

    if (loop_is_here() && (request->format == LLM_FORMAT_SCHEMA || request->n_tools > 0)) /* a schema may take long */
        return -ENEEDSWORKER;
    *s = (struct saying){ .arena = a, .request = request };
    *ret = (struct http_call_request){ .method = "POST", .inside = answer_of(s) };
    return 0;
}

static struct llm_reader *make_reader(struct arena *a, const struct llm_sink *sink)
{
    return llm_openai_chat.reader(a, sink);
}

static int on_whole(struct llm_reader *r, struct slice body, struct err *e)
{
    return llm_openai_chat.on_whole(r, body, e);
}

static int models(const struct llm_account *acc, struct arena *a, struct http_call_request *ret, struct err *e)
{
    const char *list = arena_printf(a,
                                    "{\"data\":[{\"id\":\"" STAND_IN_MODEL
                                    "\",\"created\":%d},{\"id\":\"" STAND_IN_EMBED_MODEL "\",\"created\":%d}]}",
                                    STAND_IN_CREATED_S, STAND_IN_CREATED_S);

    *ret = (struct http_call_request){ .method = "GET", .inside = stand_in_answer(a, slice_of(list)) };
    return 0;
}

static int on_models(struct slice body, struct arena *a, struct llm_models *ret, struct err *e)
{
    return llm_openai_chat.on_models(body, a, ret, e);
}

/* Files are not read, so none is fetched. */
static bool takes_address(const struct llm_block *block)
{
    return true;
}

const struct llm_protocol llm_stand_in = {
    .name = "stand-in",
    .has_json_object = true,
    .has_json_schema = true,
    .takes_address = takes_address,
    .stops = LLM_STOPS_NONE,
    .request = request,
    .reader = make_reader,
    .on_bytes = wire_on_bytes,
    .on_whole = on_whole,
    .on_close = wire_on_close,
    .models = models,
    .on_models = on_models,
};

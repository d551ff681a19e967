/* The next request of a turn: the history fitted to the model, tools and images as the model takes them. */
#include "agents/loop_private.h"

#include "agents/message.h"
#include "base/limits.h"
#include "llm/answer.h"

#include <string.h>

enum { MAX_TRIES = 6 /* of one request: each further one after something was learnt or cut */ };

#define NO_IMAGE "[an image was here, but this model takes no images]"
#define IMAGES_OF_RESULTS "Images of the results above:"

/* ---- images: providers take those of users only ---- */

static bool is_image(const struct llm_block *block)
{
    return block->kind == LLM_BLOCK_IMAGE_DATA || block->kind == LLM_BLOCK_IMAGE_URL;
}

static size_t count_images(const struct llm_message *m)
{
    size_t n = 0;

    for (size_t i = 0; i < m->n_blocks; i++)
        n += is_image(&m->blocks[i]);
    return n;
}

static bool has_images(const struct llm_request *request)
{
    for (size_t i = 0; i < request->n_messages; i++)
        if (count_images(&request->messages[i]) > 0)
            return true;
    return false;
}

/* The message without its images; note: a text in the place of each, NULL: nothing. */
static struct llm_message without_images(struct arena *a, const struct llm_message *m, const char *note)
{
    struct llm_block *blocks = arena_array(a, m->n_blocks + 1, sizeof(*blocks));
    struct llm_message ret = *m;

    ret.blocks = blocks;
    ret.n_blocks = 0;
    for (size_t i = 0; i < m->n_blocks; i++) {
        if (!is_image(&m->blocks[i]))
            blocks[ret.n_blocks++] = m->blocks[i];
        else if (note)
            blocks[ret.n_blocks++] = (struct llm_block){ .kind = LLM_BLOCK_TEXT, .text = note };
    }
    return ret;
}

static struct llm_message images_of(struct arena *a, const struct llm_message *m, size_t n, size_t n_images)
{
    struct llm_block *blocks = arena_array(a, n_images + 1, sizeof(*blocks));
    struct llm_message ret = { .role = LLM_USER, .blocks = blocks, .n_blocks = 1 };

    blocks[0] = (struct llm_block){ .kind = LLM_BLOCK_TEXT, .text = IMAGES_OF_RESULTS };
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < m[i].n_blocks; k++)
            if (is_image(&m[i].blocks[k]))
                blocks[ret.n_blocks++] = m[i].blocks[k];
    return ret;
}

/* Images of a run of results follow the run, as a message of the user. */
static void move_images(struct arena *a, struct llm_request *request)
{
    const struct llm_message *from = request->messages;
    struct llm_message *to = arena_array(a, 2 * request->n_messages + 1, sizeof(*to));
    size_t n = 0, begin = 0, n_images = 0;

    for (size_t i = 0; i < request->n_messages; i++) {
        bool is_result = from[i].role == LLM_TOOL;

        if (is_result && (i == 0 || from[i - 1].role != LLM_TOOL))
            begin = i;
        n_images += is_result ? count_images(&from[i]) : 0;
        to[n++] = is_result ? without_images(a, &from[i], NULL) : from[i];
        if (n_images > 0 && is_result && (i + 1 == request->n_messages || from[i + 1].role != LLM_TOOL)) {
            to[n++] = images_of(a, &from[begin], i + 1 - begin, n_images);
            n_images = 0;
        }
    }
    request->messages = to;
    request->n_messages = n;
}

static void drop_images(struct arena *a, struct llm_request *request)
{
    struct llm_message *to = arena_array(a, request->n_messages + 1, sizeof(*to));

    for (size_t i = 0; i < request->n_messages; i++)
        to[i] = without_images(a, &request->messages[i], NO_IMAGE);
    request->messages = to;
}

/* ---- tools ---- */

static const struct llm_tool *native_tools(struct arena *a, const struct agent_toolbox *box)
{
    struct llm_tool *tools = arena_array(a, box->n + 1, sizeof(*tools));

    for (size_t i = 0; i < box->n; i++)
        tools[i] = (struct llm_tool){ .name = box->items[i].name,
                                      .description = box->items[i].description,
                                      .parameters = box->items[i].schema };
    return tools;
}

static void add_native(struct arena *a, const struct turn *t, bool is_closing, struct llm_request *request)
{
    request->tools = native_tools(a, t->l->toolbox);
    request->n_tools = t->l->toolbox->n;
    if (is_closing && json_parse(a, SLICE_LIT("\"none\""), &request->tool_choice, NULL) < 0)
        request->n_tools = 0;
}

static void add_spoken(struct arena *a, const struct turn *t, bool is_closing, struct llm_request *request)
{
    loop_spoken_messages(a, t, !is_closing, request);
    if (is_closing || t->habits.tools != LOOP_TOOLS_BY_SCHEMA)
        return;
    request->format = LLM_FORMAT_SCHEMA;
    request->schema_name = "next_step";
    request->schema = loop_spoken_schema(a, t->l->toolbox);
}

static bool has_tools(const struct turn *t)
{
    return t->l->toolbox && t->l->toolbox->n > 0;
}

static void add_note(struct arena *a, const char *note, struct llm_request *request)
{
    struct llm_message *to = arena_array(a, request->n_messages + 1, sizeof(*to));

    memcpy(to, request->messages, request->n_messages * sizeof(*to));
    to[request->n_messages] = agent_message_of(a, LLM_USER, note);
    request->messages = to;
    request->n_messages++;
}

static void build(struct arena *a, const struct turn *t, const struct loop_next *what, struct llm_request *request)
{
    const struct agent_definition *agent = t->l->agent;

    *request = (struct llm_request){ .messages = t->messages,
                                     .n_messages = t->n_messages,
                                     .model = agent->model,
                                     .temperature = agent->has_temperature ? agent->temperature : -1,
                                     .has_temperature = agent->has_temperature,
                                     .effort = agent->effort };
    if (t->habits.takes_no_images)
        drop_images(a, request);
    if (has_tools(t) && t->habits.tools != LOOP_TOOLS_NATIVE) {
        add_spoken(a, t, what->is_closing, request);
    } else {
        move_images(a, request);
        if (has_tools(t))
            add_native(a, t, what->is_closing, request);
    }
    if (what->note)
        add_note(a, what->note, request);
}

/* ---- limits ---- */

/* The tokens that the turn may still use, for this request's answer. */
static int limit_tokens(const struct turn *t, struct llm_request *request, struct err *e)
{
    int64_t most = t->l->agent->max_tokens_per_turn;
    int64_t left = most - t->end->usage.prompt_tokens - t->end->usage.completion_tokens - llm_prompt_tokens(request);

    if (most <= 0)
        return 0;
    if (left < 1)
        return err_set(e, -EDQUOT, "TOKEN_BUDGET",
                       "The turn may use %lld tokens, and they do not suffice for another "
                       "request.",
                       (long long)most);
    request->max_tokens = left;
    return 0;
}

/* The owner may replace the history by a shorter one. */
static int fit(struct turn *t, const struct err *refusal, bool *ret_changed, struct err *e)
{
    struct agent_fit f = { .arena = t->arena,
                           .messages = t->messages,
                           .n = t->n_messages,
                           .toolbox = t->l->toolbox,
                           .provider = t->provider,
                           .model = t->model,
                           .refusal = refusal };
    int r = t->l->on->on_fit ? t->l->on->on_fit(t->l->on->arg, &f, e) : 0;

    *ret_changed = false;
    if (r < 0 || !f.has_changed)
        return r;
    t->n_messages = 0;
    for (size_t i = 0; i < f.n; i++)
        turn_push(t, &f.messages[i]);
    *ret_changed = true;
    return 0;
}

/* ---- one answer ---- */

/* A text for people comes in pieces only where the model's text is no call in disguise. */
static bool is_spoken(const struct turn *t, const struct loop_next *what)
{
    return has_tools(t) && !what->is_closing && t->habits.tools != LOOP_TOOLS_NATIVE;
}

static int attempt(struct turn *t, const struct loop_next *what, struct loop_answer *ret, bool *ret_images,
                   struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    bool is_text = !is_spoken(t, what);
    struct llm_request request;
    int r;

    build(a, t, what, &request);
    request.is_streamed = is_text && t->l->on->on_text;
    *ret_images = has_images(&request);
    r = limit_tokens(t, &request, e);
    return r < 0 ? r : loop_chat(t, &request, is_text ? t->l->on->on_text : NULL, ret, e);
}

static void note_source(struct turn *t, const struct loop_answer *answer)
{
    llm_usage_add(&t->end->usage, &answer->usage);
    if (!answer->provider)
        return;
    t->provider = answer->provider;
    t->model = answer->model;
}

/* Is another try of the refused request worth while? */
static bool has_learnt(struct turn *t, bool had_tools, bool had_images, const struct err *why, int *r, struct err *e)
{
    bool has_changed = false;

    if (loop_habits_learn(t->l->call, t->provider, t->model, why, had_tools, had_images, &t->habits))
        return true;
    if (*r != -EIO && *r != -EINVAL && *r != -E2BIG)
        return false;
    if (fit(t, why, &has_changed, e) < 0)
        return false;
    return has_changed;
}

static void say_spoken(const struct turn *t, const struct llm_message *m)
{
    for (size_t i = 0; t->l->on->on_text && m->n_tool_calls == 0 && i < m->n_blocks; i++)
        t->l->on->on_text(t->l->on->arg, slice_of(m->blocks[i].text));
}

int loop_request(struct turn *t, const struct loop_next *what, struct loop_answer *ret, struct err *e)
{
    bool had_images = false, has_changed;
    struct err why;
    int r = fit(t, NULL, &has_changed, e);

    for (int i = 0; r == 0; i++) {
        bool was_spoken = is_spoken(t, what);

        *ret = (struct loop_answer){ 0 };
        err_init(&why);
        r = attempt(t, what, ret, &had_images, &why);
        note_source(t, ret);
        if (r == 0) {
            ret->is_broken = was_spoken && !loop_spoken_read(t->arena, &ret->message);
            if (was_spoken && !ret->is_broken)
                say_spoken(t, &ret->message);
            return 0;
        }
        if (i + 1 < MAX_TRIES && has_learnt(t, has_tools(t) && !what->is_closing, had_images, &why, &r, e))
            r = 0;
        else
            *e = why;
    }
    return r;
}

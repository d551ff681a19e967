/* Tools of the tests of turns. */
#pragma once

#include "loop_rig.h"

static atomic_int n_echoed;

static inline int echo(const struct builtin_call *c, struct mcp_result *ret, struct err *e)
{
    const char *text = json_cstr(json_get(c->arguments, "text"));

    atomic_fetch_add(&n_echoed, 1);
    return give_text(c, ret, arena_printf(c->call->arena, "echo %s", text ? text : "-"));
}

static inline int fail_always(const struct builtin_call *c, struct mcp_result *ret, struct err *e)
{
    return err_set(e, -EIO, "BROKEN", "It broke.");
}

/* The call with "first":true ends once the result of the other is stored. */
static atomic_bool other_is_stored;

static inline bool is_other_stored(void *arg)
{
    return atomic_load(&other_is_stored);
}

static inline int see_step_of_other(void *arg, const struct agent_step *step, struct err *e)
{
    int r = see_step(arg, step, e);

    if (step->role == LLM_TOOL)
        atomic_store(&other_is_stored, true);
    return r;
}

static inline int late(const struct builtin_call *c, struct mcp_result *ret, struct err *e)
{
    bool is_first = json_bool(json_get(c->arguments, "first"));

    if (is_first)
        assert_true(wait_until(is_other_stored, NULL));
    return give_text(c, ret, is_first ? "the first" : "the second");
}

static inline int wait_for_the_end(const struct builtin_call *c, struct mcp_result *ret, struct err *e)
{
    int64_t left;

    while ((left = net_wait_left(c->wait, e)) > 0)
        nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
    return (int)left;
}

static inline int cancel_own_turn(const struct builtin_call *c, struct mcp_result *ret, struct err *e)
{
    atomic_store((atomic_bool *)c->call->is_gone, true);
    return err_set(e, -ECANCELED, "SHUTTING_DOWN", "The turn was cancelled.");
}

static inline int picture(const struct builtin_call *c, struct mcp_result *ret, struct err *e)
{
    static const char content[] = "[{\"type\":\"text\",\"text\":\"a red dot\"},"
                                  "{\"type\":\"image\",\"mimeType\":\"image/png\",\"data\":\"iVBORw0K\"},"
                                  "{\"type\":\"image\",\"mimeType\":\"image/tiff\",\"data\":\"AAAA\"},"
                                  "{\"type\":\"resource_link\",\"uri\":\"file:///a.txt\",\"name\":\"a.txt\"}]";

    return json_parse(c->call->arena, slice_of(content), &ret->content, e);
}

static inline int large(const struct builtin_call *c, struct mcp_result *ret, struct err *e)
{
    size_t n = (size_t)json_int(json_get(c->arguments, "n"));
    char *text = arena_alloc(c->call->arena, n + 1);

    memset(text, 'x', n);
    return give_text(c, ret, text);
}

static const struct builtin_tool echo_tool = {
    .name = "echo",
    .description = "Says it again.",
    .input_schema = "{\"type\":\"object\",\"properties\":{\"text\":{\"type\":\"string\",\"maxLength\":20}}}",
    .is_read_only = true,
    .run = echo,
};
static const struct builtin_tool write_tool = {
    .name = "write_it", .input_schema = "{\"type\":\"object\"}", .is_destructive = true, .run = echo
};
static const struct builtin_tool fail_tool = { .name = "fail",
                                               .input_schema = "{\"type\":\"object\"}",
                                               .run = fail_always };
static const struct builtin_tool late_tool = { .name = "late", .input_schema = "{\"type\":\"object\"}", .run = late };
static const struct builtin_tool waiting_tool = { .name = "waiting",
                                                  .input_schema = "{\"type\":\"object\"}",
                                                  .run = wait_for_the_end };
static const struct builtin_tool cancel_tool = { .name = "cancel",
                                                 .input_schema = "{\"type\":\"object\"}",
                                                 .run = cancel_own_turn };
static const struct builtin_tool picture_tool = { .name = "picture",
                                                  .input_schema = "{\"type\":\"object\"}",
                                                  .run = picture };
static const struct builtin_tool large_tool = { .name = "large",
                                                .input_schema = "{\"type\":\"object\"}",
                                                .run = large };

const struct builtin_tool builtin_tools[] = { { .name = NULL } };
const size_t n_builtin_tools = 0;

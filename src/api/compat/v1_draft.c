#include "api/compat/v1_draft.h"

#include <string.h>

/* Makes room for one more: a list is full when its length is n_expected times a power of two. */
static void *room_for_one(struct arena *a, size_t n_expected, void *items, size_t n, size_t size)
{
    const size_t n_first = MAX(n_expected, (size_t)1), times = n / n_first;
    void *more;

    if (n > 0 && (n % n_first != 0 || (times & (times - 1)) != 0))
        return items;
    more = arena_array(a, n > 0 ? 2 * n : n_first, size);
    if (n > 0)
        memcpy(more, items, n * size);
    return more;
}

#define ADD(d, list, count, value)                                                                                     \
    do {                                                                                                               \
        (d)->list = room_for_one((d)->a, (d)->n_expected, (d)->list, (d)->count, sizeof(*(d)->list));                  \
        (d)->list[(d)->count++] = (value);                                                                             \
    } while (0)

void v1_draft_add_message(struct v1_draft *d, struct llm_message message)
{
    ADD(d, messages, n, message);
}

void v1_draft_begin(struct v1_draft_turn *t, struct arena *a, size_t n_expected)
{
    *t = (struct v1_draft_turn){ .a = a, .n_expected = n_expected };
}

void v1_draft_add_block(struct v1_draft_turn *t, struct llm_block block)
{
    ADD(t, blocks, n_blocks, block);
    ADD(t, order, n_order, LLM_PIECE_BLOCK);
}

void v1_draft_add_call(struct v1_draft_turn *t, struct llm_tool_call call)
{
    ADD(t, calls, n_calls, call);
    ADD(t, order, n_order, LLM_PIECE_CALL);
}

void v1_draft_add_thought(struct v1_draft_turn *t, struct llm_thought thought)
{
    ADD(t, thoughts, n_thoughts, thought);
    ADD(t, order, n_order, LLM_PIECE_THOUGHT);
}

struct llm_message v1_draft_message(const struct v1_draft_turn *t, enum llm_role role)
{
    return (struct llm_message){ .role = role,
                                 .blocks = t->blocks,
                                 .n_blocks = t->n_blocks,
                                 .tool_calls = t->calls,
                                 .n_tool_calls = t->n_calls,
                                 .thoughts = t->thoughts,
                                 .n_thoughts = t->n_thoughts,
                                 .order = t->order,
                                 .n_order = t->n_order };
}

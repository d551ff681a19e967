/* An answer of the model as the message that goes back to it. */
#include "agents/loop_private.h"

#include "base/uuid.h"
#include "llm/answer.h"

/* The pieces of a message while it is made: each array has room for every piece. */
struct making {
    struct arena *arena;
    const struct llm_answer *from;
    struct llm_block *blocks;
    struct llm_thought *thoughts;
    struct llm_tool_call *calls;
    unsigned char *order;
    struct llm_message *to;
};

static const char *text_in(struct arena *a, struct slice s)
{
    return s.n ? arena_slicedup(a, s) : NULL;
}

static void add_thought(struct making *m, const struct llm_answer_piece *piece)
{
    struct slice text = piece->kind == LLM_PIECE_HIDDEN ? (struct slice){ "", 0 } : llm_answer_text(m->from, piece);

    m->thoughts[m->to->n_thoughts++] = (struct llm_thought){
        .text = piece->kind == LLM_PIECE_HIDDEN ? NULL : arena_slicedup(m->arena, text),
        .signature = arena_slicedup(m->arena, llm_answer_signature(m->from, piece)),
    };
}

/* Providers name their calls; a call without a name of its own gets one. */
static const char *id_of(struct arena *a, const struct llm_answer_tool *tool)
{
    char own[UUID_SIZE];

    if (tool->id && *tool->id)
        return arena_strdup(a, tool->id);
    uuid_v4(own);
    return arena_printf(a, "call_%s", own);
}

static void add_call(struct making *m, const struct llm_answer_tool *tool)
{
    const struct slice signatures = buf_slice(&m->from->signatures);
    struct slice extra = { "", 0 };

    if (tool->n_extra > 0 && tool->extra_at <= signatures.n && tool->n_extra <= signatures.n - tool->extra_at)
        extra = (struct slice){ signatures.p + tool->extra_at, tool->n_extra };
    m->calls[m->to->n_tool_calls++] = (struct llm_tool_call){
        .id = id_of(m->arena, tool),
        .name = arena_strdup(m->arena, tool->name ? tool->name : ""),
        .arguments = arena_strdup(m->arena, buf_str(&tool->arguments)),
        .extra = text_in(m->arena, extra),
    };
}

static void add_piece(struct making *m, const struct llm_answer_piece *piece)
{
    struct slice text;

    if (piece->kind == LLM_PIECE_CALL) {
        add_call(m, &m->from->tools[piece->at]);
    } else if (piece->kind == LLM_PIECE_BLOCK) {
        text = llm_answer_text(m->from, piece);
        if (text.n == 0)
            return;
        m->blocks[m->to->n_blocks++] =
            (struct llm_block){ .kind = LLM_BLOCK_TEXT, .text = arena_slicedup(m->arena, text) };
    } else {
        add_thought(m, piece);
    }
    m->order[m->to->n_order++] = (unsigned char)(piece->kind == LLM_PIECE_HIDDEN ? LLM_PIECE_THOUGHT : piece->kind);
}

void loop_message_of(struct arena *a, const struct llm_answer *answer, struct llm_message *ret)
{
    size_t n = answer->n_pieces + 1;
    struct making m = {
        .arena = a,
        .from = answer,
        .blocks = arena_array(a, n, sizeof(*m.blocks)),
        .thoughts = arena_array(a, n, sizeof(*m.thoughts)),
        .calls = arena_array(a, n, sizeof(*m.calls)),
        .order = arena_array(a, n, 1),
        .to = ret,
    };

    *ret = (struct llm_message){ .role = LLM_ASSISTANT,
                                 .blocks = m.blocks,
                                 .thoughts = m.thoughts,
                                 .tool_calls = m.calls,
                                 .order = m.order,
                                 .reasoning = text_in(a, buf_slice(&answer->reasoning)) };
    for (size_t i = 0; i < answer->n_pieces; i++)
        add_piece(&m, &answer->pieces[i]);
}

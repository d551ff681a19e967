/* What leaves a conversation that is too long. Pure. */
#include "agents/context_private.h"

#include "agents/message.h"
#include "base/utf8.h"
#include "llm/answer.h"

#include <string.h>

enum { BYTES_A_TOKEN = 4, NOTE_BYTES = 80 };

/* ---- counting ---- */

static int64_t tokens_of(const struct llm_message *m)
{
    const struct llm_request request = { .messages = m, .n_messages = 1 };
    size_t n_bytes = m->reasoning ? strlen(m->reasoning) : 0;

    for (size_t i = 0; i < m->n_thoughts; i++)
        n_bytes += m->thoughts[i].signature ? strlen(m->thoughts[i].signature) : 0;
    return llm_prompt_tokens(&request) + (int64_t)(n_bytes / BYTES_A_TOKEN);
}

int64_t context_tokens(const struct llm_message *messages, size_t n)
{
    int64_t sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += tokens_of(&messages[i]);
    return sum;
}

size_t context_turn_at(const struct context_list *list, size_t turn)
{
    size_t n_seen = 0, i = 0;

    for (; i < list->n; i++)
        if (list->items[i].role == LLM_USER && n_seen++ == turn)
            break;
    return i;
}

/* ---- shortening ---- */

const char *context_shortened(struct arena *a, const char *text, size_t max)
{
    const size_t n = strlen(text);
    size_t n_head, tail_at;

    if (n <= max + NOTE_BYTES)
        return text;
    n_head = utf8_head((struct slice){ text, n }, max * 3 / 4).n;
    tail_at = n - max / 4;
    while (((unsigned char)text[tail_at] & 0xC0) == 0x80)
        tail_at++;
    return arena_printf(a, "%.*s\n[... %zu bytes were left out here ...]\n%s", (int)n_head, text, tail_at - n_head,
                        text + tail_at);
}

static bool shorten_message(struct arena *a, struct llm_message *m, size_t max, struct context_cuts *cuts)
{
    struct llm_block *blocks = arena_array(a, m->n_blocks + 1, sizeof(*blocks));
    int64_t n_before = cuts->n_bytes;

    for (size_t i = 0; i < m->n_blocks; i++) {
        blocks[i] = m->blocks[i];
        if (blocks[i].kind == LLM_BLOCK_TEXT) {
            blocks[i].text = context_shortened(a, m->blocks[i].text, max);
            cuts->n_bytes += (int64_t)strlen(m->blocks[i].text) - (int64_t)strlen(blocks[i].text);
        }
    }
    m->blocks = blocks;
    return cuts->n_bytes > n_before;
}

void context_shorten(struct arena *a, struct context_list *list, size_t from, size_t to, size_t most_bytes,
                     int64_t budget, struct context_cuts *cuts)
{
    int64_t sum = context_tokens(list->items, list->n);

    for (size_t i = from; i < to && sum > budget; i++) {
        struct llm_message *m = &list->items[i];

        if (m->role != LLM_TOOL)
            continue;
        sum -= tokens_of(m);
        cuts->n_shortened += shorten_message(a, m, most_bytes, cuts);
        sum += tokens_of(m);
    }
}

/* ---- leaving ---- */

size_t context_count_leaving(const struct context_list *list, int64_t budget)
{
    int64_t sum = context_tokens(list->items, list->n);
    size_t turn = 0;

    for (; turn < list->n_turns && sum > budget; turn++) {
        size_t from = context_turn_at(list, turn), to = context_turn_at(list, turn + 1);

        sum -= context_tokens(list->items + from, to - from);
    }
    return turn;
}

void context_drop(struct context_list *list, size_t n_turns)
{
    size_t from = context_turn_at(list, 0), to = context_turn_at(list, n_turns);

    memmove(list->items + from, list->items + to, (list->n - to) * sizeof(*list->items));
    list->n -= to - from;
    list->n_turns -= n_turns;
}

#include "agents/turn_log.h"

#include "agents/message.h"
#include "base/limits.h"
#include "base/visible.h"
#include "store/tables/conversations.h"

enum { LINE_BYTES = 2000 }; /* of one message or result */

static void add_text(struct buf *out, const char *text)
{
    struct slice shown = slice_of(text);

    if (shown.n > LINE_BYTES)
        for (shown.n = LINE_BYTES; shown.n > 0 && ((unsigned char)text[shown.n] & 0xc0) == 0x80; shown.n--)
            ; /* whole characters */
    visible_add(out, shown, VISIBLE_LINES);
    buf_add_str(out, shown.n < strlen(text) ? " ...\n" : "\n");
}

static void add_calls(struct buf *out, const struct message_row *row, const struct llm_message *message)
{
    for (size_t i = 0; i < message->n_tool_calls; i++) {
        buf_printf(out, "%s calls ", row->created_at);
        visible_add(out, slice_of(message->tool_calls[i].name), VISIBLE_LINE);
        buf_add_char(out, ' ');
        add_text(out, message->tool_calls[i].arguments ? message->tool_calls[i].arguments : "");
    }
}

static void add_message(struct buf *out, const struct message_row *row, struct arena *a)
{
    struct llm_message message = { 0 };
    const char *text;

    if (agent_message_read(a, row->message, &message, NULL) < 0)
        return;
    text = agent_message_text(a, &message);
    if (row->tool_name) {
        buf_printf(out, "%s ", row->created_at);
        visible_add(out, slice_of(row->tool_name), VISIBLE_LINE);
        buf_printf(out, "%s (%lld ms) ", row->is_error ? " failed" : "", (long long)row->took_ms);
        add_text(out, text);
    } else if (*text) {
        buf_printf(out, "%s %s: ", row->created_at, row->role);
        add_text(out, text);
    }
    add_calls(out, row, &message);
}

char *agent_turn_log(struct store *store, const char *turn_uuid, struct arena *a)
{
    AUTO(arena_freep) struct arena *scratch = arena_new();
    struct message_row *rows = NULL;
    struct turn_row turn;
    size_t n = 0;
    struct buf out;

    buf_init(&out, LIMIT_REPLY);
    if (store_turns_get(store, scratch, turn_uuid, &turn, NULL) == 0 &&
        store_messages_of_turn(store, scratch, turn.id, &rows, &n, NULL) == 0)
        for (size_t i = 0; i < n; i++)
            add_message(&out, &rows[i], scratch);
    if (out.n > LIMIT_RUN_LOG_BYTES)
        buf_consume(&out, out.n - LIMIT_RUN_LOG_BYTES);
    return buf_to_arena(&out, a);
}

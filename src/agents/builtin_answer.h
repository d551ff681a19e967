/* The answers of built-in tools, in the shape of MCP's (mcp/client.h). Everything lies in the arena. */
#pragma once

#include "agents/builtin.h"
#include "base/json_write.h"
#include "mcp/client.h"

/* One text block. */
int builtin_answer_text(struct arena *a, struct slice text, struct mcp_result *ret, struct err *e) MUST_CHECK;
int builtin_answer_printf(struct arena *a, struct mcp_result *ret, struct err *e, const char *fmt, ...) MUST_CHECK
    PRINTF_LIKE(4, 5);
/* JSON text of an object: structured, and as a text block. */
int builtin_answer_json(struct arena *a, struct slice json, struct mcp_result *ret, struct err *e) MUST_CHECK;
/* The same, written member by member: begin() opens the object, finish() ends it and clears out, which is borrowed in
 * between. */
void builtin_answer_begin(struct json_writer *w, struct buf *out);
int builtin_answer_finish(struct json_writer *w, struct arena *a, struct mcp_result *ret, struct err *e) MUST_CHECK;
/* An image block. */
int builtin_answer_image(struct arena *a, const char *type, const char *base64, struct mcp_result *ret,
                         struct err *e) MUST_CHECK;

/* A page of a longer text: what a tool gives at a time. */
struct builtin_page {
    struct slice text;
    size_t start, n_left; /* bytes before and after it */
};
/* At most LIMIT_TOOL_TEXT bytes from `start`, cut between characters. text is UTF-8. */
struct builtin_page builtin_page_of(struct slice text, int64_t start);

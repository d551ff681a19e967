/* Bodies of POST /v1/messages, read through their table into the neutral request; every text of the request is read to
 * its end. */
#include "api/compat/v1_anthropic_body.h"

#include <assert.h>
#include <string.h>

static size_t n_read;

static void read_text(const char *text)
{
    if (text)
        n_read += strlen(text);
}

static void read_message(const struct llm_message *m)
{
    for (size_t i = 0; i < m->n_blocks; i++) {
        read_text(m->blocks[i].text);
        read_text(m->blocks[i].url);
        read_text(m->blocks[i].base64);
        assert(m->blocks[i].kind != LLM_BLOCK_TEXT || m->blocks[i].text);
    }
    for (size_t i = 0; i < m->n_thoughts; i++) {
        read_text(m->thoughts[i].text);
        assert(*m->thoughts[i].signature);
    }
    assert(!m->order || m->n_order == m->n_thoughts + m->n_blocks + m->n_tool_calls);
    for (size_t i = 0; i < m->n_tool_calls; i++)
        read_text(m->tool_calls[i].arguments);
    assert(m->role != LLM_TOOL || m->tool_call_id);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct v1_messages_body *body = ARENA_NEW(a, struct v1_messages_body);
    struct json_value root = { 0 };
    struct llm_request request = { 0 };
    struct err e = { 0 };
    int r = json_parse(a, (struct slice){ (const char *)data, size }, &root, &e);

    if (r == 0)
        r = fields_read(v1_count_fields, root, body, a, "", &e);
    if (r == 0)
        r = v1_anthropic_request(body, a, &request, &e);
    assert((r < 0) == (*e.code != '\0'));
    for (size_t i = 0; i < request.n_messages; i++)
        read_message(&request.messages[i]);
    return 0;
}

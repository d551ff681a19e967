/* Bodies of Ollama's POST /api/chat and /api/generate, read through their tables into the neutral request; every text
 * of the request is read to its end. */
#include "api/compat/ollama_body.h"

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
        read_text(m->blocks[i].base64);
        assert(m->blocks[i].kind == LLM_BLOCK_TEXT ? m->blocks[i].text != NULL
                                                   : m->blocks[i].base64 && m->blocks[i].media_type);
    }
    for (size_t i = 0; i < m->n_tool_calls; i++) {
        read_text(m->tool_calls[i].arguments);
        assert(*m->tool_calls[i].id && *m->tool_calls[i].name);
    }
    assert(m->role != LLM_TOOL || *m->tool_call_id);
}

static void read_body(const struct field *table, const uint8_t *data, size_t size)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct ollama_body *body = ARENA_NEW(a, struct ollama_body);
    struct json_value root = { 0 };
    struct llm_request request = { 0 };
    struct err e = { 0 };
    int r = json_parse(a, (struct slice){ (const char *)data, size }, &root, &e);

    if (r == 0)
        r = fields_read(table, root, body, a, "", &e);
    if (r == 0)
        r = ollama_request(body, root, a, &request, &e);
    assert((r < 0) == (*e.code != '\0'));
    for (size_t i = 0; i < request.n_messages; i++)
        read_message(&request.messages[i]);
    for (size_t i = 0; i < request.stop.n; i++)
        read_text(request.stop.items[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    read_body(ollama_chat_fields, data, size);
    read_body(ollama_generate_fields, data, size);
    return 0;
}

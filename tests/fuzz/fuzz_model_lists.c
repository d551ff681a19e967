/* A list of models, as each protocol reads it, and the self-description of a server on this machine, as each probe
 * reads it; the first line is the header "server". Every accepted name can be shown and stored. */
#include "base/limits.h"
#include "base/utf8.h"
#include "llm/llm.h"
#include "llm/local/probe.h"

#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_name(const char *name)
{
    assert(name && *name && strlen(name) <= LIMIT_MODEL_BYTES && utf8_is_valid(slice_of(name)));
}

static void read_list(const struct llm_protocol *protocol, struct slice body)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct llm_models models = { 0 };
    struct err e = { 0 };

    if (protocol->on_models(body, a, &models, &e) < 0) {
        assert(*e.code);
        return;
    }
    assert(models.n <= LIMIT_MODELS);
    for (size_t i = 0; i < models.n; i++) {
        check_name(models.items[i].id);
        check_name(models.items[i].name);
    }
}

static void read_probes(const char *server, struct slice body)
{
    struct http_call_header header = { "server", server };
    const struct http_answer answer = { .status = 200, .body = body, .headers = &header, .n_headers = 1 };

    for (size_t i = 0; i < LLM_N_PROBES; i++) {
        AUTO(arena_freep) struct arena *a = arena_new();

        (void)!llm_probe_knows(&llm_probes[i], &answer, a);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct llm_protocol *const protocols[] = { &llm_openai_chat, &llm_openai_responses,
                                                            &llm_anthropic_messages, &llm_ollama };
    AUTO(arena_freep) struct arena *a = arena_new();
    const char *end = size > 0 ? memchr(data, '\n', size) : NULL;
    size_t n_line = end ? (size_t)(end - (const char *)data) : 0;
    struct slice all = { (const char *)data, size }, after = end ? (struct slice){ end + 1, size - n_line - 1 } : all;

    for (size_t i = 0; i < ARRAY_SIZE(protocols); i++)
        read_list(protocols[i], all);
    read_probes(arena_strndup(a, (const char *)data, n_line), after);
    return 0;
}

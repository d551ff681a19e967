/* Chats, prompts and errors in Ollama's form (github.com/ollama/ollama, docs/api.md): whole, or one JSON object per
 * line. */
#pragma once

#include "api/route.h"
#include "llm/form.h"

#define OLLAMA_LINES "application/x-ndjson"

extern const struct field ollama_chat_shape[], ollama_generate_shape[];
extern const struct error_form ollama_error;
extern const struct llm_form ollama_form;

struct ollama_state { /* t->state of struct llm_progress */
    bool is_prompt, hides_thoughts;
    int64_t first_us; /* clock_mono_us() of the first delta; 0: none yet */
};

/* The answer to a request without messages and prompt. reason: load, unload. */
void ollama_write_empty(struct json_writer *w, const char *model, const char *reason, bool is_prompt);

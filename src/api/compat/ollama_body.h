/* Bodies of Ollama's POST /api/chat and /api/generate (github.com/ollama/ollama, docs/api.md) as the neutral request.
 *
 * The tables define the shape; ollama_request() checks what tables cannot express and reports all violations together.
 * A prompt becomes a message of the user. Tool calls without an id get one, and a result is matched to the call of its
 * name in the assistant's message before it. Everything is in the arena.
 *
 *     r = ollama_request(req->body, req->body_json, arena, &request, e);
 */
#pragma once

#include "llm/llm.h"

struct ollama_options {
    double temperature, top_p;
    bool has_temperature, has_top_p;
    int64_t num_predict;
    struct json_value stop;
};

struct ollama_body {
    const char *model;
    struct field_list messages, tools;                     /* of a chat */
    const char *prompt, *instructions, *suffix, *template; /* of a prompt, with the images */
    struct json_value images, context;
    struct json_value format, think, keep_alive;
    struct ollama_options options;
    bool is_raw, is_streamed;
};

extern const struct field ollama_chat_fields[], ollama_generate_fields[];

/* True without messages and prompt: Ollama would load the model, or unload it with keep_alive 0. */
bool ollama_is_empty(const struct ollama_body *body);
/* The caller wants no thoughts. */
bool ollama_hides_thoughts(const struct ollama_body *body);
/* -EINVAL VALIDATION_ERROR. root: the whole body as received. The model's name is not resolved. */
int ollama_request(const struct ollama_body *body, struct json_value root, struct arena *a, struct llm_request *ret,
                   struct err *e) MUST_CHECK;

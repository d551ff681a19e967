/* Language models: the neutral request, the protocols and the providers (specification, "LLM"; decision D8).
 *
 * struct llm_request is the neutral form; a protocol (one file each) turns it into an upstream request, and upstream
 * bytes into deltas. An account is a configured provider. Protocols and readers: any thread, one at a time.
 *
 *     r = acc->preset->protocol->request(acc, &request, arena, &http_call_request, e);
 *     reader = acc->preset->protocol->reader(arena, &sink);
 *     r = acc->preset->protocol->on_bytes(reader, bytes, e);  ...  r = acc->preset->protocol->on_close(reader, e);
 */
#pragma once

#include "base/fields.h"
#include "net/http_client.h"

enum llm_role { LLM_SYSTEM, LLM_USER, LLM_ASSISTANT, LLM_TOOL };
enum llm_block_kind {
    LLM_BLOCK_TEXT,
    LLM_BLOCK_IMAGE_URL,
    LLM_BLOCK_IMAGE_DATA,
    LLM_BLOCK_FILE_DATA,
    LLM_BLOCK_FILE_URL
};

struct llm_block {
    enum llm_block_kind kind;
    const char *text, *url, *media_type, *base64, *file_name;
    const char *detail; /* of an image, as OpenAI writes it (low, high, auto); NULL: not set */
};
struct llm_tool_call {
    const char *id, *name, *arguments; /* JSON text */
    const char *extra; /* a JSON object that the provider sent with the call and wants back; NULL: none */
};

/* A thought that goes back to its provider unchanged, with its signature; text NULL: a thought that only the provider
 * can read. */
struct llm_thought {
    const char *text, *signature;
};
/* The parts of an assistant's turn. */
enum llm_piece { LLM_PIECE_THOUGHT, LLM_PIECE_BLOCK, LLM_PIECE_CALL, LLM_PIECE_HIDDEN /* thought, in answers only */ };

struct llm_message {
    enum llm_role role;
    const struct llm_block *blocks;
    size_t n_blocks;
    const struct llm_tool_call *tool_calls;
    size_t n_tool_calls; /* of the assistant */
    const char *tool_call_id, *name;
    bool is_error;         /* the result of a tool that failed */
    const char *reasoning; /* of the assistant, unchanged; NULL: none */
    const struct llm_thought *thoughts;
    size_t n_thoughts; /* of the assistant */
    const unsigned char *order;
    size_t n_order; /* enum llm_piece; each entry is the next piece of its kind; NULL: thoughts, blocks, calls */
};

struct llm_tool {
    const char *name, *description;
    struct json_value parameters;
    bool is_strict;
};
enum llm_format { LLM_FORMAT_TEXT, LLM_FORMAT_JSON, LLM_FORMAT_SCHEMA };

struct llm_request {
    const struct llm_message *messages;
    size_t n_messages;
    const struct llm_tool *tools;
    size_t n_tools;
    struct json_value tool_choice; /* as OpenAI writes it; absent: auto */
    const char *model;             /* never NULL in a request() */
    double temperature;
    bool has_temperature; /* true: set by the caller; else temperature is the default; negative: the model's own */
    int64_t max_tokens;   /* 0: the model's own limit */
    double top_p;
    bool has_top_p;
    struct field_strings stop;
    enum llm_format format;
    const char *schema_name;
    struct json_value schema;
    bool is_schema_strict;      /* the provider must enforce the schema */
    struct json_value thinking; /* as Anthropic writes it, for that protocol alone; absent: not set */
    const char *output_effort;  /* Anthropic's output_config.effort; NULL: not set */
    struct json_value ollama;   /* the body as Ollama's clients write it; its `think` and `options` go to that protocol
                                   alone; absent: not set */
    const char *effort;         /* OpenAI's reasoning_effort, for every protocol; NULL: not set */
    bool is_streamed;
    int64_t ready_by_ms; /* as in llm/local/llamacpp.h */
};

struct llm_usage {
    int64_t prompt_tokens, completion_tokens; /* in a sink's on_end: -1 when not reported */
    bool is_estimated;
};
enum llm_finish { LLM_FINISH_STOP, LLM_FINISH_LENGTH, LLM_FINISH_TOOLS, LLM_FINISH_FILTER };
const char *llm_finish_name(enum llm_finish why); /* stop, length, tool_calls, content_filter */

/* Receives what a protocol's reader reads, in order. Each function returns 0, or a negative that stops the reader,
 * which returns it. */
struct llm_sink {
    int (*on_text)(void *arg, struct slice text);
    int (*on_reasoning)(void *arg, struct slice text);
    /* A part of a tool call: id and name come with the first part and are NULL afterwards. */
    int (*on_tool)(void *arg, size_t index, const char *id, const char *name, struct slice arguments);
    /* The signature that ends the last thought; or, is_hidden, the only part of a hidden thought. Never empty. */
    int (*on_signature)(void *arg, bool is_hidden, struct slice signature);
    /* The extra of a tool call that has begun: a whole JSON object; a later one replaces it. */
    int (*on_extra)(void *arg, size_t index, struct slice extra);
    int (*on_end)(void *arg, enum llm_finish why, const struct llm_usage *usage /* NULL: not reported */,
                  const char *model /* NULL: not reported */);
    void *arg;
};

/* The source of an account; of equal names the first source counts and hides the others. */
enum llm_source {
    LLM_STORED,
    LLM_ENVIRONMENT,
    LLM_RUN /* run by this service */,
    LLM_FOUND /* on the machine's own ports */
};

/* What an account is used for. */
enum llm_use {
    LLM_USE_USUAL /* chats and embeddings; of a preset that has neither, speech */,
    LLM_USE_SPEECH /* nothing else */,
    LLM_USE_ALL
};

extern const char *const llm_uses[]; /* models, speech, all; NULL-ended */

struct llm_local;
struct llm_account {
    char id[37];
    enum llm_source source;
    enum llm_use use;
    const char *name;                /* the `provider` of requests */
    const struct llm_preset *preset; /* in the registry without chats and embeddings when `use` excludes them */
    const char *base_url, *api_key, *model, *embed_model;
    const struct http_call_header *headers;
    size_t n_headers;
    struct llamacpp *runner; /* borrowed: starts the account's server on demand (llm/local/llamacpp.h); NULL: the server
                                is at base_url */
    struct llm_local *local; /* borrowed: for LLM_FOUND, checks that the socket is still trusted (llm/local/local.h) */
    const char *const *models;
    size_t n_models; /* configured by hand, in addition to the provider's own list */
};

struct llm_reader; /* a protocol's own state; in the arena it was begun in */
struct llm_model {
    const char *id, *name;
    int64_t created_s; /* since 1970; 0: unknown */
};
struct llm_models {
    const struct llm_model *items;
    size_t n;
};

/* The models that take stop sequences; for the others this service ends the answer (llm/protocols/stops.h). */
enum llm_stops { LLM_STOPS_ALL, LLM_STOPS_NOT_REASONING, LLM_STOPS_NONE };

struct llm_protocol {
    const char *name; /* "openai-chat", "openai-responses", "anthropic-messages", "ollama", "stand-in" */
    bool has_json_object, has_json_schema; /* native response_format; else by instruction (llm/format.h) */
    bool (*takes_address)(const struct llm_block *block); /* can this LLM_BLOCK_FILE_URL be sent as an address? NULL:
                                                             never, files are fetched (llm/fetch.h) */
    enum llm_stops stops;
    struct http_call_header header; /* the protocol's version, sent with every request; name NULL: none */
    const char *version_path; /* a part of every base URL, named in the error about a URL that lacks it; NULL: none */
    uint16_t default_port;    /* for an address without a port ("myhost"); 0: such an address is invalid */
    /* -ENEEDSWORKER on the loop, when the work may take long. */
    int (*request)(const struct llm_account *acc, const struct llm_request *request, struct arena *a,
                   struct http_call_request *ret, struct err *e);
    struct llm_reader *(*reader)(struct arena *a, const struct llm_sink *sink); /* the sink is copied */
    int (*on_bytes)(struct llm_reader *r, struct slice bytes, struct err *e);   /* streamed answer */
    int (*on_whole)(struct llm_reader *r, struct slice body, struct err *e);    /* answer that is not streamed */
    int (*on_close)(struct llm_reader *r,
                    struct err *e); /* the stream has ended: -ECONNRESET when it ended too early */
    int (*models)(const struct llm_account *acc, struct arena *a, struct http_call_request *ret, struct err *e);
    int (*on_models)(struct slice body, struct arena *a, struct llm_models *ret, struct err *e);
};

/* Turns an upstream's answer that is not 2xx into the codes of D8: LLM_ERROR (-EIO; -EAGAIN when trying again may
 * help), RATE_LIMIT (-EBUSY), INVALID_MODEL (-EINVAL). */
int llm_refusal(const struct llm_account *acc, int status, struct slice body, struct err *e);

/* Some upstreams repeat the credentials they refuse: e's text gets **** in their place. */
void llm_hide_secrets(const struct llm_account *acc, struct err *e);

enum {
    LLM_QUIRK_NO_TEMPERATURE = 1,
    LLM_QUIRK_MAX_COMPLETION_TOKENS = 2,
    LLM_QUIRK_NO_STREAM_USAGE = 4,
    LLM_QUIRK_NO_JSON_SCHEMA = 8,
    LLM_QUIRK_NO_JSON_OBJECT = 16,
    LLM_QUIRK_NO_MODEL_LIST = 32,
    LLM_QUIRK_MAY_NOT_STREAM = 64 /* GENERIC_LLM_STREAMING_DISABLED */,
    LLM_QUIRK_SHORT_TOOL_IDS = 128 /* nine letters and digits */,
    LLM_QUIRK_THOUGHT_SIGNATURES = 256 /* required back with tool calls */,
    LLM_QUIRK_OWN_TEMPERATURE =
        512 /* a model's name does not show whether it takes a temperature: sent only when the caller sets it */,
    LLM_QUIRK_THOUGHTS_BACK = 1024 /* required back with tool calls */,
    LLM_QUIRK_NO_NAMES = 2048 /* no `name` in messages */,
    LLM_QUIRK_EXTRAS = 4096 /* may lead to Gemini: gets back the extras of its tool calls */
};

struct llm_preset {
    const char *id, *label;
    const struct llm_protocol *protocol;
    const char *base_url;                  /* NULL: must be given; of the stand-in: none */
    const char *base_path;                 /* appended to a given address that has no path; NULL: none */
    const char *auth_header, *auth_prefix; /* "authorization", "Bearer "; NULL: none */
    bool needs_key, can_chat, can_embed;
    bool can_speak, can_hear; /* speech over HTTP: speech/services.h */
    bool is_stand_in; /* no provider but a part of this process (stand_in/rules.h): has neither address nor key, never
                         rests, is the default of chats only without any other */
    const char *env_key[3], *env_base_url[3],
        *env_model[3];                      /* environment variables of the field, the first wins; NULL: none */
    const char *env_region, *region_url[2]; /* the address is the variable's value between these two; NULL: none */
    const char *default_model, *default_embed_model;
    struct http_call_header header; /* sent with every request; name NULL: none */
    unsigned quirks;
    const char *help; /* what a person must provide */
};

extern const struct llm_preset llm_presets[]; /* ended by id NULL */
const struct llm_preset *llm_preset_find(const char *id);
bool llm_preset_is_for_speech(const struct llm_preset *preset); /* it has neither chats nor embeddings */
/* Whether the account may speak or hear; its preset says which. */
bool llm_account_is_for_speech(const struct llm_account *acc);
/* Reasoning models take no temperature, and take max_completion_tokens. */
bool llm_model_is_reasoning(const char *model);
/* Guessed from the name, as lists of models do not state a model's purpose. */
bool llm_model_is_embedding(const char *model);
/* How to request thinking from Anthropic's models: before 4.6 with a budget of tokens, since then adaptively. */
enum llm_thinking { LLM_THINKS_NOT, LLM_THINKS_BY_BUDGET, LLM_THINKS_ADAPTIVELY };
enum llm_thinking llm_model_thinking(const char *model);
/* Anthropic's models after 4.6 refuse temperature and top_p. */
bool llm_model_takes_sampling(const char *model);
extern const struct llm_protocol llm_openai_chat, llm_openai_responses, llm_anthropic_messages, llm_ollama,
    llm_stand_in;
extern const struct llm_protocol llm_speech; /* a name only: of presets that have no models of language */

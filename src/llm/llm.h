/* Language models: what callers ask, what protocols speak, which providers there are (specification, "LLM"; decision D8).
 *
 * Asks are the neutral form; a protocol (one file each) turns one into an upstream request and upstream bytes into deltas. An account is a
 * configured provider. Types are const tables, instances are other structs. Protocols and readers: any thread, one at a time.
 *
 *     r = acc->preset->protocol->request(acc, &ask, arena, &http_ask, e);
 *     reader = acc->preset->protocol->reader(arena, &sink);
 *     r = acc->preset->protocol->on_bytes(reader, bytes, e);  ...  r = acc->preset->protocol->on_close(reader, e);
 */
#pragma once

#include "base/fields.h"
#include "net/http_client.h"

enum llm_role { LLM_SYSTEM, LLM_USER, LLM_ASSISTANT, LLM_TOOL };
enum llm_block_kind { LLM_BLOCK_TEXT, LLM_BLOCK_IMAGE_URL, LLM_BLOCK_IMAGE_DATA, LLM_BLOCK_FILE_DATA };

struct llm_block { enum llm_block_kind kind; const char *text, *url, *media_type, *base64, *file_name; };
struct llm_tool_call { const char *id, *name, *arguments; /* JSON text */ const char *extra; /* what its maker gave with it and wants back, a JSON object; NULL: none */ };

/* A thought that comes back to its maker as it was told: with its signature, or, text NULL, one that only the maker can read. */
struct llm_thought { const char *text, *seal; };
/* What an assistant's turn consists of. */
enum llm_piece { LLM_PIECE_THOUGHT, LLM_PIECE_BLOCK, LLM_PIECE_CALL, LLM_PIECE_HIDDEN /* thought, in answers only */ };

struct llm_message {
    enum llm_role role;
    const struct llm_block *blocks; size_t n_blocks;
    const struct llm_tool_call *tool_calls; size_t n_tool_calls;        /* of the assistant */
    const char *tool_call_id, *name;
    const char *reasoning;              /* of the assistant, as it was told; NULL: none */
    const struct llm_thought *thoughts; size_t n_thoughts;              /* of the assistant */
    const unsigned char *order; size_t n_order;         /* enum llm_piece, each the next of its kind; NULL: thoughts, blocks, calls */
};

struct llm_tool { const char *name, *description; struct json_value parameters; bool is_strict; };
enum llm_format { LLM_FORMAT_TEXT, LLM_FORMAT_JSON, LLM_FORMAT_SCHEMA };

struct llm_ask {
    const struct llm_message *messages; size_t n_messages;
    const struct llm_tool *tools; size_t n_tools;
    struct json_value tool_choice;      /* as OpenAI writes it; absent: auto */
    const char *model;                  /* never NULL in a request() */
    double temperature; bool has_temperature;   /* has: the caller said it; else temperature is the default, negative: the model's own */
    int64_t max_tokens;                 /* 0: the model's own limit */
    double top_p; bool has_top_p;
    struct field_strings stop;
    enum llm_format format;
    const char *schema_name;
    struct json_value schema;
    bool is_schema_strict;              /* the provider is to keep to it by force */
    struct json_value thinking;         /* as Anthropic writes it, for that protocol alone; absent: not said */
    const char *output_effort;          /* Anthropic's output_config.effort; NULL: not said */
    const char *effort;                 /* OpenAI's reasoning_effort, for every protocol; NULL: not said */
    bool is_streamed;
    int64_t ready_by_ms;                /* as in llm/llamacpp.h */
};

struct llm_usage { int64_t prompt_tokens, completion_tokens; /* of a sink's on_end: -1 when not told */ bool is_estimated; };
enum llm_finish { LLM_FINISH_STOP, LLM_FINISH_LENGTH, LLM_FINISH_TOOLS, LLM_FINISH_FILTER };
const char *llm_finish_name(enum llm_finish why);       /* stop, length, tool_calls, content_filter */

/* Where a protocol's reader puts what it reads, in order. Each returns 0 or a negative that stops the reading and is returned. */
struct llm_sink {
    int (*on_text)(void *arg, struct slice text);
    int (*on_reasoning)(void *arg, struct slice text);
    /* A part of a tool call: id and name come with its first part, then they are NULL. */
    int (*on_tool)(void *arg, size_t index, const char *id, const char *name, struct slice arguments);
    /* The thought told last ends here and is signed; or, is_hidden, a thought of which nothing else is told. Never empty. */
    int (*on_seal)(void *arg, bool is_hidden, struct slice seal);
    /* What a tool call that has begun carries beside its arguments: a JSON object, whole; a later one replaces it. */
    int (*on_extra)(void *arg, size_t index, struct slice extra);
    int (*on_end)(void *arg, enum llm_finish why, const struct llm_usage *usage /* NULL: not told */, const char *model /* NULL: not told */);
    void *arg;
};

/* Who configured an account; of equal names the first source counts and hides the others. */
enum llm_source { LLM_STORED, LLM_ENVIRONMENT, LLM_RUN /* by this service */, LLM_FOUND /* on the machine's own ports */ };

struct llm_local;
struct llm_account {
    char id[37];
    enum llm_source source;
    const char *name;                   /* what callers say as `provider` */
    const struct llm_preset *preset;
    const char *base_url, *api_key, *model, *embed_model;
    const struct http_ask_header *headers; size_t n_headers;
    struct llamacpp *runner;            /* borrowed: runs its server when it is asked (llm/llamacpp.h); NULL: it is at base_url */
    struct llm_local *local;            /* borrowed: of LLM_FOUND, who says whether its socket is still trusted (llm/local.h) */
    const char *const *models; size_t n_models; /* written by hand, beside those of the provider's own list */
};

struct llm_reader;                      /* a protocol's own state; in the arena it was begun in */
struct llm_model { const char *id, *name; };
struct llm_models { const struct llm_model *items; size_t n; };

struct llm_protocol {
    const char *name;                   /* "openai-chat", "openai-responses", "anthropic-messages", "ollama" */
    bool has_json_object, has_json_schema;      /* response_format; else by instruction (llm/format.h) */
    int (*request)(const struct llm_account *acc, const struct llm_ask *ask, struct arena *a, struct http_ask *ret, struct err *e);
    struct llm_reader *(*reader)(struct arena *a, const struct llm_sink *sink); /* the sink is copied */
    int (*on_bytes)(struct llm_reader *r, struct slice bytes, struct err *e);   /* streamed answer */
    int (*on_whole)(struct llm_reader *r, struct slice body, struct err *e);    /* answer that is not streamed */
    int (*on_close)(struct llm_reader *r, struct err *e);       /* the stream has ended: -ECONNRESET when that was too early */
    int (*models)(const struct llm_account *acc, struct arena *a, struct http_ask *ret, struct err *e);
    int (*on_models)(struct slice body, struct arena *a, struct llm_models *ret, struct err *e);
};

/* An upstream's answer that is no 2xx, in the codes of D8: LLM_ERROR (-EIO; -EAGAIN when trying again may help), RATE_LIMIT (-EBUSY),
 * INVALID_MODEL (-EINVAL). */
int llm_refusal(const struct llm_account *acc, int status, struct slice body, struct err *e);

/* Some upstreams repeat the credentials they refuse: in e's text they become ****. */
void llm_hide_secrets(const struct llm_account *acc, struct err *e);

enum { LLM_QUIRK_NO_TEMPERATURE = 1, LLM_QUIRK_MAX_COMPLETION_TOKENS = 2, LLM_QUIRK_NO_STREAM_USAGE = 4, LLM_QUIRK_NO_JSON_SCHEMA = 8,
       LLM_QUIRK_NO_JSON_OBJECT = 16, LLM_QUIRK_NO_MODEL_LIST = 32, LLM_QUIRK_MAY_NOT_STREAM = 64 /* GENERIC_LLM_STREAMING_DISABLED */,
       LLM_QUIRK_SHORT_TOOL_IDS = 128 /* nine letters and digits */, LLM_QUIRK_THOUGHT_SIGNATURES = 256 /* asked back with tool calls */,
       LLM_QUIRK_OWN_TEMPERATURE = 512 /* a model's name does not tell whether it takes one: sent when the caller says it */,
       LLM_QUIRK_THOUGHTS_BACK = 1024 /* asked back with tool calls */, LLM_QUIRK_NO_NAMES = 2048 /* of who speaks */,
       LLM_QUIRK_EXTRAS = 4096 /* may be a way to Gemini: takes back what it gave with tool calls */ };

struct llm_preset {
    const char *id, *label;
    const struct llm_protocol *protocol;
    const char *base_url;               /* NULL: must be given */
    const char *base_path;              /* put behind a given address that has no path of its own; NULL: none */
    const char *auth_header, *auth_prefix;      /* "authorization", "Bearer "; NULL: none */
    bool needs_key, can_chat, can_embed;
    const char *env_key[3], *env_base_url[3], *env_model[3];    /* variables of the field, first wins; NULL: none */
    const char *env_region, *region_url[2];     /* a variable whose value between these two is the address; NULL: none */
    const char *default_model, *default_embed_model;
    struct http_ask_header header;      /* sent with every request; name NULL: none */
    unsigned quirks;
    const char *help;                   /* what a person must bring */
};

extern const struct llm_preset llm_presets[];           /* ended by id NULL */
const struct llm_preset *llm_preset_find(const char *id);
/* Models that think before they speak take no temperature, and max_completion_tokens. */
bool llm_model_is_reasoning(const char *model);
/* Lists of models do not say what a model is for; its name mostly does. */
bool llm_model_is_embedding(const char *model);
/* How a model of Anthropic's is told to think: before 4.6 by a budget of tokens, since then as hard as it finds right. */
enum llm_thinking { LLM_THINKS_NOT, LLM_THINKS_BY_BUDGET, LLM_THINKS_ADAPTIVELY };
enum llm_thinking llm_model_thinking(const char *model);
/* Anthropic's models after 4.6 refuse temperature and top_p. */
bool llm_model_takes_sampling(const char *model);
extern const struct llm_protocol llm_openai_chat, llm_openai_responses, llm_anthropic_messages, llm_ollama;

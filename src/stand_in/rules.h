/* The stand-in: a provider inside this process for first steps and for tests of apps, without a model and without a
 * network (docs/providers.md, "The stand-in").
 *
 * It is no language model: it repeats what it is told, except for lines of the text that are rules. This module reads
 * the rules and makes refusals; llm/protocols/stand_in.c answers chats, embed/stand_in.c makes embeddings. Results live
 * in the arena. Any thread.
 *
 *     stand_in_read_rules(arena, slice_of("slow 100\nsay Paris."), &rules);       rules.say "Paris.", rules.slow_ms 100
 *
 * | a line              | the answer                                                              |
 * | say WORDS           | exactly these words; several such lines are several lines               |
 * | think WORDS         | a thought before the answer                                             |
 * | call TOOL [JSON]    | a call of the tool, if the request has it; without JSON with the smallest arguments that fit
 * | | slow MS             | waits before each piece (of an answer that is not streamed: once)       | | cut N | the
 * connection breaks after N pieces                                    | | fail STATUS [S]     | a refusal with this
 * status, 400 to 599, and a Retry-After of S seconds  |
 */
#pragma once

#include "base/limits.h"
#include "net/http_client.h"

#define STAND_IN_PROVIDER "stand-in"
#define STAND_IN_MODEL "stand-in"
#define STAND_IN_EMBED_MODEL "stand-in-embed"
#define STAND_IN_LABEL "stand-in model: not a language model, it repeats what you say"

enum { STAND_IN_CREATED_S = 1795392000 /* 2026-11-23 */ };

struct stand_in_call {
    struct slice tool, arguments; /* JSON text; empty: not given. Point into the text */
};

struct stand_in_rules {
    const char *say, *think; /* NULL: no such line */
    struct stand_in_call calls[LIMIT_STAND_IN_CALLS];
    size_t n_calls;
    int64_t slow_ms;
    int64_t n_before_cut;       /* -1: no cut */
    int fail_status;            /* 0: no refusal */
    int64_t fail_retry_after_s; /* -1: no Retry-After */
};

/* Later lines of one kind replace earlier ones, except `say`, `think` and `call`. */
void stand_in_read_rules(struct arena *a, struct slice text, struct stand_in_rules *ret);

/* The bytes of the next token of a text: a word with the blanks behind it, a part of a long word; 0 at the end. */
size_t stand_in_token(struct slice text);
size_t stand_in_count_tokens(struct slice text);

/* An answer in one piece; body: borrowed. */
struct http_inside *stand_in_answer(struct arena *a, struct slice body);
/* A refusal in OpenAI's form. */
struct http_inside *stand_in_refuse(struct arena *a, int status, int64_t retry_after_s, const char *why);
/* The refusal that the rules ask for; NULL: none. */
struct http_inside *stand_in_obey(struct arena *a, const struct stand_in_rules *rules);

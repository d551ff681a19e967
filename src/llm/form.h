/* How an answer is written for a client: one const table of functions for each API format of clients.
 *
 * Streamed: each function writes whole Server-Sent Events, or what content_type says, as deltas come. Whole: one
 * function writes the members of the JSON object. A form keeps its state of one answer in t->state. One thread at a
 * time.
 */
#pragma once

#include "base/uuid.h"
#include "llm/answer.h"

/* What is known of the answer while it is written. */
struct llm_progress {
    char uuid[UUID_SIZE];
    const char *provider, *model;    /* of the present account; model: the upstream's own name once it is known */
    const struct llm_answer *answer; /* the tools so far; at the end usage and why. The texts are empty unless they must
                                        be checked or the form keeps thoughts. */
    int64_t prompt_tokens;           /* an estimate, until the upstream reports its count */
    double duration_s;               /* of the whole answer, at its end */
    int64_t began_wall_ms;
    int64_t began_us; /* clock_mono_us() when the request was sent */
    int64_t lost_us;  /* time that earlier attempts took */
    void *state;      /* the form's own */
};

/* A function that is NULL writes nothing. */
struct llm_form {
    const char *content_type; /* of a stream, a literal; NULL: text/event-stream */
    void (*begin)(struct buf *out, const struct llm_progress *t);
    void (*text)(struct buf *out, const struct llm_progress *t, struct slice text);
    void (*reasoning)(struct buf *out, const struct llm_progress *t, struct slice text);
    void (*tool)(struct buf *out, const struct llm_progress *t, size_t index, const char *id, const char *name,
                 struct slice arguments);
    void (*signature)(struct buf *out, const struct llm_progress *t, bool is_hidden,
                      struct slice signature); /* as a sink's on_signature */
    void (*extra)(struct buf *out, const struct llm_progress *t, size_t index,
                  struct slice extra); /* as a sink's on_extra */
    void (*end)(struct buf *out, const struct llm_progress *t);
    /* How much `end` repeats; above LIMIT_LLM_READ_ON_LOOP a worker calls it. NULL: nothing. */
    size_t (*n_end_bytes)(const struct llm_progress *t);
    void (*error)(struct buf *out, const struct llm_progress *t, const struct err *e);
    bool keeps_thoughts; /* t->answer has all thoughts at the end */
    /* For an answer that is not streamed: t->answer is complete. */
    void (*whole)(struct json_writer *w, const struct llm_progress *t);
};

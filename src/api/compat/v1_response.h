/* One answer of POST /v1/responses in progress: the members it repeats of its request, the output so far, where the
 * answer is kept, and its form as an object (platform.openai.com/docs/api-reference/responses/object).
 *
 * Made by the handler on its worker; the answer of a stream belongs to the loop afterwards. One thread at a time.
 *
 *     response = v1_response_new(&start);
 *     v1_response_write(w, response, t);
 *     v1_response_free(response);
 */
#pragma once

#include "api/compat/v1_kept.h"
#include "base/fields.h"
#include "base/limits.h"
#include "llm/form.h"

enum { V1_REPEATS = 12, V1_ITEM_ID_SIZE = 80 };

extern const struct field v1_response_shape[];

/* An item of the output: a piece of the answer. signature: the piece with the item's signature; another piece only for
 * a thought whose signature came separately. */
struct v1_item {
    size_t piece, signature;
    bool is_done;
};

struct v1_response {
    struct arena *arena;             /* owned */
    const char *repeats[V1_REPEATS]; /* JSON */
    struct v1_kept *kept;            /* borrowed; NULL: the answer is not kept */
    const char *caller;
    const struct v1_kept_turn *previous; /* a reference */
    char *input;                         /* owned */
    size_t n_input, n_input_values;
    char id[V1_KEPT_ID_SIZE];
    const char *model;
    int64_t created_ms;
    const struct llm_answer *answer; /* borrowed, or own */
    struct llm_answer own;           /* of a stream: as far as it was sent */
    struct v1_item *items;
    size_t n_items;                          /* owned */
    uint16_t item_of_call[LIMIT_TOOL_CALLS]; /* the item's index plus one; 0: the call has no item yet */
    size_t n_seen;                           /* pieces that are assigned to items */
    struct buf escaped;                      /* the text of the item escaped_item - 1, while it is streamed */
    size_t escaped_item;                     /* 0: of none */
    int64_t n_events;
    bool is_too_large;
};

struct v1_response_start {
    struct json_value body; /* the members that the answer repeats are copied */
    struct v1_kept *kept;   /* borrowed; NULL: the answer is not kept, and the rest stays empty */
    const char *caller;
    const struct v1_kept_turn *previous; /* a reference that passes to the answer; NULL: a thread begins */
    char *input;                         /* from malloc(); ownership passes to the answer */
};

struct v1_response *v1_response_new(const struct v1_response_start *start) MUST_CHECK;
struct v1_response *v1_response_free(struct v1_response *r); /* NULL is fine */

/* Writes the members of the finished answer and keeps the answer. */
void v1_response_write(struct json_writer *w, struct v1_response *r, const struct llm_progress *t);

/* ---- for v1_responses_form.c ---- */

enum v1_stage { V1_IN_PROGRESS, V1_ENDED, V1_FAILED };

void v1_response_begin(struct v1_response *r, const char *uuid, int64_t created_ms, const char *model);
void v1_response_write_members(struct json_writer *w, const struct v1_response *r, enum v1_stage stage,
                               const struct err *e /* NULL: none */);
/* Prints the whole object as it is sent and kept; false: the object is too large. Clear `out` in any case. */
bool v1_response_print(const struct v1_response *r, struct buf *out);
void v1_response_keep(struct v1_response *r, struct buf *text);      /* takes ownership of the text */
const char *v1_response_why_incomplete(const struct v1_response *r); /* NULL: the answer is complete */

/* Takes the next piece of the answer: a new item, or the signature of the thought before it. True: a new item. */
bool v1_response_take_piece(struct v1_response *r);
enum llm_piece v1_item_kind(const struct v1_response *r, size_t item);
const char *v1_item_id(const struct v1_response *r, size_t item, char out[V1_ITEM_ID_SIZE]);
/* The text of an item of a thought or a message. */
struct v1_text {
    struct slice text;
    bool is_escaped; /* by json_escape() */
};
struct v1_text v1_item_text(const struct v1_response *r, size_t item);
void v1_text_write(struct json_writer *w, const char *name, struct v1_text text);
/* Escapes each part of a streamed text as it comes, as its last events repeat the whole text on the loop. */
void v1_item_escape(struct v1_response *r, size_t item, struct slice part);
void v1_item_forget_escaped(struct v1_response *r, size_t item);
const struct llm_answer_tool *v1_item_tool(const struct v1_response *r, size_t item);
void v1_response_write_part(struct json_writer *w, const char *name, const char *type, struct v1_text text);
/* is_begun: the item as a stream first sends it, without content. */
void v1_response_write_item(struct json_writer *w, const char *name, const struct v1_response *r, size_t item,
                            bool is_begun);

/* ---- ids ---- */

/* "msg_<32 hex digits>_<number>": the answer, and the item of its output. False: the id has another form. */
bool v1_response_item_place(const char *id, struct slice *ret_response, size_t *ret_number);
/* "resp_<32 hex digits>": the digits. Empty: the id has another form. */
struct slice v1_response_id(const char *id);

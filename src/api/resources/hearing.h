/* Transcripts of recordings, for the routes of /sdk/stt and of /v1/audio. For handlers, on their worker.
 *
 *     r = transcript_read(req, &wanted, &t, e);       the whole recording
 */
#pragma once

#include "api/form.h"
#include "api/resources/heard.h"
#include "api/route.h"
#include "speech/ears.h"

/* Who hears, and what is expected: members of the type of a body, a form or a query. */
#define EARS_FIELDS(type)                                                                                              \
    FIELD_STRING(type, provider, "provider", .max = LIMIT_NAME_CHARS),                                                 \
        FIELD_STRING(type, model, "model", .max = LIMIT_NAME_CHARS * 2),                                               \
        FIELD_STRING(type, language, "language", .max = LIMIT_SPEECH_VOICE, .help = "like en or en-US, or auto"),      \
        FIELD_STRING(type, phrases, "phrases", .max = LIMIT_FORM_FIELDS,                                               \
                     .help = "nothing else is heard: phrases divided by commas or lines, or a grammar in JSGF")

struct transcript {
    struct heard_segment *segments; /* in the arena of the request */
    size_t n, n_allocated;
    const char *text; /* of all segments */
    double duration;  /* seconds */
};

struct hearing_request {
    struct ears_request ears;
    bool keeps;       /* the recording, once it could be read, in the caller's data folder */
    const char *path; /* where it is then; in the arena of the request */
    struct heard_count count;
};

int transcript_read(struct request *req, struct hearing_request *wanted, struct transcript *ret,
                    struct err *e) MUST_CHECK;
/* A transcript that is sent while the recording is heard. */
struct dictation {
    const struct dictation_form *form;
    struct hearing *hearing;
    const char *path; /* of the recording that is kept, or NULL */
    struct http_stream *stream;
    struct buf whole, event; /* the text so far; the data of one event, of either form */
};
struct dictation_form {
    /* Before the text of the segment is added to whole. Below 0: the client has left. */
    int (*segment)(struct dictation *d, const struct heard_segment *segment);
    void (*end)(struct dictation *d, int r, const struct err *why);
};
/* Takes the exchange once the recording could be read. */
int dictation_answer(struct request *req, struct response *res, struct hearing_request *wanted,
                     const struct dictation_form *form, struct err *e) MUST_CHECK;

/* The fields of a form, and its part `file`. */
int hearing_form_read(const struct request *req, const struct field *table, void *fields, struct form *ret,
                      struct slice *ret_recording, struct err *e) MUST_CHECK;
/* {start, end, text} and {word, start, end, confidence}, as members of an object that is open. */
extern const struct field heard_word_shape[];
void heard_words_write(struct json_writer *w, const struct heard_segment *segment);
/* Whether the client takes Server-Sent Events. */
bool hearing_wants_events(const struct request *req);

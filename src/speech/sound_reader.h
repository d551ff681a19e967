/* Reads the sound of one sentence as a provider sends it, in pieces of any size, and passes on its samples: a file
 * (WAV; one in another format is kept for the worker of sound), raw samples, or OpenAI's events
 * (platform.openai.com/docs/ api-reference/audio/speech-audio-delta-event). Foreign bytes; embedded in its owner; no
 * I/O; one thread.
 *
 *     speech_sound_reader_init(&reader, SPEECH_SOUND_EVENTS, 24000, &sink);
 *     while (... more arrives, and !reader.is_done && r == 0)
 *         r = speech_sound_reader_feed(&reader, bytes, e);
 *     r = speech_sound_reader_end(&reader, e);
 */
#pragma once

#include "net/sse_reader.h"
#include "speech/wav.h"

enum speech_sound_form { SPEECH_SOUND_FILE, SPEECH_SOUND_RAW, SPEECH_SOUND_EVENTS };

/* Who takes the samples while they arrive. */
struct speech_sink {
    /* At least one sample; valid during the call. A negative value ends the reading and is returned. */
    int (*take)(void *arg, const struct speech_pcm *samples, struct err *e);
    void *arg;
    bool is_live; /* what it takes is heard at once: a provider may be as slow as a person speaks */
};

enum { SPEECH_SOUND_FRAME = 32 }; /* bytes of a sample of eight channels */

struct speech_sound_reader {
    enum speech_sound_form form;
    const struct speech_sink *sink;
    struct sse_reader events;
    struct buf file;    /* the beginning of a file until its samples; all of a file that is no WAV */
    struct buf samples; /* of one piece */
    struct speech_wav wav;
    bool has_head;  /* the samples have begun */
    bool is_other;  /* the file is no WAV */
    bool is_done;   /* the events have ended; what follows is not read */
    size_t n_left;  /* bytes of the WAV's samples that are to come; SIZE_MAX: not known */
    size_t n_sound; /* bytes of samples so far */
    char part[SPEECH_SOUND_FRAME];
    size_t n_part;
    int sink_r;      /* the negative value of the sink */
    struct err *why; /* during a feed */
};

/* rate: of raw samples and events. */
void speech_sound_reader_init(struct speech_sound_reader *r, enum speech_sound_form form, uint32_t rate,
                              const struct speech_sink *sink);
void speech_sound_reader_clear(struct speech_sound_reader *r);
/* -EBADMSG, whose text begins with "it ...", for what is no sound; or what the sink returned. */
int speech_sound_reader_feed(struct speech_sound_reader *r, struct slice bytes, struct err *e) MUST_CHECK;
/* Nothing more comes: -EBADMSG when the sound is not whole. */
int speech_sound_reader_end(struct speech_sound_reader *r, struct err *e) MUST_CHECK;
/* The whole of a file that is no WAV, after the end; none: the sink has had the samples. */
struct slice speech_sound_reader_file(const struct speech_sound_reader *r);

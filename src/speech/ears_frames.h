/* The protocol between the service and the worker that hears, hearth-speech-ears (worker_ears.c): one process for one
 * recording. Constants of both sides; nothing of base/ but its limits.
 *
 * Frames are those of worker_frames.h. The worker sends HELLO once it is loaded. It takes one EARS_START, whose struct
 * is followed, outside of frames, by n_phrases and then n_recording bytes. It answers with OPENED, any number of
 * segments, each of which is its WORD frames and one SEGMENT frame, and DONE; or with REFUSED or FAILED at any place.
 * Times are in milliseconds from the start of the recording.
 *
 * Live sound: START has a rate and no recording. SOUND frames follow, then one END. The worker answers OPENED at once,
 * and the rest as above while the sound comes; GUESS frames, when they are wanted, precede a segment's words.
 *
 * The microphone (hearth-speech-microphone, worker_microphone.c) takes one RECORD and answers with OPENED when the
 * device is open, SOUND frames, and DONE after max_ms or where the device's sound ends; or with REFUSED or FAILED.
 */
#pragma once

#include "speech/worker_frames.h"

enum {
    EARS_RATE = 16000,   /* samples a second that the engine hears */
    EARS_SEGMENT_S = 30, /* a longer one is split at its quietest moment */
};

/* Argument of the worker: the recording is a container that the libraries of ffmpeg read. */
#define EARS_CONTAINERS "--containers"
/* The beginning of what it says where these libraries are missing. */
#define EARS_CONTAINERS_MISSING "WebM, MP4 and AAC need ffmpeg's libraries"

enum ears_frame_kind {
    EARS_FRAME_START = 3,    /* to the worker: struct ears_frame_start */
    EARS_FRAME_END = 4,      /* to the worker: empty; the sound has ended */
    EARS_FRAME_RECORD = 5,   /* to the microphone's: struct ears_frame_record, the name of the device */
    EARS_FRAME_OPENED = 32,  /* struct ears_frame_opened */
    EARS_FRAME_WORD = 33,    /* struct ears_frame_word, the word */
    EARS_FRAME_SEGMENT = 34, /* struct ears_frame_segment */
    EARS_FRAME_DONE = 35,    /* struct ears_frame_done */
    EARS_FRAME_REFUSED = 36, /* struct ears_frame_refused, a sentence for a person */
    EARS_FRAME_SOUND = 37,   /* samples: 16 bits, one channel, little-endian. Of the microphone at EARS_RATE */
    EARS_FRAME_GUESS = 38,   /* the words of the segment that goes on, as they seem now */
};

enum ears_phrases { EARS_NO_PHRASES, EARS_WORD_LIST, EARS_GRAMMAR, N_EARS_PHRASES };

struct ears_frame_start {
    uint32_t phrases; /* enum ears_phrases; a list has a phrase on each line */
    uint32_t n_phrases, n_recording;
    uint32_t rate;    /* of live sound, SPEECH_RATE_MIN to SPEECH_RATE_MAX; 0: a recording */
    uint32_t guesses; /* live: 1: GUESS frames are wanted */
};

struct ears_frame_record {
    uint32_t max_ms; /* 0: the device is opened, and nothing recorded */
};

struct ears_frame_opened {
    uint32_t rate, n_channels;
};

struct ears_frame_word {
    uint32_t start_ms, end_ms;
    uint32_t confidence_permille;
};

struct ears_frame_segment {
    uint32_t start_ms, end_ms;
};

struct ears_frame_done {
    uint32_t duration_ms;
};

enum ears_refusal { EARS_UNREADABLE, EARS_TOO_LONG, EARS_BAD_PHRASES, EARS_NO_DEVICE, N_EARS_REFUSALS };

struct ears_frame_refused {
    uint32_t why; /* enum ears_refusal */
};

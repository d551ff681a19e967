/* The protocol between the service and a speech worker (worker_main.c). A worker is a program of its own for one
 * engine, because espeak-ng and flite may crash and keep global state. Constants of both sides; no functions, nothing
 * of base/ but its limits.
 *
 * Each direction is a sequence of frames: struct speech_frame, then n_bytes bytes, at most LIMIT_SPEECH_FRAME. Numbers
 * are in the machine's order, since both programs run on one machine. After its start the worker sends one
 * SPEECH_FRAME_HELLO. It answers each request, in order, with any number of AUDIO or VOICES frames and then one DONE,
 * TAKEN or FAILED frame. The worker ends when its standard input ends.
 */
#pragma once

#include "base/limits.h"

#include <stdint.h>

enum { SPEECH_FRAMES_VERSION = 3, SPEECH_RATE_MIN = 8000, SPEECH_RATE_MAX = 48000, SPEECH_VERSION_SIZE = 32 };

enum speech_frame_kind {
    SPEECH_FRAME_SAY = 1,     /* to the worker: struct speech_frame_say, the voice, the text; no NUL */
    SPEECH_FRAME_LIST = 2,    /* to the worker: empty; asks for the voices */
    SPEECH_FRAME_SAMPLES = 4, /* to the worker of sound, before SAY: samples, 16 bits, mono; or a file */
    SPEECH_FRAME_BEGIN = 5,   /* to the worker of sound: struct speech_frame_begin; SAMPLES follow as they arrive */
    SPEECH_FRAME_END = 6,     /* to the worker of sound: empty; those were all */
    SPEECH_FRAME_HELLO = 16,  /* struct speech_frame_hello */
    SPEECH_FRAME_AUDIO = 17,  /* bytes in the format requested; pcm: 16 bits, mono, little-endian */
    SPEECH_FRAME_VOICES = 18, /* names of voices, each ended by a newline; a frame holds whole lines */
    SPEECH_FRAME_DONE = 19,   /* struct speech_frame_done */
    SPEECH_FRAME_FAILED = 20, /* a sentence for a person */
    SPEECH_FRAME_TAKEN = 21,  /* empty: the answer to BEGIN, and to each SAMPLES frame after it */
};

enum speech_format { SPEECH_WAV, SPEECH_MP3, SPEECH_PCM, N_SPEECH_FORMATS };

struct speech_frame {
    uint32_t kind, n_bytes;
};

struct speech_frame_hello {
    uint32_t version;
    char engine[SPEECH_VERSION_SIZE]; /* its version, ended by NUL */
};

struct speech_frame_say {
    uint32_t format; /* enum speech_format; WAV is sent as PCM, its header is the service's */
    uint32_t speed_permille;
    uint32_t n_voice, n_text;
};

/* Hundredths of LUFS (EBU R128, integrated). */
enum { SPEECH_LOUDNESS_MIN = -7000, SPEECH_LOUDNESS_MAX = 600, SPEECH_LOUDNESS_UNKNOWN = -100000 };

/* A sentence whose samples arrive one by one: what can be said of it is sent before the last one is there. */
struct speech_frame_begin {
    uint32_t format; /* enum speech_format */
    uint32_t speed_permille;
    uint32_t rate;
    int32_t loudness; /* of what the voice said before; SPEECH_LOUDNESS_UNKNOWN: nothing */
};

struct speech_frame_done {
    uint32_t rate;      /* samples a second */
    uint32_t n_samples; /* of the sentence */
    int32_t loudness;   /* of the sentence before it was changed, or SPEECH_LOUDNESS_UNKNOWN: it is too short */
};

/* The table of engines: one row each, in flite.c and espeak.c. A row is constant; what runs is in speech.c. */
#pragma once

#include "base/arena.h"
#include "base/err.h"

enum { N_SPEECH_ENGINES = 2 };

/* The names that the engine's worker listed. */
struct speech_voices {
    const char *const *items; /* NULL-ended */
    size_t n;
};

struct speech_engine {
    const char *id, *name;        /* "flite_local" */
    const char *program;          /* "hearth-speech-flite" */
    const char *const *args;      /* of the program; NULL, or NULL-ended */
    const char *const *variables; /* NULL, or names of the service's environment that its worker gets; NULL-ended */
    const char *packages;         /* of Debian, for the advice */
    const char *remedy;           /* NULL, or the advice when its program runs and says why it cannot work */
    const char *note;             /* NULL, or for the list of providers */
    bool is_of_one_voice;         /* a worker crashes now and then when it changes its voice */
    /* The voice of a language; NULL when the engine does not speak it. */
    const char *(*voice_of)(const struct speech_voices *known, const char *language, struct arena *a);
    bool (*has_voice)(const struct speech_voices *known, const char *voice);
    struct speech_voices (*languages)(const struct speech_voices *known);
};

extern const struct speech_engine speech_flite, speech_espeak;
/* The worker that finishes the sound of providers; it speaks nothing itself. */
extern const struct speech_engine speech_sound;
extern const struct speech_engine *const speech_engines[N_SPEECH_ENGINES];

bool speech_is_english(const char *language);
/* The listed name that is equal without regard to case; NULL: none. */
const char *speech_voices_find(const struct speech_voices *known, struct slice name);
/* The path of a file of Hearth's speech: in this folder; "": beside this program, or in ../libexec/hearth. */
const char *speech_file_of(const char *folder, const char *name, struct arena *a);
const char *speech_engine_program(const char *folder, const struct speech_engine *engine, struct arena *a);

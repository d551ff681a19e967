/* Shared by programs.c and its rows (programs_piper.c, programs_sherpa.c): a program of this machine that speaks. A row
 * is constant; a program is made for each list of accounts, in its arena. */
#pragma once

#include "speech/account.h"

struct speech_program_row {
    const char *label; /* of its process, for logs */
    /* Of the voices in the folder; errors of speech_protocol.list. */
    int (*list)(const char *path, const char *folder, struct arena *a, struct speech_voice_list *ret, struct err *e);
    /* NULL-ended, without the text. -ENODEV SPEECH_UNAVAILABLE when the voice is not in the folder. */
    int (*arguments)(const char *folder, const struct speech_say *say, struct arena *a, const char *const **ret,
                     struct err *e);
    /* It takes the text as its last argument, so it needs hearth-speech-text.so (program_text.h). Others read one line
     * from standard input and write a WAV to standard output. */
    bool takes_text_as_argument;
};

extern const struct speech_program_row speech_program_piper, speech_program_sherpa;

int speech_voice_compare(const void *one, const void *other); /* by id, for qsort() */

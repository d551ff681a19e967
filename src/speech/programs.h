/* Voices of piper (github.com/rhasspy/piper, github.com/OHF-Voice/piper1-gpl) as a program of this machine: one process
 * for a sentence, in the sandbox without a network; text on its standard input, a WAV on its standard output. It stands
 * among the providers as `piper_local` when the program is found. Blocks a worker; any thread but the loop's.
 *
 *     n += speech_programs_list(&config, arena, accounts + n);
 */
#pragma once

#include "speech/account.h"
#include "speech/speech.h"

enum { N_SPEECH_PROGRAMS = 1 };

/* Adds the programs that are found; in the arena. Their accounts are asked as those of providers are
 * (speech/remote.h). */
size_t speech_programs_list(const struct speech_config *c, struct arena *a,
                            struct speech_account ret[N_SPEECH_PROGRAMS]);

/* Voices of programs of this machine: piper (programs_piper.c) and sherpa-onnx-offline-tts (programs_sherpa.c). One
 * process speaks one sentence, in the sandbox without a network; the text goes to its standard input, and a WAV comes
 * from its standard output. A program stands among the providers, as `piper_local` or `sherpa_local`, when it is found.
 * Blocks a worker; any thread but the loop's.
 *
 *     n += speech_programs_list(&config, arena, accounts + n);
 */
#pragma once

#include "speech/account.h"
#include "speech/speech.h"

enum { N_SPEECH_PROGRAMS = 2 };

/* Adds the programs that are found; in the arena. Their accounts are asked as those of providers are
 * (speech/remote.h). */
size_t speech_programs_list(const struct speech_config *c, struct arena *a,
                            struct speech_account ret[N_SPEECH_PROGRAMS]);

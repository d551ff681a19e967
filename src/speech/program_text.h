/* The protocol between the service and hearth-speech-text.so (program_text.c), a library that the service preloads into
 * a program that takes its text as the last argument. Any user of the machine can read the arguments of a process that
 * execve() set (/proc/PID/cmdline), so the text travels over a pipe: the library writes PROGRAM_TEXT_READY to standard
 * output, reads the text from standard input up to its end, and calls main() with the text behind the other arguments.
 *
 * The sound of the program goes to PROGRAM_TEXT_SOUND, which is the pipe of standard output; what the program prints
 * there goes to standard error. Constants only; nothing of base/ but its limits.
 */
#pragma once

#include "base/limits.h"

enum {
    PROGRAM_TEXT_MOST = LIMIT_SPEECH_PROGRAM_TEXT, /* bytes of a text */
    PROGRAM_TEXT_SOUND_FD = 63,                    /* high: a program or its libraries may have opened low ones */
    PROGRAM_TEXT_FAILED_CODE = 125,
};

#define PROGRAM_TEXT_LIBRARY "hearth-speech-text.so"
#define PROGRAM_TEXT_SOUND "/proc/self/fd/63"
#define PROGRAM_TEXT_READY "hearth-speech-text 1\n"

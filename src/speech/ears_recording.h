/* What a recording is, by its first bytes: what is none needs no worker to be refused. Pure; any thread.
 *
 *     if (ears_recording_kind(bytes) == EARS_NO_RECORDING)
 *         ...
 */
#pragma once

#include "base/slice.h"

enum ears_recording_kind {
    EARS_NO_RECORDING,
    EARS_PLAIN,     /* libsndfile reads it: WAV, MP3, Ogg, FLAC, AIFF and others */
    EARS_CONTAINER, /* the libraries of ffmpeg read it: WebM and Matroska, MP4 and M4A, AAC */
};

enum ears_recording_kind ears_recording_kind(struct slice bytes);
/* The usual ending of a file of that format; "audio" for what is none. */
const char *ears_recording_ending(struct slice bytes);

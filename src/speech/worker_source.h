/* A reader of recordings: libsndfile (worker_sndfile.c), or the libraries of ffmpeg for containers that libsndfile does
 * not know (worker_libav.c), which are a module of their own so that the worker runs without them. For
 * hearth-speech-ears only; one thread.
 *
 *     source = worker_sndfile.make(bytes, n);
 *     why = source ? worker_sndfile.open(source, &info) : "is too large.";
 *     while ((n = worker_sndfile.read(source, frames, n_frames)) > 0)
 *         ...
 *     worker_sndfile.close(source);
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { SOURCE_RATE_MIN = 4000, SOURCE_RATE_MAX = 384000, SOURCE_CHANNELS_MAX = 32 };

struct worker_source; /* the reader's own */

struct worker_source_info {
    uint32_t rate, n_channels; /* within the limits above */
};

struct worker_reader {
    /* NULL: there is no memory. bytes: borrowed until close. */
    struct worker_source *(*make)(const char *bytes, size_t n);
    /* Once. Returns NULL, or why the recording cannot be read. */
    const char *(*open)(struct worker_source *source, struct worker_source_info *ret_info);
    /* Samples of all channels, frame by frame; the number of frames, 0 at the end. A recording that breaks off ends. */
    size_t (*read)(struct worker_source *source, float *frames, size_t n);
    void (*close)(struct worker_source *source); /* NULL is fine */
};

extern const struct worker_reader worker_sndfile;

/* The module of containers exports a struct worker_reader under this name. */
#define WORKER_CONTAINERS "hearth_containers"
#define WORKER_CONTAINERS_FILE "hearth-speech-containers.so"

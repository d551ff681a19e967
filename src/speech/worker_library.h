/* Loads a library that a person has put into the data folder, and looks its functions up. For the workers of Vosk and
 * sherpa-onnx; one thread. The library stays as long as the worker.
 *
 *     static const struct worker_function functions[] = { { "vosk_model_new", &vosk.model_new }, ... };
 *     why = worker_library_load(path, functions, n);
 */
#pragma once

#include <stddef.h>

struct worker_function {
    const char *name;
    void *at; /* the pointer to the function that is set */
};

/* Returns NULL, or why the library cannot be used; valid until the next call. */
const char *worker_library_load(const char *path, const struct worker_function *functions, size_t n);

/* Loads the module that reads containers (worker_libav.c), which lies beside the worker's program. To be called before
 * the worker gives up opening files; one thread.
 *
 *     why = worker_containers_load(&reader);
 */
#pragma once

#include "speech/worker_source.h"

/* Returns NULL, or a sentence for a person, valid until the next call. */
const char *worker_containers_load(const struct worker_reader **ret);

#include "speech/worker_library.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static char sentence[400];

const char *worker_library_load(const char *path, const struct worker_function *functions, size_t n)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);

    if (!library) {
        snprintf(sentence, sizeof(sentence), "The library cannot be loaded: %s.", dlerror());
        return sentence;
    }
    for (size_t i = 0; i < n; i++) {
        void *found = dlsym(library, functions[i].name);

        if (!found) {
            snprintf(sentence, sizeof(sentence), "The library %.200s has no function %s.", path, functions[i].name);
            return sentence;
        }
        memcpy(functions[i].at, &found, sizeof(found));
    }
    return NULL;
}

#include "speech/worker_containers.h"

#include "speech/ears_frames.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static char path[PATH_MAX + sizeof(WORKER_CONTAINERS_FILE)], sentence[300];

/* Beside this program. */
static const char *module_path(void)
{
    ssize_t n = readlink("/proc/self/exe", path, PATH_MAX - 1);
    char *slash;

    path[n > 0 ? n : 0] = '\0';
    slash = strrchr(path, '/');
    if (!slash)
        return NULL;
    memcpy(slash + 1, WORKER_CONTAINERS_FILE, sizeof(WORKER_CONTAINERS_FILE));
    return path;
}

const char *worker_containers_load(const struct worker_reader **ret)
{
    const char *file = module_path();
    void *module = file ? dlopen(file, RTLD_NOW | RTLD_LOCAL) : NULL; /* stays as long as the worker */

    *ret = module ? dlsym(module, WORKER_CONTAINERS) : NULL;
    if (*ret)
        return NULL;
    snprintf(sentence, sizeof(sentence), EARS_CONTAINERS_MISSING ": %s.",
             file ? dlerror() : "The worker does not know where it is");
    return sentence;
}

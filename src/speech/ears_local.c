/* Vosk and sherpa-onnx, where a person has put their libraries and folders of models into the data folder
 * (docs/speech.md). Whoever could replace a library could run programs as this user, so a library that others may write
 * is not loaded. */
#include "speech/ears_worker.h"

#include "base/limits.h"

#include <ctype.h>
#include <dirent.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

struct local_library { /* engine->arg */
    const char *folder, *file;
    bool (*is_model)(const char *folder, const char *name, struct arena *a);
    bool names_language; /* the name of a model has its language */
};

static const struct local_library *local_of(const struct ears_engine *engine)
{
    return engine->arg;
}

static const char *folder_of(const struct ears_engine *engine, const struct ears_context *c, struct arena *a)
{
    return arena_printf(a, "%s/speech/%s", c->data_dir, local_of(engine)->folder);
}

static const char *library_of(const struct ears_engine *engine, const struct ears_context *c, struct arena *a)
{
    return arena_printf(a, "%s/%s", folder_of(engine, c, a), local_of(engine)->file);
}

/* ---- models ---- */

static bool is_vosk_model(const char *folder, const char *name, struct arena *a)
{
    return access(arena_printf(a, "%s/%s/am/final.mdl", folder, name), R_OK) == 0 ||
           access(arena_printf(a, "%s/%s/final.mdl", folder, name), R_OK) == 0;
}

/* A file of tokens belongs to every model of sherpa-onnx. */
static bool is_sherpa_model(const char *folder, const char *name, struct arena *a)
{
    DIR *dir = opendir(arena_printf(a, "%s/%s", folder, name));
    bool is_found = false;

    for (struct dirent *at = dir ? readdir(dir) : NULL; at && !is_found; at = readdir(dir))
        is_found = fnmatch("*tokens.txt", at->d_name, 0) == 0;
    if (dir)
        closedir(dir);
    return is_found;
}

static bool is_letters(const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!islower((unsigned char)text[i]))
            return false;
    return n >= 2 && n <= 3;
}

/* vosk-model-small-en-us-0.15 hears en-us; "": any, where the name does not say. */
static const char *language_of(const char *name, struct arena *a)
{
    for (const char *at = name; *at; at += strcspn(at, "-"), at += *at == '-') {
        size_t n = strcspn(at, "-"), n_next = at[n] ? strcspn(at + n + 1, "-") : 0;

        if (is_letters(at, n))
            return arena_printf(a, "%.*s", (int)(n + (is_letters(at + n + 1, n_next) ? n_next + 1 : 0)), at);
    }
    return "";
}

static int by_name(const void *one, const void *other)
{
    return strcmp(((const struct ears_model *)one)->id, ((const struct ears_model *)other)->id);
}

static size_t models(const struct ears_engine *engine, const struct ears_context *c, struct arena *a,
                     const struct ears_model **ret)
{
    struct ears_model *found = arena_array(a, LIMIT_SPEECH_MODELS, sizeof(*found));
    const struct local_library *local = local_of(engine);
    const char *folder = folder_of(engine, c, a);
    DIR *dir = opendir(folder);
    size_t n = 0;

    for (struct dirent *at = dir ? readdir(dir) : NULL; at && n < LIMIT_SPEECH_MODELS; at = readdir(dir)) {
        const char *name = arena_strdup(a, at->d_name);

        if (name[0] != '.' && strlen(name) <= LIMIT_NAME_CHARS && local->is_model(folder, name, a))
            found[n++] = (struct ears_model){ name, name, local->names_language ? language_of(name, a) : "" };
    }
    if (dir)
        closedir(dir);
    qsort(found, n, sizeof(*found), by_name);
    *ret = found;
    return n;
}

/* ---- the worker ---- */

static const char *const *arguments(const struct ears_engine *engine, const struct ears_context *c, const char *model,
                                    struct arena *a)
{
    const char **args = arena_array(a, 3, sizeof(*args));

    args[0] = library_of(engine, c, a);
    args[1] = arena_printf(a, "%s/%s", folder_of(engine, c, a), model);
    return args;
}

static int check_library(const struct ears_engine *engine, const struct ears_context *c, struct arena *a, struct err *e)
{
    const char *path = library_of(engine, c, a);
    struct stat of;

    if (lstat(path, &of) != 0 || !S_ISREG(of.st_mode))
        return err_set(e, -ENODEV, "SPEECH_UNAVAILABLE",
                       "%s is not installed: put %s and the folder of a model into %s.", engine->id,
                       local_of(engine)->file, folder_of(engine, c, a));
    if ((of.st_uid != 0 && of.st_uid != geteuid()) || (of.st_mode & (S_IWGRP | S_IWOTH)))
        return err_set(e, -ENODEV, "SPEECH_UNAVAILABLE",
                       "%s is not loaded: it must belong to the user of the service, or to root, and nobody else may "
                       "write it.",
                       path);
    return 0;
}

static int check_installed(const struct ears_engine *engine, const struct ears_context *c, struct arena *a,
                           const struct ears_model **ret, struct err *e)
{
    int r = check_library(engine, c, a, e);

    if (r == 0 && models(engine, c, a, ret) == 0)
        r = err_set(e, -ENODEV, "SPEECH_UNAVAILABLE", "%s has no model: put the folder of one into %s.", engine->id,
                    folder_of(engine, c, a));
    return r;
}

static int check(const struct ears_engine *engine, const struct ears_context *c, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    const struct ears_model *installed = NULL;
    int r = check_installed(engine, c, a, &installed, e);

    return r < 0 || !installed ? r : ears_worker_check_with(engine, c, arguments(engine, c, installed[0].id, a), e);
}

static int begin(const struct ears_engine *engine, const struct ears_context *c, const struct ears_job *job,
                 const struct net_wait *wait, struct ears_run **ret, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    const struct ears_model *installed = NULL;
    int r = check_installed(engine, c, a, &installed, e);

    return r < 0 ? r : ears_worker_begin_with(engine, c, arguments(engine, c, job->model, a), job, wait, ret, e);
}

#define EARS_LOCAL                                                                                                     \
    .needs = "libsndfile1 libsamplerate0",                                                                             \
    .remedy = "Put a library and a model that fit each other into the data folder.", .models = models, .check = check, \
    .begin = begin, .next = ears_worker_next, .duration = ears_worker_duration, .end = ears_worker_end

static const struct local_library vosk = { "vosk", "libvosk.so", is_vosk_model, true };
static const struct local_library sherpa = { "sherpa-onnx", "libsherpa-onnx-c-api.so", is_sherpa_model, false };

const struct ears_engine ears_vosk = {
    .id = "vosk_local",
    .name = "Vosk (this machine)",
    .description = "the languages of the models in the data folder, without a network",
    .program = "hearth-speech-vosk",
    .takes_phrases = true,
    .arg = &vosk,
    EARS_LOCAL,
};

const struct ears_engine ears_sherpa = {
    .id = "sherpa_local",
    .name = "sherpa-onnx (this machine)",
    .description = "the languages of the models in the data folder, without a network",
    .program = "hearth-speech-sherpa",
    .arg = &sherpa,
    EARS_LOCAL,
};

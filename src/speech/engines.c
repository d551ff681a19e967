#include "speech/engines.h"

#include "os/paths.h"

#include <strings.h>
#include <unistd.h>

const struct speech_engine *const speech_engines[N_SPEECH_ENGINES] = { &speech_flite, &speech_espeak };

const struct speech_engine speech_sound = {
    .id = "sound",
    .name = "Sound",
    .program = "hearth-speech-sound",
    .packages = "libsonic0 libsndfile1 libmp3lame0 libebur128-1",
};

bool speech_is_english(const char *language)
{
    return strncasecmp(language, "en", 2) == 0 && (!language[2] || language[2] == '-' || language[2] == '_');
}

const char *speech_voices_find(const struct speech_voices *known, struct slice name)
{
    for (size_t i = 0; i < known->n; i++)
        if (strlen(known->items[i]) == name.n && strncasecmp(known->items[i], name.p, name.n) == 0)
            return known->items[i];
    return NULL;
}

const char *speech_file_of(const char *folder, const char *name, struct arena *a)
{
    const char *path;

    if (*folder)
        return arena_printf(a, "%s/%s", folder, name);
    folder = paths_program_dir(a);
    path = arena_printf(a, "%s/%s", folder, name);
    return access(path, F_OK) == 0 ? path : arena_printf(a, "%s/../libexec/hearth/%s", folder, name);
}

const char *speech_engine_program(const char *folder, const struct speech_engine *engine, struct arena *a)
{
    return speech_file_of(folder, engine->program, a);
}

#include "speech/engines.h"

#include <strings.h>

const struct speech_engine *const speech_engines[N_SPEECH_ENGINES] = { &speech_flite, &speech_espeak };

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

#include "base/arena.h"
#include "base/log.h"
#include "settings/settings.h"

void settings_apply_log(struct settings *s)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    enum log_level level;

    if (log_level_parse(settings_string(s, a, SETTING_LOG_LEVEL), &level) == 0)
        log_setup(level, strcmp(settings_string(s, a, SETTING_LOG_FORMAT), "json") == 0);
}

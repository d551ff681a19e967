#include "settings/settings.h"

static const char *const type_names[] = {
    [SETTING_BOOL] = "boolean",  [SETTING_INT] = "integer", [SETTING_SECONDS] = "seconds",
    [SETTING_STRING] = "string", [SETTING_ENUM] = "enum",   [SETTING_LIST] = "list",
};

void settings_write_one(struct settings *s, enum setting_id id, struct json_writer *w, const char *name)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    const struct setting_rule *rule = &settings_rules[id];

    json_begin_object_as(w, name);
    json_add_string(w, "key", rule->key);
    json_add_string(w, "value", settings_show(s, a, id));
    json_add_string(w, "origin", settings_origin_name(settings_origin(s, id)));
    json_add_string(w, "default", rule->def);
    json_add_string(w, "type", type_names[rule->type]);
    json_add_bool(w, "needs_restart", rule->needs_restart);
    json_add_string(w, "help", rule->help);
    json_end(w);
}

void settings_write_json(struct settings *s, struct json_writer *w, const char *name)
{
    json_begin_array_as(w, name);
    for (size_t i = 0; i < N_SETTINGS; i++)
        settings_write_one(s, (enum setting_id)i, w, NULL);
    json_end(w);
}

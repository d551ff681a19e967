/* The configuration file and the rule of each value. An accepted value must satisfy its rule, and every refusal names
 * the file and a line. */
#include "settings/file.h"
#include "settings/rules.h"

#include <assert.h>

static int check_pair(void *arg, const char *key, const char *value, int line, struct err *e)
{
    char why[RULES_WHY_SIZE] = "";
    double number;
    enum setting_id id;

    assert(*key && line > 0);
    for (size_t i = 0; i < N_SETTINGS; i++) {
        const struct setting_rule *rule = &settings_rules[i];
        bool has_bounds = rule->type == SETTING_INT || rule->type == SETTING_SECONDS;

        if (rules_check(rule, value, &number, why) < 0)
            assert(*why);
        else
            assert(!has_bounds || (number >= rule->min && number <= rule->max));
    }
    return settings_find(key, &id) && settings_rules[id].needs_restart ? err_set(e, -EDOM, "NO", "fuzz:%d: no", line)
                                                                       : 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct err e = { 0 };

    if (settings_file_parse(a, (struct slice){ (const char *)data, size }, "fuzz", check_pair, NULL, &e) < 0)
        assert(strncmp(e.text, "fuzz:", 5) == 0);
    return 0;
}

/* The inside of src/settings: the rule table applied to one value. Pure functions; any thread.
 *
 *     r = rules_check(&settings_rules[id], "0.5", &number, why);       why: "must be a number of seconds from 1 to 60"
 */
#pragma once

#include "settings/settings.h"

enum { RULES_WHY_SIZE = 240 };

/* 0 and the number behind BOOL, INT and SECONDS; -EINVAL and the rule that is broken. */
int rules_check(const struct setting_rule *rule, const char *text, double *ret_number, char why[RULES_WHY_SIZE]) MUST_CHECK;
/* The first element of a LIST, trimmed; *rest moves behind it. False at the end. Empty elements are passed over. */
bool rules_next_element(const char **rest, struct slice *ret);

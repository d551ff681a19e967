/* Internals of src/settings: applies the rule table to one value. Pure functions; any thread.
 *
 *     r = rules_check(&settings_rules[id], "0.5", &number, why);       why: "must be a number of seconds from 1 to 60"
 */
#pragma once

#include "settings/settings.h"

enum { RULES_WHY_SIZE = 240 };

/* 0, with the numeric value of BOOL, INT and SECONDS; -EINVAL, with the violated rule. */
int rules_check(const struct setting_rule *rule, const char *text, double *ret_number,
                char why[RULES_WHY_SIZE]) MUST_CHECK;
/* Returns the next element of a LIST, trimmed; *rest moves past it. False at the end. Empty elements are skipped. */
bool rules_next_element(const char **rest, struct slice *ret);

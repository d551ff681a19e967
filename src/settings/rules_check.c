#include "base/limits.h"
#include "base/utf8.h"
#include "settings/rules.h"
#include <math.h>

static int broken(char why[RULES_WHY_SIZE], const char *rule)
{
    snprintf(why, RULES_WHY_SIZE, "%s", rule);
    return -EINVAL;
}

static bool is_plain_text(const char *text)
{
    for (const unsigned char *c = (const unsigned char *)text; *c; c++)
        if (*c < 0x20 || *c == 0x7f)
            return false;
    return utf8_is_valid(slice_of(text));
}

static int check_bool(const char *text, double *ret, char why[RULES_WHY_SIZE])
{
    static const char *const words[] = { "false", "true", "0", "1", "no", "yes", "off", "on" };

    for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
        if (strcmp(text, words[i]) == 0) {
            *ret = (double)(i % 2);
            return 0;
        }
    }
    return broken(why, "must be true or false");
}

/* Decimal digits only: strtod() would also accept hexadecimal, "inf" and "nan". */
static int check_number(const struct setting_rule *rule, const char *text, double *ret, char why[RULES_WHY_SIZE])
{
    bool is_int = rule->type == SETTING_INT;
    const char *allowed = is_int ? "-0123456789" : "0123456789.";
    char min[NUMBER_TEXT_SIZE], max[NUMBER_TEXT_SIZE], *end = NULL;
    double number = strtod(text, &end);

    if (*text == '\0' || text[strspn(text, allowed)] != '\0' || *end != '\0' || number < rule->min ||
        number > rule->max) {
        snprintf(why, RULES_WHY_SIZE, "must be a %s from %s to %s", is_int ? "whole number" : "number of seconds",
                 number_text(min, rule->min), number_text(max, rule->max));
        return -EINVAL;
    }
    *ret = number;
    return 0;
}

static int check_enum(const struct setting_rule *rule, const char *text, char why[RULES_WHY_SIZE])
{
    size_t n = (size_t)snprintf(why, RULES_WHY_SIZE, "must be one of");

    for (const char *const *word = rule->one_of; *word; word++) {
        if (strcmp(*word, text) == 0)
            return 0;
        n += (size_t)snprintf(why + n, RULES_WHY_SIZE - n, "%s %s", word == rule->one_of ? "" : ",", *word);
    }
    return -EINVAL;
}

static int check_length(const struct setting_rule *rule, const char *text, char why[RULES_WHY_SIZE])
{
    size_t n = strlen(text);

    if ((double)n >= rule->min && (double)n <= rule->max)
        return 0;
    snprintf(why, RULES_WHY_SIZE, "must have %g to %g bytes", rule->min, rule->max);
    return -EINVAL;
}

static int check_string(const struct setting_rule *rule, const char *text, char why[RULES_WHY_SIZE])
{
    const char *rule_text;
    int r = check_length(rule, text, why);

    if (r < 0)
        return r;
    rule_text = rule->check ? rule->check(text) : NULL;
    return rule_text ? broken(why, rule_text) : 0;
}

static int check_list(const struct setting_rule *rule, const char *text, char why[RULES_WHY_SIZE])
{
    char element[LIMIT_SETTING_BYTES + 1];
    const char *rest = text, *rule_text = NULL;
    struct slice next;
    size_t n = 0;
    int r = check_length(rule, text, why);

    if (r < 0)
        return r;
    for (; !rule_text && rules_next_element(&rest, &next); n++) {
        snprintf(element, sizeof(element), "%.*s", (int)next.n, next.p);
        rule_text = rule->check ? rule->check(element) : NULL;
    }
    if (rule_text)
        return broken(why, rule_text);
    return n == 0 && rule->min > 0 ? broken(why, "must have at least one element") : 0;
}

bool rules_next_element(const char **rest, struct slice *ret)
{
    const char *start = *rest + strspn(*rest, ", \t");
    size_t n = strcspn(start, ",");

    *rest = start + n;
    while (n > 0 && (start[n - 1] == ' ' || start[n - 1] == '\t'))
        n--;
    *ret = (struct slice){ start, n };
    return n > 0;
}

int rules_check(const struct setting_rule *rule, const char *text, double *ret_number, char why[RULES_WHY_SIZE])
{
    *ret_number = 0;
    if (!is_plain_text(text))
        return broken(why, "must be UTF-8 text without control characters");
    switch (rule->type) {
    case SETTING_BOOL:
        return check_bool(text, ret_number, why);
    case SETTING_INT:
    case SETTING_SECONDS:
        return check_number(rule, text, ret_number, why);
    case SETTING_ENUM:
        return check_enum(rule, text, why);
    case SETTING_LIST:
        return check_list(rule, text, why);
    case SETTING_STRING:
        return check_string(rule, text, why);
    }
    return broken(why, "has an unknown type");
}

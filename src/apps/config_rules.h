/* The rules of a configuration that its field table cannot say, one function a subject. Each adds what is violated to the error;
 * what a broken field rule left empty is not complained of twice. Only config.c calls them.
 */
#pragma once

#include "apps/config.h"

struct config_rules {
    const struct app_config *config;
    struct arena *arena;
    const char *activities;             /* the table every app has */
    const char *deletions;              /* the service's own beside it */
    struct err *e;                      /* never NULL */
};

void rules_of_name(const struct config_rules *x);
void rules_of_launch(const struct config_rules *x);
void rules_of_tables(const struct config_rules *x);
void rules_of_table_actions(const struct config_rules *x);
void rules_of_handlers(const struct config_rules *x);
void rules_of_filter(const struct config_rules *x);

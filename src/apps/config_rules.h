/* The rules of a configuration that its field table cannot express, one function per subject. Each function adds
 * violations to the error; members that a violated field rule left empty are not reported again. Only config.c calls
 * these functions.
 */
#pragma once

#include "apps/config.h"

struct config_rules {
    const struct app_config *config;
    struct arena *arena;
    const char *activities; /* the table every app has */
    const char *deletions;  /* the service's own table beside it */
    const char *backend;    /* path of the backend block in the sender's spelling */
    struct err *e;          /* never NULL */
};

void rules_of_name(const struct config_rules *x);
void rules_of_launch(const struct config_rules *x);
void rules_of_home(const struct config_rules *x);
void rules_of_tables(const struct config_rules *x);
void rules_of_schema(const struct config_rules *x);
void rules_of_table_actions(const struct config_rules *x);
void rules_of_handlers(const struct config_rules *x);
void rules_of_filter(const struct config_rules *x);

/* The request target (RFC 9112 section 3.2): origin-form or absolute-form, split and decoded once. */
#pragma once

#include "http/refusal.h"

/* Fills path and query of ret. target is changed in place and stays borrowed; ret_authority is NULL for origin-form. */
enum http_refusal http_target_parse(struct arena *a, char *target, struct http_request *ret,
                                    const char **ret_authority);

/* Lists in header values (RFC 9110 section 5.6.1): items between commas or semicolons, blanks around them. Pure; any
 * thread. */
#pragma once

#include "base/slice.h"

/* Takes the first item from rest, without the blanks around it. The list ends when rest is empty. */
struct slice http_list_next(struct slice *rest, char separator);
/* Compares without regard to case. */
bool http_list_item_is(struct slice item, const char *text);

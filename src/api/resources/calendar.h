/* A calendar event in the form of all routes (specification, "Calendar event"; decision D5). */
#pragma once

#include "api/route.h"
#include "store/tables/calendar.h"

extern const struct field calendar_event_shape[];

void calendar_write_event(struct json_writer *w, const char *name, const struct calendar_row *row);
/* Converts a date to the stored form: UTC text of a fixed form that sorts by time. NULL stays NULL. */
int calendar_utc_text(struct request *req, const char *field, const char *given, const char **ret,
                      struct err *e) MUST_CHECK;

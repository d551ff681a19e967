/* Stop sequences for models that take none (OpenAI's Responses, reasoning models): the answer ends before the first of
 * them.
 *
 * A sink in front of another, in the arena. Text that may be the beginning of a stop is held back until more text
 * decides. One thread.
 *
 *     sink = llm_stops_sink(a, &request->stop, is_streamed, &sink);      reader = protocol->reader(a, &sink);
 */
#pragma once

#include "llm/llm.h"

bool llm_takes_stops(const struct llm_account *acc, const char *model);
/* ends_at_once: on_end comes with the stop and without usage; else on_end comes when the upstream has ended. `stops` is
 * borrowed. */
struct llm_sink llm_stops_sink(struct arena *a, const struct field_strings *stops, bool ends_at_once,
                               const struct llm_sink *to);

/* Answers of Anthropic messages. */
#include "fuzz_llm.h"

FUZZ_PROTOCOL(llm_anthropic_messages)

/* Answers of OpenAI Responses. */
#include "fuzz_llm.h"

FUZZ_PROTOCOL(llm_openai_responses)

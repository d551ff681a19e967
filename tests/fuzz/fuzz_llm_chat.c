/* Answers of OpenAI chat completions. */
#include "fuzz_llm.h"

FUZZ_PROTOCOL(llm_openai_chat)

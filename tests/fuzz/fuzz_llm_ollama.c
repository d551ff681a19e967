/* Answers of Ollama. */
#include "fuzz_llm.h"

FUZZ_PROTOCOL(llm_ollama)

/* What programs_sherpa.c reads of a model's file; for its tests. Any thread. */
#pragma once

#include "base/slice.h"

/* How many speakers the metadata at the end of a file of ONNX name: 1 to LIMIT_SPEECH_VOICES; 1 where nothing does. */
size_t speech_sherpa_speakers(struct slice end);

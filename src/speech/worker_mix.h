/* Samples of files, as floating-point numbers. For the workers that read foreign formats. */
#pragma once

#include <stdint.h>

/* From -1 to 1: a file may hold any number. */
float worker_sample(float sample);
/* The mean of all channels at one moment. */
float worker_mix(const float *frame, uint32_t n_channels);

/* Bare passes over rows in memory, without file and engine, for bench_vector. One thread. */
#pragma once

#include "base/json_write.h"
#include "vector/engine/kernel.h"
#include "vector/engine/sketch_kernel.h"
#include "vector_data.h"

struct vector_pass {
    const struct vector_data *data;
    const struct kernel *kernel;
    const struct sketch_kernel *sketch_kernel;
    double deviations; /* 0: no sketches */
};

/* Adds the times of passes by codes and by sketches for one query and for sixteen, the speed of reading, and the time
 * to make a row's sketch. */
void vector_pass_measure(const struct vector_pass *p, struct json_writer *w);

#include "base/checksum.h"
#include <xxhash.h>

uint64_t checksum_of(struct slice data)
{
    return XXH3_64bits(data.p, data.n);
}

/* XXH3 (libxxhash): shows damage, proves nothing against a forger. Any thread; no state.
 *
 *     if (checksum_of(bytes) != header.checksum)
 *         return -EBADMSG;
 */
#pragma once

#include "base/slice.h"
#include <stdint.h>

uint64_t checksum_of(struct slice data);

/* hearth-child (child_plan.h) as an open file in memory. It is embedded in the hearth program, so no second file must
 * be installed and an update cannot mix two versions. Created and sealed at the first use, once for each process. Any
 * thread.
 */
#pragma once

#include "base/err.h"

/* Close-on-exec, borrowed. -ENOTSUP when the system forbids executing files in memory (vm.memfd_noexec=2). */
int child_image_fd(int *ret, struct err *e) MUST_CHECK;

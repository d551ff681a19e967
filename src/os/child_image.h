/* hearth-child (child_plan.h) as an open file: it is part of the hearth program, so nothing has to be found beside it and an update of
 * the program cannot mix two versions. Made at the first use, sealed, one for the life of the process. Any thread.
 */
#pragma once

#include "base/err.h"

/* Close-on-exec, borrowed. -ENOTSUP when the system forbids programs in memory (vm.memfd_noexec=2). */
int child_image_fd(int *ret, struct err *e) MUST_CHECK;

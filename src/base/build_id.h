/* The id that the linker gave this program file (NT_GNU_BUILD_ID): another one for every different program. Read from
 * memory, so it is that of the running program also after the file was replaced. Any thread. */
#pragma once

#include "base/util.h"

enum { BUILD_ID_SIZE = 2 * 32 + 1 };

/* Hex; "" when the program was linked without one. */
void build_id(char ret[BUILD_ID_SIZE]);

#include "backend/monitor.h"

const char *backend_link_state_name(enum backend_link_state state)
{
    static const char *const names[] = { "connecting", "joining", "live", "failed" };

    return names[state];
}

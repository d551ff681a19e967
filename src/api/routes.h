/* Every route table of the program, listed by hand (api/routes.c): one line a resource file. */
#pragma once

#include "api/route.h"

extern const struct route *const api_route_tables[];    /* ended by NULL: dispatch_config.tables */

extern const struct route system_routes[];              /* api/system.c: healthz, readyz, metrics, openapi */
extern const struct route connectivity_routes[];        /* api/connectivity.c: ping, data-dir */
extern const struct route key_routes[];                 /* api/keys.c */
extern const struct route permission_routes[];          /* api/permissions.c */
extern const struct route session_routes[];             /* api/session.c */
extern const struct route audit_routes[];               /* api/audit.c */
extern const struct route backend_token_routes[];       /* api/backend_token.c */

#include "api/routes.h"

const struct route *const api_route_tables[] = {
    system_routes, connectivity_routes, key_routes, permission_routes, session_routes, audit_routes, backend_token_routes,
    NULL,
};

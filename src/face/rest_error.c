#include "face/rest_error.h"

#include <string.h>

static const struct rest_error errors[] = {
    { "BAD_REST_QUERY", "PGRST100", 400, NULL },
    { "VALIDATION_ERROR", "PGRST100", 400, NULL },
    { "METHOD_NOT_ALLOWED", "PGRST117", 405, NULL },
    { "BAD_REST_BODY", "PGRST102", 400, NULL },
    { "INVALID_JSON", "PGRST102", 400, NULL },
    { "BAD_RANGE", "PGRST103", 416, NULL },
    { "SCHEMA_NOT_SERVED", "PGRST106", 406, NULL },
    { "NOT_ACCEPTABLE", "PGRST107", 406, NULL },
    { "NOT_SINGULAR", "PGRST116", 406, NULL },
    { "BAD_PREFERENCE", "PGRST122", 400, NULL },
    { "TOO_MANY_ROWS", "PGRST124", 400, NULL },
    { "FUNCTION_NOT_FOUND", "PGRST202", 404, NULL },
    { "PAYLOAD_COLUMN", "PGRST204", 400, NULL },
    { "UNKNOWN_TABLE", "PGRST205", 404, NULL },
    { "MALFORMED_JWT", "PGRST301", 401, NULL },
    { "JWT_SIGNATURE", "PGRST301", 401, NULL },
    { "JWT_EXPIRED", "PGRST303", 401, "JWT expired" },
    { "JWT_NOT_YET", "PGRST303", 401, "JWT not yet valid" },
    { "WHERE_REQUIRED", "21000", 400, NULL },
    { "BAD_ARGUMENT", "22023", 400, NULL },
    { "BAD_VALUE", "22P02", 400, NULL },
    { "NOT_NULL", "23502", 400, NULL },
    { "NOT_UNIQUE", "23505", 409, NULL },
    { "CHECK_FAILED", "23514", 400, NULL },
    { "READ_ONLY_CALL", "25006", 405, NULL },
    { "ROW_REFUSED", "42501", 403, NULL },
    { "STORE_DENIED", "42501", 403, NULL },
    { "SIGN_IN_REQUIRED", "42501", 401, NULL },
    { "UNKNOWN_COLUMN", "42703", 400, NULL },
    { "BAD_OPERATOR", "42883", 404, NULL },
    { "BAD_CONFLICT", "42P10", 400, NULL },
    { "QUERY_TIMEOUT", "57014", 500, NULL },
};

const struct rest_error *rest_error_of(const char *code)
{
    for (size_t i = 0; i < ARRAY_SIZE(errors); i++)
        if (strcmp(errors[i].code, code) == 0)
            return &errors[i];
    return NULL;
}

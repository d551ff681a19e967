/* Errors in the forms of the hosted service's parts, as its official clients read them. */
#pragma once

#include "api/route.h"

extern const struct error_form face_auth_error, face_rest_error;
/* The form of a request without a route, by its path; NULL: it is not below a part of the face. */
const struct error_form *face_error_form(const struct http_request *req);
/* Parts of the hosted service that the face lacks: -EOPNOTSUPP FACE_PART_MISSING, whose text names the part; 0 for
 * other paths. */
int face_refuse_path(const char *path, struct err *e) MUST_CHECK;

/* The secret that the service and one app share, so that the app can tell the service's requests from others. Derived
 * from <data>/master.key and the app's id: the same at every start. Any thread. */
#pragma once

#include "identity/identity.h"

enum { HOOK_SECRET_SIZE = 52 }; /* "whsec_", 32 bytes as base64, NUL: the form of the Standard Webhooks 1.0.0 */

void identity_hook_secret(const struct identity *id, const char *app_id, char ret[HOOK_SECRET_SIZE]);

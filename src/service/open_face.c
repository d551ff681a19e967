/* The face: what apps of the hosted service use. */
#include "service/private.h"

int service_open_face(struct service *s, struct err *e)
{
    const struct realtime_config c = { .backend = s->backend, .store = s->store, .identity = s->identity };

    return settings_bool(s->settings, SETTING_FACE_ENABLED) ? realtime_start(&c, &s->realtime, e) : 0;
}

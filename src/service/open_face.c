/* The face: what apps of the hosted service use. */
#include "service/private.h"

#include "backend/custom/custom.h"

int service_open_face(struct service *s, struct err *e)
{
    const struct realtime_config c = { .backend = custom_inner(s->backend),
                                       .store = s->store,
                                       .identity = s->identity,
                                       .presence_ms =
                                           TASK_MISSED_SIGNS * settings_ms(s->settings, SETTING_TASKS_PRESENCE_S) };

    if (!settings_bool(s->settings, SETTING_FACE_ENABLED))
        return 0;
    s->face_auth = face_auth_new(s->store);
    return realtime_start(&c, &s->realtime, e);
}

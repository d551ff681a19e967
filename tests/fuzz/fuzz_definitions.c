/* Files that the command line sends: a Local App's configuration, with all its rules and its launch, and an agent's
 * definition. */
#include "../unit/apps/app_config.h"
#include "agents/agents.h"
#include "apps/launch.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static void try_app(struct arena *a, struct slice text)
{
    static const struct launch_place place = {
        .abbr = "svc", .base_url = "http://127.0.0.1:3001", .data_dir = "/d", .port = 1
    };
    struct launch_plan plan;
    struct app_config c;
    struct err e = { 0 };

    if (parse_app_config(a, text, &c, &e) < 0)
        return;
    c.app_id = "6fa459ea-ee8a-4ca4-894e-db77e160355e";
    if (launch_plan_make(a, &c, &place, &plan, NULL) < 0)
        return;
}

static void try_agent(struct arena *a, struct slice text)
{
    struct agent_definition d = { 0 };
    struct json_value object;
    struct err e = { 0 };

    if (json_parse(a, text, &object, NULL) == 0 && fields_read(agent_definition_fields, object, &d, a, "", &e) < 0)
        return;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    const struct slice text = { (const char *)bytes, n };

    try_app(a, text);
    try_agent(a, text);
    return 0;
}

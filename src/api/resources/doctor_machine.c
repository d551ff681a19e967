/* Checks of disk, audit log, settings, network, sandbox and growing data. */
#include "api/resources/doctor.h"

#include "api/api.h"
#include "backend/backend_providers.h"
#include "identity/audit.h"
#include "os/files.h"
#include "os/hardening.h"
#include "os/sandbox.h"
#include "settings/settings.h"
#include "speech/ears.h"
#include "speech/microphone.h"
#include "speech/speech.h"
#include "store/migrate.h"
#include "store/retention.h"

#include <sys/stat.h>

enum { DOCTOR_FREE_MIB = 256 };

/* Protection that the kernel does not offer is not reported as a fault. */
void doctor_check_hardening(struct checkup *c)
{
    struct hardening now = hardening_now();
    bool is_locked = identity_keys_are_locked(c->api->identity);
    const char *text = arena_printf(
        c->arena, "%s, %s, %s, %s",
        now.is_closed ? "its memory is closed to programs of the same user"
                      : "its memory is open to programs of the same user",
        now.has_no_core ? "no core files" : "core files are possible",
        is_locked ? "its keys stay in memory" : "its keys may be swapped out",
        now.refuses_new_code ? "no new program code" : "this kernel cannot refuse new program code (Linux 6.6 can)");

    doctor_add(c, "hardening", now.is_closed && now.has_no_core && is_locked, text,
               "raise the limit of locked memory (`ulimit -l`, LimitMEMLOCK= of systemd) to 64 KiB or more");
}

void doctor_check_disk(struct checkup *c)
{
    uint64_t bytes = 0;
    struct err why = { 0 };
    int r = disk_free(c->api->data_dir, &bytes, &why);

    if (r == 0)
        r = disk_check(c->api->data_dir, 0, &why);
    doctor_add(c, "disk", r == 0 && bytes >= MIB(DOCTOR_FREE_MIB),
               r < 0 ? why.text : arena_printf(c->arena, "%llu MiB are free", (unsigned long long)(bytes >> 20)),
               r < 0 ? "make the disk writable, or make room on it"
                     : arena_printf(c->arena, "make room: less than %d MiB are left for databases and logs",
                                    DOCTOR_FREE_MIB));
}

static const char *term_of(struct checkup *c, enum setting_id setting)
{
    int64_t days = settings_int(c->api->settings, setting);

    return days == 0 ? "kept forever" : arena_printf(c->arena, "kept %lld days", (long long)days);
}

void doctor_check_audit(struct checkup *c)
{
    struct audit_verdict verdict = { 0 };
    struct err why = { 0 };
    int r = audit_verify(c->api->identity, &verdict, &why);
    bool is_whole = r == 0 && verdict.bad_seq == 0;

    doctor_add(c, "audit", is_whole,
               r < 0      ? why.text
               : is_whole ? arena_printf(c->arena, "the audit log is whole, %lld entries, %s (audit.keep_days)",
                                         (long long)(verdict.n_entries - verdict.n_trimmed),
                                         term_of(c, SETTING_AUDIT_KEEP_DAYS))
                          : arena_printf(c->arena, "the audit log is broken at entry %lld", (long long)verdict.bad_seq),
               "somebody changed the database by hand; compare it with a backup");
}

void doctor_check_settings(struct checkup *c)
{
    const char *fault;

    if (!settings_fault(c->api->settings, 0))
        doctor_add(c, "settings", true, "every stored setting can be used", NULL);
    for (size_t i = 0; (fault = settings_fault(c->api->settings, i)); i++)
        doctor_add(c, "settings", false, fault,
                   "the service does not start before; `hearth settings` shows what counts");
}

void doctor_check_network(struct checkup *c)
{
    bool is_remote = settings_bool(c->api->settings, SETTING_HTTP_ALLOW_REMOTE);

    doctor_add(c, "network", true,
               !c->api->is_serving ? "no service runs on this data folder"
               : is_remote
                   ? "the service may listen for other machines (http.allow_remote)"
                   : arena_printf(c->arena, "the service answers at %s, for this machine only", c->api->base_url),
               NULL);
}

/* --- the sandbox of apps and agents --- */

static const char *namespaces_in_words(struct checkup *c, const struct sandbox_means *means)
{
    return means->has_namespaces ? "bubblewrap works" : arena_printf(c->arena, "no namespaces (%s)", means->why);
}

/* In a container some of /proc is covered, and the kernel then refuses a new /proc to a sandbox. */
static const char *remedy_for_namespaces(const struct sandbox_means *means)
{
    if (!means->has_bwrap)
        return "`apt install bubblewrap`; until then they can reach more of the machine (docs/security.md)";
    if (strstr(means->why, "mount proc"))
        return "uncover /proc of the container: `podman run --security-opt 'unmask=/proc/*' ...` (docs/operating.md, "
               "Container)";
    return "let this user make user namespaces: `sysctl kernel.unprivileged_userns_clone=1 "
           "user.max_user_namespaces=10000`";
}

void doctor_check_sandbox(struct checkup *c)
{
    struct sandbox_means means;
    const char *profile = settings_string(c->api->settings, c->arena, SETTING_SANDBOX_DEFAULT);
    const char *landlock;
    bool is_none = strcmp(profile, "none") == 0;

    sandbox_means(c->api->sandbox, &means);
    landlock = means.landlock_abi ? arena_printf(c->arena, "Landlock has version %d", means.landlock_abi)
                                  : "the kernel has no Landlock";
    doctor_add(c, "sandbox", means.has_namespaces || is_none,
               arena_printf(c->arena,
                            "%s, %s; apps and agents run in the profile %s unless their definition says otherwise",
                            namespaces_in_words(c, &means), landlock, profile),
               remedy_for_namespaces(&means));
}

/* --- voices --- */

/* Speech is optional: what is not installed is no fault. */
static void report_voices(struct checkup *c, const struct speech_provider *provider)
{
    if (provider->is_configured)
        doctor_add(c, "speech", true,
                   arena_printf(c->arena, "%s speaks with %zu voices", provider->id, provider->n_voices), NULL);
    else
        doctor_hint(c, "speech", provider->note,
                    "install the packages for these voices, or name their folder; nothing else depends on them");
}

/* A row of the setting speech.voices. */
static void report_row(struct checkup *c, const char *row)
{
    static const char until[] =
        "`hearth settings set speech.voices ...`; until then texts in that language are refused";
    struct err why;
    int r;

    err_init(&why);
    r = speech_check_row(c->api->speech, row, &c->req->exchange->is_gone, c->arena, &why);
    if (r == 0 || r == -ECANCELED)
        return;
    doctor_add(c, "speech", false,
               arena_printf(c->arena, "the setting speech.voices has %.200s, and %s", row, why.text),
               arena_printf(c->arena, "%s: %s",
                            r == -ENOENT   ? "add the provider (`hearth provider add`), or name another one"
                            : r == -EINVAL ? "name a voice that GET /sdk/tts/providers lists"
                                           : "install what the engine needs, or name another voice",
                            until));
}

void doctor_check_speech(struct checkup *c)
{
    const struct speech_provider *providers;
    const char *const *rows;
    size_t n, n_rows;

    if (!c->api->is_serving)
        return;
    n = speech_local_describe(c->api->speech, c->arena, &providers);
    for (size_t i = 0; i < n; i++)
        report_voices(c, &providers[i]);
    rows = settings_list(c->api->settings, c->arena, SETTING_SPEECH_VOICES, &n_rows);
    for (size_t i = 0; i < n_rows; i++)
        report_row(c, rows[i]);
}

static void report_ears(struct checkup *c, const struct ears_provider *provider)
{
    if (provider->is_configured)
        doctor_add(c, "hearing", true, arena_printf(c->arena, "%s hears: %s", provider->id, provider->description),
                   NULL);
    else
        doctor_hint(c, "hearing", provider->note,
                    "install what is missing to have recordings transcribed by it; nothing else depends on it");
}

void doctor_check_hearing(struct checkup *c)
{
    const struct ears_provider *providers;
    size_t n;

    if (!c->api->is_serving)
        return;
    n = ears_providers(c->api->ears, c->arena, &providers);
    for (size_t i = 0; i < n; i++)
        if (!providers[i].is_remote)
            report_ears(c, &providers[i]);
}

/* A microphone is optional, too. One that a request has just now works. */
void doctor_check_microphone(struct checkup *c)
{
    struct err why;
    int r;

    if (!c->api->is_serving)
        return;
    err_init(&why);
    r = microphone_check(c->api->ears, &why);
    if (r == 0 || r == -EBUSY)
        doctor_add(c, "microphone", true, r == 0 ? "the microphone can be opened" : "a request listens to it", NULL);
    else
        doctor_hint(
            c, "microphone", why.text,
            "plug one in, or name another one in the setting speech.microphone (`arecord -L` lists them); nothing "
            "else depends on it");
}

/* --- growing data --- */

static void report_kept(struct checkup *c, enum kept what, const char *name, enum setting_id setting)
{
    struct kept_sum sum = { 0 };
    struct err why = { 0 };
    int r = store_retention_sum(c->api->store, what, &sum, &why);

    doctor_add(c, "kept", r == 0,
               r < 0 ? why.text
                     : arena_printf(c->arena, "%s: %lld, %.1f MiB%s%.10s, %s (%s)", name, (long long)sum.n,
                                    (double)sum.bytes / (double)MIB(1), *sum.oldest ? ", the oldest of " : "",
                                    sum.oldest, term_of(c, setting), settings_rules[setting].key),
               "see store");
}

static void report_file(struct checkup *c, const char *name)
{
    const char *path = arena_printf(c->arena, "%s/%s", c->api->data_dir, name);
    struct stat st = { 0 };

    if (stat(path, &st) == 0)
        doctor_add(c, "size", true, arena_printf(c->arena, "%s: %.1f MiB", name, (double)st.st_size / (double)MIB(1)),
                   NULL);
}

static void report_copies(struct checkup *c, const char *path)
{
    const struct migrate_copy *copies;
    size_t n = migrate_copies(c->arena, path, &copies);

    for (size_t i = 0; i < n; i++)
        doctor_add(c, "copy", true,
                   arena_printf(c->arena,
                                "%s (%.1f MiB) is from before an upgrade: remove it when you trust this version",
                                copies[i].path, (double)copies[i].bytes / (double)MIB(1)),
                   NULL);
}

void doctor_check_sizes(struct checkup *c)
{
    const struct backend_file rows = backend_provider_file(c->api->settings, c->api->data_dir, c->arena);

    report_file(c, "hearth.db");
    report_file(c, "backend.db");
    report_file(c, "vectors.db");
    report_copies(c, arena_printf(c->arena, "%s/hearth.db", c->api->data_dir));
    report_copies(c, arena_printf(c->arena, "%s/vectors.db", c->api->data_dir));
    if (rows.path)
        report_copies(c, rows.path);
    report_kept(c, KEPT_TASKS, "tasks", SETTING_TASKS_KEEP_DAYS);
    report_kept(c, KEPT_RUN_LOGS, "output of runs", SETTING_TASKS_KEEP_LOGS_DAYS);
    report_kept(c, KEPT_EVENTS, "calendar events", SETTING_CALENDAR_KEEP_DAYS);
    report_kept(c, KEPT_TURNS, "turns of conversations", SETTING_AGENTS_KEEP_DAYS);
    report_kept(c, KEPT_USAGE, "rows of usage", SETTING_USAGE_KEEP_DAYS);
    report_kept(c, KEPT_DELIVERIES, "webhook answers", SETTING_WEBHOOKS_KEEP_DAYS);
}

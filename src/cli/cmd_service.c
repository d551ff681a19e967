/* hearth service install, start, stop, status, uninstall */
#include "base/clock.h"
#include "base/hash.h"
#include "base/limits.h"
#include "cli/client.h"
#include "cli/out.h"
#include "cli/request.h"
#include "cli/service_place.h"
#include "cli/service_process.h"
#include "cli/special.h"
#include "cli/systemd.h"
#include "cli/unit_text.h"
#include "os/paths.h"

#include <sys/stat.h>
#include <unistd.h>

enum {
    EXIT_NOT_RUNNING = 3,      /* as systemctl(1) */
    FIND_PATIENCE_MS = 10000,  /* while another command works on the folder, or a service starts */
    STATUS_PATIENCE_MS = 2000, /* `status` reports what it sees */
    START_MS = 120000,
    HEALTH_MS = 10000,
    MAX_NOTES = 12,
};

enum kind { KIND_NONE, KIND_UNIT, KIND_PACKAGE, KIND_AUTOSTART };

struct service_command {
    struct cli *cli;
    struct service_place place;
    struct unit_command command;
    struct systemd manager;
    bool has_manager;
    struct err no_manager; /* why not */
    struct systemd_unit unit;
    pid_t pid; /* of the process that serves the folder; 0: none */
    const char *notes[MAX_NOTES];
    size_t n_notes;
};

/* --- what there is --- */

static void PRINTF_LIKE(2, 3) note(struct service_command *s, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    if (s->n_notes < MAX_NOTES)
        s->notes[s->n_notes++] = arena_vprintf(s->cli->arena, fmt, ap);
    va_end(ap);
}

static bool is_of_folder(const struct service_command *s, const struct service_file *f)
{
    return f->exists && f->data_dir && strcmp(f->data_dir, s->cli->data_dir) == 0;
}

/* The package's unit serves the folder that every environment gives, with the package's program. */
static bool is_package_usable(const struct service_command *s)
{
    return s->place.package.exists && !s->place.unit.exists && !s->command.names_data &&
           unit_text_runs(s->place.package.text, s->command.program);
}

static bool is_linked(const struct service_command *s)
{
    struct stat st;

    return lstat(s->place.wants, &st) == 0;
}

static bool is_unit_enabled(const struct service_command *s)
{
    return s->has_manager ? s->unit.is_enabled : is_linked(s);
}

static enum kind kind_of(const struct service_command *s)
{
    if (is_of_folder(s, &s->place.unit))
        return KIND_UNIT;
    if (is_package_usable(s) && is_unit_enabled(s))
        return KIND_PACKAGE;
    return is_of_folder(s, &s->place.autostart) ? KIND_AUTOSTART : KIND_NONE;
}

static bool is_enabled(const struct service_command *s)
{
    switch (kind_of(s)) {
    case KIND_UNIT:
    case KIND_PACKAGE:
        return is_unit_enabled(s);
    case KIND_AUTOSTART: /* a desktop's settings disable an entry by this line */
        return !memmem(s->place.autostart.text.p, s->place.autostart.text.n, "\nHidden=true", 12);
    case KIND_NONE:
        break;
    }
    return false;
}

/* Whether the manager's process is the one that serves this folder. */
static bool is_managed(const struct service_command *s)
{
    return s->has_manager && s->pid != 0 && s->unit.main_pid == s->pid;
}

static int look_at_unit(struct service_command *s, struct err *e)
{
    return s->has_manager ? systemd_show(&s->manager, &s->unit, e) : 0;
}

static int look(struct service_command *s, struct cli *cli, struct err *e)
{
    char *program, *plain = paths_plain_data_dir(cli->arena);
    int r = hash_init(e);

    s->cli = cli;
    if (r == 0)
        r = paths_program(cli->arena, &program, e);
    if (r == 0)
        r = service_place_look(cli->arena, &s->place, e);
    if (r < 0)
        return r;
    s->command = (struct unit_command){ .program = program,
                                        .data_dir = cli->data_dir,
                                        .names_data = !plain || strcmp(plain, cli->data_dir) != 0 };
    s->has_manager = systemd_open(cli->arena, &s->manager, &s->no_manager) == 0;
    return look_at_unit(s, e);
}

static int refuse_without_manager(const struct service_command *s, struct err *e)
{
    return s->has_manager ? 0 : err_set(e, -ENOTCONN, s->no_manager.code, "%s", s->no_manager.text);
}

/* --- report --- */

static const char *kind_word(enum kind kind)
{
    static const char *const words[] = {
        [KIND_UNIT] = "systemd", [KIND_PACKAGE] = "package", [KIND_AUTOSTART] = "autostart"
    };

    return words[kind];
}

static const char *file_of(const struct service_command *s)
{
    const char *const paths[] = { [KIND_NONE] = NULL,
                                  [KIND_UNIT] = s->place.unit.path,
                                  [KIND_PACKAGE] = s->place.package.path,
                                  [KIND_AUTOSTART] = s->place.autostart.path };

    return paths[kind_of(s)];
}

/* The lock file is written once, when the service starts. */
static const char *since(const struct service_command *s)
{
    char *text = arena_alloc(s->cli->arena, TIME_TEXT_SIZE);
    struct stat st;

    if (s->pid == 0 || stat(arena_printf(s->cli->arena, "%s/hearth.lock", s->cli->data_dir), &st) < 0)
        return NULL;
    clock_format((int64_t)st.st_mtim.tv_sec * 1000 + st.st_mtim.tv_nsec / 1000000, text);
    return text;
}

/* A started service that the manager does not run writes hearth.log, or into the terminal that it was started from. */
static const char *log_place(const struct service_command *s)
{
    enum kind kind = kind_of(s);

    if (is_managed(s) || kind == KIND_UNIT || kind == KIND_PACKAGE)
        return "journalctl --user -u " SYSTEMD_UNIT;
    return kind == KIND_AUTOSTART ? service_process_log(s->cli->arena, s->cli->data_dir) : NULL;
}

static struct json_value health(const struct service_command *s)
{
    const struct client_request request = { .method = HTTP_GET, .path = "/healthz", .timeout_ms = HEALTH_MS };
    struct client_reply reply = { 0 };
    struct err why = { 0 };

    if (s->pid == 0 || client_send_running(s->cli->data_dir, s->cli->arena, &request, &reply, &why) < 0)
        return (struct json_value){ 0 };
    return reply.json;
}

static void write_report(const struct service_command *s, struct json_writer *w)
{
    struct json_value now = health(s);

    json_begin_object(w);
    json_add_bool(w, "running", s->pid != 0);
    json_add_string(w, "installed", kind_word(kind_of(s)));
    json_add_string(w, "file", file_of(s));
    json_add_bool(w, "enabled", is_enabled(s));
    json_add_string(w, "state", s->has_manager ? s->unit.state : NULL);
    if (s->pid)
        json_add_int(w, "pid", s->pid);
    else
        json_add_null(w, "pid");
    json_add_string(w, "since", since(s));
    json_add_string(w, "url", json_cstr(json_get(now, "url")));
    json_add_string(w, "version", json_cstr(json_get(now, "version")));
    json_add_string(w, "log", log_place(s));
    json_add_string(w, "data_dir", s->cli->data_dir);
    json_add_strings(w, "notes", s->notes, s->n_notes);
    json_end(w);
}

static const char *installed_sentence(const struct service_command *s)
{
    static const char *const sentences[] = {
        [KIND_NONE] = "no; `hearth service install` installs it",
        [KIND_UNIT] = "as a systemd user unit, ",
        [KIND_PACKAGE] = "as the package's systemd user unit, ",
        [KIND_AUTOSTART] = "as an autostart entry of the desktop, ",
    };
    const char *file = file_of(s);

    return arena_printf(s->cli->arena, "%s%s%s", sentences[kind_of(s)], file ? file : "",
                        !file           ? ""
                        : is_enabled(s) ? ", enabled"
                                        : ", not enabled");
}

static void print_report(const struct service_command *s, struct json_value report)
{
    const char *url = json_cstr(json_get(report, "url")), *log = json_cstr(json_get(report, "log"));
    const char *begun = since(s);

    out_print("%-10s %s\n", "installed", installed_sentence(s));
    if (s->pid)
        out_print("%-10s yes, pid %d, since %s%s\n", "running", (int)s->pid, begun ? begun : "?",
                  is_managed(s) ? ", by systemd" : "");
    else
        out_print("%-10s no%s%s\n", "running", s->unit.is_active ? ", systemd says: " : "",
                  s->unit.is_active ? s->unit.state : "");
    if (url)
        out_print("%-10s %s\n", "address", url);
    if (log)
        out_print("%-10s %s\n", "log", log);
    out_print("%-10s %s\n", "data", s->cli->data_dir);
    for (size_t i = 0; i < s->n_notes; i++)
        out_print("%s\n", s->notes[i]);
}

/* The state after the command, and what a person should know about it. */
static int report(struct service_command *s, struct err *e)
{
    struct err why = { 0 };
    struct json_value value;
    struct json_writer w;
    struct buf out;
    int r;

    if (service_process_find(s->cli->data_dir, STATUS_PATIENCE_MS, &s->pid, &why) < 0)
        note(s, "%s", why.text);
    r = look_at_unit(s, e);
    if (r == 0)
        r = service_place_look(s->cli->arena, &s->place, e);
    if (r < 0)
        return r;
    buf_init(&out, KIB(64));
    json_write_init(&w, &out);
    write_report(s, &w);
    r = json_parse(s->cli->arena, buf_slice(&out), &value, e);
    buf_clear(&out);
    if (r == 0 && s->cli->is_json)
        cli_print_json(value);
    else if (r == 0)
        print_report(s, value);
    return r;
}

/* --- install --- */

static void note_linger(struct service_command *s)
{
    if (!systemd_has_linger(s->cli->arena))
        note(s, "It runs while you are logged in. To have it run from boot on: loginctl enable-linger %s",
             systemd_user_name(s->cli->arena));
}

/* What the shell's environment says reaches this process only. */
static void note_environment(struct service_command *s)
{
    extern char **environ;
    struct buf names;

    buf_init(&names, KIB(4));
    for (char **at = environ; *at; at++)
        if (strncmp(*at, "HEARTH_", 7) == 0 && strncmp(*at, "HEARTH_DATA=", 12) != 0)
            buf_printf(&names, " %.*s", (int)strcspn(*at, "="), *at);
    if (names.n)
        note(
            s,
            "Variables of this shell do not reach a service that starts by itself:%s. Keep them with `hearth settings set`.",
            buf_str(&names));
    buf_clear(&names);
}

/* A service that somebody started otherwise keeps the folder; another one would not start. */
static bool runs_otherwise(struct service_command *s)
{
    if (s->pid == 0 || is_managed(s))
        return false;
    note(
        s,
        "A service that was started otherwise (pid %d) uses the folder: after `hearth service stop`, `hearth service start` "
        "starts the installed one.",
        (int)s->pid);
    return true;
}

static int start_unit(struct service_command *s, struct err *e)
{
    return runs_otherwise(s) || is_managed(s) ? 0 : systemd_do(&s->manager, "start", SYSTEMD_START_MS, e);
}

static int write_unit(struct service_command *s, bool *ret_changed, struct err *e)
{
    bool is_forced = cli_has(s->cli, "--force");
    int r = unit_command_check(&s->command, e);

    if (r == 0)
        r = service_file_admit(&s->place.unit, s->cli->data_dir, is_forced, e);
    if (r == 0 && s->place.autostart.is_ours && is_of_folder(s, &s->place.autostart)) /* one of the two is enough */
        r = service_file_remove(&s->place.autostart, e);
    return r < 0 ? r : service_file_write(&s->place.unit, unit_text(s->cli->arena, &s->command), ret_changed, e);
}

/* A file that the manager does not see lies in another place than the manager's: HOME or XDG_CONFIG_HOME differ. */
static int check_seen(struct service_command *s, struct err *e)
{
    int r = look_at_unit(s, e);

    if (r < 0 || *s->unit.fragment)
        return r;
    return err_set(
        e, -ENOENT, "UNIT_NOT_SEEN",
        "The systemd user manager does not look into the folder of %s: HOME or XDG_CONFIG_HOME is another one "
        "than the manager's.",
        s->place.unit.path);
}

static int install_unit(struct service_command *s, struct err *e)
{
    bool is_packaged = is_package_usable(s), has_changed = false;
    int r = is_packaged ? 0 : write_unit(s, &has_changed, e);

    if (r == 0)
        r = systemd_do(&s->manager, "daemon-reload", SYSTEMD_CALL_MS, e);
    if (r == 0)
        r = check_seen(s, e);
    if (r == 0)
        r = systemd_do(&s->manager, "enable", SYSTEMD_CALL_MS, e);
    if (r == 0 && has_changed && is_managed(s))
        note(s,
             "The unit has changed; `hearth service stop` and `hearth service start` bring the running service to it.");
    if (r == 0)
        r = start_unit(s, e);
    if (r == 0)
        note_linger(s);
    return r;
}

static int start_in_background(struct service_command *s, struct err *e)
{
    if (s->pid)
        return 0;
    return service_process_start(s->command.program, s->cli->data_dir, START_MS, e);
}

static int install_autostart(struct service_command *s, struct err *e)
{
    bool has_changed;
    int r = unit_command_check(&s->command, e);

    if (is_of_folder(s, &s->place.unit))
        return refuse_without_manager(s, e);
    if (r == 0)
        r = service_file_admit(&s->place.autostart, s->cli->data_dir, cli_has(s->cli, "--force"), e);
    if (r == 0)
        r = service_file_write(&s->place.autostart, desktop_text(s->cli->arena, &s->command), &has_changed, e);
    if (r == 0)
        r = start_in_background(s, e);
    if (r == 0)
        note(s, "It starts with the desktop session, by an autostart entry. %s", s->no_manager.text);
    return r;
}

int run_service_install(struct cli *cli, struct err *e)
{
    struct service_command s = { 0 };
    int r = look(&s, cli, e);

    if (r == 0)
        r = service_process_find(cli->data_dir, FIND_PATIENCE_MS, &s.pid, e);
    if (r == 0)
        r = s.has_manager ? install_unit(&s, e) : install_autostart(&s, e);
    if (r < 0)
        return r;
    note_environment(&s);
    return report(&s, e);
}

/* --- start, stop, status --- */

/* A file at one of the places that is not of this folder is named. */
static int refuse_missing(const struct service_command *s, struct err *e)
{
    const struct service_file *f = s->place.unit.exists ? &s->place.unit : &s->place.autostart;

    if (!f->exists)
        return err_set(
            e, -ENOENT, "NOT_INSTALLED",
            "No service is installed: `hearth service install` does it, `hearth serve` runs one in this terminal.");
    if (f->data_dir)
        return err_set(e, -ENOENT, "NOT_INSTALLED",
                       "No service is installed for %s: %s is of the data folder %s; name that with --data.",
                       s->cli->data_dir, f->path, f->data_dir);
    return err_set(e, -ENOENT, "NOT_INSTALLED", "No service is installed by Hearth: %s %s.", f->path, f->what);
}

static int start_installed(struct service_command *s, struct err *e)
{
    int r;

    switch (kind_of(s)) {
    case KIND_UNIT:
    case KIND_PACKAGE:
        r = refuse_without_manager(s, e);
        return r < 0 ? r : start_unit(s, e);
    case KIND_AUTOSTART:
        return start_in_background(s, e);
    case KIND_NONE:
        break;
    }
    return refuse_missing(s, e);
}

int run_service_start(struct cli *cli, struct err *e)
{
    struct service_command s = { 0 };
    int r = look(&s, cli, e);

    if (r == 0)
        r = service_process_find(cli->data_dir, FIND_PATIENCE_MS, &s.pid, e);
    if (r == 0)
        r = start_installed(&s, e);
    return r < 0 ? r : report(&s, e);
}

/* Through the manager where it runs the service, which it would otherwise start again after a failure; a unit that is
 * only starting, or waits to start again, is stopped too. */
static int stop(struct service_command *s, struct err *e)
{
    enum kind kind = kind_of(s);
    bool is_unit = is_managed(s) || ((kind == KIND_UNIT || kind == KIND_PACKAGE) && s->unit.is_active);
    struct err why = { 0 };
    int r = s->has_manager && is_unit ? systemd_do(&s->manager, "stop", SYSTEMD_STOP_MS, e) : 0;

    if (r < 0)
        return r;
    r = service_process_find(s->cli->data_dir, FIND_PATIENCE_MS, &s->pid, &why);
    if (r < 0)
        return err_set(e, r, why.code, "%s", why.text);
    return s->pid ? service_process_stop(s->cli->data_dir, s->pid, SYSTEMD_STOP_MS, e) : 0;
}

/* Of a process that holds the folder and does not answer, only the manager can tell that it is the service. */
static int find_for_stop(struct service_command *s, struct err *e)
{
    struct err why = { 0 };
    int r = service_process_find(s->cli->data_dir, s->unit.is_active ? 0 : FIND_PATIENCE_MS, &s->pid, &why);

    return r == 0 || s->unit.is_active ? 0 : err_set(e, r, why.code, "%s", why.text);
}

int run_service_stop(struct cli *cli, struct err *e)
{
    struct service_command s = { 0 };
    int r = look(&s, cli, e);

    if (r == 0)
        r = find_for_stop(&s, e);
    if (r == 0)
        r = stop(&s, e);
    return r < 0 ? r : report(&s, e);
}

int run_service_status(struct cli *cli, struct err *e)
{
    struct service_command s = { 0 };
    int r = look(&s, cli, e);

    if (r == 0 && !s.has_manager && kind_of(&s) == KIND_UNIT)
        note(&s, "%s", s.no_manager.text);
    if (r == 0)
        r = report(&s, e);
    if (r < 0)
        return r;
    return s.pid ? CLI_DONE : EXIT_NOT_RUNNING;
}

/* --- uninstall --- */

/* Without a manager its link is removed by hand: the manager reads both when it starts. */
static int disable(struct service_command *s, struct err *e)
{
    if (s->has_manager && *s->unit.fragment && is_unit_enabled(s))
        return systemd_do(&s->manager, "disable", SYSTEMD_CALL_MS, e);
    if (s->has_manager || !is_linked(s) || unlink(s->place.wants) == 0)
        return 0;
    return err_errno(e, errno, "%s cannot be removed", s->place.wants);
}

struct removal {
    const struct service_file *file;
    bool is_due;
};

/* What is kept is told; the result is then a failure. */
static int judge(struct service_command *s, struct removal *removals, size_t n)
{
    int code = CLI_DONE;

    for (size_t i = 0; i < n; i++) {
        struct err why = { 0 };

        removals[i].is_due = removals[i].file->exists && service_file_admit(removals[i].file, s->cli->data_dir,
                                                                            cli_has(s->cli, "--force"), &why) == 0;
        if (!removals[i].file->exists || removals[i].is_due)
            continue;
        note(s, "%s", why.text);
        code = CLI_FAILED;
    }
    return code;
}

static int remove_unit(struct service_command *s, const struct removal *unit, struct err *e)
{
    int r = disable(s, e);

    if (r == 0 && unit->is_due)
        r = service_file_remove(unit->file, e);
    return r == 0 && s->has_manager ? systemd_do(&s->manager, "daemon-reload", SYSTEMD_CALL_MS, e) : r;
}

static int uninstall(struct service_command *s, int *ret_code, struct err *e)
{
    struct removal removals[] = { { .file = &s->place.unit }, { .file = &s->place.autostart } };
    bool is_packaged = kind_of(s) == KIND_PACKAGE;
    int r = 0;

    *ret_code = judge(s, removals, ARRAY_SIZE(removals));
    if (!removals[0].is_due && !removals[1].is_due && !is_packaged)
        return 0;
    r = stop(s, e);
    if (r == 0 && (removals[0].is_due || is_packaged))
        r = remove_unit(s, &removals[0], e);
    if (r == 0 && removals[1].is_due)
        r = service_file_remove(removals[1].file, e);
    return r;
}

int run_service_uninstall(struct cli *cli, struct err *e)
{
    struct service_command s = { 0 };
    int code = CLI_DONE, r = look(&s, cli, e);

    if (r == 0)
        r = find_for_stop(&s, e);
    if (r == 0)
        r = uninstall(&s, &code, e);
    if (r == 0)
        r = report(&s, e);
    return r < 0 ? r : code;
}

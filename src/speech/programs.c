#include "speech/programs.h"

#include "base/clock.h"
#include "base/limits.h"
#include "os/child.h"
#include "os/program.h"
#include "speech/engines.h"
#include "speech/program_text.h"
#include "speech/programs_private.h"
#include "speech/remote.h"

#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

enum { GRACE_MS = 100, READ_BYTES = 32768, LIST_MS = 5000, MOST_WORDS = 200, LAST_LINES = 3 };

struct program {
    const struct speech_program_row *row;
    struct supervisor *supervisor; /* NULL without a service */
    const char *path, *folder;     /* folder: of its voices */
    const char *preload;           /* path of PROGRAM_TEXT_LIBRARY; NULL: the program does not need it */
};

int speech_voice_compare(const void *one, const void *other)
{
    return strcmp(((const struct speech_voice *)one)->id, ((const struct speech_voice *)other)->id);
}

/* ---- one sentence ---- */

struct run {
    const struct speech_account *acc;
    const struct program *program;
    struct net_wait wait;
    struct slice text; /* as the program got it; empty: it has none yet */
    struct child *child;
    struct child_ends ends;
};

/* A folder of the program that the sandbox does not show by itself; NULL: none. */
static const char *folder_of(const char *path, struct arena *a)
{
    const char *slash = strrchr(path, '/');

    return slash && slash > path && strncmp(path, "/usr/", 5) != 0 ? arena_strndup(a, path, (size_t)(slash - path))
                                                                   : NULL;
}

/* LD_PRELOAD has no way to write a path with spaces, so the library is looked up by its name. */
static const char *const *environment(const struct program *p, struct arena *a)
{
    static const char *const usual[] = { "PATH=/usr/local/bin:/usr/bin:/bin", "LANG=C.UTF-8", "HOME=/tmp" };
    const char **env = arena_array(a, ARRAY_SIZE(usual) + 3, sizeof(*env));
    size_t n = ARRAY_SIZE(usual);

    memcpy(env, usual, sizeof(usual));
    if (p->preload) {
        env[n++] = "LD_PRELOAD=" PROGRAM_TEXT_LIBRARY;
        env[n++] = arena_printf(a, "LD_LIBRARY_PATH=%.*s", (int)(strrchr(p->preload, '/') - p->preload), p->preload);
    }
    return env;
}

static int start(struct run *run, const char *const *args, struct arena *a, struct err *e)
{
    const struct program *p = run->program;
    const char *folders[] = { p->folder, folder_of(p->path, a) };
    const struct sandbox_definition sandbox = { .profile = "strict", .read = { folders, folders[1] ? 2 : 1 } };
    const struct child_spec spec = { .label = p->row->label,
                                     .command = p->path,
                                     .args = args,
                                     .env = environment(p, a),
                                     .sandbox = &sandbox,
                                     .shown_file = p->preload,
                                     .max_file_bytes = 1,
                                     .timeout_ms = run->acc->total_ms,
                                     .stop_grace_ms = GRACE_MS,
                                     .ends = &run->ends };

    if (!p->supervisor)
        return err_set(e, -ENODEV, "SPEECH_UNAVAILABLE", "Only a running service speaks: `hearth serve`.");
    return child_start(p->supervisor, &spec, &run->child, e);
}

/* One line without NUL: piper speaks each line by itself, and an argument ends at a NUL. */
static struct slice clean(struct slice text, struct arena *a)
{
    char *line = arena_slicedup(a, text);

    for (size_t i = 0; i < text.n; i++)
        if ((unsigned char)line[i] < ' ')
            line[i] = ' ';
    return (struct slice){ line, text.n };
}

/* The pipe of a new process takes a sentence at once. */
static int send_text(struct run *run, struct slice text, struct arena *a, struct err *e)
{
    const char *line = arena_printf(a, "%.*s%s", (int)text.n, text.p, run->program->preload ? "" : "\n");
    size_t n_line = strlen(line);
    ssize_t n = -1;

    run->text = text;
    if (n_line <= LIMIT_SPEECH_PROGRAM_TEXT)
        n = write(run->ends.stdin_fd, line, n_line);
    close(run->ends.stdin_fd);
    run->ends.stdin_fd = -1;
    return n == (ssize_t)n_line ? 0 : err_set(e, -EIO, "SPEECH_FAILED", "it did not take the text.");
}

/* 1: the end of its output. */
static int receive(const struct run *run, struct buf *out, struct err *e)
{
    char bytes[READ_BYTES];
    ssize_t n = read(run->ends.stdout_fd, bytes, sizeof(bytes));

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (n <= 0)
        return 1;
    buf_add(out, bytes, (size_t)n);
    return out->overflowed ? err_set(e, -EIO, "SPEECH_FAILED", "it sent more than %d MiB for one sentence.",
                                     LIMIT_SPEECH_REPLY >> 20)
                           : 0;
}

static int wait_for_output(const struct run *run, struct err *e)
{
    int r = net_wait_fd(&run->wait, run->ends.stdout_fd, POLLIN, e);

    return r == -ETIMEDOUT
               ? err_set(e, -EIO, "SPEECH_FAILED", "it took longer than %lld s.", (long long)run->acc->total_ms / 1000)
               : r;
}

static int collect(const struct run *run, struct buf *out, struct err *e)
{
    int r = 0;

    while (r == 0) {
        r = wait_for_output(run, e);
        if (r == 0)
            r = receive(run, out, e);
    }
    return MIN(r, 0);
}

/* ---- the text in secret ---- */

/* Only a program that the library is loaded into writes this, and only then is the text sent. */
static int await_ready(const struct run *run, struct err *e)
{
    static const char ready[] = PROGRAM_TEXT_READY;
    char bytes[sizeof(ready)];
    size_t n = 0;

    while (n < sizeof(ready) - 1) {
        int r = wait_for_output(run, e);
        ssize_t got = r == 0 ? read(run->ends.stdout_fd, bytes + n, sizeof(ready) - 1 - n) : 0;

        if (r < 0)
            return r;
        if (got < 0 && (errno == EAGAIN || errno == EINTR))
            continue;
        if (got <= 0 || memcmp(bytes + n, ready + n, (size_t)got) != 0)
            return err_set(e, -ENODEV, "SPEECH_UNAVAILABLE",
                           "The program %s is not used, because other users of this machine could read texts in its "
                           "arguments: it must be linked with glibc dynamically, and be no script.",
                           run->program->path);
        n += (size_t)got;
    }
    return 0;
}

/* Whether the line repeats the text, or the command line with it, as sherpa-onnx does. */
static bool has_text(const struct run *run, const char *line)
{
    return run->program->preload && run->text.n > 0 &&
           (strstr(line, run->program->path) || memmem(line, strlen(line), run->text.p, run->text.n));
}

/* What it said on standard error explains best why there is no sound. */
static int explain(const struct run *run, int r, struct arena *a, struct err *e)
{
    char *lines = child_last_words(run->child, run->ends.stdout_fd, a, run->program->preload ? LAST_LINES : 1);
    const char *words = "";

    for (char *rest = lines, *line; rest && (line = strsep(&rest, "\n"));)
        if (!has_text(run, line))
            words = arena_printf(a, "%s%s%s", words, *words ? " " : "", line);
    if (*words)
        err_set(e, r, r == -ENODEV ? "SPEECH_UNAVAILABLE" : "SPEECH_FAILED", "%.400s It says: %.*s", e->text,
                MOST_WORDS, words);
    return r;
}

static void end(struct run *run)
{
    if (run->ends.stdin_fd >= 0)
        close(run->ends.stdin_fd);
    if (run->ends.stdout_fd >= 0)
        close(run->ends.stdout_fd);
    if (run->child)
        child_stop(run->child);
    child_unref(run->child);
}

static struct run run_of(const struct speech_account *acc, const struct net_wait *wait, int64_t total_ms)
{
    return (struct run){ .acc = acc, .program = acc->arg, .wait = net_wait_part(wait, total_ms), .ends = { -1, -1 } };
}

/* Starts the program; what follows is the text. */
static int begin(struct run *run, const char *const *args, struct arena *a, struct err *e)
{
    int r = start(run, args, a, e);

    return r == 0 && run->program->preload ? await_ready(run, e) : r;
}

static int speak(struct run *run, const char *const *args, struct slice text, struct arena *a, struct speech_pcm *ret,
                 struct err *e)
{
    struct slice sound;
    struct buf out;
    int r = begin(run, args, a, e);

    buf_init(&out, LIMIT_SPEECH_REPLY);
    if (r == 0)
        r = send_text(run, clean(text, a), a, e);
    if (r == 0)
        r = collect(run, &out, e);
    sound.n = out.n;
    sound.p = buf_to_arena(&out, a);
    return r == 0 ? speech_wav_read(sound, a, ret, e) : r;
}

static int say(const struct speech_account *acc, const struct speech_say *say, const struct net_wait *wait,
               struct arena *a, struct speech_pcm *ret, struct err *e)
{
    struct run run = run_of(acc, wait, acc->total_ms);
    const char *const *args = NULL;
    int r = run.program->row->arguments(run.program->folder, say, a, &args, e);

    if (r == 0)
        r = speak(&run, args, say->text, a, ret, e);
    if (r < 0 && r != -ECANCELED && run.child)
        r = explain(&run, r, a, e);
    end(&run);
    return r;
}

/* A program that cannot be used is not offered. */
static int check_ready(const struct speech_account *acc, struct arena *a, struct err *e)
{
    static const char *const no_args[] = { NULL };
    const struct net_wait wait = net_wait_of(LIST_MS, NULL, NULL);
    struct run run = run_of(acc, &wait, LIST_MS);
    int r = begin(&run, no_args, a, e);

    if (r < 0 && run.child)
        r = explain(&run, r, a, e);
    end(&run);
    return r;
}

static int list_voices(const struct speech_account *acc, struct arena *a, struct speech_voice_list *ret, struct err *e)
{
    const struct program *p = acc->arg;
    int r = p->row->list(p->path, p->folder, a, ret, e);

    return r == 0 && p->preload ? check_ready(acc, a, e) : r;
}

/* ---- the account ---- */

static const struct speech_protocol program_protocol = { .run = say, .list = list_voices };
static const char *const no_models[] = { NULL };
static const struct speech_service program_service = { .preset = "program",
                                                       .protocol = &program_protocol,
                                                       .model = "",
                                                       .voice = "",
                                                       .models = no_models,
                                                       .min_speed = 0.5,
                                                       .max_speed = 2 };

static const struct {
    const char *name, *label;
    enum setting_id command, folder;
    const struct speech_program_row *row;
} programs[N_SPEECH_PROGRAMS] = {
    { "piper_local", "Piper (this machine)", SETTING_SPEECH_PIPER, SETTING_SPEECH_PIPER_VOICES, &speech_program_piper },
    { "sherpa_local", "sherpa-onnx (this machine)", SETTING_SPEECH_SHERPA, SETTING_SPEECH_SHERPA_VOICES,
      &speech_program_sherpa },
};

static void blame(const void *arg, int r, struct err *e)
{
}

/* Where the library is missing the name alone is left: the program then writes no PROGRAM_TEXT_READY. */
static const char *preload_of(const struct speech_config *c, struct arena *a)
{
    const char *path = speech_file_of(settings_string(c->settings, a, SETTING_SPEECH_FOLDER), PROGRAM_TEXT_LIBRARY, a);
    AUTO(freep) char *real = realpath(path, NULL);

    return real ? arena_strdup(a, real) : path;
}

static struct speech_account account_of(const struct speech_config *c, size_t i, const char *path, struct arena *a)
{
    struct program *p = ARENA_NEW(a, struct program);

    *p = (struct program){ programs[i].row, c->supervisor, path, settings_string(c->settings, a, programs[i].folder),
                           programs[i].row->takes_text_as_argument ? preload_of(c, a) : NULL };
    return (struct speech_account){ .name = programs[i].name,
                                    .label = programs[i].label,
                                    .service = &program_service,
                                    .base_url = p->folder,
                                    .total_ms = settings_ms(c->settings, SETTING_SPEECH_TIMEOUT_S),
                                    .list_ms = LIST_MS,
                                    .is_local = true,
                                    .blame = blame,
                                    .arg = p };
}

size_t speech_programs_list(const struct speech_config *c, struct arena *a,
                            struct speech_account ret[N_SPEECH_PROGRAMS])
{
    size_t n = 0;

    for (size_t i = 0; i < N_SPEECH_PROGRAMS; i++) {
        const char *command = settings_string(c->settings, a, programs[i].command);
        char *path = NULL;

        if (*command && program_find(a, command, NULL, getenv("PATH"), &path, NULL) == 0)
            ret[n++] = account_of(c, i, path, a);
    }
    return n;
}

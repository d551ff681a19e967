/* hearth say: speaks a text through aplay, sentence by sentence, or into a file. */
#include "base/base64.h"
#include "base/limits.h"
#include "cli/out.h"
#include "cli/request.h"
#include "cli/special.h"
#include "os/files.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum { BYTES_A_CHARACTER = 4 };

/* ---- the request ---- */

static int read_speed(const struct cli *cli, double *ret, struct err *e)
{
    const char *text = cli_value(cli, "--speed");
    char *end = NULL;

    *ret = text ? strtod(text, &end) : 1;
    if (text && (end == text || *end))
        return err_set(e, -EINVAL, "BAD_USE", "--speed must be a number from 0.5 to 2");
    return 0;
}

/* The option, else the ending of the file's name. */
static const char *format_of(const struct cli *cli)
{
    const char *given = cli_value(cli, "--format"), *out = cli_value(cli, "--out"),
               *dot = out ? strrchr(out, '.') : NULL;

    if (given || !dot)
        return given;
    return strcasecmp(dot, ".mp3") == 0 ? "mp3" : strcasecmp(dot, ".pcm") == 0 ? "pcm" : NULL;
}

/* --voice PROVIDER/VOICE, or VOICE. */
static void write_voice(struct cli *cli, struct json_writer *w)
{
    const char *voice = cli_value(cli, "--voice"), *slash = voice ? strchr(voice, '/') : NULL;

    if (slash)
        json_add_slice(w, "provider", (struct slice){ voice, (size_t)(slash - voice) });
    else
        json_add_string(w, "provider", cli_value(cli, "--provider"));
    json_add_string(w, "voice", slash ? slash + 1 : voice);
}

static struct slice write_body(struct cli *cli, const char *text, const char *format, double speed)
{
    struct json_writer w;
    struct buf out;
    struct slice body;

    buf_init(&out, LIMIT_BODY_CHAT);
    json_write_init(&w, &out);
    json_begin_object(&w);
    json_add_string(&w, "text", text);
    json_add_string(&w, "language", cli_value(cli, "--language"));
    json_add_string(&w, "format", format);
    json_add_double(&w, "speed", speed);
    write_voice(cli, &w);
    json_end(&w);
    body = (struct slice){ arena_slicedup(cli->arena, buf_slice(&out)), out.n };
    buf_clear(&out);
    return body;
}

/* ---- into a file ---- */

static int save(struct cli *cli, const char *text, double speed, struct err *e)
{
    const struct client_request request = { .method = HTTP_POST,
                                            .path = "/sdk/tts",
                                            .body = write_body(cli, text, format_of(cli), speed) };
    const char *path = cli_value(cli, "--out");
    struct client_reply reply;
    int r = cli_send(cli, &request, &reply, e);

    if (r == 0)
        r = file_write(path, reply.text, 0644, e);
    if (r == 0)
        out_print("%zu bytes of audio are in %s.\n", reply.text.n, path);
    return r;
}

/* ---- through aplay ---- */

struct player {
    pid_t pid; /* 0: not started */
    int fd;    /* its standard input */
    struct err *e;
};

static int refuse_player(struct err *e)
{
    return err_set(e, -ENODEV, "NO_AUDIO_OUTPUT",
                   "Nothing plays sound here: aplay is missing (Debian: apt install alsa-utils). --out FILE saves the "
                   "audio instead");
}

static int start_player(struct player *p, long long rate)
{
    char number[24];
    const char *const argv[] = { "aplay", "-q", "-t", "raw", "-f", "S16_LE", "-c", "1", "-r", number, NULL };
    posix_spawn_file_actions_t actions;
    int ends[2], r;

    snprintf(number, sizeof(number), "%lld", rate);
    if (pipe2(ends, O_CLOEXEC) < 0)
        return err_errno(p->e, errno, "The pipe to aplay");
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[0], STDIN_FILENO);
    r = posix_spawnp(&p->pid, argv[0], &actions, NULL, (char *const *)argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[0]);
    p->fd = ends[1];
    return r == 0 ? 0 : refuse_player(p->e);
}

static int refuse_device(struct err *e)
{
    return err_set(e, -ENODEV, "NO_AUDIO_OUTPUT",
                   "aplay could not play the sound: there may be no sound card. --out FILE saves the audio instead");
}

static int play(const struct player *p, struct slice samples)
{
    while (samples.n > 0) {
        ssize_t n = write(p->fd, samples.p, samples.n);

        if (n < 0 && errno != EINTR)
            return refuse_device(p->e);
        n = MAX(n, (ssize_t)0);
        samples = (struct slice){ samples.p + n, samples.n - (size_t)n };
    }
    return 0;
}

static int play_chunk(struct player *p, struct json_value chunk)
{
    struct buf samples;
    int r = p->pid > 0 ? 0 : start_player(p, json_int(json_get(chunk, "sampleRate")));

    buf_init(&samples, LIMIT_SPEECH_AUDIO);
    if (r == 0 && base64_decode(&samples, json_string(json_get(chunk, "audio"))) < 0)
        r = err_set(p->e, -EIO, "INTERNAL_ERROR", "The service sent a chunk that is no base64");
    if (r == 0)
        r = play(p, buf_slice(&samples));
    buf_clear(&samples);
    return r;
}

static int on_event(void *arg, const struct client_event *event)
{
    const char *error = json_cstr(json_get(event->data, "error")), *code = json_cstr(json_get(event->data, "code"));
    struct player *p = arg;

    if (strcmp(event->name, "error") == 0)
        return err_set(p->e, -EREMOTEIO, code ? code : "SPEECH_FAILED", "%s", error ? error : "The speech broke off");
    return strcmp(event->name, "chunk") == 0 ? play_chunk(p, event->data) : 0;
}

/* Waits until everything has been heard. r: of the text. */
static int end_player(const struct player *p, int r)
{
    int status = 0;

    if (p->fd >= 0)
        close(p->fd);
    if (p->pid <= 0)
        return r;
    while (waitpid(p->pid, &status, 0) < 0 && errno == EINTR)
        ;
    return r == 0 && status != 0 ? refuse_device(p->e) : r;
}

static int speak(struct cli *cli, const char *text, double speed, struct err *e)
{
    const struct client_request request = { .method = HTTP_POST,
                                            .path = "/sdk/tts/stream",
                                            .body = write_body(cli, text, "pcm", speed) };
    struct player p = { .fd = -1, .e = e };
    struct client *client = NULL;
    int r = cli_client(cli, &client, e);

    if (r < 0)
        return r;
    signal(SIGPIPE, SIG_IGN); /* a player that ended is an error of write() */
    return end_player(&p, client_listen(client, &request, on_event, &p, e));
}

int run_say(struct cli *cli, struct err *e)
{
    const char *text = NULL;
    double speed = 1;
    int r = cli_read_text(cli, LIMIT_SPEECH_TEXT * BYTES_A_CHARACTER, &text, e);

    if (r == 0 && !text)
        return err_set(e, -EINVAL, "BAD_USE", "There is nothing to say: hearth say TEXT");
    if (r == 0)
        r = read_speed(cli, &speed, e);
    if (r == 0 && cli_has(cli, "--format") && !cli_has(cli, "--out"))
        return err_set(e, -EINVAL, "BAD_USE", "--format is the format of a file: it needs --out FILE");
    if (r < 0)
        return r;
    return cli_has(cli, "--out") ? save(cli, text, speed, e) : speak(cli, text, speed, e);
}

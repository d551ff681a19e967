/* sherpa-onnx-offline-tts (github.com/k2-fsa/sherpa-onnx, sherpa-onnx/csrc/sherpa-onnx-offline-tts.cc): a model is a
 * folder as it is published, with tokens.txt and a file of ONNX. Its voices are its speakers, FOLDER:0, FOLDER:1, ...,
 * or FOLDER when it has one. The program reads its options up to a lone "--"; the text follows. */
#include "speech/programs_sherpa.h"

#include "base/limits.h"
#include "speech/program_text.h"
#include "speech/programs_private.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- families of models ---- */

struct file_option {
    const char *name;     /* after the family's prefix; as it stands when it is_common */
    const char *files[3]; /* those that exist, joined by commas; none: the option is left out */
    bool is_common;       /* of all families */
};

struct family {
    const char *prefix, *model; /* of the options; the option of the file of ONNX */
    const struct file_option *options;
};

static const struct file_option phoneme_options[] = {
    { "tokens", { "tokens.txt" } },
    { "data-dir", { "espeak-ng-data" } },
    { "lexicon", { "lexicon.txt" } },
    { "dict-dir", { "dict" } },
    { "tts-rule-fsts", { "phone.fst", "date.fst", "number.fst" }, .is_common = true },
    { NULL, { NULL } },
};

static const struct file_option kokoro_options[] = {
    { "voices", { "voices.bin" } },
    { "tokens", { "tokens.txt" } },
    { "data-dir", { "espeak-ng-data" } },
    { "lexicon", { "lexicon-us-en.txt", "lexicon-zh.txt" } },
    { "dict-dir", { "dict" } },
    { "tts-rule-fsts", { "phone-zh.fst", "date-zh.fst", "number-zh.fst" }, .is_common = true },
    { NULL, { NULL } },
};

static const struct file_option kitten_options[] = {
    { "voices", { "voices.bin" } },
    { "tokens", { "tokens.txt" } },
    { "data-dir", { "espeak-ng-data" } },
    { NULL, { NULL } },
};

static const struct family vits = { "vits", "vits-model", phoneme_options };
static const struct family matcha = { "matcha", "matcha-acoustic-model", phoneme_options };
static const struct family kokoro = { "kokoro", "kokoro-model", kokoro_options };
static const struct family kitten = { "kitten", "kitten-model", kitten_options };

/* ---- a model ---- */

struct model {
    const char *name, *folder;     /* the folder's name and path */
    const char *network, *vocoder; /* names of files in it; vocoder NULL: the model needs none */
    const struct family *family;
};

static bool has_file(const struct model *m, const char *file, struct arena *a)
{
    return access(arena_printf(a, "%s/%s", m->folder, file), R_OK) == 0;
}

/* The same file every time, whatever the order of the folder is. */
static void take_first(const char **first, const char *name, struct arena *a)
{
    if (!*first || strcmp(name, *first) < 0)
        *first = arena_strdup(a, name);
}

static bool find_files(struct model *m, struct arena *a)
{
    DIR *dir = opendir(m->folder);

    for (struct dirent *at = dir ? readdir(dir) : NULL; at; at = readdir(dir)) {
        if (fnmatch("*.onnx", at->d_name, FNM_PERIOD) != 0)
            continue;
        if (fnmatch("vocos*", at->d_name, 0) == 0 || fnmatch("hifigan*", at->d_name, 0) == 0)
            take_first(&m->vocoder, at->d_name, a);
        else
            take_first(&m->network, at->d_name, a);
    }
    if (dir)
        closedir(dir);
    return m->network && has_file(m, "tokens.txt", a);
}

static const struct family *family_of(const struct model *m, struct arena *a)
{
    if (m->vocoder)
        return &matcha;
    if (!has_file(m, "voices.bin", a))
        return &vits;
    return strncmp(m->name, "kitten", strlen("kitten")) == 0 ? &kitten : &kokoro;
}

static bool find_model(const char *folder, const char *name, struct arena *a, struct model *ret)
{
    *ret = (struct model){ .name = name, .folder = arena_printf(a, "%s/%s", folder, name) };
    if (*name == '.' || strchr(name, '/') || !find_files(ret, a))
        return false;
    ret->family = family_of(ret, a);
    return true;
}

/* ---- voices ---- */

/* Metadata are the last entries of a file of ONNX, pairs of strings (StringStringEntryProto of onnx.proto3). */
size_t speech_sherpa_speakers(struct slice end)
{
    static const char key[] = "\x0a\x0an_speakers\x12";
    const char *at = memmem(end.p, end.n, key, sizeof(key) - 1);
    size_t n = 0, n_left, n_digits;

    if (!at)
        return 1;
    at += sizeof(key) - 1;
    n_left = (size_t)(end.p + end.n - at);
    n_digits = n_left > 0 ? (size_t)(unsigned char)*at : 0;
    for (size_t i = 1; i <= n_digits && i < n_left; i++) {
        if (!isdigit((unsigned char)at[i]) || n > LIMIT_SPEECH_VOICES)
            break;
        n = n * 10 + (size_t)(at[i] - '0');
    }
    return MAX((size_t)1, MIN(n, (size_t)LIMIT_SPEECH_VOICES));
}

static size_t count_speakers(const struct model *m, struct arena *a)
{
    int fd = open(arena_printf(a, "%s/%s", m->folder, m->network), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    char *bytes = arena_array(a, LIMIT_SPEECH_MODEL_END, 1);
    struct stat of = { 0 };
    ssize_t n = -1;

    if (fd >= 0 && fstat(fd, &of) == 0 && S_ISREG(of.st_mode))
        n = pread(fd, bytes, LIMIT_SPEECH_MODEL_END, MAX((off_t)0, of.st_size - LIMIT_SPEECH_MODEL_END));
    if (fd >= 0)
        close(fd);
    return speech_sherpa_speakers((struct slice){ bytes, (size_t)MAX(n, (ssize_t)0) });
}

static bool is_lower(const char *at)
{
    return islower((unsigned char)at[0]) && islower((unsigned char)at[1]);
}

/* vits-piper-de_DE-thorsten speaks de_DE, kokoro-en-v0_19 en; "": the name does not say. */
static const char *language_of(const char *name, struct arena *a)
{
    for (const char *at = name; *at; at += strcspn(at, "-"), at += *at == '-') {
        size_t n = strcspn(at, "-");

        if ((n == 2 && is_lower(at)) ||
            (n == 5 && is_lower(at) && at[2] == '_' && isupper((unsigned char)at[3]) && isupper((unsigned char)at[4])))
            return arena_strndup(a, at, n);
    }
    return "";
}

static void add_voices(const struct model *m, struct arena *a, struct speech_voice_list *ret)
{
    size_t n = count_speakers(m, a);
    const char *language = language_of(m->name, a);
    bool is_added = n == 1 && speech_voice_add(ret, a, slice_of(m->name), NULL, language);

    for (size_t i = 0; n > 1 && (i == 0 || is_added) && i < n; i++)
        is_added = speech_voice_add(ret, a, slice_of(arena_printf(a, "%s:%zu", m->name, i)), NULL, language);
}

static int compare_models(const void *one, const void *other)
{
    return strcmp(((const struct model *)one)->name, ((const struct model *)other)->name);
}

static size_t find_models(const char *folder, struct arena *a, struct model *ret)
{
    DIR *dir = *folder ? opendir(folder) : NULL;
    size_t n = 0;

    for (struct dirent *at = dir ? readdir(dir) : NULL; at && n < LIMIT_SPEECH_MODELS; at = readdir(dir))
        n += find_model(folder, arena_strdup(a, at->d_name), a, &ret[n]);
    if (dir)
        closedir(dir);
    qsort(ret, n, sizeof(*ret), compare_models);
    return n;
}

static int list(const char *path, const char *folder, struct arena *a, struct speech_voice_list *ret, struct err *e)
{
    struct model *models = arena_array(a, LIMIT_SPEECH_MODELS, sizeof(*models));
    size_t n = find_models(folder, a, models);

    for (size_t i = 0; i < n; i++)
        add_voices(&models[i], a, ret);
    if (ret->n > 0)
        return 0;
    return err_set(e, -ENODEV, "SPEECH_UNAVAILABLE",
                   "The program %s is there, but no voices are: name a folder with folders of models (tokens.txt and a "
                   "file of ONNX) by the setting speech.sherpa_voices.",
                   path);
}

/* ---- arguments ---- */

struct arguments {
    struct arena *arena;
    const char *items[16];
    size_t n;
};

static void add(struct arguments *args, const char *name, const char *value)
{
    args->items[args->n++] = arena_printf(args->arena, "--%s=%s", name, value);
}

static void add_files(struct arguments *args, const struct model *m, const struct file_option *option)
{
    const char *value = "";

    for (size_t i = 0; i < ARRAY_SIZE(option->files) && option->files[i]; i++)
        if (has_file(m, option->files[i], args->arena))
            value = arena_printf(args->arena, "%s%s%s/%s", value, *value ? "," : "", m->folder, option->files[i]);
    if (*value)
        add(args,
            option->is_common ? option->name : arena_printf(args->arena, "%s-%s", m->family->prefix, option->name),
            value);
}

static void add_model(struct arguments *args, const struct model *m)
{
    add(args, m->family->model, arena_printf(args->arena, "%s/%s", m->folder, m->network));
    if (m->vocoder)
        add(args, "matcha-vocoder", arena_printf(args->arena, "%s/%s", m->folder, m->vocoder));
    for (const struct file_option *at = m->family->options; at->name; at++)
        add_files(args, m, at);
}

/* The end of FOLDER:12 is the speaker. */
static const char *split_voice(const char *voice, struct arena *a, const char **ret_name)
{
    const char *colon = strrchr(voice, ':');

    *ret_name = voice;
    if (!colon || !colon[1] || colon[1 + strspn(colon + 1, "0123456789")])
        return "0";
    *ret_name = arena_strndup(a, voice, (size_t)(colon - voice));
    return colon + 1;
}

static int arguments(const char *folder, const struct speech_say *say, struct arena *a, const char *const **ret,
                     struct err *e)
{
    struct arguments *args = ARENA_NEW(a, struct arguments);
    const char *name, *speaker = split_voice(say->voice, a, &name);
    struct model m;

    if (!find_model(folder, name, a, &m))
        return err_set(e, -ENODEV, "SPEECH_UNAVAILABLE",
                       "The folder of the setting speech.sherpa_voices has no model %.64s.", name);
    *args = (struct arguments){ .arena = a };
    add_model(args, &m);
    add(args, "sid", speaker);
    add(args, arena_printf(a, "%s-length-scale", m.family->prefix), arena_printf(a, "%.3f", 1 / say->speed));
    add(args, "num-threads", "2");
    add(args, "output-filename", PROGRAM_TEXT_SOUND);
    args->items[args->n++] = "--";
    *ret = args->items;
    return 0;
}

const struct speech_program_row speech_program_sherpa = {
    .label = "speech sherpa-onnx", .list = list, .arguments = arguments, .takes_text_as_argument = true
};

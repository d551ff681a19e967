/* piper (github.com/rhasspy/piper, github.com/OHF-Voice/piper1-gpl): a voice is NAME.onnx beside NAME.onnx.json. */
#include "speech/programs_private.h"

#include <dirent.h>
#include <stdlib.h>
#include <unistd.h>

#define ONNX ".onnx"

static bool is_voice(const char *folder, const char *name, struct arena *a)
{
    size_t n = strlen(name);

    return n > strlen(ONNX) && strcmp(name + n - strlen(ONNX), ONNX) == 0 &&
           access(arena_printf(a, "%s/%s.json", folder, name), R_OK) == 0;
}

/* "de_DE-thorsten-medium" speaks de_DE. */
static int list(const char *path, const char *folder, struct arena *a, struct speech_voice_list *ret, struct err *e)
{
    DIR *dir = *folder ? opendir(folder) : NULL;
    const struct dirent *entry;

    if (!dir)
        return err_set(e, -ENODEV, "SPEECH_UNAVAILABLE",
                       "The program %s is there, but no voices are: name a folder with files NAME.onnx and "
                       "NAME.onnx.json by the setting speech.piper_voices.",
                       path);
    while ((entry = readdir(dir)))
        if (is_voice(folder, entry->d_name, a))
            speech_voice_add(ret, a, (struct slice){ entry->d_name, strlen(entry->d_name) - strlen(ONNX) }, NULL,
                             arena_strndup(a, entry->d_name, strcspn(entry->d_name, "-")));
    closedir(dir);
    if (ret->n > 0)
        qsort((struct speech_voice *)ret->items, ret->n, sizeof(*ret->items), speech_voice_compare);
    return ret->n > 0 ? 0
                      : err_set(e, -ENODEV, "SPEECH_UNAVAILABLE",
                                "The folder %s (setting speech.piper_voices) has no voice: NAME.onnx and "
                                "NAME.onnx.json.",
                                folder);
}

static int arguments(const char *folder, const struct speech_say *say, struct arena *a, const char *const **ret,
                     struct err *e)
{
    const char *const args[] = { "--model",
                                 arena_printf(a, "%s/%s" ONNX, folder, say->voice),
                                 "--output_file",
                                 "-",
                                 "--length_scale",
                                 arena_printf(a, "%.3f", 1 / say->speed),
                                 NULL };
    const char **copy = arena_array(a, ARRAY_SIZE(args), sizeof(*copy));

    memcpy(copy, args, sizeof(args));
    *ret = copy;
    return 0;
}

const struct speech_program_row speech_program_piper = { .label = "speech piper",
                                                         .list = list,
                                                         .arguments = arguments };

/* flite in a worker: four English voices, each registered when it is first used. */
#include "speech/worker_engine.h"

#include <flite/flite.h>
#include <flite/flite_version.h>
#include <string.h>

cst_voice *register_cmu_us_slt(const char *voxdir);
cst_voice *register_cmu_us_rms(const char *voxdir);
cst_voice *register_cmu_us_awb(const char *voxdir);
cst_voice *register_cmu_us_kal16(const char *voxdir);

static struct flite_voice {
    const char *name;
    cst_voice *(*load)(const char *voxdir);
    cst_voice *voice; /* lives as long as the worker */
} voices[] = {
    { "slt", register_cmu_us_slt, NULL },
    { "rms", register_cmu_us_rms, NULL },
    { "awb", register_cmu_us_awb, NULL },
    { "kal16", register_cmu_us_kal16, NULL },
};

enum { N_VOICES = sizeof(voices) / sizeof(voices[0]) };

static const char *start(void)
{
    return flite_init() == 0 ? NULL : "flite cannot start.";
}

static const char *version(void)
{
    return FLITE_PROJECT_VERSION;
}

static cst_voice *voice_of(const char *name)
{
    for (size_t i = 0; i < N_VOICES; i++) {
        if (strcmp(voices[i].name, name) != 0)
            continue;
        if (!voices[i].voice)
            voices[i].voice = voices[i].load(NULL);
        return voices[i].voice;
    }
    return NULL;
}

static const char *say(const struct worker_sentence *sentence, struct worker_samples *ret)
{
    cst_voice *voice = voice_of(sentence->voice);
    cst_wave *wave;
    bool has_room;

    if (!voice)
        return "flite does not have this voice.";
    flite_feat_set_float(voice->features, "duration_stretch", (float)(1.0 / sentence->speed));
    wave = flite_text_to_wave(sentence->text, voice);
    if (!wave)
        return "flite cannot speak this sentence.";
    ret->rate = wave->sample_rate;
    has_room = worker_samples_add(ret, wave->samples, (size_t)wave->num_samples);
    delete_wave(wave);
    return has_room ? NULL : "The sentence takes too long to speak.";
}

static void list(void (*add)(const char *voice))
{
    for (size_t i = 0; i < N_VOICES; i++)
        add(voices[i].name);
}

const struct worker_engine worker_engine = { .start = start, .version = version, .say = say, .list = list };

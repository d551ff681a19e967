/* The yardstick of bench/speech.mjs: the library espeak-ng, loaded once, without a worker, a service or a measure of
 * loudness. Speaks each line of standard input (at most 1000 bytes) and writes the number of its bytes and its samples.
 *
 *     bench_espeak VOICE
 */
#include <espeak-ng/speak_lib.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { BUFFER_MS = 60, N_MOST = 60 * 22050 };

static struct {
    uint32_t n_bytes;
    int16_t samples[N_MOST];
} sound;

static int take_samples(short *samples, int n, espeak_EVENT *events)
{
    if (!samples || n <= 0 || sound.n_bytes / 2 + (uint32_t)n > N_MOST)
        return samples && n > 0;
    memcpy(sound.samples + sound.n_bytes / 2, samples, (size_t)n * 2);
    sound.n_bytes += (uint32_t)n * 2;
    return 0;
}

int main(int argc, char **argv)
{
    char line[1000];

    if (argc < 2 || espeak_Initialize(AUDIO_OUTPUT_SYNCHRONOUS, BUFFER_MS, NULL, espeakINITIALIZE_DONT_EXIT) <= 0 ||
        espeak_SetVoiceByName(argv[1]) != EE_OK)
        return 1;
    espeak_SetSynthCallback(take_samples);
    while (fgets(line, sizeof(line), stdin)) {
        sound.n_bytes = 0;
        if (espeak_Synth(line, strlen(line) + 1, 0, POS_CHARACTER, 0, espeakCHARS_UTF8 | espeakENDPAUSE, NULL, NULL) !=
                EE_OK ||
            fwrite(&sound, sizeof(sound.n_bytes) + sound.n_bytes, 1, stdout) != 1 || fflush(stdout) != 0)
            return 1;
    }
    return 0;
}

/* WebM, MP4 and other containers through libavformat, libavcodec and libswresample (ffmpeg). A module of its own, which
 * the worker loads for such recordings only: it runs without these libraries. What they may do is a short list: the
 * formats and codecs below, from memory; no other file is opened, whatever a recording refers to. */
#include "speech/worker_source.h"

#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libswresample/swresample.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { IO_BYTES = 32768, STREAMS_MAX = 32, ALLOCATION_MAX = 128 << 20, FRAME_SAMPLES_MAX = 1 << 20 };

static const char formats[] = "matroska,webm,mov,mp4,m4a,3gp,3g2,mj2,ogg,mp3,aac,flac,wav";
static const char codecs[] = "aac,alac,flac,mp3,mp3float,opus,vorbis,pcm_s16le,pcm_s16be,pcm_s24le,pcm_f32le,pcm_u8";
static const char unreadable[] = "is no audio that can be read: WebM, MP4, M4A, AAC.";

struct worker_source {
    const char *bytes; /* borrowed */
    int64_t n, at;
    AVIOContext *io;
    AVFormatContext *file;
    AVCodecContext *decoder;
    SwrContext *convert;
    AVPacket *packet;
    AVFrame *frame;
    int stream;
    struct worker_source_info info;
    float *samples; /* of the frame at hand */
    size_t n_samples, samples_at, n_allocated;
    bool is_flushed;
};

/* ---- the file in memory ---- */

static int read_bytes(void *arg, uint8_t *to, int n)
{
    struct worker_source *s = arg;

    if (n <= 0 || s->at >= s->n)
        return AVERROR_EOF;
    n = n < s->n - s->at ? n : (int)(s->n - s->at);
    memcpy(to, s->bytes + s->at, (size_t)n);
    s->at += n;
    return n;
}

static int64_t seek_to(void *arg, int64_t offset, int whence)
{
    struct worker_source *s = arg;
    int64_t from = whence == SEEK_CUR ? s->at : whence == SEEK_END ? s->n : 0, to;

    if (whence & AVSEEK_SIZE)
        return s->n;
    if (__builtin_add_overflow(from, offset, &to) || to < 0 || to > s->n)
        return AVERROR(EINVAL);
    return s->at = to;
}

/* What a recording refers to is not opened. */
static int refuse_open(AVFormatContext *file, AVIOContext **ret, const char *url, int flags, AVDictionary **options)
{
    return AVERROR(EPERM);
}

/* ---- opening ---- */

static bool open_io(struct worker_source *s)
{
    uint8_t *buffer = av_malloc(IO_BYTES);

    s->io = buffer ? avio_alloc_context(buffer, IO_BYTES, 0, s, read_bytes, NULL, seek_to) : NULL;
    if (!s->io)
        av_free(buffer);
    return s->io != NULL;
}

/* A file that cannot be opened is freed by the library. */
static bool open_file(struct worker_source *s)
{
    s->file = avformat_alloc_context();
    if (!s->file)
        return false;
    s->file->pb = s->io;
    s->file->flags |= AVFMT_FLAG_CUSTOM_IO;
    s->file->io_open = refuse_open;
    s->file->max_streams = STREAMS_MAX;
    s->file->format_whitelist = av_strdup(formats);
    s->file->codec_whitelist = av_strdup(codecs);
    s->file->protocol_whitelist = av_strdup("");
    return s->file->format_whitelist && s->file->codec_whitelist && s->file->protocol_whitelist &&
           avformat_open_input(&s->file, NULL, NULL, NULL) >= 0;
}

/* Pictures are not decoded. */
static bool choose_stream(struct worker_source *s, const AVCodec **ret)
{
    for (unsigned i = 0; i < s->file->nb_streams; i++)
        if (s->file->streams[i]->codecpar->codec_type != AVMEDIA_TYPE_AUDIO)
            s->file->streams[i]->discard = AVDISCARD_ALL;
    if (avformat_find_stream_info(s->file, NULL) < 0)
        return false;
    s->stream = av_find_best_stream(s->file, AVMEDIA_TYPE_AUDIO, -1, -1, ret, 0);
    return s->stream >= 0 && *ret;
}

/* One thread: the worker may not make others. */
static bool open_decoder(struct worker_source *s, const AVCodec *codec)
{
    s->decoder = avcodec_alloc_context3(codec);
    if (!s->decoder || avcodec_parameters_to_context(s->decoder, s->file->streams[s->stream]->codecpar) < 0)
        return false;
    s->decoder->thread_count = 1;
    s->decoder->max_samples = FRAME_SAMPLES_MAX;
    s->decoder->codec_whitelist = av_strdup(codecs);
    return s->decoder->codec_whitelist && avcodec_open2(s->decoder, codec, NULL) >= 0;
}

/* ---- frames ---- */

/* Sends the next packet of the stream, or that there is none. */
static bool feed(struct worker_source *s)
{
    int r;

    if (s->is_flushed)
        return false;
    do {
        av_packet_unref(s->packet);
        r = av_read_frame(s->file, s->packet);
    } while (r >= 0 && s->packet->stream_index != s->stream);
    s->is_flushed = r < 0;
    (void)avcodec_send_packet(s->decoder, s->is_flushed ? NULL : s->packet); /* a damaged one is left out */
    av_packet_unref(s->packet);
    return true;
}

static bool next_frame(struct worker_source *s)
{
    int r = avcodec_receive_frame(s->decoder, s->frame);

    while (r < 0 && r != AVERROR_EOF && feed(s))
        r = avcodec_receive_frame(s->decoder, s->frame);
    return r >= 0;
}

/* The first frame says what the stream is; the head of a file may be wrong. */
static bool start_conversion(struct worker_source *s)
{
    AVFrame *f = s->frame;

    if (f->sample_rate < SOURCE_RATE_MIN || f->sample_rate > SOURCE_RATE_MAX || f->ch_layout.nb_channels < 1 ||
        f->ch_layout.nb_channels > SOURCE_CHANNELS_MAX)
        return false;
    s->info = (struct worker_source_info){ (uint32_t)f->sample_rate, (uint32_t)f->ch_layout.nb_channels };
    return swr_alloc_set_opts2(&s->convert, &f->ch_layout, AV_SAMPLE_FMT_FLT, f->sample_rate, &f->ch_layout,
                               (enum AVSampleFormat)f->format, f->sample_rate, 0, NULL) >= 0 &&
           swr_init(s->convert) >= 0;
}

static bool reserve(struct worker_source *s, size_t n_frames)
{
    float *grown;

    if (n_frames <= s->n_allocated)
        return true;
    grown = realloc(s->samples, n_frames * s->info.n_channels * sizeof(*grown));
    if (!grown)
        return false;
    s->samples = grown;
    s->n_allocated = n_frames;
    return true;
}

/* A stream that changes its rate or channels has ended. */
static bool take_frame(struct worker_source *s)
{
    const AVFrame *f = s->frame;
    uint8_t *out;
    int n;

    if (f->nb_samples < 0 || f->nb_samples > FRAME_SAMPLES_MAX || (uint32_t)f->sample_rate != s->info.rate ||
        (uint32_t)f->ch_layout.nb_channels != s->info.n_channels || !reserve(s, (size_t)f->nb_samples + 1))
        return false;
    out = (uint8_t *)s->samples;
    n = swr_convert(s->convert, &out, f->nb_samples, (const uint8_t **)f->extended_data, f->nb_samples);
    s->n_samples = n > 0 ? (size_t)n : 0;
    s->samples_at = 0;
    return n >= 0;
}

static size_t read_source(struct worker_source *s, float *frames, size_t n)
{
    size_t n_channels = s->info.n_channels;

    while (s->samples_at == s->n_samples)
        if (!next_frame(s) || !take_frame(s))
            return 0;
    n = n < s->n_samples - s->samples_at ? n : s->n_samples - s->samples_at;
    memcpy(frames, s->samples + s->samples_at * n_channels, n * n_channels * sizeof(*frames));
    s->samples_at += n;
    return n;
}

/* ---- the reader ---- */

static void close_source(struct worker_source *s)
{
    if (!s)
        return;
    swr_free(&s->convert);
    avcodec_free_context(&s->decoder);
    avformat_close_input(&s->file);
    if (s->io)
        av_freep(&s->io->buffer);
    avio_context_free(&s->io);
    av_packet_free(&s->packet);
    av_frame_free(&s->frame);
    free(s->samples);
    free(s);
}

static struct worker_source *make_source(const char *bytes, size_t n)
{
    struct worker_source *s = calloc(1, sizeof(*s));

    if (s) {
        s->bytes = bytes;
        s->n = (int64_t)n;
    }
    return s;
}

static const char *open_parts(struct worker_source *s)
{
    const AVCodec *codec = NULL;

    s->packet = av_packet_alloc();
    s->frame = av_frame_alloc();
    if (!s->packet || !s->frame || !open_io(s))
        return "is too large.";
    if (!open_file(s) || !choose_stream(s, &codec) || !open_decoder(s, codec) || !next_frame(s))
        return unreadable;
    return start_conversion(s) && take_frame(s)
               ? NULL
               : "must have 4,000 to 384,000 samples a second and at most 32 channels.";
}

static const char *open_source(struct worker_source *s, struct worker_source_info *ret_info)
{
    const char *why;

    av_log_set_level(AV_LOG_QUIET);
    av_max_alloc(ALLOCATION_MAX);
    why = open_parts(s);
    *ret_info = s->info;
    return why;
}

extern const struct worker_reader hearth_containers;
__attribute__((visibility("default")))
const struct worker_reader hearth_containers = { make_source, open_source, read_source, close_source };

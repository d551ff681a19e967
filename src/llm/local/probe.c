#include "llm/local/probe.h"

#include <stdlib.h>
#include <string.h>

/* {"version":"0.12.3"} and nothing else. */
static bool is_ollama(const struct http_answer *answer, struct json_value body)
{
    struct slice version = json_string(json_get(body, "version"));

    return json_length(body) == 1 && version.n > 0 && version.p[0] >= '0' && version.p[0] <= '9';
}

/* LM Studio's own list shows for each model whether it is loaded. For an unknown path LM Studio answers 200 {"error"}.
 */
static bool is_lm_studio(const struct http_answer *answer, struct json_value body)
{
    struct json_iter it = json_iter(json_get(body, "data"));
    struct json_value first = { 0 };

    return json_next(&it, NULL, &first) && json_string(json_get(first, "id")).n > 0 &&
           json_string(json_get(first, "state")).n > 0 && json_string(json_get(first, "type")).n > 0;
}

/* llama.cpp's server names itself in every answer; the probed path requires the key, so a server with a key is not
 * offered. */
static bool is_llama_cpp(const struct http_answer *answer, struct json_value body)
{
    const char *server = http_answer_header(answer, "server");

    return server && strcmp(server, "llama.cpp") == 0 &&
           json_type(json_get(body, "default_generation_settings")) == JSON_OBJECT;
}

static bool is_list(struct json_value value)
{
    return json_type(value) == JSON_ARRAY || json_type(value) == JSON_NULL;
}

/* {"backends":[...],"loaded_models":[...]} */
static bool is_local_ai(const struct http_answer *answer, struct json_value body)
{
    return is_list(json_get(body, "backends")) && is_list(json_get(body, "loaded_models"));
}

/* {"voices":[...]} at the path that Kokoro-FastAPI shares with few others. */
static bool is_kokoro(const struct http_answer *answer, struct json_value body)
{
    struct json_value voices = json_get(body, "voices");

    return json_type(voices) == JSON_ARRAY && json_length(voices) > 0;
}

/* Piper's HTTP server shows the configuration of each voice. */
static bool is_piper(const struct http_answer *answer, struct json_value body)
{
    struct json_iter it = json_iter(body);
    struct json_value first = { 0 };

    return json_next(&it, NULL, &first) && json_int(json_get(json_get(first, "audio"), "sample_rate")) > 0;
}

/* whisper.cpp's server names itself in every answer. */
static bool is_whisper_cpp(const struct http_answer *answer, struct json_value body)
{
    const char *server = http_answer_header(answer, "server");

    return server && strcmp(server, "whisper.cpp") == 0;
}

const struct llm_probe llm_probes[LLM_N_PROBES] = {
    { "ollama", 11434, "/api/version", is_ollama },    { "lmstudio", 1234, "/api/v0/models", is_lm_studio },
    { "llamacpp", 8080, "/props", is_llama_cpp },      { "localai", 8080, "/system", is_local_ai },
    { "kokoro", 8880, "/v1/audio/voices", is_kokoro }, { "piper", 5000, "/voices", is_piper },
    { "whispercpp", 8080, "/health", is_whisper_cpp },
};

bool llm_probe_knows(const struct llm_probe *probe, const struct http_answer *answer, struct arena *a)
{
    struct json_value body = { 0 };

    return answer->status == 200 && json_parse(a, answer->body, &body, NULL) == 0 && json_type(body) == JSON_OBJECT &&
           probe->is_its(answer, body);
}

uint16_t llm_probe_port(const struct llm_probe *probe, const char *const *local_ports)
{
    size_t n = strlen(probe->preset);

    for (; *local_ports; local_ports++)
        if (strncmp(*local_ports, probe->preset, n) == 0 && (*local_ports)[n] == '=')
            return (uint16_t)strtoul(*local_ports + n + 1, NULL, 10);
    return probe->port;
}

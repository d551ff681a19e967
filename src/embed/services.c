/* The properties of each provider's embedding interface. */
#include "embed/embed.h"

#include <string.h>

/* clang-format off */
const struct embed_service embed_services[] = {
    { "openai",         &embed_openai, .max_batch = 500, .max_tokens = 8191,  .n_parallel = 4, .has_base64 = true },
    { "azure",          &embed_openai, .max_batch = 16,  .max_tokens = 8191,  .n_parallel = 4, .has_base64 = true, .deployment_key = "api-key" },
    { "gemini",         &embed_openai, .max_batch = 4,   .max_tokens = 2048,  .n_parallel = 4 },
    { "mistral",        &embed_openai, .max_batch = 64,  .max_tokens = 8192,  .n_parallel = 4 },
    { "cohere",         &embed_openai, .max_batch = 96,  .max_tokens = 0,     .n_parallel = 4 },
    { "voyageai",       &embed_openai, .max_batch = 128, .max_tokens = 32000, .n_parallel = 4, .dimensions = "output_dimension", .has_base64 = true,
      .has_input_type = true, .truncates = true },
    { "openrouter",     &embed_openai, .max_batch = 500, .max_tokens = 8191,  .n_parallel = 4 },
    { "litellm",        &embed_openai, .max_batch = 500, .max_tokens = 0,     .n_parallel = 4 },
    { "localai",        &embed_openai, .max_batch = 50,  .max_tokens = 0,     .n_parallel = 2 },
    { "lemonade",       &embed_openai, .max_batch = 50,  .max_tokens = 0,     .n_parallel = 2 },
    { "llamacpp",       &embed_openai, .max_batch = 50,  .max_tokens = 0,     .n_parallel = 2 },
    { "lmstudio",       &embed_openai, .max_batch = 1,   .max_tokens = 0,     .n_parallel = 4 },
    { "ollama",         &embed_ollama, .max_batch = 32,  .max_tokens = 0,     .n_parallel = 2 },
    { "generic-openai", &embed_openai, .max_batch = 500, .max_tokens = 0,     .n_parallel = 2 },
    { "stand-in",       &embed_stand_in, .max_batch = 16, .max_tokens = 0,    .n_parallel = 1 },
    { .id = NULL },
};
/* clang-format on */

const struct embed_service *embed_service_of(const char *provider_id)
{
    const struct embed_service *service = embed_services;

    while (service->id && strcmp(service->id, provider_id) != 0)
        service++;
    return service->id ? service : embed_service_of("generic-openai");
}

bool embed_is_deployment(const struct embed_service *service, const char *base_url)
{
    return service->deployment_key && strstr(base_url, "/openai/deployments");
}

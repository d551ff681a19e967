/* The head of a model file. The values read stay in bounds, and an estimate of memory is never negative. */
#include "llm/local/gguf.h"

#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    struct gguf_info info;

    if (gguf_parse((struct slice){ (const char *)bytes, n }, &info, NULL) < 0)
        return 0;
    assert(memchr(info.architecture, '\0', sizeof(info.architecture)));
    assert(info.n_context >= 0 && info.n_layers >= 0 && info.n_heads >= 0 && info.pooling >= 0);
    assert(gguf_context_bytes(&info, 8192) >= 0);
    gguf_is_embedding(&info);
    return 0;
}

/* The mark of a unit or autostart entry, read from a file that anybody may have changed. Only a text with its own hash
 * is ours; a folder is a single line of the text. */
#include "base/hash.h"
#include "cli/unit_text.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct slice text = { (const char *)data, size };
    enum unit_text_kind kind = unit_text_kind(text);
    const char *folder = unit_text_data_dir(a, text);

    if (hash_init(NULL) < 0)
        return 0;
    assert(!folder || kind != UNIT_TEXT_FOREIGN);
    assert(!folder || !strchr(folder, '\n'));
    unit_text_runs(text, "/usr/bin/hearth");
    return 0;
}

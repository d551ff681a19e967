/* The schemas of the table's rows, read once for all turns and all their steps. */
#include "agents/builtin.h"

#include "base/arena.h"
#include "base/json_schema.h"

#include <assert.h>
#include <pthread.h>

struct builtin_read {
    struct json_value value;
    const struct json_schema *compiled;
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct arena *memory;         /* never freed: the table is of the whole process */
static struct builtin_read *schemas; /* of each row, in memory */

static void read_schemas(void)
{
    memory = arena_new();
    schemas = arena_array(memory, n_builtin_tools, sizeof(*schemas));
    for (size_t i = 0; i < n_builtin_tools; i++) {
        int r = json_parse(memory, slice_of(builtin_tools[i].input_schema), &schemas[i].value, NULL);

        if (r == 0)
            r = json_schema_compile(memory, schemas[i].value, "schema", &schemas[i].compiled, NULL);
        assert(r == 0); /* the rows are constant, and tests read each of them */
        (void)r;
    }
}

const struct json_schema *builtin_schema(const struct builtin_tool *tool, struct json_value *ret_value)
{
    const struct builtin_read *read;

    pthread_once(&once, read_schemas);
    read = &schemas[tool - builtin_tools];
    *ret_value = read->value;
    return read->compiled;
}

#include "base/floats.h"
#include "embed/embed.h"

size_t embed_vector_length(struct json_value vector)
{
    return json_type(vector) == JSON_STRING ? floats_in_base64(json_string(vector)) : json_length(vector);
}

bool embed_vector_read(struct json_value vector, float *ret, size_t n)
{
    bool is_read = json_type(vector) == JSON_STRING ? floats_read_base64(json_string(vector), ret, n)
                                                    : json_read_floats(vector, ret, n) == n;

    return is_read && floats_count_finite(ret, n) == n;
}

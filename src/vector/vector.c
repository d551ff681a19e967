#include "vector/vector.h"

#include "vector/chroma.h"
#include "vector/pgvector.h"
#include "vector/qdrant.h"

static const struct vectors_field no_fields[] = { { NULL } };

const struct vectors_provider vectors_providers[] = {
    { "embedded", "Embedded", "Vectors in Hearth's own database on this machine. Nothing to set up.", no_fields, NULL },
    { "pgvector", "PostgreSQL (pgvector)", "A table of a PostgreSQL database that has the extension pgvector. Queries without a filter are approximate.", pgvector_fields, pgvector_open },
    { "chroma", "Chroma", "Collections of a Chroma server of version 1.0 or newer. Its index is approximate.", chroma_fields, chroma_open },
    { "qdrant", "Qdrant", "Collections of a Qdrant server. Its index is approximate.", qdrant_fields, qdrant_open },
    { NULL },
};

const struct vectors_provider *vectors_provider_find(const char *name)
{
    for (const struct vectors_provider *p = vectors_providers; p->name; p++)
        if (strcmp(p->name, name) == 0)
            return p;
    return NULL;
}

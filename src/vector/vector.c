#include "vector/vector.h"

#include "vector/pgvector/pgvector.h"
#include "vector/remote/astra.h"
#include "vector/remote/chroma.h"
#include "vector/remote/milvus.h"
#include "vector/remote/pinecone.h"
#include "vector/remote/qdrant.h"
#include "vector/remote/weaviate.h"

static const struct vectors_field no_fields[] = { { NULL } };

const struct vectors_provider vectors_providers[] = {
    { "embedded", "Embedded", "Vectors in Hearth's own database on this machine. Nothing to set up.", no_fields, NULL },
    { "lancedb", "LanceDB",
      "Another name of the embedded store, for programs that know LanceDB by name: the same vectors.", no_fields,
      NULL },
    { "pgvector", "PostgreSQL (pgvector)",
      "A table of a PostgreSQL database that has the extension pgvector. Queries without a filter are approximate.",
      pgvector_fields, pgvector_open },
    { "chroma", "Chroma", "Collections of a Chroma server of version 1.0 or newer. Its index is approximate.",
      chroma_fields, chroma_open },
    { "qdrant", "Qdrant", "Collections of a Qdrant server. Its index is approximate.", qdrant_fields, qdrant_open },
    { "milvus", "Milvus",
      "Collections of a Milvus server of version 2.4 or newer, or of Zilliz Cloud. Its index is approximate.",
      milvus_fields, milvus_open },
    { "weaviate", "Weaviate", "Classes of a Weaviate server. Its index is approximate.", weaviate_fields,
      weaviate_open },
    { "pinecone", "Pinecone",
      "Namespaces of a serverless index of Pinecone, with the metric cosine. What was stored is found some seconds later.",
      pinecone_fields, pinecone_open },
    { "astra", "Astra DB", "Collections of an Astra DB database, over its Data API. Its index is approximate.",
      astra_fields, astra_open },
    { NULL },
};

const struct vectors_provider *vectors_provider_find(const char *name)
{
    for (const struct vectors_provider *p = vectors_providers; p->name; p++)
        if (strcmp(p->name, name) == 0)
            return p;
    return NULL;
}
